// Walks a trace firing by firing, from the first of the first pass to the last of the last pass.

import type { Stage } from "./model";

export interface StepPosition {
  stage: number;
  /** The number of finished steps of the stage. */
  step: number;
}

/**
 * Returns the numbers of steps at which a walk stops in a stage: 0, every firing and transform (with `rebuilds`: every
 * step).
 */
export function listStepStops(stage: Stage, rebuilds: boolean): number[] {
  const all = stage.steps.map((_, i) => i + 1);
  return [0, ...(rebuilds || stage.transform !== null ? all : all.filter((k) => stage.steps[k - 1].rule !== null))];
}

/**
 * Returns the stop after (1) or before (-1) a position. After the end of a pass comes the first firing of the next pass
 * that has any; before the first firing, the last one of the previous pass. Null at either end of the trace. A stage
 * without firings that has a text (`isText`) is one stop.
 */
export function findNextStop(
  stages: readonly Stage[],
  position: StepPosition,
  direction: 1 | -1,
  rebuilds: boolean,
  isText: (stage: number) => boolean = () => false,
): StepPosition | null {
  const stage = stages[position.stage];
  const stageStops = stage === undefined ? [] : listStepStops(stage, rebuilds);
  const near =
    direction > 0 ? stageStops.find((k) => k > position.step) : stageStops.findLast((k) => k < position.step && k > 0);
  if (near !== undefined) return { stage: position.stage, step: near };
  for (let id = position.stage + direction; id >= 0 && id < stages.length; id += direction) {
    const stops = listStepStops(stages[id], rebuilds);
    if (stops.length > 1) return { stage: id, step: direction > 0 ? stops[1] : stops[stops.length - 1] };
    if (isText(id)) return { stage: id, step: 0 };
  }
  return direction < 0 && position.step > 0 ? { stage: position.stage, step: 0 } : null;
}

/** Returns the first position of the story: the schedule with its reasons, else before the first firing. */
export function findBeginning(stages: readonly Stage[]): StepPosition | null {
  const first =
    stages.find((stage) => stage.decisions.length > 0) ?? stages.find((stage) => stage.steps.length > 0) ?? stages[0];
  return first === undefined ? null : { stage: first.id, step: 0 };
}

/** Returns the number of rules that have fired after `step` steps. */
export function countFirings(stage: Stage, step: number): number {
  let done = 0;
  for (let i = 0; i < step; i += 1) if (stage.steps[i].rule !== null) done += 1;
  return done;
}
