// The busiest inner loop of a kernel in two listings, lines colored by kind, linked by their UOps.

import type { Node, Program } from "../model";
import type { TraceIndex } from "../trace_index";

/** The kind of a line, which gives its color. */
export interface Role {
  key: string;
  label: string;
  kind: "address" | "load" | "other load" | "arithmetic" | "store" | "loop";
}

export interface LoopLine {
  /** Position in the listing. */
  lineNumber: number;
  text: string;
  role: Role | null;
  nodes: readonly number[];
}

/** A line, or the number of similar lines that are folded. */
export type FoldedLine = LoopLine | { fold: number };

export interface InnerLoop {
  left: LoopListing | null;
  right: LoopListing;
  roles: Role[];
}

export interface LoopListing {
  language: string;
  first: number;
  last: number;
  lines: LoopLine[];
}

const RIGHT = ["asm", "ptx", "amdgcn", "wat", "llvm-opt", "llvm"];
const LEFT = ["c", "cuda", "opencl", "hip", "metal", "wgsl", "python", "llvm", "uops"];

/** Returns the loop of a kernel with most of its work; null for a kernel without listings. */
export function findInnerLoop(index: TraceIndex, kernel: number): InnerLoop | null {
  const programs = index.programsOf(kernel);
  const pick = (languages: readonly string[], not?: Program): Program | undefined =>
    languages.flatMap(
      (language) => programs.find((program) => program.language === language && program !== not) ?? [],
    )[0];
  const right = pick(RIGHT) ?? pick(LEFT);
  if (right === undefined) return null;
  const left = pick(LEFT, right) ?? null;
  const roleOf = findRoles(index, kernel);
  const range = chooseRange(index, right);
  const lines = linesOf(right, range, roleOf);
  const nodes = new Set(lines.flatMap((line) => line.nodes));
  const other = left === null ? null : linesOf(left, findNearest(left, nodes), roleOf);
  const cached = new Map<string, Role>();
  for (const { role } of [...(other ?? []), ...lines]) if (role !== null) cached.set(role.key, role);
  const order: Role["kind"][] = ["address", "load", "other load", "arithmetic", "store", "loop"];
  return {
    left: left === null || other === null || other.length === 0 ? null : makeListing(left, other),
    right: makeListing(right, lines),
    roles: [...cached.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)),
  };
}

function makeListing({ language }: Program, lines: LoopLine[]): LoopListing {
  return { language, first: (lines[0]?.lineNumber ?? 0) + 1, last: (lines.at(-1)?.lineNumber ?? 0) + 1, lines };
}

function linesOf(program: Program, [from, to]: readonly [number, number], roleOf: Roles): LoopLine[] {
  const lines = program.lines
    .slice(from, to + 1)
    .map(({ text, nodes }, i) => ({ lineNumber: from + i, text, role: roleOf(nodes, text), nodes }));
  return lines.filter(({ text }) => text.trim() !== "");
}

/** Returns the loops of a listing by their first and last line. */
export function findLoops(program: Program): [number, number][] {
  const texts = program.lines.map(({ text }) => text);
  if (program.language === "python") return findBlocks(texts, /^\s*for .*:$/);
  if (["asm", "ptx", "amdgcn", "llvm", "llvm-opt"].includes(program.language)) return findJumps(texts);
  return findBraces(texts);
}

/** Returns the ranges from a label to a later jump to it. */
function findJumps(texts: readonly string[]): [number, number][] {
  const label = new Map<string, number>();
  const ranges: [number, number][] = [];
  texts.forEach((text, line) => {
    const name = /^\s*([.$\w]+):/.exec(text)?.[1];
    if (name !== undefined) label.set(name, line);
    const target = /^\s*(?:br|j\w+|b\.?\w*|@\S+ bra|s_cbranch\w*)\s.*?([.$%]*[\w.$]+)\s*$/
      .exec(text)?.[1]
      ?.replace(/^%/, "");
    for (const [labelName, begin] of label)
      if (
        begin < line &&
        (target === labelName ||
          (/^\s*br /.test(text) && new RegExp(`%${labelName.replace(/[.$]/g, "\\$&")}\\b`).test(text)))
      )
        ranges.push([begin, line]);
  });
  return ranges;
}

function findBraces(texts: readonly string[]): [number, number][] {
  const ranges: [number, number][] = [];
  const open: (number | null)[] = [];
  texts.forEach((text, line) => {
    for (const letter of text.replace(/\{\{0\}\}|\(f?\w*\)\{[^{}]*\}/g, "")) {
      if (letter === "{") open.push(/\b(for|while|loop)\b/.test(text) ? line : null);
      if (letter !== "}") continue;
      const begin = open.pop();
      if (begin !== null && begin !== undefined) ranges.push([begin, line]);
    }
  });
  return ranges;
}

function findBlocks(texts: readonly string[], head: RegExp): [number, number][] {
  const indent = (text: string): number => text.length - text.trimStart().length;
  return texts.flatMap((text, line): [number, number][] => {
    if (!head.test(text)) return [];
    let end = line;
    while (end + 1 < texts.length && (texts[end + 1].trim() === "" || indent(texts[end + 1]) > indent(text))) end += 1;
    return [[line, end]];
  });
}

