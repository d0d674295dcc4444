// Derived relations of a trace: users of a node, its ancestors and descendants, its lines of code and of Python.

import { isTensor } from "./dialect";
import type {
  Decision,
  Frame,
  FusionEdge,
  KernelInfo,
  Link,
  Node,
  Program,
  Run,
  Stage,
  StageText,
  Step,
  Trace,
} from "./model";

export interface Firing {
  stage: Stage;
  /** The number of finished steps after this one. */
  step: number;
  firing: Step;
}

/** Returns the kernels that only compute or reshape values requested before the capture. */
function findEarlierKernels({ kernels, nodes }: Trace): Set<number> {
  const isEarlier = (id: number): boolean => nodes[id].calls.length === 0;
  const isShown = (id: number): boolean => isEarlier(id) || nodes[id].group === "movement";
  const candidates = kernels.filter((kernel) => kernel.nodes.some(isEarlier) && kernel.nodes.every(isShown));
  return new Set(candidates.length < kernels.length ? candidates.map(({ id }) => id) : []);
}

export class TraceIndex {
  readonly trace: Trace;
  private readonly back: Link[][];
  private readonly forward: Link[][];
  readonly children: Map<number | null, Stage[]>;
  readonly kernelOf: Map<number, number>;
  /** The first kernel that computes each LazyBuffer; a LazyBuffer of several kernels is drawn with it. */
  readonly firstKernelOf: Map<number, number>;
  /** Kernels that only compute lazy inputs, requested before the capture. Empty if all kernels do. */
  readonly earlier: Set<number>;
  readonly decisionOf: Map<number, Decision>;
  private readonly texts = new Map<number, StageText[]>();
  private readonly nearest = new Map<string, Node | null>();
  private readonly members = new Map<number, Set<number>>();
  private byLine: Map<string, number[]> | null = null;
  private byFrame: Map<number, number[]> | null = null;
  private users: Map<number, number[]> | null = null;
  private edges: Map<string, FusionEdge> | null = null;

  constructor(trace: Trace) {
    this.trace = trace;
    this.back = trace.nodes.map(() => []);
    this.forward = trace.nodes.map(() => []);
    for (const link of trace.links) {
      if (link.src === link.dst) continue;
      this.back[link.dst]?.push(link);
      this.forward[link.src]?.push(link);
    }
    this.children = groupByParent(trace.stages);
    this.kernelOf = new Map();
    for (const kernel of trace.kernels) for (const node of kernel.nodes) this.kernelOf.set(node, kernel.id);
    for (const kernel of trace.kernels) for (const node of kernel.roots) this.kernelOf.set(node, kernel.id);
    this.firstKernelOf = new Map();
    this.earlier = findEarlierKernels(trace);
    for (const kernel of trace.kernels) {
      for (const node of [...kernel.nodes, ...kernel.roots])
        if (!this.firstKernelOf.has(node)) this.firstKernelOf.set(node, kernel.id);
    }
    this.decisionOf = new Map();
    for (const stage of trace.stages) for (const word of stage.decisions) this.decisionOf.set(word.node, word);
    for (const text of trace.stage_texts) this.texts.set(text.stage, [...this.textsOf(text.stage), text]);
  }

  /** Returns the texts after a stage. */
  textsOf(stage: number): readonly StageText[] {
    return this.texts.get(stage) ?? [];
  }

  /** Returns the texts after a stage, or after the last previous stage that has any. */
  shownTexts(stage: number | null): readonly StageText[] {
    for (let id = stage ?? -1; id >= 0; id -= 1) if (this.texts.has(id)) return this.textsOf(id);
    return [];
  }

  node(id: number): Node {
    return this.trace.nodes[id];
  }

  /** Returns the scheduler's decision on the edge from `src` to `dst`; undefined if no kernel computes `dst`. */
  fusionEdge(src: number, dst: number): FusionEdge | undefined {
    this.edges ??= new Map(this.trace.fusion_edges.map((edge) => [`${edge.src} ${edge.dst}`, edge]));
    return this.edges.get(`${src} ${dst}`);
  }

  /** Returns all ancestors of the nodes, in the history of one kernel (null: of all kernels). */
  ancestors(ids: Iterable<number>, kernel: number | null = null): Set<number> {
    return this.walkLinks(ids, this.back, "src", kernel);
  }

  /** Returns all descendants of the nodes. */
  descendants(ids: Iterable<number>, kernel: number | null = null): Set<number> {
    return this.walkLinks(ids, this.forward, "dst", kernel);
  }

