// Walking through a trace firing by firing: from the first of the first pass to the last of the last one.

import type { Stage } from "./model";

export interface Place {
  stage: number;
  /** Steps of the stage that are done. */
  step: number;
}

/** The numbers of steps at which a walk stops in a stage: 0, and every firing, or a transform (with `rebuilds`: every step). */
export function stopsOf(stage: Stage, rebuilds: boolean): number[] {
  const all = stage.steps.map((_, i) => i + 1);
  return [0, ...(rebuilds || stage.transform !== null ? all : all.filter((k) => stage.steps[k - 1].rule !== null))];
}

/**
 * The stop after (1) or before (-1) a place. At the end of a pass it is the first firing of the next pass that has any;
 * before the first firing of a pass, the last one of the pass before. Null at either end of the trace. A stage without
 * firings that has a text (`isText`) is one stop.
 */
export function nextStop(
  stages: readonly Stage[],
  at: Place,
  direction: 1 | -1,
  rebuilds: boolean,
  isText: (stage: number) => boolean = () => false,
): Place | null {
  const here = stages[at.stage];
  const own = here === undefined ? [] : stopsOf(here, rebuilds);
  const near = direction > 0 ? own.find((k) => k > at.step) : own.findLast((k) => k < at.step && k > 0);
  if (near !== undefined) return { stage: at.stage, step: near };
  for (let id = at.stage + direction; id >= 0 && id < stages.length; id += direction) {
    const stops = stopsOf(stages[id], rebuilds);
    if (stops.length > 1) return { stage: id, step: direction > 0 ? stops[1] : stops[stops.length - 1] };
    if (isText(id)) return { stage: id, step: 0 };
  }
  return direction < 0 && at.step > 0 ? { stage: at.stage, step: 0 } : null;
}

/** Where the story begins: the schedule with its reasons, else before the first firing. */
export function beginning(stages: readonly Stage[]): Place | null {
  const first =
    stages.find((stage) => stage.decisions.length > 0) ?? stages.find((stage) => stage.steps.length > 0) ?? stages[0];
  return first === undefined ? null : { stage: first.id, step: 0 };
}

/** How many rules have fired once `step` steps are done. */
export function firingsUpTo(stage: Stage, step: number): number {
  let done = 0;
  for (let i = 0; i < step; i += 1) if (stage.steps[i].rule !== null) done += 1;
  return done;
}