function keepInnermost(loops: readonly [number, number][]): [number, number][] {
  return loops.filter(([a, b]) => !loops.some(([c, d]) => c >= a && d <= b && (c !== a || d !== b)));
}

/** Returns the innermost loop with the most arithmetic and loads; without loops, all lines with nodes. */
function chooseRange(index: TraceIndex, program: Program): [number, number] {
  const work = ([from, to]: [number, number]): number =>
    program.lines.slice(from, to + 1).reduce((sum, { nodes }) => {
      const ops = nodes.map((id) => index.node(id).op);
      return sum + (ops.includes("MULACC") ? 3 : nodes.some((id) => isWork(index.node(id))) ? 1 : 0);
    }, 0);
  const best = keepInnermost(findLoops(program)).sort((a, b) => work(b) - work(a))[0];
  if (best !== undefined && work(best) > 0) return best;
  const linked = program.lines.flatMap(({ nodes }, i) => (nodes.length > 0 && nodes.length < 12 ? [i] : []));
  return [linked[0] ?? 0, linked.at(-1) ?? program.lines.length - 1];
}

function isWork({ group, op, dtype }: Node): boolean {
  return (group === "alu" && !/^(u?int64|index)/.test(dtype)) || op === "LOAD" || op === "STORE";
}

/** Returns the loop of another listing with the same nodes. */
function findNearest(program: Program, nodes: ReadonlySet<number>): [number, number] {
  const shared = ([from, to]: [number, number]): number => {
    const loopNodes = new Set(program.lines.slice(from, to + 1).flatMap((line) => line.nodes));
    return [...loopNodes].filter((id) => nodes.has(id)).length;
  };
  const best = keepInnermost(findLoops(program)).sort((a, b) => shared(b) - shared(a))[0];
  if (best !== undefined && shared(best) > 0) return best;
  const linked = program.lines.flatMap((line, i) =>
    line.nodes.length < 12 && line.nodes.some((id) => nodes.has(id)) ? [i] : [],
  );
  return [linked[0] ?? 0, linked.at(-1) ?? program.lines.length - 1];
}

type Roles = (nodes: readonly number[], text: string) => Role | null;

/** Returns the kind of each line, by the most specific of its UOps. */
function findRoles(index: TraceIndex, kernel: number): Roles {
  const buffers: string[] = [];
  const bufferOf = (id: number): string => {
    const visited = new Set([id]);
    const queue = [id];
    for (let head = 0; head < queue.length; head += 1) {
      const node = index.node(queue[head]);
      if (node.op === "DEFINE_GLOBAL") return index.withNames(node.label, kernel);
      if (/^(DEFINE_LOCAL|DEFINE_SCRATCH|ALLOCATE)/.test(node.op)) return "scratch";
      const next = node.op === "LOAD" || node.op === "STORE" || node.op === "INDEX" ? node.src.slice(0, 1) : node.src;
      for (const src of next) {
        if (visited.has(src)) continue;
        visited.add(src);
        queue.push(src);
      }
    }
    return "memory";
  };
  const load = (id: number): Role => {
    const name = bufferOf(id);
    if (!buffers.includes(name)) buffers.push(name);
    return { key: `load ${name}`, label: `load ${name}`, kind: buffers.indexOf(name) === 0 ? "load" : "other load" };
  };
  return (nodes, text) => {
    if (nodes.length === 0 || nodes.length > 11 || /^\s*[.$\w]+:\s*$/.test(text)) return null;
    const all = nodes.map((id) => index.node(id));
    const find = (test: (node: Node) => boolean): Node | undefined => all.find(test);
    const store = find(({ op }) => op === "STORE");
    if (store !== undefined) return { key: "store", label: "store", kind: "store" };
    const multiply = find(({ op }) => op === "MULACC");
    if (multiply !== undefined) return { key: "fma", label: "multiply-add", kind: "arithmetic" };
    const read = find(({ op }) => op === "LOAD");
    if (read !== undefined) return load(read.id);
    const spread = find(({ op, src }) => op === "VECTORIZE" && index.node(src[0]).op === "LOAD");
    if (spread !== undefined) return load(spread.src[0]);
    if (find(({ op }) => op === "ENDRANGE" || op === "RANGE")) return { key: "loop", label: "loop", kind: "loop" };
    if (find(({ op }) => op === "ASSIGN")) return { key: "fma", label: "multiply-add", kind: "arithmetic" };
    const alu = find(isWork);
    if (alu !== undefined) return { key: "arithmetic", label: "arithmetic", kind: "arithmetic" };
    if (find(({ group }) => group === "alu" || group === "memory"))
      return { key: "address", label: "address", kind: "address" };
    return null;
  };
}

/** Returns at most `most` lines: in the middle, lines like their neighbors are folded. */
export function foldLines(lines: readonly LoopLine[], limit: number): FoldedLine[] {
  if (lines.length <= limit) return [...lines];
  const head = Math.ceil((limit - 1) * 0.6);
  const tail = Math.max(1, limit - 1 - head);
  return [...lines.slice(0, head), { fold: lines.length - head - tail }, ...lines.slice(-tail)];
}
