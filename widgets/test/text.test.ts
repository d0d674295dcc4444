import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { findMeaning, describeOpt } from "../src/term_meanings";
import {
  bufferName,
  bytes,
  count,
  duration,
  figuresText,
  kernelNameParts,
  paragraphs,
  quartilesText,
  medianText,
  truncate,
} from "../src/format";
import type { KernelInfo, Node, Trace } from "../src/model";
import { findExplainedTerms } from "../src/glossary_tooltips";
import { explain } from "../src/opcodes";
import { parseQuery } from "../src/search_query";
import { TraceIndex } from "../src/trace_index";
import { foldGraph, labelTextOf } from "../src/visible_graph";
import { tokenize, tokenizePython } from "../src/tokenizer";
import { diffTrees, printTree } from "../src/text_tree";

function node(id: number, op: string, src: number[] = [], more: Partial<Node> = {}): Node {
  const base = {
    kind: "uop",
    dtype: "int64",
    shape: null,
    arg: "",
    digest: `d${id}`,
    user: null,
    detail: "",
    calls: [],
    name: "",
    scope: null,
    backward: false,
  };
  return { ...base, id, op, src, label: op, group: op === "CONST" ? "const" : "alu", ...more };
}

function traceOf(...nodes: Node[]): Trace {
  return { nodes } as unknown as Trace;
}

function graphOf(trace: Trace, root: number[]): Parameters<typeof foldGraph>[1] {
  const nodes = new Map(trace.nodes.map(({ id, src }) => [id, { node: id, src: [...src] }]));
  return { root, nodes, changed: new Set() };
}

test("a docstring is read in paragraphs, its formulas line by line", () => {
  const doc =
    "What it does,\nin two lines.\n\n    r = usual\n    for once in range(any(c)):\n        r = rare\n\nThen more.\n";
  assert.deepEqual(paragraphs(doc), [
    { text: "What it does, in two lines.", formula: false },
    { text: "r = usual\nfor once in range(any(c)):\n    r = rare", formula: true },
    { text: "Then more.", formula: false },
  ]);
  assert.deepEqual(paragraphs(""), []);
});

test("the tokens of a line joined are the line, in every language", () => {
  const lines = [
    "  for (long r2 = 0; r2 < 48; r2++) { // loop",
    "  %v9 = call fast <8 x float> @llvm.fma.v8f32(<8 x float> %v8, ptr %p) ; x",
    "\tvfmadd231ps\tymm0, ymm1, ymmword ptr [rsi + 4*rax]  # c",
    ' 3  %3 = LOAD %1, %2 : float32×8  "quoted',
    "def f(x: int = 0x1F) -> str: return f'{x}'  # é",
    "",
  ];
  for (const language of ["c", "llvm", "asm", "uops", "python", "unheard-of"]) {
    for (const line of lines)
      assert.equal(
        tokenize(language, line)
          .map(([, text]) => text)
          .join(""),
        line,
      );
  }
});

test("tokens have the kinds that a reader expects", () => {
  const kinds = (language: string, line: string): Record<string, string> =>
    Object.fromEntries(
      tokenize(language, line)
        .filter(([kind]) => kind !== "")
        .map(([kind, text]) => [text.trim(), kind]),
    );
  assert.deepEqual(kinds("c", "float8 a = f(3); // x"), {
    float8: "type",
    f: "call",
    "3": "number",
    "// x": "comment",
  });
  assert.deepEqual(kinds("llvm", "ret i64 %x"), { ret: "call", i64: "type", "%x": "register" });
  assert.deepEqual(kinds("asm", "\tinc\trcx"), { inc: "call", rcx: "register" });
});

test("operations are explained where there is something to say", () => {
  assert.match(explain("asm", "\tvfmadd231ps")!, /multiply-add/);
  assert.match(explain("asm", "jne")!, /if a condition/);
  assert.match(explain("ptx", "ld.shared.b32")!, /share/);
  assert.match(explain("amdgcn", "v_add_f32_e32")!, /every lane/);
  assert.match(explain("uops", "GEP")!, /lane/);
  assert.match(explain("llvm-opt", "phi")!, /previous block/);
  assert.equal(explain("c", "f"), null);
});

test("a docstring over several lines is a string on each of them", () => {
  const lines = tokenizePython('def f():\n    """one\n    two"""\n    return 1');
  assert.deepEqual(lines[2], [["string", '    two"""']]);
  assert.deepEqual(lines[3].at(-1), ["number", "1"]);
});

test("numbers read as people write them", () => {
  assert.deepEqual([0.4123, 12.34, 123.4, 5678, 2.1e6].map(duration), [
    "0.41 µs",
    "12.3 µs",
    "123 µs",
    "5.68 ms",
    "2.10 s",
  ]);
  assert.deepEqual([12, 12_288, 3_400_000].map(bytes), ["12 B", "12.3 kB", "3.40 MB"]);
  assert.equal(truncate("abcdef", 4), "abc…");
});

