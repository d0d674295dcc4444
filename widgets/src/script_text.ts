// The text of a kernel's script, the same as tinyexplore/explore/exports/scripts.py writes. No text of a trace becomes code:
// it is quoted, or the kernel has no script.

import type { KernelInfo, Node, Program, Trace } from "./model";
import type { TraceIndex } from "./provenance";

const KEYWORDS =
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield";
const TAKEN = new Set([...KEYWORDS.split(" "), "KERNEL", "main"]);
const LONGEST_SIZE = 1000; // characters

/** A kernel whose texts cannot stand in a script. */
export class ScriptError extends Error {}

/** The script of kernel `id`; `shared`: the part that all scripts have. ScriptError if the trace's texts would be code. */
export function scriptText(index: TraceIndex, id: number, shared: string): string {
  const { trace } = index;
  const kernel = trace.kernels[id];
  const programs = new Map(
    trace.programs.filter((program) => program.kernel === id).map((program) => [program.language, program]),
  );
  const nodes = index
    .reachable(new Set(programs.get("uops")!.lines.flatMap((line) => line.nodes)))
    .map((node) => trace.nodes[node]);
  const variables = variablesOf(trace, nodes);
  const names = variables.map(([name]) => name);
  const llvm = programs.get("llvm");
  const target = trace.options.find(([name]) => name === "target")?.[1] ?? "";
  const lines = [
    `"""The kernel ${plain(kernel.name)} of ${plain(trace.title || "a capture")}, alone.`,
    "",
    `Captured on ${plain(kernel.device)}: ${plain(target)}`,
    `Opts: ${plain(kernel.opts.join(", ")) || "none"}`,
    `Loops: ${plain(kernel.axes.map((axis) => axis.join(" ")).join(", "))}`,
    "",
    "Needs NumPy, and llvmlite or a C compiler: python THIS_FILE [--with llvm|c] [--inputs X.npz] [--save Y.npz]",
    '"""',
    "",
    shared.replace(/^"""[\s\S]*?"""\n+/, "").trimEnd(),
    "",
    "",
    ...variables.map(([name, value]) => `${name} = ${value}  # bound to it in the capture`),
    "KERNEL = {",
    `    "name": ${literal(kernel.name)},`,
    "    # buffer: (dtype, elements, is read, is written)",
    `    "buffers": {${buffersOf(trace, nodes).join(", ")}},`,
    `    "variables": {${names.map((name) => `${literal(name)}: ${name}`).join(", ")}},`,
    `    "extent": ${extentOf(kernel, names)},  # of the loop that threads share`,
    `    "flops": ${count(kernel.flops)},`,
    `    "bytes_moved": ${count(kernel.bytes_moved)},`,
    `    "effort": ${literal(llvm?.effort || "full")},`,
    `    "branches": ${truth(llvm?.branches ?? false)},`,
    `    "llvm": ${quoted(listing(llvm))},`,
    `    "c": ${quoted(listing(programs.get("c")))},`,
    "}",
    "",
    'if __name__ == "__main__":',
    "    main(KERNEL)",
  ];
  return `${lines.join("\n")}\n`;
}

/** Text for a docstring: no line ends, quotes or backslashes. */
function plain(text: string): string {
  return text.replace(unprintable(), " ").replaceAll("\\", "/").replaceAll('"', "'");
}

/** Characters that Python's `str.isprintable` rejects. */
function unprintable(): RegExp {
  return /(?! )[\p{C}\p{Z}]/gu;
}

