// The tensor graph for readers: operations under plain names, with views on the edges, and the user's expressions that
// created them.

import { isTensor } from "../dialect";
import { callName, truncate } from "../format";
import type { Frame, Node, Trace } from "../model";
import type { TraceIndex } from "../trace_index";

/** A part of the user's Python that created operations: one call or operator. */
export interface Expression {
  id: number;
  frame: Frame | null;
  call: string;
  /** The text in the source: "x @ w + b". */
  text: string;
  /** The text without the part of an earlier expression: "+ b". */
  short: string;
  /** The LazyBuffers, in order. */
  nodes: number[];
}

/** One operation: one LazyBuffer, or several that are one step for a reader. */
export interface Op {
  /** The LazyBuffer with its result. */
  id: number;
  label: string;
  /** The names in the engine: "NEG, ADD". */
  code: string;
  shape: string;
  size: readonly (number | string)[];
  kind: "input" | "alu" | "reduce";
  nodes: number[];
  expression: number | null;
  sources: OpSource[];
}

/** An input of an operation, with the views that it is read through. */
export interface OpSource {
  op: number;
  /** The views as text: "repeat 32×", "transpose", "" for none. */
  view: string;
}

export interface OpGraph {
  ops: Op[];
  expressions: Expression[];
  /** The operation that contains each LazyBuffer. */
  opOf: Map<number, number>;
}

const GRADIENT = "gradient of ";

const WORDS: Record<string, string> = {
  ADD: "+ add",
  MUL: "× multiply",
  FDIV: "÷ divide",
  IDIV: "÷ divide",
  MOD: "remainder",
  NEG: "− negate",
  MAX: "maximum",
  MIN: "minimum",
  EXP: "exp",
  LOG: "log",
  SIN: "sin",
  SQRT: "√ root",
  CAST: "convert type",
  BITCAST: "same bits",
  WHERE: "choose",
  CMPLT: "< compare",
  CMPLE: "≤ compare",
  CMPNE: "≠ compare",
  CMPEQ: "= compare",
  AND: "and",
  OR: "or",
  XOR: "xor",
  GATHER: "look up",
  SCATTER: "write at",
  IOTA: "0, 1, 2, …",
  CONTIGUOUS: "copy",
  COPY: "copy",
  RAND: "random",
};

/** "64×32". */
export function shapeWords(shape: Node["shape"]): string {
  if (shape === null) return "";
  const long = shape.filter((size) => size !== 1);
  if (long.length === 0) return "one number";
  return (shape.length > 2 ? long : shape).join("×");
}

/** Returns the text of a frame's part of the source, on one line. */
export function textOf(trace: Trace, frame: Frame): string {
  const lines = trace.sources[frame.source]?.text.split("\n") ?? [];
  if (frame.span === null) return (lines[frame.line - 1] ?? "").trim();
  const [first, from, last, to] = frame.span;
  if (first === last) return (lines[first - 1] ?? "").slice(from, to);
  const rows = lines.slice(first - 1, last);
  rows[rows.length - 1] = rows[rows.length - 1]?.slice(0, to) ?? "";
  rows[0] = rows[0]?.slice(from) ?? "";
  return rows.map((row) => row.trim()).join(" ");
}

/** Returns the expressions that created LazyBuffers, in order. Gradients are named by module. */
export function expressionsOf({ trace }: TraceIndex): Expression[] {
  const expressions = new Map<string, Expression>();
  const hasCalls = trace.nodes.some(({ calls }) => calls.length > 0);
  for (const node of trace.nodes) {
    if (!isTensor(trace, node) || node.user === null || (hasCalls && node.calls.length === 0)) continue;
    const call = callName(node.calls[0] ?? "");
    const scope = node.backward && node.scope !== null ? scopeName(trace, node.scope) : "";
    const key = `${node.user} ${call} ${scope}`;
    let expression = expressions.get(key);
    if (expression === undefined) {
      const frame = trace.frames[node.user];
      const text = frame.span === null ? call || textOf(trace, frame) : textOf(trace, frame);
      const full = scope === "" ? text : `${GRADIENT}${scope}`;
      const module = scope === "" ? moduleOf(trace, node, frame) : "";
      expression = { id: expressions.size, frame, call, text: full, short: module || full, nodes: [] };
      expressions.set(key, expression);
    }
    expression.nodes.push(node.id);
  }
  const all = [...expressions.values()];
  for (const entry of all) if (entry.short === entry.text) entry.short = shortOf(entry, all);
  const times = new Map<string, number>();
  for (const { short } of all) times.set(short, (times.get(short) ?? 0) + 1);
  for (const entry of all)
    if (times.get(entry.short)! > 1 && entry.call !== "") entry.short = `${entry.short} · ${entry.call}`;
  return all;
}

