import assert from "node:assert/strict";
import { test } from "node:test";

import { diffRows, foldEqual } from "../src/side_by_side_diff";

const pairs = (before: string, after: string): (number | null)[][] =>
  diffRows(before.split(""), after.split("")).map((row) => [row.before, row.after]);

test("equal lines share a row, what was replaced stands side by side", () => {
  assert.deepEqual(pairs("abc", "axc"), [
    [0, 0],
    [1, 1],
    [2, 2],
  ]);
  assert.deepEqual(pairs("abcd", "ad"), [
    [0, 0],
    [1, null],
    [2, null],
    [3, 1],
  ]);
  assert.deepEqual(pairs("", "ab"), [
    [null, 0],
    [null, 1],
  ]);
});

test("every line of both texts is in exactly one row, in order", () => {
  const [before, after] = ["xaabbccy", "aacbbdcz"];
  const rows = diffRows(before.split(""), after.split(""));
  const of = (side: "before" | "after"): number[] =>
    rows.map((row) => row[side]).filter((at): at is number => at !== null);
  assert.deepEqual(
    of("before"),
    [...before].map((_, at) => at),
  );
  assert.deepEqual(
    of("after"),
    [...after].map((_, at) => at),
  );
  for (const row of rows) if (row.same) assert.equal(before[row.before!], after[row.after!]);
});

test("lines far from a change are folded", () => {
  const rows = diffRows([..."abcdefgh"], [..."Xbcdefgh"]);
  const shown = foldEqual(rows, 2);
  assert.equal(shown.length, 4);
  const last = shown.at(-1)!;
  assert.ok("hidden" in last);
  assert.equal(last.hidden.length, 5);
});
