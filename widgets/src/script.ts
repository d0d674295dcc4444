// A kernel as a script of its own, which runs with NumPy and llvmlite or a C compiler alone: made of the trace, offline,
// the same text as tinyexplore/explore/exports/scripts.py.

import SHARED from "../../tinyexplore/explore/exports/script_body.py"; // gzipped, in base64
import type { KernelInfo, Node, Program, Trace } from "./model";
import { fromBase64, unzipped } from "./payload";
import type { TraceIndex } from "./provenance";

/** Whether a kernel has a script: not a copy, nor one of which the trace has no source. */
export function hasReproducer({ trace }: TraceIndex, id: number): boolean {
  const languages = trace.programs.filter(({ kernel }) => kernel === id).map(({ language }) => language);
  return languages.includes("uops") && (languages.includes("llvm") || languages.includes("c"));
}

/** The script of a kernel that has one. */
export async function reproducer(index: TraceIndex, id: number): Promise<string> {
  const { trace } = index;
  const kernel = trace.kernels[id];
  const programs = new Map(trace.programs.filter((program) => program.kernel === id).map((program) => [program.language, program]));
  const nodes = index.reachable(new Set(programs.get("uops")!.lines.flatMap((line) => line.nodes))).map((node) => trace.nodes[node]);
  const variables = variablesOf(trace, nodes);
  const llvm = programs.get("llvm");
  const target = trace.options.find(([name]) => name === "target")?.[1] ?? "";
  const shared = await unzipped(fromBase64(SHARED));
  const lines = [
    `"""The kernel ${kernel.name} of ${plain(trace.title || "a capture")}, by itself.`,
    "",
    `Captured on ${kernel.device}: ${plain(target)}`,
    `Opts: ${kernel.opts.join(", ") || "none"}`,
    `Loops: ${kernel.axes.map((axis) => axis.join(" ")).join(", ")}`,
    "",
    "Needs NumPy, and llvmlite or a C compiler: python THIS_FILE [--with llvm|c] [--inputs X.npz] [--save Y.npz]",
    '"""',
    "",
    shared.replace(/^"""[^]*?"""\n+/, "").trimEnd(),
    "",
    "",
    ...variables.map(([name, value]) => `${name} = ${value}  # bound to it in the capture`),
    "KERNEL = {",
    `    "name": ${text(kernel.name)},`,
    "    # buffer: (dtype, elements, is read, is written)",
    `    "buffers": {${buffersOf(trace, nodes).join(", ")}},`,
    `    "variables": {${variables.map(([name]) => `${text(name)}: ${name}`).join(", ")}},`,
    `    "extent": ${extentOf(kernel)},  # of the loop that threads share`,
    `    "flops": ${kernel.flops},`,
    `    "bytes_moved": ${kernel.bytes_moved},`,
    `    "effort": ${text(llvm?.effort || "full")},`,
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

/** Words that can stand in a docstring. */
function plain(words: string): string {
  return words.replaceAll("\\", "/").replaceAll('"', "'").replaceAll("\n", " ");
}

/** A short text as Python writes it. */
function text(words: string): string {
  return `'${words.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

function truth(value: boolean): string {
  return value ? "True" : "False";
}

/** Source text as a literal that a reader can read. */
function quoted(source: string): string {
  if (source === "") return '""';
  if (!source.includes('"""') && !/["\\]$/.test(source)) return `r"""\n${source}"""`;
  return text(source).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

function listing(program: Program | undefined): string {
  return program === undefined ? "" : `${program.lines.map((line) => line.text).join("\n")}\n`;
}

/** Each buffer of a call, in order: dtype, elements, whether it is read, whether it is written. */
function buffersOf(trace: Trace, nodes: readonly Node[]): string[] {
  const ofOp = (op: string): Set<number> => {
    const pointers = nodes.filter((node) => node.op === op).map((node) => trace.nodes[node.src[0]].src[0]);
    return new Set(pointers);
  };
  const [read, written] = [ofOp("LOAD"), ofOp("STORE")];
  const globals = nodes.filter((node) => node.op === "DEFINE_GLOBAL").sort((a, b) => Number(a.arg) - Number(b.arg));
  return globals.map(({ id, label, detail }) => {
    const [, dtype, size] = /^(\w+)\[(\d+)\]$/.exec(detail)!; // as describe.py writes it
    return `${text(label)}: (${text(dtype)}, ${size}, ${truth(read.has(id))}, ${truth(written.has(id))})`;
  });
}

/** The kernel's Variables by name, with what the capture bound them to, else with their greatest value. */
function variablesOf(trace: Trace, nodes: readonly Node[]): [string, string][] {
  const bound = new Map<string, string>();
  for (const { op, detail } of trace.nodes) {
    const match = op === "BIND" ? /^(\w+) = (-?\d+)$/.exec(detail) : null;
    if (match !== null) bound.set(match[1], match[2]);
  }
  const found = nodes.filter(({ op }) => op === "DEFINE_VAR").map(({ detail }): [string, string] => {
    const [, name, high] = detail.split(" ≤ ");
    return [name, bound.get(name) ?? high];
  });
  return found.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The size of the loop that threads share. */
function extentOf({ axes }: KernelInfo): number | string {
  return axes.find(([, kind]) => kind === "thread")?.[2] ?? 1;
}