  /** Returns the nodes with all ancestors and descendants: the nodes that a selection highlights. */
  related(ids: Iterable<number>, kernel: number | null = null): Set<number> {
    const start = [...ids];
    const all = this.ancestors(start, kernel);
    for (const id of this.descendants(start, kernel)) all.add(id);
    for (const id of start) all.add(id);
    return all;
  }

  private walkLinks(ids: Iterable<number>, links: Link[][], end: "src" | "dst", kernel: number | null): Set<number> {
    const visited = new Set<number>();
    const stack = [...ids];
    while (stack.length > 0) {
      for (const link of links[stack.pop()!] ?? []) {
        const id = link[end];
        if (visited.has(id) || !this.mayFollow(link, kernel)) continue;
        visited.add(id);
        stack.push(id);
      }
    }
    return visited;
  }

  /**
   * Whether a walk for a kernel may follow a link. Equal nodes of two kernels are one node, so it must not enter the
   * other's history.
   */
  private mayFollow(link: Link, kernel: number | null): boolean {
    if (kernel === null) return true;
    const owner = link.stage === null ? null : this.trace.stages[link.stage].kernel;
    if (owner !== null) return owner === kernel;
    const members = this.membersOf(kernel);
    return members.size === 0 || !isTensor(this.trace, this.trace.nodes[link.src]) || members.has(link.src);
  }

  /** Returns the LazyBuffers that a kernel computes, stores or reads. */
  membersOf(kernel: number): Set<number> {
    let members = this.members.get(kernel);
    if (members === undefined) {
      const info = this.trace.kernels[kernel];
      members = new Set(info ? [...info.nodes, ...info.roots] : []);
      for (const id of [...members]) for (const src of this.trace.nodes[id].src) members.add(src);
      this.members.set(kernel, members);
    }
    return members;
  }

  /** Returns the nodes that a line of the user's Python created. */
  nodesOfLine(source: number, line: number): number[] {
    if (this.byLine === null) {
      this.byLine = new Map();
      for (const node of this.trace.nodes) {
        const frame = node.user === null ? undefined : this.trace.frames[node.user];
        if (frame) push(this.byLine, `${frame.source}:${frame.line}`, node.id);
      }
    }
    return this.byLine.get(`${source}:${line}`) ?? [];
  }

  /** Returns the nodes that a frame of the user's Python created. */
  nodesOfFrame(frame: number): number[] {
    if (this.byFrame === null) {
      this.byFrame = new Map();
      for (const node of this.trace.nodes) if (node.user !== null) push(this.byFrame, node.user, node.id);
    }
    return this.byFrame.get(frame) ?? [];
  }

  /** Returns the nearest Python line among a node's ancestors. */
  frameOf(id: number, kernel: number | null = null): Frame | null {
    const user = this.findBeginning(id, kernel)?.user ?? null;
    return user === null ? null : this.trace.frames[user];
  }

  /** Returns the Python calls that created the nearest node with such a line, the user's own first. */
  callsOf(id: number, kernel: number | null = null): readonly string[] {
    return this.findBeginning(id, kernel)?.calls ?? [];
  }

  private findBeginning(id: number, kernel: number | null): Node | null {
    const key = `${kernel}:${id}`;
    const cached = this.nearest.get(key);
    if (cached !== undefined) return cached;
    const visited = new Set([id]);
    const queue = [id];
    let nearest: Node | null = null;
    for (let head = 0; head < queue.length && nearest === null; head += 1) {
      const node = this.trace.nodes[queue[head]];
      if (node !== undefined && node.user !== null) nearest = node;
      else
        for (const link of this.back[queue[head]] ?? []) {
          if (visited.has(link.src) || !this.mayFollow(link, kernel)) continue;
          visited.add(link.src);
          queue.push(link.src);
        }
    }
    this.nearest.set(key, nearest);
    return nearest;
  }

  /** Returns the nodes that have this one among their sources. */
  usersOf(id: number): number[] {
    if (this.users === null) {
      this.users = new Map();
      for (const node of this.trace.nodes) for (const src of new Set(node.src)) push(this.users, src, node.id);
    }
    return this.users.get(id) ?? [];
  }

