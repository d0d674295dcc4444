import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frame, Node } from "../src/model";
import { TraceIndex } from "../src/trace_index";
import { type Piece, splitAtRanges, rangesOf, spanText, listLineStops } from "../src/source_spans";
import { tokenizePython } from "../src/tokenizer";

const TEXT = "y = (x @ w).softmax().sum()  # é\nz = (\n  y\n).exp()";
const SPANS: [number, number, number, number][] = [
  [1, 5, 1, 10],
  [1, 11, 1, 21],
  [1, 21, 1, 27],
  [2, 4, 4, 7],
];
const FRAMES = SPANS.map((span, id): Frame => ({ id, source: 0, line: span[0], function: "", span }));

function cut(line: number): [string, number[]][] {
  const ranges = rangesOf(FRAMES, 0, TEXT);
  return splitAtRanges(tokenizePython(TEXT)[line - 1], ranges.get(line) ?? []).map(({ token, frames }) => [
    token[1],
    frames,
  ]);
}

const textOf = (frame: number): string =>
  cut(1)
    .filter(([, frames]) => frames[0] === frame)
    .map(([text]) => text)
    .join("");

test("a line is cut where the parts of its expression begin and end, and nothing of it is lost", () => {
  assert.equal(
    cut(1)
      .map(([text]) => text)
      .join(""),
    TEXT.split("\n")[0],
  );
  assert.deepEqual([0, 1, 2].map(textOf), ["x @ w", ".softmax()", ".sum()"]);
  assert.deepEqual(cut(1)[0], ["y = (", []]);
});

test("a part over several lines leaves out their indentation", () => {
  assert.deepEqual(cut(3), [
    ["  ", []],
    ["y", [3]],
  ]);
  assert.deepEqual(
    cut(4)
      .map(([text]) => text)
      .join(""),
    ").exp()",
  );
});

test("the innermost part stands first", () => {
  const nested: Frame[] = [
    { ...FRAMES[0], span: [1, 4, 1, 27] },
    { ...FRAMES[1], id: 1 },
  ];
  const found = splitAtRanges(tokenizePython(TEXT)[0], rangesOf(nested, 0, TEXT).get(1)!);
  assert.deepEqual(found.find(({ token }) => token[1] === "softmax")?.frames, [1, 0]);
});

test("characters outside of the first plane count as one", () => {
  const [line] = [
    [
      ["string", '"🙂"'],
      ["", " + x"],
    ] as Piece["token"][],
  ];
  const [quoted, , x] = splitAtRanges(line, [{ frame: 0, from: 6, to: 7, size: 1 }]);
  assert.deepEqual([quoted.token[1], x.token[1], x.frames], ['"🙂"', "x", [0]]);
});

test("a frame says what was written there, and the keyboard stops at a line and at its parts", () => {
  const node = (id: number, user: number): Node => ({ id, user, kind: "lazybuffer", src: [] }) as unknown as Node;
  const sources = [{ id: 0, name: "cell", text: TEXT }];
  const trace = {
    sources,
    frames: FRAMES,
    nodes: [node(0, 0), node(1, 1), node(2, 1), node(3, 2)],
    links: [],
    stages: [],
    stage_texts: [],
    kernels: [],
  };
  const index = new TraceIndex(trace as never);
  assert.deepEqual(
    FRAMES.map((frame) => spanText(index, frame)),
    ["x @ w", ".softmax()", ".sum()", "( y ).exp()"],
  );
  const parts = splitAtRanges(tokenizePython(TEXT)[0], rangesOf(FRAMES, 0, TEXT).get(1)!);
  assert.deepEqual(
    listLineStops(index, [{ nodes: index.nodesOfLine(0, 1), parts }]).map(({ nodes }) => nodes),
    [[0, 1, 2, 3], [0], [1, 2], [3]],
  );
});
