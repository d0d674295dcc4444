// Replays the intermediate graphs of a rewrite stage from its steps. The same algorithm as
// tinyexplore/explore/tracefile/replay.py; both are tested on the fixtures in tests/replay.

import { count } from "./format";

/** The tables of a Trace that a replay reads (see model.ts). */
export interface ReplayTrace {
  readonly nodes: readonly { readonly src: readonly number[] }[];
  readonly stages: readonly {
    readonly before: readonly number[];
    readonly steps: readonly { readonly rule: number | null; readonly before: number; readonly after: number }[];
  }[];
}

/** A box: the trace node whose label it shows, and the display ids of its operands, in order. */
export interface SnapshotNode {
  node: number;
  src: number[];
}

/** A graph. `root` and the keys of `nodes` are display ids; `changed` are the boxes that the last step changed. */
export interface GraphSnapshot {
  root: number[];
  nodes: Map<number, SnapshotNode>;
  changed: Set<number>;
}

/** From step `index` on, `target` replaces a node (null: the node itself again, because a rule led back to it). */
interface Replacement {
  readonly index: number;
  readonly target: number | null;
}

/**
 * Replays one stage: graphAt(k) is the graph after its first k steps. A step replaces every occurrence of its `before`
 * by its `after`. A node that is rebuilt because its sources changed keeps its display id.
 */
export class Replay {
  readonly count: number;
  private readonly sources: readonly (readonly number[])[];
  private readonly before: readonly number[];
  private readonly steps: ReplayTrace["stages"][number]["steps"];
  private readonly replacements = new Map<number, Replacement[]>();
  /** From step `index` on, a node has display id `id` (before: its own). */
  private readonly displayIds = new Map<number, { index: number; id: number }[]>();
  private readonly recent = new Map<number, Resolved>();

  constructor(trace: ReplayTrace, stageId: number) {
    const stage = trace.stages[stageId];
    if (stage === undefined) {
      throw new RangeError(`stage ${stageId}: the trace has ${count(trace.stages.length, "stage")}, numbered from 0`);
    }
    this.sources = trace.nodes.map((node) => node.src);
    this.before = stage.before;
    this.steps = stage.steps;
    this.count = stage.steps.length;
    this.collectReplacements();
    this.collectDisplayIds();
  }

  graphAt(k: number): GraphSnapshot {
    if (!Number.isInteger(k) || k < 0 || k > this.count) {
      throw new RangeError(`step ${k}: the stage has ${this.count} steps; choose 0 to ${this.count}`);
    }
    const now = this.resolveSources(k);
    const changed = new Set<number>();
    if (k > 0) {
      const past = this.resolveSources(k - 1).nodes;
      for (const [id, displayed] of now.nodes) {
        const old = past.get(id);
        if (old === undefined || old.node !== displayed.node) changed.add(id);
      }
      const target = this.findLatest((this.steps[k - 1] as { after: number }).after, k, new Map());
      const id = now.idOf.get(target);
      if (id !== undefined) changed.add(id);
    }
    const nodes = new Map<number, SnapshotNode>();
    for (const [id, displayed] of now.nodes) nodes.set(id, { node: displayed.node, src: displayed.src.slice() });
    return { root: now.root.slice(), nodes, changed };
  }

  /** Records the replacements of each node by step. A step back to an earlier node removes that node's replacement. */
  private collectReplacements(): void {
    const current = new Map<number, number>();
    const put = (node: number, index: number, target: number | null): void => {
      const list = this.replacements.get(node);
      if (list === undefined) this.replacements.set(node, [{ index, target }]);
      else list.push({ index, target });
      if (target === null) current.delete(node);
      else current.set(node, target);
    };
    this.steps.forEach((step, index) => {
      if (step.before === step.after) return;
      let end = step.after;
      for (let next = current.get(end); next !== undefined && end !== step.before; next = current.get(end)) end = next;
      if (end === step.before) put(step.after, index, null);
      put(step.before, index, step.after);
    });
  }

  /** Assigns display ids: a node that another node is rebuilt as gets the display id of that node. */
  private collectDisplayIds(): void {
    const displayed = new DisplayedGraph(this.sources, this.before);
    this.steps.forEach((step, index) => {
      const takesOver = step.rule === null && displayed.users.has(step.before) && !displayed.users.has(step.after);
      const target = this.findLatest(step.after, index + 1, new Map());
      if (takesOver && target === step.after) {
        const entry = { index, id: this.displayId(step.before, index) };
        const list = this.displayIds.get(target);
        if (list === undefined) this.displayIds.set(target, [entry]);
        else list.push(entry);
      }
      displayed.replace(step.before, target, (node) => this.findLatest(node, index + 1, new Map()));
    });
  }

  private displayId(node: number, k: number): number {
    const list = this.displayIds.get(node) ?? [];
    for (let i = list.length - 1; i >= 0; i--) {
      const entry = list[i] as { index: number; id: number };
      if (entry.index < k) return entry.id;
    }
    return node;
  }

  private findReplacement(node: number, k: number): number | null {
    const list = this.replacements.get(node);
    if (list === undefined) return null;
    for (let i = list.length - 1; i >= 0; i--) {
      const replaced = list[i] as Replacement;
      if (replaced.index < k) return replaced.target;
    }
    return null;
  }

