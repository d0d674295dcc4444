import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Trace } from "../src/model";
import { TraceIndex } from "../src/trace_index";
import { contract, contractEarlier, contractUnrolledCopies } from "../src/regions";

/** `lines[i]` is the Python line of node i (null: none); all of one kernel. */
function graphOf(
  sources: number[][],
  lines: (number | null)[],
): { index: TraceIndex; graph: Parameters<typeof contract>[1] } {
  const nodes = sources.map((src, id): Node => {
    const rest = {
      dtype: "float32",
      shape: [2],
      arg: "",
      digest: "",
      detail: "",
      group: "alu",
      calls: [],
      name: "",
      scope: null,
      backward: false,
    };
    return { id, kind: "lazybuffer", op: "ADD", label: "ADD", src, user: lines[id], ...rest };
  });
  const empty = { links: [], stage_texts: [], stages: [], kernels: [], programs: [], runs: [] };
  const frames = [0, 1, 2].map((line) => ({ id: line, source: 0, line, function: "", span: null }));
  const index = new TraceIndex({ nodes, frames, ...empty } as unknown as Trace);
  const shown = new Map(sources.map((src, id) => [id, { node: id, src }]));
  return { index, graph: { root: [sources.length - 1], nodes: shown, changed: new Set() } };
}

test("what one line gave one kernel is one box, with all that is inside and all that comes in", () => {
  const { index, graph } = graphOf([[], [0], [1], [2, 0], [3], [4]], [0, 1, 1, 1, 1, 0]);
  const contracted = contract(index, graph, new Set());
  assert.deepEqual([...contracted.members], [[4, [1, 2, 3, 4]]]);
  assert.deepEqual(
    [...contracted.graph.nodes].map(([id, { src }]) => [id, src]),
    [
      [0, []],
      [4, [0]],
      [5, [4]],
    ],
  );
});

test("a region with an opened node, or of few nodes, is drawn one by one", () => {
  const { index, graph } = graphOf([[], [0], [1], [2, 0], [3], [4]], [0, 1, 1, 1, 1, 0]);
  assert.equal(contract(index, graph, new Set([2])).members.size, 0);
  const few = graphOf([[], [0], [1], [2]], [0, 0, 1, null]);
  assert.equal(contract(few.index, few.graph, new Set()).members.size, 0);
});

test("regions that would make a cycle are left alone", () => {
  // line 1 is 0 1 2 and, past line 2's node 3, 4; node 4 also reads 2, so that the region would read itself
  const { index, graph } = graphOf([[], [0], [1], [2], [3, 2], [4]], [1, 1, 1, 2, 1, null]);
  assert.equal(contract(index, graph, new Set()).members.size, 0);
});

test("the copies that unrolling made are one box; constants and addresses do not tell them apart", () => {
  const nodes: Node[] = [];
  const add = (op: string, src: number[], more: Partial<Node> = {}): number => {
    const id = nodes.length;
    const rest = {
      dtype: "float32",
      shape: null,
      arg: "",
      digest: "",
      detail: "",
      group: "memory",
      user: null,
      calls: [],
      name: "",
      scope: null,
      backward: false,
    };
    nodes.push({ id, kind: "uop", op, label: op, src, ...rest, ...more });
    return id;
  };
  const buffer = add("DEFINE_GLOBAL", [], { group: "buffer", arg: "1" });
  const other = add("DEFINE_GLOBAL", [], { group: "buffer", arg: "0" });
  const stores = [0, 1, 2, 3].map((i) => {
    const offset = add("CONST", [], { group: "const", detail: String(i), dtype: "int64" });
    const load = add("LOAD", [add("INDEX", [buffer, offset])]);
    return add("STORE", [add("INDEX", [other, offset]), load]);
  });
  const sink = add("SINK", stores, { group: "control" });
  const empty = { links: [], stage_texts: [], stages: [], kernels: [], programs: [], runs: [] };
  const index = new TraceIndex({ nodes, ...empty } as unknown as Trace);
  const graph = {
    root: [sink],
    nodes: new Map(nodes.map(({ id, src }) => [id, { node: id, src }])),
    changed: new Set<number>(),
  };
  const contracted = contractUnrolledCopies(index, graph, new Set());
  const inside = [...contracted.members.values()].map((ids) => `${ids.length} ${nodes[ids[0]].op}`);
  assert.deepEqual(inside.sort(), ["4 INDEX", "4 INDEX", "4 LOAD", "4 STORE"]);
  assert.deepEqual(new Set(contracted.graph.nodes.get(sink)!.src).size, 1);
  const stepped = contractUnrolledCopies(index, { ...graph, changed: new Set([stores[0]]) }, new Set());
  assert.ok(stepped.graph.nodes.has(stores[0]));
});

test("a kernel of what was asked for before the capture is one box, with what only that kernel reads", () => {
  const { graph, index } = graphOf([[], [0], [1], [2], [3]], [0, 0, 0, 1, 1]);
  const nodes = index.trace.nodes.map((node) => ({ ...node, calls: node.id > 2 ? ["add"] : [] }));
  const kernels = [
    { id: 0, nodes: [1, 2], roots: [2] },
    { id: 1, nodes: [3, 4], roots: [4] },
  ];
  const known = new TraceIndex({ ...index.trace, nodes, kernels } as unknown as Trace);
  assert.deepEqual([...known.earlier], [0]);
  const contracted = contractEarlier(known, graph, new Set());
  assert.deepEqual([...contracted.members], [[2, [0, 1, 2]]]);
  assert.deepEqual([...contracted.graph.nodes.keys()], [2, 3, 4]);
  assert.equal(contractEarlier(known, graph, new Set([1])).members.size, 0);
  const all = new TraceIndex({ ...index.trace, kernels } as unknown as Trace);
  assert.equal(all.earlier.size, 0); // where everything was asked for before, that is the program
});

test("a view from inside the capture does not make an input's kernel a kernel of the program", () => {
  const { index } = graphOf([[], [0], [1], [2], [3]], [0, 0, 0, 1, 1]);
  const kernels = [
    { id: 0, nodes: [1, 2], roots: [2] },
    { id: 1, nodes: [3, 4], roots: [4] },
  ];
  const earlier = (group: string): number[] => {
    const nodes = index.trace.nodes.map((node) => ({
      ...node,
      calls: node.id > 1 ? ["add"] : [],
      group: node.id === 2 ? group : "alu",
    }));
    return [...new TraceIndex({ ...index.trace, nodes, kernels } as unknown as Trace).earlier];
  };
  assert.deepEqual(earlier("movement"), [0]);
  assert.deepEqual(earlier("alu"), []);
});
