// The graph at the cursor, and how it is drawn: constants and index math folded into the boxes that use them, views
// into edges, and a limit for boxes; omitted nodes are counted.

import { isTensor } from "./dialect";
import type { Node, Stage, Trace } from "./model";
import type { TraceIndex } from "./trace_index";
import { Replay, type GraphSnapshot } from "./replay";
import type { Cursor } from "./store";
import { truncate } from "./format";

export interface DrawnBox {
  id: number;
  node: number;
  label: string;
  detail: string;
  width: number;
  height: number;
  /** The trace nodes of this box: its own, or all of a region. */
  members: number[];
  /** The neighbors beyond the limit of boxes. */
  hidden: number;
  changed: boolean;
}

export interface DrawnEdge {
  src: number;
  dst: number;
  /** The operand positions of `dst` that this edge stands for. */
  operands: number[];
  /** The nodes that are folded into this edge. */
  through: number[];
}

export interface DrawnGraph {
  boxes: DrawnBox[];
  edges: DrawnEdge[];
  /** The number of nodes of the graph before folding and hiding. */
  total: number;
  folded: { constants: number; index: number; views: number };
  /** The number of nodes inside boxes of regions. */
  inRegions: number;
  hidden: number;
}

/** The counts of drawn and omitted nodes; they add up to `total`. */
export interface Counts {
  shown: number;
  folded: number;
  inRegions: number;
  hidden: number;
  total: number;
}

export function countsOf({ boxes, folded, inRegions, hidden, total }: DrawnGraph): Counts {
  const singleBoxes = boxes.filter(({ members }) => members.length === 1).length;
  return { shown: singleBoxes, folded: folded.constants + folded.index + folded.views, inRegions, hidden, total };
}

/** Several nodes in one box, with the text of the box. */
export interface DrawnRegion {
  members: number[];
  label: string;
  detail: string;
}

export interface FoldOptions {
  constants: boolean;
  index: boolean;
  /** Whether views (RESHAPE, EXPAND …) of LazyBuffers that other nodes read become part of the edge. */
  views: boolean;
  budget: number;
  /** The centers of the dependency cone: only these nodes, their ancestors and descendants are drawn; */
  cone: Set<number> | null;
  /** the most edges from the centers (null: no limit). */
  hops: number | null;
  /** Views that keep a box of their own. */
  stay?: ReadonlySet<number>;
  /** Boxes that are kept first if there are too many. */
  keep: Set<number>;
  /** Returns the text of a box, with the names of the user's Python. */
  words?: (node: Node) => { label: string; detail: string };
  /** Boxes that represent several nodes: their members and their text. */
  regions?: Map<number, DrawnRegion>;
}

const CARRIES_CONSTANT = new Set(["RESHAPE", "EXPAND", "VECTORIZE", "CAST"]);
const INDEX_TYPES = new Set(["int64", "int32", "bool", "index"]);
const MAX_DETAIL = 30;

export class GraphReader {
  private readonly replays = new Map<number, Replay>();

  constructor(private readonly index: TraceIndex) {}

  replay(stage: Stage): Replay {
    let replay = this.replays.get(stage.id);
    if (replay === undefined) {
      if (this.replays.size >= 8) this.replays.delete(this.replays.keys().next().value!);
      replay = new Replay(this.index.trace, stage.id);
      this.replays.set(stage.id, replay);
    }
    return replay;
  }

  /**
   * Returns the stage whose graph is shown for a stage: itself, or the last previous stage with nodes (for render,
   * compile, run), of its kernel if possible, else of the whole program.
   */
  stageWithGraph(id: number | null): Stage | null {
    const stages = this.index.trace.stages;
    const start = id === null ? undefined : stages[id];
    let ofProgram: Stage | null = null;
    for (let current = id ?? -1; current >= 0; current -= 1) {
      const stage = stages[current];
      if (stage.before.length === 0 && stage.after.length === 0) continue;
      if (start === undefined || start.kernel === null || stage.kernel === start.kernel) return stage;
      if (stage.kernel === null) ofProgram ??= stage;
    }
    return ofProgram;
  }