/** Returns "layers.0: Linear" for an operation in the text of a graph, which is not the user's Python; else "". */
function moduleOf(trace: Trace, { scope }: Node, { source }: Frame): string {
  if (scope === null || !trace.sources[source].name.startsWith("<ATen ")) return "";
  const path = scopeName(trace, scope).split(".").slice(1).join(".");
  return path === "" ? "" : `${path}: ${trace.scopes[scope].kind}`;
}

function scopeName(trace: Trace, id: number): string {
  const { name, parent } = trace.scopes[id];
  return parent === null ? name : `${scopeName(trace, parent)}.${name}`;
}

function shortOf(expression: Expression, all: readonly Expression[]): string {
  if (expression.text.startsWith(GRADIENT)) return expression.text;
  const heads = all.filter(
    (other) =>
      other !== expression && isInside(other.frame, expression.frame) && expression.text.startsWith(other.text),
  );
  const longest = heads.reduce((best, { text }) => (text.length > best.length ? text : best), "");
  return expression.text.slice(longest.length).trim() || expression.text;
}

function isInside(inner: Frame | null, outer: Frame | null): boolean {
  if (inner?.span == null || outer?.span == null || inner.source !== outer.source) return false;
  const [a, b] = [inner.span, outer.span];
  const after = a[0] > b[0] || (a[0] === b[0] && a[1] >= b[1]);
  const before = a[2] < b[2] || (a[2] === b[2] && a[3] <= b[3]);
  return after && before;
}

/** Returns the graph of operations, with views on its edges and constants in the labels. */
export function buildOpGraph(index: TraceIndex): OpGraph {
  const { trace } = index;
  const expressions = expressionsOf(index);
  const expressionOf = new Map(expressions.flatMap(({ id, nodes }) => nodes.map((node) => [node, id] as const)));
  const lazy = trace.nodes.filter((node) => isTensor(trace, node));
  const users = new Map<number, Node[]>();
  for (const node of lazy) for (const id of new Set(node.src)) users.set(id, [...(users.get(id) ?? []), node]);
  const before = beforeOf(lazy);
  const inputs = new Set([...before].filter((id) => (users.get(id) ?? []).some((user) => !before.has(user.id))));
  const joined = joinedOf(trace, lazy, users);
  const ops: Op[] = [];
  const opOf = new Map<number, number>();
  for (const node of lazy) {
    const all = users.get(node.id) ?? [];
    if (all.length > 0 && all.every(({ id }) => before.has(id))) continue; // another node represents it
    if (inputs.has(node.id)) {
      opOf.set(node.id, ops.length);
      ops.push(makeInput(trace, node));
    }
    if (before.has(node.id)) continue;
    if (node.group === "movement" || node.group === "const" || joined.has(node.id)) continue;
    const parts = [...joined].filter(([, into]) => into === node.id).map(([id]) => id);
    opOf.set(node.id, ops.length);
    for (const id of parts) opOf.set(id, ops.length);
    ops.push(makeOp(index, node, parts, expressionOf.get(node.id) ?? null));
  }
  for (const op of ops) {
    if (op.kind === "input") continue;
    const opNodes = new Set(op.nodes);
    const visited = new Set<number>();
    for (const id of op.nodes) {
      for (const src of trace.nodes[id].src) {
        if (opNodes.has(src)) continue;
        const { base, view } = followViews(trace, src, opNodes, inputs);
        const from = base === null ? undefined : opOf.get(base);
        if (from === undefined || ops[from] === op || visited.has(from)) continue;
        visited.add(from);
        op.sources.push({ op: from, view });
      }
    }
  }
  return { ops, expressions, opOf };
}

