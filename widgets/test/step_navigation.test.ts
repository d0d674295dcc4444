import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stage } from "../src/model";
import { type StepPosition, findBeginning, findNextStop } from "../src/step_navigation";

/** Stages by the rules of their steps; null is a rebuild. "transform": the one step of a transform. */
function stagesOf(...rules: ((number | null)[] | "transform")[]): Stage[] {
  return rules.map((of, id) => {
    const steps = of === "transform" ? [{ rule: null }] : of.map((rule) => ({ rule }));
    return { id, steps, transform: of === "transform" ? 0 : null, decisions: [] } as unknown as Stage;
  });
}

function walk(stages: Stage[], from: StepPosition, direction: 1 | -1, rebuilds = false): string[] {
  const seen: string[] = [];
  for (
    let at: StepPosition | null = from;
    at !== null && seen.length < 50;
    at = findNextStop(stages, at, direction, rebuilds)
  ) {
    seen.push(`${at.stage}.${at.step}`);
  }
  return seen;
}

test("a walk runs on into the next pass that fires, and stops at the last firing", () => {
  const stages = stagesOf([], [0, null, 1], [], [null], [2]);
  assert.deepEqual(walk(stages, { stage: 0, step: 0 }, 1), ["0.0", "1.1", "1.3", "4.1"]);
});

test("a walk back is the same places in reverse, and ends before the first firing", () => {
  const stages = stagesOf([], [0, null, 1], [], [null], [2]);
  assert.deepEqual(walk(stages, { stage: 4, step: 1 }, -1), ["4.1", "1.3", "1.1", "1.0"]);
});

test("a transform is one stop", () => {
  const stages = stagesOf([0], "transform", [null], [1]);
  assert.deepEqual(walk(stages, { stage: 0, step: 0 }, 1), ["0.0", "0.1", "1.1", "3.1"]);
});

test("with rebuilds every step is a stop", () => {
  const stages = stagesOf([0, null], [null]);
  assert.deepEqual(walk(stages, { stage: 0, step: 0 }, 1, true), ["0.0", "0.1", "0.2", "1.1"]);
});

test("the story begins with the schedule, or before the first firing", () => {
  const stages = stagesOf([], [0], [1]);
  assert.deepEqual(findBeginning(stages), { stage: 1, step: 0 });
  (stages[0] as { decisions: unknown[] }).decisions = [{}];
  assert.deepEqual(findBeginning(stages), { stage: 0, step: 0 });
  assert.equal(findBeginning([]), null);
});