  /** Returns the graph at the cursor; without nodes if the stage has only a text and no previous stage has a graph. */
  graphAt(cursor: Cursor): { graph: GraphSnapshot; family: string; stage: Stage | null } {
    const { trace } = this.index;
    const stage = this.stageWithGraph(cursor.stage);
    const hasTensors = trace.nodes.some((node) => isTensor(trace, node));
    const isLazy = (roots: readonly number[]): boolean =>
      roots.length > 0 && isTensor(trace, this.index.node(roots[0]));
    const roots = stage === null || stage.before.length > 0 ? (stage?.before ?? []) : stage.after;
    if (hasTensors && (cursor.graph === "lazy" || stage === null || isLazy(roots))) {
      return { graph: this.lazyBuffers(), family: "lazy", stage: null };
    }
    if (stage === null) return { graph: this.makePlainGraph([], []), family: "none", stage };
    const family = `kernel ${stage.kernel}`;
    if (stage.steps.length > 0) {
      const replay = this.replay(stage);
      const step = stage.id === cursor.stage ? Math.min(cursor.step, replay.count) : replay.count;
      return { graph: replay.graphAt(step), family, stage };
    }
    const rootIds = stage.after.length > 0 ? stage.after : stage.before;
    return { graph: this.makePlainGraph(this.index.reachable(rootIds), [...rootIds]), family, stage };
  }

  lazyBuffers(): GraphSnapshot {
    const { trace } = this.index;
    const ids = trace.nodes.filter((node) => isTensor(trace, node)).map((node) => node.id);
    const used = new Set(ids.flatMap((id) => this.index.node(id).src));
    return this.makePlainGraph(
      ids,
      ids.filter((id) => !used.has(id)),
    );
  }

  private makePlainGraph(ids: number[], root: number[]): GraphSnapshot {
    const nodes = new Map(ids.map((id) => [id, { node: id, src: [...this.index.node(id).src] }]));
    return { root, nodes, changed: new Set() };
  }
}

export function foldGraph(trace: Trace, graph: GraphSnapshot, options: FoldOptions): DrawnGraph {
  const users = findUsers(graph);
  const constants = options.constants ? readConstants(trace, graph) : new Map<number, string>();
  const roots = new Set(graph.root);
  for (const id of [...constants.keys()]) {
    if (roots.has(id) || graph.changed.has(id) || options.keep.has(id) || (users.get(id) ?? []).length === 0)
      constants.delete(id);
  }
  const index = options.index ? findIndexMath(trace, graph, users, constants, options.keep) : new Set<number>();
  const views = options.views ? findInnerViews(trace, graph, users, constants, options) : new Set<number>();
  const isFolded = (id: number): boolean => constants.has(id) || index.has(id) || views.has(id);
  let visible = new Set([...graph.nodes.keys()].filter((id) => !isFolded(id)));
  const edges = new Map<string, DrawnEdge>();
  const isBelow = options.cone === null ? null : findDependencyCone(graph, users, options.cone, options.hops, views);
  if (isBelow !== null) visible = new Set([...visible].filter((id) => isBelow.has(id)));
  const connect = (src: number, dst: number, operand: number, through: number[]): void => {
    if (constants.has(src)) return;
    if (index.has(src) || views.has(src)) {
      for (const next of new Set(graph.nodes.get(src)!.src))
        connect(next, dst, operand, views.has(src) ? [src, ...through] : through);
      return;
    }
    const key = `${src} ${dst}`;
    const edge = edges.get(key);
    if (edge === undefined) edges.set(key, { src, dst, operands: [operand], through });
    else if (!edge.operands.includes(operand)) edge.operands.push(operand);
  };
  for (const id of visible) graph.nodes.get(id)!.src.forEach((src, operand) => connect(src, id, operand, []));
  const chosenIds = chooseNearest([...visible], [...edges.values()], graph, options);
  const cut = new Map<number, number>();
  const drawnEdges: DrawnEdge[] = [];
  for (const edge of edges.values()) {
    const [hasSrc, hasDst] = [chosenIds.has(edge.src), chosenIds.has(edge.dst)];
    if (hasSrc && hasDst) drawnEdges.push(edge);
    else if (hasSrc) cut.set(edge.src, (cut.get(edge.src) ?? 0) + 1);
    else if (hasDst) cut.set(edge.dst, (cut.get(edge.dst) ?? 0) + 1);
  }
  /**
   * Returns the readers of a LazyBuffer, if none of them has a box of its own (folded into an edge, or in a region).
   */
  const readers = (id: number): Node[] => {
    const allReaders = users.get(id) ?? [];
    if (!allReaders.every((user) => views.has(user) || options.regions?.has(user))) return [];
    const { node } = graph.nodes.get(id)!;
    const within = (user: number): number[] =>
      options.regions?.get(user)?.members.filter((member) => trace.nodes[member].src.includes(node)) ?? [
        graph.nodes.get(user)!.node,
      ];
    return allReaders.flatMap(within).map((reader) => trace.nodes[reader]);
  };
  const boxes = [...chosenIds].map((id) => {
    const { node, src } = graph.nodes.get(id)!;
    const region = options.regions?.get(id);
    if (region !== undefined) return makeRegionBox(region, id, node, cut.get(id) ?? 0, graph.changed.has(id));
    const words = showInShape(readers(id), trace.nodes[node], options.words?.(trace.nodes[node]) ?? trace.nodes[node]);
    return makeBox(trace.nodes[node], words, id, src, constants, cut.get(id) ?? 0, graph.changed.has(id));
  });
  const weight = (id: number): number => options.regions?.get(id)?.members.length ?? 1;
  const weigh = (ids: Iterable<number>): number => [...ids].reduce((sum, id) => sum + weight(id), 0);
  return {
    boxes,
    edges: drawnEdges,
    total: weigh(graph.nodes.keys()),
    inRegions: boxes.reduce((sum, { members }) => sum + (members.length > 1 ? members.length : 0), 0),
    folded: { constants: weigh(constants.keys()), index: weigh(index), views: weigh(views) },
    hidden: weigh([...graph.nodes.keys()].filter((id) => !isFolded(id) && !chosenIds.has(id))),
  };
}