/** Returns nodes that belong to the operation of a later node: −a in b + (−a), 1 ÷ a in b × (1 ÷ a). */
function joinedOf(trace: Trace, lazy: readonly Node[], users: ReadonlyMap<number, Node[]>): Map<number, number> {
  const joined = new Map<number, number>();
  const only = (id: number): Node | null => {
    const all = users.get(id) ?? [];
    if (all.length !== 1) return null;
    return all[0].group === "movement" ? only(all[0].id) : all[0];
  };
  for (const node of lazy) {
    const user = only(node.id);
    if (user === null) continue;
    const isMinus = node.op === "NEG" && user.op === "ADD";
    const isPart = node.op === "FDIV" && user.op === "MUL" && trace.nodes[node.src[0]].group === "const";
    if (isMinus || isPart) joined.set(node.id, user.id);
  }
  return joined;
}

/** Returns the lazy inputs: nodes requested before the capture and not computed then; empty if all nodes are. */
function beforeOf(lazy: readonly Node[]): Set<number> {
  if (lazy.every(({ calls }) => calls.length === 0)) return new Set();
  const isPlain = ({ group }: Node): boolean => group === "buffer" || group === "const";
  return new Set(lazy.filter((node) => node.calls.length === 0 && !isPlain(node)).map(({ id }) => id));
}

/** Returns a lazy input as an ordinary input. */
function makeInput(trace: Trace, node: Node): Op {
  let named = node;
  while (named.name === "" && named.group === "movement") named = trace.nodes[named.src[0]];
  return {
    id: node.id,
    label: named.name || "input",
    code: node.op,
    shape: shapeWords(node.shape),
    size: node.shape ?? [],
    kind: "input",
    nodes: [node.id],
    expression: null,
    sources: [],
  };
}

function makeOp({ trace }: TraceIndex, node: Node, parts: readonly number[], expression: number | null): Op {
  const inner = parts.map((id) => trace.nodes[id].op);
  const kind = node.group === "buffer" ? "input" : node.group === "reduce" ? "reduce" : "alu";
  return {
    id: node.id,
    label: kind === "input" ? node.name || "input" : labelOf(trace, node, inner),
    code: [...inner, node.op].join(", "),
    shape: shapeWords(kind === "input" ? findViewedShape(trace, node) : node.shape),
    size: (kind === "input" ? findViewedShape(trace, node) : node.shape) ?? [],
    kind,
    nodes: [...parts, node.id],
    expression,
    sources: [],
  };
}

/** Returns the shape of a buffer in the user's Python; in memory it may be a row. */
function findViewedShape(trace: Trace, buffer: Node): Node["shape"] {
  const named = trace.nodes.find(
    ({ op, src, name }) => op === "RESHAPE" && src[0] === buffer.id && name === buffer.name,
  );
  return buffer.name !== "" && named !== undefined ? named.shape : buffer.shape;
}

function labelOf(trace: Trace, node: Node, inner: readonly string[]): string {
  if (node.group === "reduce") return reduceLabel(trace, node);
  if (inner.includes("FDIV")) return "÷ divide";
  if (inner.includes("NEG") && node.op === "ADD") return "− subtract";
  const constant = node.src.map((id) => constantOf(trace, id)).find((value) => value !== null) ?? null;
  if (node.op === "GATHER") return "look up rows";
  const word = WORDS[node.op] ?? node.op.toLowerCase();
  if (constant === null) return word;
  if (node.op === "MAX" && Number(constant) === 0) return "max with 0";
  if (["ADD", "MUL", "MAX", "MIN"].includes(node.op)) return `${word.split(" ")[0]} ${truncate(constant, 8)}`;
  return word;
}

function constantOf(trace: Trace, id: number): string | null {
  let node = trace.nodes[id];
  while (node.group === "movement") node = trace.nodes[node.src[0]];
  return node.op === "CONST" ? node.detail : null;
}

