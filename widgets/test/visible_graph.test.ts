import assert from "node:assert/strict";
import { test } from "node:test";
import type { Dialect, Stage, Trace } from "../src/model";
import { TraceIndex } from "../src/trace_index";
import { GraphReader } from "../src/visible_graph";
import type { Cursor } from "../src/store";
import { TRACE, node, stage } from "./sample_trace";

const DIALECT: Dialect = {
  compiler: "XLA",
  version: "",
  levels: [{ kind: "hlo", name: "HLO instruction", plural: "HLO instructions", role: "program" }],
  languages: [],
  panels: ["rewrites"],
  notes: [],
};
const NODES = [node(0, "hlo", "parameter"), node(1, "hlo", "exp", [0]), node(2, "hlo", "add", [0, 1])];
const EMPTY = { before: [], after: [], steps: [] };
const staged = (id: number, kernel: number | null, roots: number[]): Stage => ({
  ...stage(id, kernel),
  ...EMPTY,
  before: roots,
  after: roots,
});
/** A text; the program's graph; a kernel's graph and its text; a kernel that is only a text. */
const STAGES = [staged(0, null, []), staged(1, null, [2]), staged(2, 0, [1]), staged(3, 0, []), staged(4, 1, [])];
const FOREIGN: Trace = { ...TRACE, dialect: DIALECT, nodes: NODES, links: [], stages: STAGES };

function shown(trace: Trace, at: number, graph: "lazy" | "uops" = "uops"): { nodes: number[]; of: number | null } {
  const cursor: Cursor = { place: "passes", kernel: 0, stage: at, step: 0, graph, panel: "rewrites", tabs: {} };
  const found = new GraphReader(new TraceIndex(trace)).graphAt(cursor);
  return { nodes: [...found.graph.nodes.keys()], of: found.stage?.id ?? null };
}

test("a text of a kernel has the graph of its kernel, else that of the program", () => {
  assert.deepEqual(shown(FOREIGN, 3), { nodes: [0, 1], of: 2 });
  assert.deepEqual(shown(FOREIGN, 4), { nodes: [0, 1, 2], of: 1 });
});

test("a text before the first graph has none, and tensors are not asked of a compiler without tensors", () => {
  assert.deepEqual(shown(FOREIGN, 0), { nodes: [], of: null });
  assert.deepEqual(shown(FOREIGN, 2, "lazy"), { nodes: [0, 1], of: 2 });
});

test("without a stage the tensors are shown", () => {
  const trace = { ...TRACE, stages: [{ ...stage(0, 0), ...EMPTY }] };
  assert.deepEqual(shown(trace, 0), { nodes: [0, 1], of: null });
});
