import assert from "node:assert/strict";
import { test } from "node:test";
import type { StageText, Trace } from "../src/model";
import { findLineHistory, parseLineQuery, findNextPlace, findPlaces } from "../src/stage_text_search";

type Row = [text: string, nodes: number[], origin: number | null];

const text = (id: number, language: string, before: number | null, rows: Row[]): StageText => ({
  id,
  stage: id,
  language,
  title: "",
  before,
  lines: rows.map(([words, nodes, origin]) => ({ text: words, nodes, origin })),
});

// the texts of tests/explore/test_stage_texts.py
const TEXTS = [
  text(0, "tir", null, [
    ["f:", [], null],
    ["  %a = load x", [0], null],
    ["  %b = add %a, %a", [1], null],
  ]),
  text(1, "tir", 0, [
    ["f:", [], 0],
    ["  %a = load x", [0], 1],
    ["  %b = shl %a, 1", [1], 2],
  ]),
  text(2, "tasm", 1, [
    ["f:", [], null],
    ["  ld r1, x", [0], null],
    ["  sll r1, 1", [1, 3], null],
  ]),
];
const TRACE = { stage_texts: TEXTS } as Trace;
const history = (of: number, line: number): [number, number][] =>
  findLineHistory(TRACE, { text: of, line }).map((place) => [place.text, place.line]);

test("a line leads back to where it got its words, as in Python", () => {
  assert.deepEqual(history(1, 2), [
    [0, 2],
    [1, 2],
  ]);
  assert.deepEqual(history(1, 1), [[0, 1]]); // unchanged by the second stage
  assert.deepEqual(history(2, 2), [
    [0, 2],
    [1, 2],
    [2, 2],
  ]);
  assert.deepEqual(history(2, 0), [[2, 0]]);
});

test("words and expressions must all answer; characters of a word are meant as they are", () => {
  const found = (query: string): boolean[] => {
    const matcher = parseLineQuery(query);
    assert.equal(typeof matcher, "function");
    return TEXTS[0].lines.map(({ text: words }) => (matcher as (line: string) => boolean)(words));
  };
  assert.deepEqual(found("%A load"), [false, true, false]);
  assert.deepEqual(found("/%b = (add|shl)/"), [false, false, true]);
  assert.deepEqual(found("f:"), [true, false, false]);
  assert.deepEqual(found("."), [false, false, false]);
  assert.equal(parseLineQuery("  "), null);
  assert.ok("error" in (parseLineQuery("/(/") as { error: string }));
});

test("a walk through the matches goes around both ends", () => {
  const lines = TEXTS.map((one) => one.lines);
  const places = findPlaces(lines, (words) => words.includes("1"));
  assert.deepEqual(
    places.map((place) => [place.text, place.line]),
    [
      [1, 2],
      [2, 1],
      [2, 2],
    ],
  );
  const go = (of: number, line: number, direction: 1 | -1): number[] => {
    const { text: to, line: at } = findNextPlace(places, { text: of, line }, direction)!;
    return [to, at];
  };
  assert.deepEqual(go(1, 2, 1), [2, 1]);
  assert.deepEqual(go(2, 2, 1), [1, 2]);
  assert.deepEqual(go(1, 2, -1), [2, 2]);
  assert.deepEqual(go(2, -1, 1), [2, 1]);
  assert.equal(findNextPlace([], { text: 0, line: 0 }, 1), undefined);
});
