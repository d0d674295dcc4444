import assert from "node:assert/strict";
import { test } from "node:test";
import { layOutInFrames } from "../src/frame_layout";

const box = (id: number): { id: number; width: number; height: number } => ({ id, width: 60, height: 40 });

test("a kernel's boxes lie in its frame, others outside of all frames, and sources above their users", () => {
  const boxes = [0, 1, 2, 3, 4, 5].map(box);
  const edges = [
    [0, 1],
    [1, 2],
    [2, 3],
    [5, 3],
    [3, 4],
  ].map(([src, dst]) => ({ src, dst }));
  const owner = new Map([
    [1, 0],
    [2, 0],
    [3, 1],
    [4, 1],
  ]);
  const layout = layOutInFrames(
    boxes,
    edges,
    (id) => owner.get(id) ?? null,
    () => 200,
  )!;
  assert.deepEqual(
    layout.frames.map(({ kernel }) => kernel),
    [0, 1],
  );
  const within = (id: number): number[] => {
    const { x, y } = layout.positions.get(id)!;
    return layout.frames
      .filter((f) => x - 30 >= f.left && x + 30 <= f.left + f.width && y - 20 >= f.top && y + 20 <= f.top + f.height)
      .map((f) => f.kernel);
  };
  assert.deepEqual(
    boxes.map(({ id }) => within(id)),
    [[], [0], [0], [1], [1], []],
  );
  for (const { src, dst } of edges) assert.ok(layout.positions.get(src)!.y < layout.positions.get(dst)!.y);
  assert.ok(layout.frames[0].top + layout.frames[0].height <= layout.frames[1].top);
  assert.equal(layout.edges.length, edges.length);
  for (const { src, dst, points } of layout.edges) {
    const [[x0, y0], [x1, y1]] = [points[0], points[points.length - 1]];
    assert.deepEqual([x0, y0], [layout.positions.get(src)!.x, layout.positions.get(src)!.y + 20]);
    assert.ok(Math.abs(x1 - layout.positions.get(dst)!.x) <= 30 && y1 === layout.positions.get(dst)!.y - 20);
  }
});

test("frames that depend on one another in a circle are not drawn", () => {
  const edges = [
    [0, 1],
    [1, 2],
  ].map(([src, dst]) => ({ src, dst }));
  assert.equal(
    layOutInFrames(
      [0, 1, 2].map(box),
      edges,
      (id) => (id === 1 ? 1 : 0),
      () => 0,
    ),
    null,
  );
});