test("each number of a kernel's name takes the kind of one axis of that size", () => {
  const kernel = {
    name: "r_8_8_3",
    axes: [
      ["t0", "thread", 8],
      ["r1", "reduce", 8],
    ],
  } as unknown as KernelInfo;
  const kinds = kernelNameParts(kernel)
    .filter(({ text }) => /\d/.test(text))
    .map(({ kind }) => kind);
  assert.deepEqual(kinds, ["thread", "reduce", null]);
});

test("a size that is arithmetic is found in a kernel's name by its letters and digits", () => {
  const kernel = {
    name: "r_4v_v3_8",
    axes: [
      ["g0", "global", "4*v"],
      ["r1", "reduce", "v//3"],
      ["u2", "unroll", 8],
    ],
  };
  const kinds = kernelNameParts(kernel as unknown as KernelInfo).filter(({ kind }) => kind !== null);
  assert.deepEqual(
    kinds.map(({ text, kind }) => `${text} ${kind}`),
    ["4v global", "v3 reduce", "8 unroll"],
  );
});

test("a query is words, fields and regular expressions, all of which must hold", () => {
  const load = node(0, "LOAD", [], { dtype: "float32", detail: "data1[g0*8]" });
  const matches = (query: string): boolean => {
    const matcher = parseQuery(query);
    assert.ok(typeof matcher === "function");
    return matcher(load);
  };
  assert.ok(matches("op:load dtype:float /g\\d/"));
  assert.ok(!matches("op:LOA"));
  assert.ok(!matches("load store"));
  assert.equal(parseQuery("  "), null);
  assert.ok("error" in (parseQuery("/(/") as object));
});

test("constants and index maths fold into the boxes that use them", () => {
  const trace = traceOf(
    node(0, "RANGE", [], { group: "loop" }),
    node(1, "CONST", [], { detail: "4" }),
    node(2, "MUL", [0, 1], { detail: "g0*4" }),
    node(3, "DEFINE_GLOBAL", [], { group: "buffer", dtype: "float32*" }),
    node(4, "INDEX", [3, 2], { group: "memory", dtype: "float32*", detail: "data0[g0*4]" }),
  );
  const options = {
    constants: true,
    index: true,
    views: false,
    hops: null,
    budget: 400,
    cone: null,
    keep: new Set<number>(),
  };
  const drawn = foldGraph(trace, graphOf(trace, [4]), options);
  assert.deepEqual(
    drawn.boxes.map(({ id }) => id),
    [0, 3, 4],
  );
  assert.deepEqual(
    drawn.edges.map(({ src, dst, operands }) => [src, dst, operands]),
    [
      [3, 4, [0]],
      [0, 4, [1]],
    ],
  );
  assert.deepEqual([drawn.folded, drawn.hidden, drawn.total], [{ constants: 1, index: 1, views: 0 }, 0, 5]);
  const open = foldGraph(trace, graphOf(trace, [4]), { ...options, constants: false, index: false });
  assert.equal(open.boxes.length, 5);
});

test("past the budget the nearest boxes are drawn, and what is hidden is counted", () => {
  const chain = Array.from({ length: 50 }, (_, id) => node(id, "NEG", id === 0 ? [] : [id - 1], { dtype: "float32" }));
  const trace = traceOf(...chain);
  const options = {
    constants: true,
    index: true,
    views: false,
    hops: null,
    budget: 10,
    cone: null,
    keep: new Set<number>(),
  };
  const drawn = foldGraph(trace, graphOf(trace, [49]), options);
  assert.deepEqual(
    drawn.boxes.map(({ id }) => id),
    [49, 48, 47, 46, 45, 44, 43, 42, 41, 40],
  );
  assert.equal(drawn.hidden, 40);
  assert.equal(drawn.boxes.at(-1)!.hidden, 1);
});

test("a cone holds what lies above and below its center", () => {
  const trace = traceOf(node(0, "A"), node(1, "B"), node(2, "C", [0]), node(3, "D", [1]), node(4, "E", [2, 3]));
  const options = {
    constants: true,
    index: false,
    views: false,
    hops: null,
    budget: 400,
    cone: new Set([2]),
    keep: new Set<number>(),
  };
  assert.deepEqual(
    foldGraph(trace, graphOf(trace, [4]), options).boxes.map(({ id }) => id),
    [0, 2, 4],
  );
});

test("before and after are aligned; what both have is one line", () => {
  const trace = traceOf(
    node(0, "LOAD"),
    node(1, "LOAD2"),
    node(2, "MUL", [0, 1]),
    node(3, "ACC"),
    node(4, "ADD", [2, 3]),
    node(5, "MULACC", [0, 1, 3]),
  );
  const rows = diffTrees(trace, 4, 5).map(({ before, after, same }) => [
    before && before.prefix + before.text,
    after && after.prefix + after.text,
    same,
  ]);
  assert.deepEqual(rows, [
    ["ADD", "MULACC", false],
    ["├ MUL", null, false],
    ["│ ├ LOAD", "├ LOAD", true],
    ["│ └ LOAD2", "├ LOAD2", true],
    ["└ ACC", "└ ACC", true],
  ]);
});

