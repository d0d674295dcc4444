import { findMiddle } from "../src/views/camera";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Trace } from "../src/model";
import { TraceIndex } from "../src/trace_index";
import { contract, contractKernels, contractUnrolledCopies } from "../src/regions";
import { type FoldOptions, type DrawnRegion, countsOf, foldGraph } from "../src/visible_graph";
import { findVisibleRows } from "../src/virtual_rows";

/** Random numbers that are the same in every run (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const LAZY = [
  ["ADD", "alu"],
  ["MUL", "alu"],
  ["REDUCE_AXIS", "reduce"],
  ["RESHAPE", "movement"],
  ["EXPAND", "movement"],
];
const UOPS = [
  ["ADD", "alu"],
  ["LOAD", "memory"],
  ["INDEX", "memory"],
  ["MUL", "alu"],
  ["CAST", "alu"],
  ["STORE", "memory"],
];

/** A graph of `size` nodes, sources first, a fifth of them constants or buffers; four kernels, a dozen Python lines. */
function graphOf(
  kind: "lazybuffer" | "uop",
  size: number,
  next: () => number,
): { index: TraceIndex; graph: Parameters<typeof foldGraph>[1] } {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)];
  const nodes: Node[] = [];
  const lines: number[] = [];
  for (let id = 0; id < size; id += 1) {
    const leaf = id === 0 || next() < 0.2;
    const [op, group] = !leaf
      ? pick(kind === "uop" ? UOPS : LAZY)
      : next() < 0.5
        ? ["CONST", "const"]
        : ["BUFFER", "buffer"];
    const src = leaf
      ? []
      : Array.from({ length: group === "alu" ? 2 : 1 }, () => Math.max(0, id - 1 - Math.floor(next() ** 3 * id)));
    const rest = {
      shape: null,
      arg: "",
      digest: "",
      detail: leaf ? String(id) : "",
      calls: [],
      name: "",
      scope: null,
      backward: false,
    };
    nodes.push({
      id,
      kind,
      op,
      label: op,
      group,
      src,
      dtype: pick(["float32", "int64"]),
      user: Math.floor((id / size) * 12),
      ...rest,
    });
    lines.push(id);
  }
  const kernels = [0, 1, 2, 3].map((id) => ({
    id,
    nodes: lines.filter((node) => Math.floor((node / size) * 4) === id),
    roots: [],
  }));
  const empty = { links: [], stage_texts: [], stages: [], programs: [], runs: [] };
  const frames = Array.from({ length: 12 }, (_, line) => ({ id: line, source: 0, line, function: "", span: null }));
  const index = new TraceIndex({ nodes, kernels, frames, ...empty } as unknown as Trace);
  const used = new Set(nodes.flatMap(({ src }) => src));
  const shown = new Map(nodes.map(({ id, src }) => [id, { node: id, src }]));
  return { index, graph: { root: lines.filter((id) => !used.has(id)), nodes: shown, changed: new Set() } };
}

test("shown, folded, in regions and hidden are all nodes, whatever is folded, opened, isolated or left out", () => {
  const next = random(18);
  for (let round = 0; round < 300; round += 1) {
    const kind = round % 2 === 0 ? "lazybuffer" : "uop";
    const { index, graph } = graphOf(kind, 2 + Math.floor(next() * 200), next);
    const ids = [...graph.nodes.keys()];
    const some = (share: number): Set<number> => new Set(ids.filter(() => next() < share));
    const ways = kind === "uop" ? [contractUnrolledCopies] : [contract, contractKernels];
    const contracted =
      next() < 0.2
        ? { graph, members: new Map<number, number[]>() }
        : ways[Math.floor(next() * ways.length)](index, graph, some(0.02));
    const regions = new Map(
      [...contracted.members].map(([box, members]): [number, DrawnRegion] => [box, { members, label: "", detail: "" }]),
    );
    const cone = next() < 0.4 ? some(0.03) : null;
    const options: FoldOptions = {
      constants: next() < 0.5,
      index: next() < 0.5,
      views: next() < 0.5,
      budget: next() < 0.5 ? Infinity : 1 + Math.floor(next() * 60),
      cone,
      hops: next() < 0.5 ? null : 1 + Math.floor(next() * 3),
      keep: some(0.05),
      regions,
    };
    const counts = countsOf(foldGraph(index.trace, contracted.graph, options));
    const { shown, folded, inRegions, hidden, total } = counts;
    assert.equal(total, ids.length, `round ${round}`);
    assert.equal(shown + folded + inRegions + hidden, total, `round ${round}: ${JSON.stringify(counts)}`);
    for (const part of [shown, folded, inRegions, hidden])
      assert.ok(part >= 0, `round ${round}: ${JSON.stringify(counts)}`);
  }
});