function reduceLabel(trace: Trace, node: Node): string {
  const [, op = "ADD", axes = ""] = /^(\w+) over ([\d, ]+)/.exec(node.detail) ?? [];
  const rank = trace.nodes[node.src[0]].shape?.length ?? 0;
  const sign = op === "ADD" ? "Σ sum" : op === "MAX" ? "max" : op === "MUL" ? "∏ product" : op.toLowerCase();
  const list = axes.split(",").map(Number);
  if (trace.nodes[node.src[0]].op === "MUL" && op === "ADD") return `${sign.split(" ")[0]} of products`;
  if (list.length === rank && rank > 1) return `${sign} of all`;
  if (list.length > 1) return `${sign} over ${list.length} axes`;
  const [mark, word = mark] = sign.split(" ");
  const line = list[0] === rank - 1 && rank > 1 ? "row " : list[0] === 0 && rank > 1 ? "column " : "";
  return mark === word ? `${line}${word}` : `${mark} ${line}${word}`;
}

/** Returns the operations that compute a value; every page of the story counts these. */
export function listComputing({ ops }: OpGraph): Op[] {
  return ops.filter(({ kind }) => kind !== "input");
}

/** The definition of the counts, for tooltips. */
export const COUNTED =
  "An operation computes values. A view is another way to index the same memory. A constant is part of the code.";

/** Follows views down to the node with the values; also returns the views as text. */
function followViews(
  trace: Trace,
  id: number,
  opNodes: ReadonlySet<number>,
  inputs: ReadonlySet<number>,
): { base: number | null; view: string } {
  const words: string[] = [];
  let node = trace.nodes[id];
  while (node.group === "movement" && !inputs.has(node.id)) {
    const inner = trace.nodes[node.src[0]];
    const word = viewWord(node, inner);
    if (word !== "" && !words.includes(word)) words.push(word);
    node = inner;
    if (opNodes.has(node.id)) return { base: null, view: "" };
  }
  return { base: node.group === "const" ? null : node.id, view: words.reverse().join(", ") };
}

function viewWord(node: Node, inner: Node): string {
  switch (node.op) {
    case "EXPAND": {
      const size = (shape: Node["shape"]): number =>
        (shape ?? []).reduce<number>((all, length) => all * Number(length), 1);
      const times = size(node.shape) / Math.max(1, size(inner.shape));
      return Number.isFinite(times) && times > 1 ? `repeat ${times}×` : "";
    }
    case "PERMUTE":
      return "transpose";
    case "SHRINK":
      return "slice";
    case "PAD":
      return "pad";
    case "WINDOW":
      return "windows";
    case "FLIP":
      return "flip";
    case "STRIDE":
      return "stride";
    default:
      return "";
  }
}

/** Several operations under one name, if the canvas has no room for each. */
export interface OpGroup {
  label: string;
  sub: string;
  kind: Op["kind"];
  ops: number[];
  /** The groups that it reads. */
  sources: { group: number; view: string }[];
  size: readonly (number | string)[];
  code: string;
}

/** Returns one group per operation. */
export function groupSingly({ ops }: OpGraph): OpGroup[] {
  return ops.map(({ label, shape, kind, sources, size, code }, i) => ({
    label,
    sub: shape,
    kind,
    ops: [i],
    sources: sources.map(({ op, view }) => ({ group: op, view })),
    size,
    code,
  }));
}

/** Returns the operations grouped by the user's expression; an input with one reader is named in its group. */
export function groupByExpression({ ops, expressions }: OpGraph, limit: number): OpGroup[] {
  const keyOf = (op: Op): string => {
    if (op.expression === null) return "input";
    return expressions.length > limit ? `line ${lineOf(expressions[op.expression])}` : `e ${op.expression}`;
  };
  return gather(ops, keyOf, (op) => {
    const expression = expressions[op.expression!];
    return expressions.length > limit && expression.frame !== null
      ? `line ${expression.frame.line}: ${expression.call}`
      : expression.short;
  });
}

function lineOf({ frame }: Expression): string {
  return frame === null ? "" : `${frame.source}:${frame.line}`;
}

