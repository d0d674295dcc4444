import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  type CellRange,
  type ViewData,
  cellsOf,
  memoryWidth,
  memoryWindow,
  offsetOf,
  chooseBox,
  viewText,
} from "../src/shape_cells";

interface Row {
  views: ViewData[];
  first: number[];
  box: CellRange;
  offsets: (number | null)[];
}

const rows = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/shapes/chains.json", import.meta.url), "utf8"),
) as Row[];

test("the elements of random views lie where Python says", () => {
  assert.ok(rows.some(({ views }) => views.length > 1) && rows.some(({ offsets }) => offsets.includes(null)));
  for (const { views, first, box, offsets } of rows) {
    const shape = views.at(-1)![0];
    assert.deepEqual(chooseBox(shape, first), box);
    assert.deepEqual(
      cellsOf(views, box).map(({ offset }) => offset),
      offsets,
    );
  }
});

test("memory is drawn in the rows of the first shape that has some, around what is read", () => {
  const plain: ViewData = [[4, 6], [6, 1], 0, null];
  const step = {
    op: "",
    arg: "",
    law: "",
    formula: "",
    node: null,
    before: ["", ""] as [string, string],
    after: ["", ""] as [string, string],
  };
  assert.equal(
    memoryWidth([
      { ...step, shape: [24], views: [[[24], [1], 0, null]] },
      { ...step, shape: [4, 6], views: [plain] },
    ]),
    6,
  );
  assert.equal(memoryWidth([{ ...step, shape: [6, 4], views: [[[6, 4], [1, 6], 0, null]] }]), 16);
  assert.deepEqual(memoryWindow(10000, 16, 5000), [4992, 5248]);
  assert.deepEqual(memoryWindow(10, 16, 5), [0, 10]);
  assert.equal(offsetOf([plain], [1, 2]), 8);
  assert.equal(viewText([[2], [-1], 1, [[0, 1]]]), "2, strides (-1), offset 1, valid in 0:1");
});