test("of a long list the rows in sight are made, and a few beside them", () => {
  assert.deepEqual(findVisibleRows(7649, 25, 0, 500), [0, 32]);
  assert.deepEqual(findVisibleRows(7649, 25, 100_000, 500), [3988, 4032]);
  assert.deepEqual(findVisibleRows(7649, 25, 7649 * 25 - 500, 500), [7617, 7649]);
  assert.deepEqual(findVisibleRows(3, 25, 0, 500), [0, 3]);
  assert.deepEqual(findVisibleRows(3, 25, 9999, 500), [3, 3]);
});

test("memory is told in the shape of the tensor that the program has there", () => {
  const rest = {
    kind: "lazybuffer",
    dtype: "float32",
    user: 0,
    arg: "",
    digest: "",
    name: "",
    scope: null,
    backward: false,
  };
  const draw = (calls: string[]): string => {
    const nodes = [
      {
        ...rest,
        id: 0,
        op: "BUFFER",
        label: "BUFFER",
        group: "buffer",
        src: [],
        shape: [6],
        detail: "float32 6 on LLVM",
        calls: [],
      },
      {
        ...rest,
        id: 1,
        op: "RESHAPE",
        label: "RESHAPE",
        group: "movement",
        src: [0],
        shape: [2, 3],
        detail: "2×3",
        calls,
      },
      { ...rest, id: 2, op: "NEG", label: "NEG", group: "alu", src: [1], shape: [2, 3], detail: "2×3", calls: ["neg"] },
    ] as unknown as Node[];
    const graph = {
      root: [2],
      nodes: new Map(nodes.map(({ id, src }) => [id, { node: id, src: [...src] }])),
      changed: new Set<number>(),
    };
    const options: FoldOptions = {
      constants: true,
      index: false,
      views: true,
      budget: 10,
      cone: null,
      hops: null,
      keep: new Set(),
    };
    return foldGraph({ nodes } as unknown as Trace, graph, options).boxes[0].detail;
  };
  assert.equal(draw([]), "float32 2×3 on LLVM");
  assert.equal(draw(["reshape"]), "float32 6 on LLVM"); // the program asked for that view of it
});

test("memory is told in that shape too where its view is in a region", () => {
  const rest = {
    kind: "lazybuffer",
    dtype: "float32",
    user: 0,
    arg: "",
    digest: "",
    name: "",
    scope: null,
    backward: false,
    calls: [],
  };
  const nodes = [
    {
      ...rest,
      id: 0,
      op: "BUFFER",
      label: "BUFFER",
      group: "buffer",
      src: [],
      shape: [6],
      detail: "float32 6 on LLVM",
    },
    { ...rest, id: 1, op: "RESHAPE", label: "RESHAPE", group: "movement", src: [0], shape: [2, 3], detail: "2×3" },
    { ...rest, id: 2, op: "NEG", label: "NEG", group: "alu", src: [1], shape: [2, 3], detail: "2×3" },
  ] as unknown as Node[];
  const graph = {
    root: [2],
    nodes: new Map([
      [0, { node: 0, src: [] }],
      [2, { node: 2, src: [0] }],
    ]),
    changed: new Set<number>(),
  };
  const regions = new Map([[2, { members: [1, 2], label: "2 nodes", detail: "" }]]);
  const options = {
    constants: true,
    index: false,
    views: true,
    budget: 10,
    cone: null,
    hops: null,
    keep: new Set(),
    regions,
  } as unknown as FoldOptions;
  assert.equal(foldGraph({ nodes } as unknown as Trace, graph, options).boxes[0].detail, "float32 2×3 on LLVM");
});

test("a graph too wide to be read whole opens where most boxes of its beginning are", () => {
  const box = (left: number): [number, number, number, number] => [left, 0, left + 100, 40];
  assert.equal(findMiddle([box(0), box(120), box(900)], 300), 110); // not at 500, in the middle of them all, where nothing is
  assert.equal(findMiddle([box(0), box(120)], 1000), 110); // all of them where they fit
  assert.equal(findMiddle([box(0)], 50), null); // no box is whole
});
