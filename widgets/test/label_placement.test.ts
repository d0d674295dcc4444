import assert from "node:assert/strict";
import { test } from "node:test";
import { type Spot, spreadDots } from "../src/label_placement";

const distances = (spots: readonly Spot[]): number[] =>
  spots.flatMap(([x, y], i) => spots.slice(i + 1).map(([a, b]) => Math.hypot(x - a, y - b)));

test("dots that are apart stay where they are", () => {
  const spots: Spot[] = [
    [50, 10],
    [10, 10],
    [10, 40],
  ];
  assert.deepEqual(spreadDots(spots, 9), spots);
});

test("dots at one place stand beside each other, at their height", () => {
  const spots: Spot[] = [
    [100, 20],
    [100, 21],
    [101, 20],
    [100, 20],
  ];
  const found = spreadDots(spots, 9);
  assert.ok(Math.min(...distances(found)) >= 18);
  assert.deepEqual(
    found.map(([, y]) => y),
    spots.map(([, y]) => y),
  );
});