test("a result that was a part of what it replaces is one line on both sides", () => {
  const trace = traceOf(
    node(0, "X"),
    node(1, "NEG", [0]),
    node(2, "CONST", [], { detail: "0" }),
    node(3, "ADD", [1, 2]),
  );
  const rows = diffTrees(trace, 3, 1).map(({ before, after, same }) => [before?.text, after?.text, same]);
  assert.deepEqual(rows, [
    ["ADD", undefined, false],
    ["NEG", "NEG", true],
    ["CONST 0", undefined, false],
  ]);
});

test("a node met again is not written out again, and says how much is folded", () => {
  const trace = traceOf(node(0, "X"), node(1, "NEG", [0]), node(2, "MUL", [1, 1]));
  const lines = printTree(trace, 2).map(({ prefix, text, folded }) => [prefix + text, folded]);
  assert.deepEqual(lines, [
    ["MUL", 0],
    ["├ NEG", 0],
    ["│ └ X", 0],
    ["└ NEG", 1],
  ]);
});

test("a time stands with its quartiles, that of a single run without", () => {
  assert.equal(quartilesText({ low_us: 2, high_us: 2, times_us: [2] }), "");
  assert.equal(quartilesText({ low_us: 2, high_us: 3, times_us: [2, 2.5, 3] }), "2.00–3.00 µs");
  assert.equal(quartilesText({ low_us: 998, high_us: 1002, times_us: [998, 1000, 1002] }), "998 µs–1.00 ms");
  assert.equal(medianText({ median_us: 2.5, low_us: 2, high_us: 3, times_us: [2, 2.5, 3] }), "2.50 µs (2.00–3.00 µs)");
  assert.equal(medianText({ median_us: 2, low_us: 2, high_us: 2, times_us: [2] }), "2.00 µs");
});

test("what has a name in Python goes by it, in the tensors' graph, in a kernel and in memory; results by their kernel", () => {
  const nodes = [
    node(0, "BUFFER", [], { kind: "lazybuffer", group: "buffer", name: "x", detail: "float32 8" }),
    node(1, "ADD", [0], { kind: "lazybuffer", name: "h" }),
    ...[0, 1, 2].map((at) =>
      node(2 + at, "DEFINE_GLOBAL", [], { group: "buffer", label: `data${at}`, arg: String(at), detail: "float32[8]" }),
    ),
    node(5, "LOAD", [3], { detail: "data1[i]" }),
  ];
  const buffer = { device: "X", dtype: "f", size: 8, bytes: 32, allocated_us: 0, freed_us: null };
  const buffers = [
    { ...buffer, id: 0, name: "", maker: 1 },
    { ...buffer, id: 1, name: "x", maker: null },
    { ...buffer, id: 2, name: "", maker: 0 },
    { ...buffer, id: 3, name: "y", maker: 1 },
    { ...buffer, id: 4, name: "", maker: null },
  ];
  const empty = { links: [], stage_texts: [], stages: [], programs: [], runs: [] };
  const kernels = [
    { id: 0, nodes: [], roots: [], buffers: [2] },
    { id: 1, nodes: [], roots: [], buffers: [0, 1, 2] },
  ];
  const index = new TraceIndex({ nodes, buffers, kernels, ...empty } as unknown as Trace);
  const said = nodes.map((one) => {
    const { label, detail } = labelTextOf(index, one, 1);
    return [label, detail];
  });
  assert.deepEqual(said, [
    ["x", "float32 8"],
    ["h = ADD", ""],
    ["result", "data0 · float32[8]"],
    ["x", "data1 · float32[8]"],
    ["result of kernel 0", "data2 · float32[8]"],
    ["LOAD", "x[i]"],
  ]);
  assert.deepEqual(labelTextOf(index, nodes[3], null), { label: "data1", detail: "float32[8]" });
  assert.deepEqual(buffers.map(bufferName), [
    "result of kernel 1",
    "x",
    "result of kernel 0",
    "y, result of kernel 1",
    "buffer 4",
  ]);
});

test("numbers read as in the static picture", () => {
  const told = JSON.parse(readFileSync(new URL("../../../tests/fixtures/figures/texts.json", import.meta.url), "utf8"));
  for (const [us, text] of told.durations) assert.equal(duration(us), text);
  for (const [value, text] of told.figures) assert.equal(figuresText(value), text);
  for (const [n, one, many, text] of told.counts) assert.equal(count(n, one, many), text);
});

test("an opt says in words what it does, to which axis and by how much", () => {
  const does = findMeaning("opt", "VECTOR");
  assert.equal(
    describeOpt("VECTOR(1, 8)"),
    `VECTOR(1, 8): ${does} Here axis 1, by 8. Axes count from 0, as scheduled.`,
  );
  assert.match(describeOpt("SWAP(0, 2)"), /Here axis 0, and axis 2\./);
  assert.match(describeOpt("THREAD(0)"), /Here axis 0\. /);
  assert.equal(describeOpt("NOVEL(1, 2)"), "");
});

test("the words that a tooltip explains are found in the glossary, and others are not", () => {
  assert.deepEqual(findExplainedTerms(`8: lanes\n${findMeaning("axis", "vector")}`), ["vector"]);
  assert.deepEqual(findExplainedTerms("Open the panel"), []);
});