/**
 * Returns memory with the shape of its view. Memory is a row of numbers; if the view that gives it a shape has no box
 * (no call created it), the box of the memory shows that shape.
 */
function showInShape(
  readers: readonly Node[],
  node: Node,
  words: { label: string; detail: string },
): { label: string; detail: string } {
  if (node.group !== "buffer" || readers.length === 0) return words;
  const [{ op, shape }] = readers;
  if (
    op !== "RESHAPE" ||
    shape === null ||
    readers.some((reader) => reader.op !== op || reader.calls.length > 0 || String(reader.shape) !== String(shape))
  )
    return words;
  return { label: words.label, detail: words.detail.replace(` ${node.shape?.join("×")} `, ` ${shape.join("×")} `) };
}

/** Returns the text of a node's box: "x" for memory, "h = ADD" for computed values, "LOAD x[i]" in a kernel. */
export function labelTextOf(index: TraceIndex, node: Node, kernel: number | null): { label: string; detail: string } {
  const { name, label, group } = node;
  if (isTensor(index.trace, node)) {
    if (name === "") return node;
    return { label: group === "buffer" ? name : `${name} = ${label}`, detail: node.detail };
  }
  const detail = index.withNames(node.detail, kernel);
  if (node.op !== "DEFINE_GLOBAL") return { label, detail };
  const text = index.argumentText(kernel, Number(node.arg));
  return text === "" ? { label, detail } : { label: text, detail: `${label} · ${detail}` };
}

function makeBox(
  node: Node,
  words: { label: string; detail: string },
  id: number,
  src: number[],
  constants: Map<number, string>,
  hidden: number,
  changed: boolean,
): DrawnBox {
  let { label, detail } = words;
  const folded = src.map((source) => constants.get(source)).filter((text) => text !== undefined);
  const missing = folded.filter((text) => !detail.includes(text));
  if (missing.length > 0) detail = detail === "" ? missing.join(", ") : `${missing.join(", ")} · ${detail}`;
  const lanes = /×\d+$/.exec(node.dtype)?.[0];
  if (lanes !== undefined && !`${label} ${detail}`.includes(lanes)) label = `${label} ${lanes}`;
  label = truncate(label, MAX_DETAIL);
  detail = truncate(detail, MAX_DETAIL);
  return { id, node: node.id, label, detail, ...sizeOf(label, detail), members: [node.id], hidden, changed };
}

function makeRegionBox(
  { members, label, detail: text }: DrawnRegion,
  id: number,
  node: number,
  hidden: number,
  changed: boolean,
): DrawnBox {
  const detail = truncate(text, MAX_DETAIL + 6);
  return { id, node, label, detail, ...sizeOf(label, detail), members, hidden, changed };
}

function sizeOf(label: string, detail: string): { width: number; height: number } {
  const width = Math.max(56, Math.ceil(Math.max(label.length * 7.4, detail.length * 6.8) + 18));
  return { width, height: detail === "" ? 28 : 40 };
}

function findUsers(graph: GraphSnapshot): Map<number, number[]> {
  const users = new Map<number, number[]>();
  for (const [id, { src }] of graph.nodes) {
    for (const source of new Set(src)) {
      const list = users.get(source);
      if (list === undefined) users.set(source, [id]);
      else list.push(id);
    }
  }
  return users;
}

