import assert from "node:assert/strict";
import { test } from "node:test";
import { layout } from "../src/layout";
import { layOutIncrementally } from "../src/incremental_layout";

const box = (id: number): { id: number; width: number; height: number } => ({ id, width: 90, height: 40 });
const edge = ([src, dst]: number[]): { src: number; dst: number } => ({ src, dst });

test("what was there stays, what is new stands free between its sources and its users", () => {
  const before = layout({
    nodes: [0, 1, 2, 3].map(box),
    edges: [
      [0, 2],
      [1, 2],
      [2, 3],
    ].map(edge),
  }).positions;
  const nodes = [0, 1, 4, 2, 5, 3].map(box);
  const edges = [
    [0, 4],
    [4, 2],
    [1, 2],
    [2, 3],
    [0, 5],
    [5, 3],
  ].map(edge);
  const made = layOutIncrementally({ nodes, edges }, before)!;
  for (const [id, at] of before) assert.deepEqual(made.positions.get(id), { x: at.x, y: at.y });
  const all = [...made.positions.values()];
  all.forEach((a, i) =>
    all.slice(i + 1).forEach((b) => assert.ok(Math.abs(a.x - b.x) >= 90 || Math.abs(a.y - b.y) >= 40)),
  );
  for (const { src, dst } of edges) assert.ok(made.positions.get(src)!.y < made.positions.get(dst)!.y);
  assert.equal(made.edges.length, edges.length);
});

test("where nearly all is new, or much would run upwards, the graph is laid out anew", () => {
  const nodes = [0, 1, 2, 3, 4].map(box);
  const edges = [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 4],
  ].map(edge);
  const { positions } = layout({ nodes, edges });
  assert.equal(layOutIncrementally({ nodes, edges }, new Map([[0, { x: 0, y: 0 }]])), null);
  assert.equal(
    layOutIncrementally({ nodes, edges: edges.map(({ src, dst }) => ({ src: dst, dst: src })) }, positions),
    null,
  );
  assert.notEqual(layOutIncrementally({ nodes, edges }, positions), null);
});
