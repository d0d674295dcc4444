// Regions: several nodes drawn as one box with their true count. In the LazyBuffer graph, a region is the part of one
// Python call in one kernel, or a whole kernel. In a UOp graph, it is the unrolled copies of one computation.

import { isTensor } from "./dialect";
import type { ProductGroup } from "./matrix_products";
import type { TraceIndex } from "./trace_index";
import type { GraphSnapshot } from "./replay";

const SMALLEST = 4; // smaller regions are clearer as single nodes
const FEWEST_COPIES = 3;

export interface Contracted {
  graph: GraphSnapshot;
  /** The display ids inside each region, by the display id of its box. */
  members: Map<number, number[]>;
}

/** Returns the LazyBuffer graph with contracted regions, except those with a node of `open`. */
export function contract(index: TraceIndex, graph: GraphSnapshot, open: Set<number>): Contracted {
  return removeCycles(
    graph,
    findComponents(graph, keysOf(index, graph)).filter((region) => region.length >= SMALLEST && !isOpen(region, open)),
  );
}

/** Returns the LazyBuffer graph with one box per kernel of lazy inputs, except those with a node of `open`. */
export function contractEarlier(index: TraceIndex, graph: GraphSnapshot, open: Set<number>): Contracted {
  return contractKernels(index, graph, open, index.earlier);
}

/** Returns the LazyBuffer graph with one box per kernel, except those with a node of `open`. */
export function contractKernels(
  index: TraceIndex,
  graph: GraphSnapshot,
  open: Set<number>,
  only: ReadonlySet<number> | null = null,
): Contracted {
  const groups = new Map<number, number[]>();
  for (const [id, { node }] of graph.nodes) {
    const kernel = index.firstKernelOf.get(node);
    if (kernel !== undefined && (only === null || only.has(kernel)))
      groups.set(kernel, [...(groups.get(kernel) ?? []), id]);
  }
  if (only !== null) adopt(graph, groups);
  const order = [...graph.nodes.keys()];
  return removeCycles(
    graph,
    [...groups.values()]
      .filter((region) => region.length > 1 && !isOpen(region, open))
      .map((region) => new Set(region))
      .map((region) => order.filter((id) => region.has(id))),
  );
}

/** Adds nodes that only one group reads to that group: buffers and counters from which an input is computed. */
function adopt(graph: GraphSnapshot, groups: Map<number, number[]>): void {
  const owner = new Map([...groups].flatMap(([kernel, ids]) => ids.map((id) => [id, kernel] as const)));
  const readers = new Map<number, Set<number | undefined>>();
  for (const [id, { src }] of graph.nodes)
    for (const source of src) readers.set(source, (readers.get(source) ?? new Set()).add(owner.get(id)));
  for (const [source, kernels] of readers) {
    const [kernel, ...others] = kernels;
    if (owner.has(source) || kernel === undefined || others.length > 0) continue;
    groups.get(kernel)!.push(source);
  }
}

/** Returns the LazyBuffer graph with one box for each of these products. */
export function contractProducts(graph: GraphSnapshot, products: readonly ProductGroup[]): Contracted {
  return removeCycles(
    graph,
    products.map(({ members }) => members),
  );
}

function isOpen(region: number[], open: Set<number>): boolean {
  return region.some((id) => open.has(id));
}

/**
 * Returns a UOp graph with contracted unrolled copies: nodes of equal operation over equal sources, ignoring constants
 * and addresses.
 */
export function contractUnrolledCopies(index: TraceIndex, graph: GraphSnapshot, open: Set<number>): Contracted {
  const names = new Map<string, number>();
  const shape = new Map<number, number>();
  const groups = new Map<number, number[]>();
  const roots = new Set(graph.root);
  for (const [id, { node: nodeId, src }] of graph.nodes) {
    const { op, dtype, group, arg, detail, kind } = index.node(nodeId);
    const isAddress = op === "INDEX";
    const parts = (isAddress ? src.slice(0, 1) : src).map((source) => shape.get(source) ?? -1);
    const isConst = group === "const";
    const argument = group === "buffer" || group === "loop" ? arg : isConst ? "" : op === "REDUCE" ? arg : "";
    const start =
      op === "DEFINE_ACC" ? src.map((source) => index.node(graph.nodes.get(source)!.node).detail).join() : "";
    const key = isConst ? "const" : [op, isAddress ? "" : dtype, argument, start, parts.join()].join("|");
    if (!names.has(key)) names.set(key, names.size);
    const name = names.get(key)!;
    shape.set(id, name);
    const isScalarInteger = group === "alu" && /^(u?int(8|16|32|64)|bool)$/.test(dtype) && detail !== dtype;
    const isExcluded = isConst || isScalarInteger || group === "loop" || group === "buffer" || kind !== "uop";
    if (isExcluded || roots.has(id) || graph.changed.has(id) || open.has(nodeId)) continue;
    const list = groups.get(name);
    if (list === undefined) groups.set(name, [id]);
    else list.push(id);
  }
  return removeCycles(
    graph,
    [...groups.values()].filter((copies) => copies.length >= FEWEST_COPIES),
  );
}