/** `text` as Python's `repr` writes it. */
export function literal(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`).replace(unprintable(), escapeOf);
  return `${quote}${escaped}${quote}`;
}

function escapeOf(character: string): string {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  if (known !== undefined) return known;
  const code = character.codePointAt(0)!;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

function truth(value: boolean): string {
  return value ? "True" : "False";
}

/** Digits of a count, also of a large one, which JavaScript would write with an exponent. */
function count(value: number): string {
  if (!Number.isInteger(value)) throw new ScriptError(`${value} is no count`);
  return BigInt(value).toString();
}

/** Source text as a literal that people can read. */
function quoted(source: string): string {
  if (source === "") return '""';
  const isPlain = !source.includes('"""') && !/["\\]$/.test(source) && !/[\0\r\p{Cs}]/u.test(source);
  return isPlain ? `r"""\n${source}"""` : literal(source);
}

function listing(program: Program | undefined): string {
  return program === undefined ? "" : `${program.lines.map((line) => line.text).join("\n")}\n`;
}

/** Each buffer of a call, in order: dtype, elements, whether it is read, whether it is written. */
function buffersOf(trace: Trace, nodes: readonly Node[]): string[] {
  const pointersOf = (op: string): Set<number> => {
    const accesses = nodes
      .filter((node) => node.op === op && node.src.length > 0)
      .map((node) => trace.nodes[node.src[0]]);
    return new Set(accesses.map((node) => node.src[0] ?? node.id));
  };
  const [read, written] = [pointersOf("LOAD"), pointersOf("STORE")];
  const globals = nodes.filter((node) => node.op === "DEFINE_GLOBAL").sort((a, b) => position(a) - position(b));
  const entries = new Map<string, string>();
  for (const { id, label, detail } of globals) {
    const match = /^(\w+)\[(\d{1,19})\]$/.exec(detail); // as describe.py writes it
    if (match === null) throw new ScriptError(`${detail.slice(0, 60)} is no buffer`);
    const [, dtype, size] = match;
    entries.set(label, `(${literal(dtype)}, ${BigInt(size)}, ${truth(read.has(id))}, ${truth(written.has(id))})`);
  }
  return [...entries].map(([label, entry]) => `${literal(label)}: ${entry}`);
}

function position(node: Node): number {
  if (!/^\d{1,9}$/.test(node.arg)) throw new ScriptError(`${node.arg.slice(0, 60)} is no position of a buffer`);
  return Number(node.arg);
}

/** The kernel's Variables by name, with what the capture bound them to, else with their greatest value. */
function variablesOf(trace: Trace, nodes: readonly Node[]): [string, string][] {
  const bound = new Map<string, string>();
  for (const { op, detail } of trace.nodes) {
    const match = op === "BIND" ? /^(\w+) = (-?\d{1,19})$/.exec(detail) : null;
    if (match !== null) bound.set(match[1], match[2]);
  }
  const values = new Map<string, string>();
  for (const { detail } of nodes.filter(({ op }) => op === "DEFINE_VAR")) {
    const match = /^-?\d+ ≤ ([A-Za-z_]\w*) ≤ (-?\d{1,19})$/.exec(detail);
    if (match === null || TAKEN.has(match[1]))
      throw new ScriptError(`${detail.slice(0, 60)} names no Variable that Python could hold`);
    values.set(match[1], BigInt(bound.get(match[1]) ?? match[2]).toString());
  }
  return [...values].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The size of the loop that threads share: a number, or arithmetic with the Variables. */
function extentOf({ axes }: KernelInfo, variables: readonly string[]): string {
  const size = axes.find(([, kind]) => kind === "thread")?.[2] ?? 1;
  if (typeof size === "number") return count(size);
  if (!isArithmetic(size, new Set(variables)))
    throw new ScriptError(`the size ${size.slice(0, 60)} is not arithmetic with its Variables`);
  return size;
}

/** Whether `text` is one expression of decimal integers, `variables`, + - * / // % and parentheses. */
export function isArithmetic(text: string, variables: ReadonlySet<string>): boolean {
  if (text.length > LONGEST_SIZE || !/^[\w +*/%()-]+$/.test(text) || text.startsWith(" ")) return false;
  let isAfterOperand = false;
  let depth = 0;
  for (const token of text.match(/\w+|\*+|\/+|[+%()-]/g) ?? []) {
    if (/^\w/.test(token)) {
      if (isAfterOperand || !(variables.has(token) || /^(0|[1-9]\d*)$/.test(token))) return false;
      isAfterOperand = true;
    } else if (token === "(") {
      if (isAfterOperand) return false;
      depth += 1;
    } else if (token === ")") {
      if (!isAfterOperand || depth === 0) return false;
      depth -= 1;
    } else {
      const isSign = token === "+" || token === "-";
      if (!["+", "-", "*", "/", "//", "%"].includes(token) || !(isAfterOperand || isSign)) return false;
      isAfterOperand = false;
    }
  }
  return isAfterOperand && depth === 0;
}
