import assert from "node:assert/strict";
import { test } from "node:test";
import type { Link, Node, Stage, Trace } from "../src/model";
import { TraceIndex, throughput } from "../src/provenance";

function node(id: number, kind: string, op: string, src: number[] = [], user: number | null = null): Node {
  const rest = {
    dtype: "float32",
    shape: null,
    arg: "",
    digest: `d${id}`,
    label: op,
    detail: "",
    group: "alu",
    calls: [],
    name: "",
    scope: null,
    backward: false,
  };
  return { id, kind, op, src, user, ...rest };
}

function stage(id: number, kernel: number | null, steps: Stage["steps"] = []): Stage {
  const rest = {
    decisions: [],
    opts: [],
    candidates: [],
    search: null,
    thread: 0,
    transform: null,
    choices: [],
    started_us: 0,
    elapsed_us: 10,
    parent: null,
  };
  return { id, name: `stage ${id}`, kernel, before: [2], after: [4], steps, ...rest };
}

const link = (src: number, dst: number, of: number | null): Link => ({ src, dst, how: "rewrite", stage: of });

/** LazyBuffers 0 and 1 become the UOp 2 in kernels 0 and 1; it is rewritten to 3 in kernel 0 and to 4 in kernel 1. */
const TRACE: Trace = {
  version: 1,
  title: "t",
  options: [],
  sources: [{ id: 0, name: "cell", text: "a\nb\n" }],
  frames: [
    { id: 0, source: 0, line: 1, function: "f", span: null },
    { id: 1, source: 0, line: 2, function: "f", span: null },
  ],
  nodes: [
    node(0, "lazybuffer", "MUL", [], 0),
    node(1, "lazybuffer", "ADD", [], 1),
    node(2, "uop", "MUL"),
    node(3, "uop", "SHL"),
    node(4, "uop", "ADD", [2, 2]),
  ],
  transforms: [],
  laws: [],
  ceilings: [],
  rules: [{ id: 0, name: "r", law: "", doc: "", file: "", line: 1, text: "" }],
  stages: [
    stage(0, 0, [
      { rule: 0, before: 2, after: 3, at_us: 0 },
      { rule: null, before: 4, after: 4, at_us: 1 },
    ]),
    stage(1, 1, [{ rule: 0, before: 2, after: 4, at_us: 0 }]),
  ],
  links: [link(0, 2, 0), link(1, 2, 1), link(2, 3, 0), link(2, 4, 1)],
  kernels: [0, 1].map((id) => ({
    id,
    name: `k${id}`,
    device: "X",
    roots: [id],
    nodes: [id],
    buffers: [],
    opts: [],
    axes: [],
    calls: [],
    flops: 2000,
    bytes_moved: 500,
    compile_us: 1,
    cached: false,
    known: "",
    code_bytes: 0,
    not_run: "",
    nest: [],
    bytes_written: 0,
    arithmetic: [],
    title: "",
    same_as: id === 1 ? 0 : null,
  })),
  programs: [{ id: 0, kernel: 0, language: "c", lines: [{ text: "x;", nodes: [3] }], effort: "", branches: false }],
  runs: [
    {
      id: 0,
      kernel: 0,
      times_us: [2],
      median_us: 2,
      low_us: 1,
      high_us: 3,
      started_us: 0,
      first_us: 1,
      warm: true,
      single_us: [],
      waited: null,
    },
  ],
  buffers: [],
  messages: [],
  memory: [],
  scopes: [],
  branches: [],
  recordings: [],
  checks: [],
  stage_texts: [],
  regions: [],
  back_edges: [],
  dialect: null,
  roofs: [],
  module_costs: [],
  figures: [],
  roofline: null,
  kernel_time: null,
  elapsed_time: null,
  fusion_edges: [],
  origins: [],
  scripts: [],
};

const sorted = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);

test("what is related follows links both ways, but not down again from an ancestor", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(sorted(index.related([2])), [0, 1, 2, 3, 4]);
  assert.deepEqual(sorted(index.related([3])), [0, 1, 2, 3]);
});

test("a walk for one kernel keeps out of another kernel's history", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(sorted(index.related([3], 0)), [0, 2, 3]);
  assert.deepEqual(sorted(index.related([1], 1)), [1, 2, 4]);
});

test("a Python line knows the nodes it built, and a node the nearest line behind it", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(index.nodesOfLine(0, 2), [1]);
  assert.equal(index.frameOf(3, 0)?.line, 1);
  assert.equal(index.frameOf(4, 1)?.line, 2);
});

test("a rewrite history holds the firings behind a node, and no rebuilds", () => {
  const index = new TraceIndex(TRACE);
  const told = index.rewriteHistory(3, 0).map(({ stage: of, step, firing }) => [of.id, step, firing.after]);
  assert.deepEqual(told, [[0, 1, 3]]);
});

test("a stage ends, for the reader, where its last rule fired", () => {
  const index = new TraceIndex(TRACE);
  assert.equal(index.endOf(TRACE.stages[0]), 1);
  assert.equal(index.firings(TRACE.stages[0]), 1);
});

test("a kernel that reuses a program shows that program's listings", () => {
  assert.deepEqual(new TraceIndex(TRACE).programsOf(1), [TRACE.programs[0]]);
});

test("throughput is operations and bytes over the median", () => {
  assert.deepEqual(throughput(TRACE.kernels[0], TRACE.runs[0]), { gflops: 1, gbps: 0.25 });
  assert.deepEqual(throughput(TRACE.kernels[0], null), { gflops: null, gbps: null });
});

test("reachable nodes come sources first, each once", () => {
  assert.deepEqual(new TraceIndex(TRACE).reachable([4]), [2, 4]);
});
