// Tables in columns become the rows that they were made of; what are no columns is left for the check to refuse.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unpackTables } from "../src/columns";

test("ids are summed up, lists of ids counted from their row, and all else taken as it is", () => {
  const links = {
    rows: 4,
    columns: { src: [5, 1, -2, 0], dst: [7, 0, 0, 1], how: ["a", "a", "b", "b"], stage: [3, null, 0, -1] },
  };
  const { links: rows } = unpackTables("Trace", { links }) as { links: unknown };
  assert.deepEqual(rows, [
    { src: 5, dst: 7, how: "a", stage: 3 },
    { src: 6, dst: 7, how: "a", stage: null },
    { src: 4, dst: 7, how: "b", stage: 3 },
    { src: 4, dst: 8, how: "b", stage: 2 },
  ]);
  const nodes = { rows: 3, columns: { id: [0, 1, 1], src: [[], [1], [1, 2]] } };
  assert.deepEqual(unpackTables("Trace", { nodes }), {
    nodes: [
      { id: 0, src: [] },
      { id: 1, src: [0] },
      { id: 2, src: [1, 0] },
    ],
  });
});

test("tables inside of rows and of columns are found", () => {
  const steps = { rows: 2, columns: { before: [4, 1], after: [9, -1], rule: [0, null], at_us: [0.5, 0.75] } };
  const wanted = [
    { before: 4, after: 9, rule: 0, at_us: 0.5 },
    { before: 5, after: 8, rule: null, at_us: 0.75 },
  ];
  assert.deepEqual(unpackTables("Trace", { stages: [{ steps }] }), { stages: [{ steps: wanted }] });
  assert.deepEqual(unpackTables("Trace", { stages: { rows: 2, columns: { steps: [steps, []] } } }), {
    stages: [{ steps: wanted }, { steps: [] }],
  });
});

test("lines get their texts and nodes back, of a trace that an older release wrote as well", () => {
  const lines = { rows: 4, columns: { text: [0, 1, 1, -1], nodes: [[7, 2], [], [1], [0, -5, 1]] }, chained: ["nodes"] };
  const older = { rows: 4, columns: { text: ["a", "}", "b", "}"], nodes: [[7, 9], [], [8], [8, 3, 4]] } };
  const wanted = [
    { text: "a", nodes: [7, 9] },
    { text: "}", nodes: [] },
    { text: "b", nodes: [8] },
    { text: "}", nodes: [8, 3, 4] },
  ];
  const copy = (): unknown => structuredClone(lines);
  const texts = ["a", "}", "b"];
  assert.deepEqual(unpackTables("Trace", { texts, programs: [{ lines: copy() }, { lines: copy() }] }), {
    programs: [{ lines: wanted }, { lines: wanted }],
  });
  assert.deepEqual(unpackTables("Trace", { texts, programs: { rows: 1, columns: { lines: [copy()] } } }), {
    programs: [{ lines: wanted }],
  });
  assert.deepEqual(unpackTables("Trace", { programs: [{ lines: older }] }), { programs: [{ lines: wanted }] });
});

test("what is no table, or a column of another length or name, is not made rows of", () => {
  for (const links of [5, null, "x", [1], { rows: 2 }, { rows: 2, columns: { src: [1] } }, { rows: 1, columns: {} }]) {
    assert.deepEqual(unpackTables("Trace", { links }), { links });
  }
  const rows = (
    unpackTables("Trace", JSON.parse('{"links": {"rows": 1, "columns": {"src": [1], "__proto__": [{"dst": 2}]}}}')) as {
      links: object[];
    }
  ).links;
  assert.deepEqual(Object.keys(rows[0]), ["src"]);
  assert.equal(Object.getPrototypeOf(rows[0]), Object.prototype);
});

test("texts are forms with their numbers' differences, whole times are differences, and an older list is read", () => {
  const lines = { rows: 4, columns: { text: [0, 1, 1, -2], nodes: [[], [], [], []] } };
  const steps = { rows: 4, columns: { at_us: [3, 2, 0, 99] }, differences: ["at_us"] };
  const trace = (texts: unknown): unknown => structuredClone({ texts, programs: [{ lines }], stages: [{ steps }] });
  const read = (texts: unknown): string[] =>
    (unpackTables("Trace", trace(texts)) as { programs: { lines: { text: string }[] }[] }).programs[0].lines.map(
      ({ text }) => text,
    );
  const packed = { forms: ["%a\u0001 = %b\u0001", "x 007"], form: [0, 1, 0], numbers: [9, 10, 1, 2] };
  assert.deepEqual(read(packed), ["%a9 = %b10", "x 007", "%a10 = %b12", "%a9 = %b10"]);
  assert.deepEqual(read(["a", "b", "c"]), ["a", "b", "c", "a"]);
  assert.throws(() => read({ ...packed, numbers: [9, 10, 1] }), /incomplete/);
  assert.throws(() => read({ ...packed, form: [0, 2, 0] }), /incomplete/);
  const { stages } = unpackTables("Trace", trace([])) as { stages: { steps: { at_us: number }[] }[] };
  assert.deepEqual(
    stages[0].steps.map(({ at_us }) => at_us),
    [3, 5, 5, 104],
  );
});
