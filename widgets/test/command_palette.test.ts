import assert from "node:assert/strict";
import { test } from "node:test";
import { findEntries } from "../src/command_palette/box";
import type { Entry } from "../src/command_palette/entries";
import { matchOf } from "../src/command_palette/ranking";

const entry = (kind: Entry["kind"], name: string, says = ""): Entry => ({ kind, name, says, go: () => undefined });
const names = (query: string, ...entries: Entry[]): string[] =>
  findEntries(query, entries).rows.map(({ name }) => name);

test("whole names come first, then beginnings, beginnings of words, parts, and letters in order", () => {
  const found = ["store", "store_load", "fold_stores", "bitstored", "s_to_range_ended", "load"].map((name) =>
    entry("rule", name),
  );
  assert.deepEqual(names("store", ...found.reverse()), [
    "store",
    "store_load",
    "fold_stores",
    "bitstored",
    "s_to_range_ended",
  ]);
});

test("what answers equally well is listed by kind, then the shorter name, then as it came", () => {
  const found = [
    entry("opcode", "ret"),
    entry("rule", "reduce_to_loop"),
    entry("rule", "redo"),
    entry("panel", "Rewrites"),
    entry("opcode", "rep"),
  ];
  assert.deepEqual(names("re", ...found), ["Rewrites", "redo", "reduce_to_loop", "ret", "rep"]);
});

test("each word must answer, in the name or in what is said beside it", () => {
  const [first, second] = [entry("pass", "simplify", "kernel 0"), entry("pass", "simplify", "kernel 1")];
  assert.equal(findEntries("simplify kernel 1", [first, second]).total, 1);
  assert.equal(findEntries("pass simp", [first, second]).total, 2); // the kind is said, too
  assert.equal(findEntries("simplify roofline", [first, second]).total, 0);
});

test("the letters that answer are marked", () => {
  assert.deepEqual(matchOf("ld", "LOAD"), { score: 18, marked: [0, 3] });
  assert.deepEqual(matchOf("pass", "nextPass")?.marked, [4, 5, 6, 7]);
  assert.deepEqual(matchOf("fit graph", "Fit the graph")?.marked, [0, 1, 2, 8, 9, 10, 11, 12]);
  assert.equal(matchOf("tf", "Fit the graph"), null); // in another order
  assert.equal(matchOf("oad", "LOAD")?.score, 40);
});

test("without a query there are panels and actions, in their order; what is too much is counted", () => {
  const found = [entry("action", "Fit"), entry("panel", "Why"), entry("opcode", "ret")];
  assert.deepEqual(names("", ...found), ["Fit", "Why"]);
  const { rows, total } = findEntries(
    "ret",
    Array.from({ length: 80 }, (_, i) => entry("opcode", `ret${i}`)),
  );
  assert.deepEqual([rows.length, total], [50, 80]);
});