/** Returns the quotient by the regions, without regions that would create a cycle. */
function removeCycles(graph: GraphSnapshot, all: number[][]): Contracted {
  let regions = all;
  for (;;) {
    const merged = buildQuotient(graph, regions);
    const tangled = findCyclic(merged.graph);
    if (tangled.size === 0) return merged;
    const left = regions.filter((region) => !tangled.has(boxOf(region)));
    // a cycle always runs through a region, since the graph itself has none
    regions = left.length < regions.length ? left : [];
  }
}

/** Returns the id of a region's box: that of its last node, which the others lead to. */
function boxOf(region: number[]): number {
  return region[region.length - 1];
}

function keysOf(index: TraceIndex, graph: GraphSnapshot): Map<number, string> {
  const keys = new Map<number, string>();
  const roots = new Set(graph.root);
  for (const [id, { node: nodeId }] of graph.nodes) {
    const node = index.node(nodeId);
    const isExcluded = node.group === "buffer" || index.decisionOf.get(nodeId)?.decision === "realize" || roots.has(id);
    if (isTensor(index.trace, node) && node.user !== null && !isExcluded) {
      const { source, line, function: name } = index.trace.frames[node.user];
      keys.set(id, `${index.firstKernelOf.get(nodeId) ?? "none"} ${source}:${line} ${name}`);
    }
  }
  return keys;
}

/** Groups neighbors of equal key; each region is in graph order, sources first. */
function findComponents(graph: GraphSnapshot, keys: Map<number, string>): number[][] {
  const parent = new Map<number, number>([...keys.keys()].map((id) => [id, id]));
  const find = (id: number): number => {
    let top = id;
    while (parent.get(top) !== top) top = parent.get(top)!;
    for (let node = id; node !== top; ) {
      const next = parent.get(node)!;
      parent.set(node, top);
      node = next;
    }
    return top;
  };
  for (const [id, key] of keys) {
    for (const src of graph.nodes.get(id)!.src) if (keys.get(src) === key) parent.set(find(src), find(id));
  }
  const regions = new Map<number, number[]>();
  for (const id of graph.nodes.keys()) {
    if (!keys.has(id)) continue;
    const top = find(id);
    const region = regions.get(top);
    if (region === undefined) regions.set(top, [id]);
    else region.push(id);
  }
  return [...regions.values()];
}

function buildQuotient(graph: GraphSnapshot, regions: number[][]): Contracted {
  const box = new Map<number, number>();
  for (const region of regions) for (const id of region) box.set(id, boxOf(region));
  const boxed = (id: number): number => box.get(id) ?? id;
  const sourcesOf = (inside: number[], boxId: number): number[] => {
    const lists = inside.map((member) => graph.nodes.get(member)!.src.map(boxed));
    const isSame = lists.every(
      (list) => list.length === lists[0].length && list.every((src, i) => src === lists[0][i]),
    );
    return isSame ? lists[0] : [...new Set(lists.flat())].filter((source) => source !== boxId);
  };
  const nodes: GraphSnapshot["nodes"] = new Map();
  const members = new Map(regions.map((region) => [boxOf(region), region]));
  for (const [id, { node, src }] of graph.nodes) {
    if (boxed(id) !== id) continue;
    const inside = members.get(id);
    nodes.set(id, { node, src: inside === undefined ? src.map(boxed) : sourcesOf(inside, id) });
  }
  return { graph: { root: graph.root.map(boxed), nodes, changed: new Set([...graph.changed].map(boxed)) }, members };
}

/** Returns the nodes that are on a cycle or below one. */
function findCyclic(graph: GraphSnapshot): Set<number> {
  const waiting = new Map<number, number>();
  const users = new Map<number, number[]>();
  for (const [id, { src }] of graph.nodes) {
    const sources = new Set(src);
    waiting.set(id, sources.size);
    for (const source of sources) {
      const list = users.get(source);
      if (list === undefined) users.set(source, [id]);
      else list.push(id);
    }
  }
  const ready = [...waiting].filter(([, count]) => count === 0).map(([id]) => id);
  for (let head = 0; head < ready.length; head += 1) {
    waiting.delete(ready[head]);
    for (const user of users.get(ready[head]) ?? []) {
      const count = waiting.get(user)! - 1;
      waiting.set(user, count);
      if (count === 0) ready.push(user);
    }
  }
  return new Set(waiting.keys());
}