/** Returns constants, and reshapes or casts of constants, with their text. */
function readConstants(trace: Trace, graph: GraphSnapshot): Map<number, string> {
  const texts = new Map<number, string>();
  const waiting = [...graph.nodes.keys()];
  const visited = new Set<number>();
  while (waiting.length > 0) {
    const id = waiting[waiting.length - 1];
    const { node: nodeId, src } = graph.nodes.get(id)!;
    const node = trace.nodes[nodeId];
    const next = visited.has(id) || !CARRIES_CONSTANT.has(node.op) ? [] : src.filter((source) => !visited.has(source));
    if (next.length > 0) {
      visited.add(id);
      waiting.push(...next);
      continue;
    }
    waiting.pop();
    visited.add(id);
    if (node.op === "CONST") texts.set(id, node.detail);
    else if (CARRIES_CONSTANT.has(node.op) && src.length > 0 && src.every((source) => texts.has(source))) {
      const said = new Set(src.map((source) => texts.get(source)!));
      if (said.size === 1) texts.set(id, [...said][0]);
    }
  }
  return texts;
}

/** Returns the integer arithmetic that only addresses use. */
function findIndexMath(
  trace: Trace,
  graph: GraphSnapshot,
  users: Map<number, number[]>,
  constants: Map<number, string>,
  keep: Set<number>,
): Set<number> {
  const texts = new Set<number>();
  for (const id of [...graph.nodes.keys()].reverse()) {
    const node = trace.nodes[graph.nodes.get(id)!.node];
    if (node.kind !== "uop" || constants.has(id) || graph.changed.has(id) || keep.has(id)) continue;
    if (node.group !== "alu" || !INDEX_TYPES.has(node.dtype)) continue;
    const consumers = users.get(id) ?? [];
    if (consumers.length === 0) continue;
    const onlyAddresses = consumers.every(
      (user) => texts.has(user) || trace.nodes[graph.nodes.get(user)!.node].op === "INDEX",
    );
    if (onlyAddresses) texts.add(id);
  }
  return texts;
}

/** Returns the views of LazyBuffers that only pass values on, except results, selected nodes and boxes of regions. */
function findInnerViews(
  trace: Trace,
  graph: GraphSnapshot,
  users: Map<number, number[]>,
  constants: Map<number, string>,
  { keep, regions, stay }: FoldOptions,
): Set<number> {
  const views = new Set<number>();
  const roots = new Set(graph.root);
  for (const [id, { node: nodeId }] of graph.nodes) {
    const node = trace.nodes[nodeId];
    const isView = isTensor(trace, node) && node.group === "movement" && node.src.length > 0;
    const stays =
      roots.has(id) || keep.has(id) || stay?.has(id) || regions?.has(id) || constants.has(id) || !users.has(id);
    if (isView && !stays) views.add(id);
  }
  return views;
}

/** Returns the nodes above and below the centers, at most `hops` edges away; an edge through a view counts once. */
function findDependencyCone(
  graph: GraphSnapshot,
  users: Map<number, number[]>,
  center: Set<number>,
  hops: number | null,
  views: Set<number>,
): Set<number> {
  const cone = new Set<number>();
  const walk = (next: (id: number) => number[]): void => {
    const nearest = new Map([...center].filter((id) => graph.nodes.has(id)).map((id) => [id, 0]));
    const queue = [...nearest.keys()];
    for (let head = 0; head < queue.length; head += 1) {
      const id = queue[head];
      const far = nearest.get(id)!;
      cone.add(id);
      for (const other of next(id)) {
        const there = far + (views.has(other) ? 0 : 1);
        if ((hops !== null && there > hops) || there >= (nearest.get(other) ?? Infinity)) continue;
        nearest.set(other, there);
        queue.push(other);
      }
    }
  };
  walk((id) => graph.nodes.get(id)?.src ?? []);
  walk((id) => users.get(id) ?? []);
  return cone;
}

/** Returns the boxes nearest to changed and selected nodes and the roots, up to the limit. */
function chooseNearest(ids: number[], edges: DrawnEdge[], graph: GraphSnapshot, options: FoldOptions): Set<number> {
  if (ids.length <= options.budget) return new Set(ids);
  const neighbors = new Map<number, number[]>(ids.map((id) => [id, []]));
  for (const { src, dst } of edges) {
    if (!neighbors.has(src) || !neighbors.has(dst)) continue; // outside the dependency cone
    neighbors.get(src)!.push(dst);
    neighbors.get(dst)!.push(src);
  }
  const nearestIds = new Set<number>();
  const queue = [...graph.changed, ...options.keep, ...graph.root].filter((id) => neighbors.has(id));
  if (queue.length === 0) queue.push(ids[ids.length - 1]);
  for (
    let head = 0;
    nearestIds.size < options.budget && (head < queue.length || nearestIds.size < ids.length);
    head += 1
  ) {
    const id = head < queue.length ? queue[head] : ids.find((other) => !nearestIds.has(other))!;
    if (nearestIds.has(id)) continue;
    nearestIds.add(id);
    queue.push(...neighbors.get(id)!);
  }
  return nearestIds;
}