/** Returns groups without cycles: operations of one key are in one group only if no other group is between them. */
function gather(ops: readonly Op[], keyOf: (op: Op) => string, name: (op: Op) => string): OpGroup[] {
  const groups: OpGroup[] = [];
  const groupOf = new Map<number, number>();
  const depth: number[] = [];
  const open = new Map<string, number>();
  ops.forEach((op, i) => {
    const key = keyOf(op);
    if (key === "input") return;
    const reads = op.sources.flatMap(({ op: from }) => groupOf.get(from) ?? []);
    const existing = open.get(key);
    const lowest = Math.max(0, ...reads.map((group) => depth[group] + (group === existing ? 0 : 1)));
    let groupIndex = existing;
    if (groupIndex === undefined || depth[groupIndex] < lowest) {
      groupIndex = groups.length;
      groups.push({ label: name(op), sub: "", kind: "alu", ops: [], sources: [], size: [], code: "" });
      depth.push(lowest);
      open.set(key, groupIndex);
    }
    groupOf.set(i, groupIndex);
    const group = groups[groupIndex];
    group.ops.push(i);
    group.size = op.size;
    if (op.kind === "reduce") group.kind = "reduce";
    for (const { op: from, view } of op.sources) {
      const source = groupOf.get(from);
      if (source === undefined || source === groupIndex || group.sources.some((edge) => edge.group === source))
        continue;
      group.sources.push({ group: source, view });
    }
  });
  for (const group of groups) {
    const inputs = new Set(
      group.ops.flatMap((i) => ops[i].sources.map(({ op }) => ops[op])).filter((op) => op.kind === "input"),
    );
    const names = [...inputs].map(({ label }) => label).filter((label) => label !== "input");
    group.code = names.length > 0 ? `reads ${names.join(", ")}` : "";
    group.sub = `${group.ops.length} op${group.ops.length === 1 ? "" : "s"} → ${shapeWords([...group.size])}`;
  }
  return groups;
}

/** A multiplication of two repeated operands and the sum of the products: a matrix product, a convolution. */
export interface Product {
  multiply: number;
  sum: number;
  /** The two operands: label, shape, view. */
  operands: { label: string; shape: string; view: string }[];
  products: string;
  result: string;
  each: number;
  isWindowed: boolean;
}

/** Returns the largest product. */
export function productOf({ ops, expressions }: OpGraph): Product | null {
  const size = (op: Op): number => op.size.reduce<number>((all, length) => all * Number(length), 1);
  let best: Product | null = null;
  let largest = 0;
  ops.forEach((op, i) => {
    if (op.kind !== "reduce" || op.sources.length !== 1 || !op.label.startsWith("Σ")) return;
    const multiply = ops[op.sources[0].op];
    if (multiply.code !== "MUL" || multiply.sources.length === 0) return;
    if (!multiply.sources.some(({ view }) => view.includes("repeat"))) return;
    if (size(multiply) <= largest) return;
    largest = size(multiply);
    const twice = multiply.sources.length === 1 ? [...multiply.sources, ...multiply.sources] : multiply.sources;
    best = {
      multiply: op.sources[0].op,
      sum: i,
      operands: twice.map(({ op: from, view }) => ({
        label: operandLabel(ops[from], ops, expressions),
        shape: ops[from].shape,
        view,
      })),
      products: shapeWords(multiply.size.filter((length) => length !== 1)),
      result: shapeWords(op.size.filter((length) => length !== 1)),
      each: size(multiply) / Math.max(1, size(op)),
      isWindowed: twice.some(({ view }) => view.includes("windows")),
    };
  });
  return best;
}

/** Returns the name of an input, the Python expression whose value an operation computes, or the operation's label. */
function operandLabel(op: Op, ops: readonly Op[], expressions: readonly Expression[]): string {
  if (op.kind === "input") return op.label;
  const last = ops.filter(({ expression }) => expression !== null && expression === op.expression).at(-1);
  return last === op ? expressions[op.expression!].short : op.label.replace(/^[^\w]+ /, "");
}
