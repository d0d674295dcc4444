// A node as an indented text tree, and two trees side by side with their differences.

import type { Node, Trace } from "./model";

export interface TreeLine {
  node: number;
  prefix: string;
  text: string;
  /** The number of nodes below this line that are not printed. */
  folded: number;
  /** Type and argument, which equal texts may hide. */
  hidden: string;
}

export interface TreeDiffRow {
  before: TreeLine | null;
  after: TreeLine | null;
  same: boolean;
}

const MAX_LINES = 160;
const MAX_DEPTH = 14;

export function nodeText(node: Node): string {
  const vector = /(?:×|\.vec|x)\d+|\(\d+\)/.exec(node.dtype)?.[0] ?? "";
  const isInUserText = `${node.label} ${node.detail}`.includes(vector);
  const parts = [node.label, isInUserText ? "" : node.dtype, node.detail];
  return parts.filter((part) => part !== "").join(" ");
}

/** Returns the tree of `root`. A node in `leaves` is one line; a repeated node is printed once. */
export function printTree(trace: Trace, root: number, leaves: Set<number> = new Set()): TreeLine[] {
  const lines: TreeLine[] = [];
  const printed = new Set<number>();
  const sizes = new Map<number, number>();
  const counted = new Int32Array(trace.nodes.length); // number of the count that visited each node last
  const size = (id: number): number => {
    if (!sizes.has(id)) sizes.set(id, countUnderneath(trace, id, counted, sizes.size + 1));
    return sizes.get(id)!;
  };
  const write = (id: number, head: string, tail: string, depth: number): void => {
    const node = trace.nodes[id];
    const isRepeated = printed.has(id) && node.src.length > 0;
    if (node.src.length > 0 && node.src.every((src) => isSaid(trace, src, node.detail))) {
      printed.add(id);
      lines.push({ node: id, prefix: head, text: nodeText(node), folded: 0, hidden: hiddenText(node) });
      return;
    }
    const stop = isRepeated || depth >= MAX_DEPTH || lines.length >= MAX_LINES || leaves.has(id);
    printed.add(id);
    lines.push({ node: id, prefix: head, text: nodeText(node), folded: stop ? size(id) : 0, hidden: hiddenText(node) });
    if (stop) return;
    node.src.forEach((source, i) => {
      const last = i === node.src.length - 1;
      write(source, tail + (last ? "└ " : "├ "), tail + (last ? "  " : "│ "), depth + 1);
    });
  };
  write(root, "", "", 0);
  return lines;
}

/** Whether a source is a constant that the text of its user already contains. */
function isSaid(trace: Trace, id: number, detail: string): boolean {
  const node = trace.nodes[id];
  return node.op === "CONST" && detail.includes(node.detail) && detail !== node.detail;
}

function hiddenText(node: Node): string {
  return [node.dtype, node.arg].filter(Boolean).join(", ");
}

function countUnderneath(trace: Trace, root: number, counted: Int32Array, mark: number): number {
  const stack = [root];
  let count = 0;
  counted[root] = mark;
  while (stack.length > 0) {
    for (const id of trace.nodes[stack.pop()!].src) {
      if (counted[id] === mark) continue;
      counted[id] = mark;
      count += 1;
      stack.push(id);
    }
  }
  return count;
}

function findReach(trace: Trace, root: number, limit = 20000): Set<number> {
  const visited = new Set([root]);
  const stack = [root];
  while (stack.length > 0 && visited.size < limit) {
    for (const id of trace.nodes[stack.pop()!].src) {
      if (visited.has(id)) continue;
      visited.add(id);
      stack.push(id);
    }
  }
  return visited;
}

/** Returns both sides as aligned trees: common parts are folded to one line, differing parts are printed. */
export function diffTrees(trace: Trace, before: number, after: number): TreeDiffRow[] {
  const under = findReach(trace, before);
  const shared = new Set([...findReach(trace, after)].filter((id) => under.has(id)));
  const rows = alignTrees(printTree(trace, before, shared), printTree(trace, after, shared));
  return rows.map(({ before: a, after: b, same }) =>
    same || a === null || b === null || a.text !== b.text
      ? { before: a, after: b, same }
      : { before: showHidden(a), after: showHidden(b), same },
  );
}

/** Returns the line with its hidden text, if only that differs from its neighbor. */
function showHidden(line: TreeLine): TreeLine {
  return line.hidden === "" ? line : { ...line, text: `${line.text} : ${line.hidden}` };
}

/** Aligns two lists of lines by a longest common subsequence; differing blocks are side by side. */
export function alignTrees(before: TreeLine[], after: TreeLine[]): TreeDiffRow[] {
  const m = before.length;
  const n = after.length;
  const best = Array.from({ length: m + 1 }, () => new Uint16Array(n + 1));
  for (let i = m - 1; i >= 0; i -= 1) {
    for (let j = n - 1; j >= 0; j -= 1) {
      best[i][j] = areEqual(before[i], after[j]) ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const rows: TreeDiffRow[] = [];
  let removed: TreeLine[] = [];
  let added: TreeLine[] = [];
  const flush = (): void => {
    for (let k = 0; k < Math.max(removed.length, added.length); k += 1) {
      rows.push({ before: removed[k] ?? null, after: added[k] ?? null, same: false });
    }
    removed = [];
    added = [];
  };
  let i = 0;
  let j = 0;
  while (i < m || j < n) {
    if (i < m && j < n && areEqual(before[i], after[j])) {
      flush();
      rows.push({ before: before[i], after: after[j], same: true });
      i += 1;
      j += 1;
    } else if (j >= n || (i < m && best[i + 1][j] >= best[i][j + 1])) {
      removed.push(before[i]);
      i += 1;
    } else {
      added.push(after[j]);
      j += 1;
    }
  }
  flush();
  return rows;
}

function areEqual(a: TreeLine, b: TreeLine): boolean {
  if (a.node === b.node) return true;
  return a.text === b.text && a.hidden === b.hidden && a.prefix.length === b.prefix.length && a.folded === b.folded;
}