  /**
   * Returns the firings and transforms that led to a node, in order: those whose result, or a node inside it, is an
   * ancestor.
   */
  rewriteHistory(id: number, kernel: number | null = null): Firing[] {
    const past = this.ancestors([id], kernel);
    past.add(id);
    const madePart = (stage: Stage, firing: Step): boolean =>
      past.has(firing.before) &&
      this.forward[firing.before].some((link) => link.stage === stage.id && past.has(link.dst));
    const history: Firing[] = [];
    for (const stage of this.trace.stages) {
      if (kernel !== null && stage.kernel !== null && stage.kernel !== kernel) continue;
      stage.steps.forEach((firing, k) => {
        if ((firing.rule !== null || stage.transform !== null) && (past.has(firing.after) || madePart(stage, firing)))
          history.push({ stage, step: k + 1, firing });
      });
    }
    return history;
  }

  /** Returns the listings of a kernel; a kernel that reuses a program shows those of the first kernel. */
  programsOf(kernel: number | null): Program[] {
    if (kernel === null) return [];
    const kernelPrograms = this.trace.programs.filter((program) => program.kernel === kernel);
    const sharer = this.trace.kernels[kernel]?.same_as ?? null;
    return kernelPrograms.length > 0 || sharer === null || sharer === kernel ? kernelPrograms : this.programsOf(sharer);
  }

  /** Returns the name of the buffer that a kernel calls data0, data1, …, and the kernel that wrote it. */
  argument(kernel: number | null, position: number): { name: string; maker: number | null } {
    const bufferAt = kernel === null ? undefined : this.trace.kernels[kernel]?.buffers[position];
    const buffer = bufferAt === undefined ? undefined : this.trace.buffers[bufferAt];
    return { name: buffer?.name ?? "", maker: buffer?.maker ?? null };
  }

  /** Returns the same as text: "x", "result of kernel 0", "" if unknown. */
  argumentText(kernel: number | null, position: number): string {
    const { name, maker } = this.argument(kernel, position);
    if (name !== "") return name;
    if (maker === null) return "";
    return maker === kernel ? "result" : `result of kernel ${maker}`;
  }

  /** Returns a text of a kernel with the Python names of its buffers instead of data1. */
  withNames(text: string, kernel: number | null): string {
    return text.replace(/\bdata(\d+)\b/g, (match, position) => this.argument(kernel, Number(position)).name || match);
  }

  runOf(kernel: number): Run | null {
    return this.trace.runs.findLast((run) => run.kernel === kernel) ?? null;
  }

  /** Whether a stage changed its nodes; null if it has none (rendering, compiling). */
  changed(stage: Stage): boolean | null {
    if (stage.steps.length > 0 || this.texts.has(stage.id)) return true;
    if (stage.before.length === 0 && stage.after.length === 0) return this.texts.size > 0 ? false : null;
    return stage.before.length !== stage.after.length || stage.before.some((id, i) => id !== stage.after[i]);
  }

  /** Returns the number of steps up to the last firing of a stage; only rebuilds follow. */
  endOf(stage: Stage): number {
    const last = stage.steps.findLastIndex((step) => step.rule !== null);
    return last < 0 ? stage.steps.length : last + 1;
  }

  firings(stage: Stage): number {
    return stage.steps.reduce((sum, step) => sum + (step.rule === null ? 0 : 1), 0);
  }

  /** Returns the nodes below the roots, sources first. */
  reachable(roots: Iterable<number>): number[] {
    const order: number[] = [];
    const state = new Map<number, number>();
    const stack = [...roots].reverse();
    while (stack.length > 0) {
      const id = stack[stack.length - 1];
      const nextSource = state.get(id) ?? 0;
      const src = this.trace.nodes[id]?.src ?? [];
      if (nextSource > src.length) {
        stack.pop();
      } else if (nextSource === src.length) {
        state.set(id, nextSource + 1);
        order.push(id);
        stack.pop();
      } else {
        state.set(id, nextSource + 1);
        if (!state.has(src[nextSource])) stack.push(src[nextSource]);
      }
    }
    return order;
  }
}

/** Returns a kernel's giga-operations and gigabytes a second, if it was timed. */
export function computeThroughput(kernel: KernelInfo, run: Run | null): { gflops: number | null; gbps: number | null } {
  if (run === null || run.median_us <= 0) return { gflops: null, gbps: null };
  return { gflops: kernel.flops / run.median_us / 1e3, gbps: kernel.bytes_moved / run.median_us / 1e3 };
}

function push<K>(map: Map<K, number[]>, key: K, value: number): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function groupByParent(stages: Stage[]): Map<number | null, Stage[]> {
  const groups = new Map<number | null, Stage[]>();
  for (const stage of stages) groups.set(stage.parent, [...(groups.get(stage.parent) ?? []), stage]);
  return groups;
}