  /** Returns the node that replaces `node` after k steps; `memo` shortens the chains. */
  private findLatest(node: number, k: number, memo: Map<number, number>): number {
    const path: number[] = [];
    let end = node;
    for (;;) {
      const cached = memo.get(end);
      if (cached !== undefined) {
        end = cached;
        break;
      }
      const next = this.findReplacement(end, k);
      if (next === null) break;
      path.push(end);
      end = next;
    }
    for (const passed of path) memo.set(passed, end);
    return end;
  }

  private resolveSources(k: number): Resolved {
    const cached = this.recent.get(k);
    if (cached !== undefined) return cached;
    const resolved = this.resolve(k);
    if (this.recent.size >= 4) this.recent.delete(this.recent.keys().next().value as number);
    this.recent.set(k, resolved);
    return resolved;
  }

  /**
   * Computes the graph after k steps by a depth-first walk that replaces each source by its latest version. A rule that
   * wraps its match makes a node part of its own replacement. Inside the replacement, this node stays at the last
   * version that does not contain the replacement; its key is beyond `sources.length`.
   */
  private resolve(k: number): Resolved {
    const memo = new Map<number, number>();
    const total = this.sources.length;
    const open = new Set<number>();
    const sourcesOf = new Map<number, number[]>(); // sources of finished nodes, in post-order
    const stack: { key: number; original: readonly number[]; src: number[] }[] = [];
    const enter = (key: number): void => {
      open.add(key);
      stack.push({ key, original: this.sources[key < total ? key : key - total] as readonly number[], src: [] });
    };
    const root: number[] = [];
    for (const start of this.before) {
      const first = this.findLatest(start, k, memo);
      root.push(first);
      if (sourcesOf.has(first)) continue;
      enter(first);
      while (stack.length > 0) {
        const frame = stack[stack.length - 1] as (typeof stack)[number];
        if (frame.src.length === frame.original.length) {
          stack.pop();
          open.delete(frame.key);
          sourcesOf.set(frame.key, frame.src);
          continue;
        }
        const source = frame.original[frame.src.length] as number;
        let target = frame.key < total ? this.findLatest(source, k, memo) : total + source;
        if (open.has(target)) {
          target = source;
          for (let next = this.findReplacement(target, k); next !== null && !open.has(next); ) {
            target = next;
            next = this.findReplacement(target, k);
          }
          if (open.has(target)) target = total + source;
        }
        frame.src.push(target);
        if (!sourcesOf.has(target)) enter(target);
      }
    }
    return this.resolveDisplayed(k, root, sourcesOf);
  }

  private resolveDisplayed(k: number, root: readonly number[], sourcesOf: ReadonlyMap<number, number[]>): Resolved {
    const total = this.sources.length;
    const idOf = new Map<number, number>();
    const taken = new Set<number>();
    for (const key of sourcesOf.keys()) {
      const displayedId = this.displayId(key, k);
      const id = taken.has(displayedId) ? 2 * total + key : displayedId;
      taken.add(id);
      idOf.set(key, id);
    }
    const ids = (keys: readonly number[]): number[] => keys.map((key) => idOf.get(key) as number);
    const nodes = new Map<number, SnapshotNode>();
    for (const [key, src] of sourcesOf) {
      nodes.set(idOf.get(key) as number, { node: key < total ? key : key - total, src: ids(src) });
    }
    return { root: ids(root), nodes, idOf };
  }
}

interface Resolved {
  readonly root: number[];
  readonly nodes: Map<number, SnapshotNode>;
  readonly idOf: Map<number, number>;
}

const ROOT = -1; // stands for the stage itself, as the user of its root nodes

/** The nodes of the current graph (the keys of `users`), updated by each replacement. */
class DisplayedGraph {
  readonly users = new Map<number, Set<number>>();
  private readonly src = new Map<number, number[]>();

  constructor(
    private readonly sources: readonly (readonly number[])[],
    roots: readonly number[],
  ) {
    for (const root of roots) {
      this.add(root, (node) => node);
      (this.users.get(root) as Set<number>).add(ROOT);
    }
  }

  private add(node: number, latest: (node: number) => number): void {
    if (this.users.has(node)) return;
    this.users.set(node, new Set());
    const stack = [node];
    while (stack.length > 0) {
      const user = stack.pop() as number;
      const src = (this.sources[user] as readonly number[]).map(latest);
      this.src.set(user, src);
      for (const source of src) {
        let users = this.users.get(source);
        if (users === undefined) {
          users = new Set();
          this.users.set(source, users);
          stack.push(source);
        }
        users.add(user);
      }
    }
  }

  /** Makes all users of `before` read `after`, and removes nodes without users. */
  replace(before: number, after: number, latest: (node: number) => number): void {
    const readers = this.users.get(before);
    if (readers === undefined || before === after) return;
    this.add(after, latest);
    const users = this.users.get(after) as Set<number>;
    for (const user of [...readers]) {
      users.add(user);
      const src = this.src.get(user);
      if (src !== undefined)
        this.src.set(
          user,
          src.map((source) => (source === before ? after : source)),
        );
    }
    this.users.set(before, new Set());
    const unread = [before];
    while (unread.length > 0) {
      const node = unread.pop() as number;
      this.users.delete(node);
      const src = this.src.get(node) as number[];
      this.src.delete(node);
      for (const source of src) {
        const left = this.users.get(source);
        if (left?.delete(node) && left.size === 0) unread.push(source);
      }
    }
  }
}
