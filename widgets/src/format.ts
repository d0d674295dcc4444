// Formats numbers and names for readers.

import type { BufferInfo, KernelInfo, Run } from "./model";

/** Splits a docstring into paragraphs. Indented parts are formulas, whose lines are kept. */
export function paragraphs(doc: string): { text: string; formula: boolean }[] {
  const parts = doc.split(/\n\s*\n/).filter((part) => part.trim() !== "");
  return parts.map((part) => {
    const formula = /^ {4}/.test(part);
    return { text: formula ? part.replace(/^ {4}/gm, "").trimEnd() : part.trim().replace(/\s+/g, " "), formula };
  });
}

const MOST_PLACES = 6;

/** Returns microseconds with three significant figures and a suitable unit: 0.41 µs, 12.3 ms, 2.10 s. */
export function duration(us: number): string {
  if (!Number.isFinite(us)) return "–";
  if (us < 999.5) return `${figuresText(us)} µs`; // a value that would round to 1000 gets the next unit
  if (us < 999.5e3) return `${figuresText(us / 1e3)} ms`;
  return `${figuresText(us / 1e6)} s`;
}

/**
 * Returns a number with three significant figures: 0.41, 10.0 (for 9.996), 100 (for 99.96), 1,234. Below a tenth it
 * has two:
 * 0.0041. Halves are rounded up. Mirrors figures_text in Python.
 */
export function figuresText(value: number): string {
  if (value === 0) return "0";
  if (Math.abs(value) < 0.095) return value.toFixed(Math.min(MOST_PLACES, 1 - Math.floor(Math.log10(Math.abs(value)))));
  for (const places of [2, 1]) {
    const text = value.toFixed(places);
    if (Math.abs(Number(text)) < 10 ** (3 - places)) return text;
  }
  return groupDigits(Number(value.toFixed(0)));
}

/** Returns 1,234,567. (`toLocaleString` would first load the browser's language tables.) */
export function groupDigits(value: number): string {
  const [integer, fraction] = String(value).split(".");
  const text = integer.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? text : `${text}.${fraction}`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count;
  let unit = -1;
  while ((unit < 0 || value >= 999.5) && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${figuresText(value)} ${units[unit]}`;
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${groupDigits(n)} ${n === 1 ? one : many}`;
}

export function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

export function shapeText(shape: (number | string)[] | null): string {
  return shape === null ? "" : `(${shape.join(", ")})`;
}

const OPERATORS: Record<string, string> = {
  add: "+",
  sub: "-",
  mul: "*",
  truediv: "/",
  floordiv: "//",
  mod: "%",
  pow: "**",
  matmul: "@",
  neg: "-",
  invert: "~",
  and: "&",
  or: "|",
  xor: "^",
  lshift: "<<",
  rshift: ">>",
  lt: "<",
  le: "<=",
  gt: ">",
  ge: ">=",
  eq: "==",
  ne: "!=",
  getitem: "[]",
  setitem: "[]=",
  abs: "abs",
};

/** Returns a call as written in Python: `@` for `__matmul__`, `softmax` for itself. */
export function callName(name: string): string {
  const special = /^__[ri]?(\w+?)__$/.exec(name)?.[1];
  if (special === undefined) return name;
  return OPERATORS[special] ?? OPERATORS[name.slice(2, -2)] ?? name;
}

/** Splits a kernel's name. A part that is the size of an axis (`16`, `4v` for 4*v) has the kind of that axis. */
export function kernelNameParts(kernel: KernelInfo): { text: string; kind: string | null }[] {
  const waiting = kernel.axes.map(([, kind, size]) => ({ kind, size: String(size) }));
  return kernel.name.split(/(_)/).map((text, place) => {
    const axisIndex = place > 0 ? waiting.findIndex((axis) => axis.size.replace(/\W/g, "") === text) : -1;
    if (axisIndex < 0) return { text, kind: null };
    const [axis] = waiting.splice(axisIndex, 1);
    return { text, kind: axis.kind };
  });
}

export const LANGUAGE_NAMES: Record<string, string> = {
  opts: "Opts",
  aten: "ATen",
  uops: "UOps",
  c: "C",
  llvm: "LLVM IR",
  "llvm-opt": "LLVM optimized",
  asm: "Assembly",
  python: "Python program",
  ptx: "PTX",
  amdgcn: "AMDGCN assembly",
  cuda: "CUDA",
  opencl: "OpenCL",
  hip: "HIP",
  metal: "Metal",
  wgsl: "WGSL",
  wat: "WebAssembly",
};

export function languageName(language: string): string {
  return LANGUAGE_NAMES[language] ?? language;
}

/** The quartiles of the samples. */
type Quartiles = { low_us: number; high_us: number; times_us: number[] };

/**
 * Returns the number of samples: "10 samples", or "1 cold run" for the launch itself. Mirrors samples_text in Python.
 */
export function samplesText({ times_us, warm }: Run): string {
  return count(times_us.length, warm ? "sample" : "cold run");
}

/** Returns the kind of sum that a total of `runs` is. Mirrors sum_text in Python. */
export function sumText(runs: readonly Run[]): string {
  return runs.every(({ warm }) => warm) ? "the sum of the medians" : "the sum of single cold runs";
}

/** Returns the quartiles: "11.9–12.4 µs"; "" for a single sample. Mirrors quartiles_text in Python. */
export function quartilesText({ low_us, high_us, times_us }: Quartiles): string {
  if (times_us.length < 2) return "";
  const [low, high] = [duration(low_us), duration(high_us)];
  const [number, unit] = low.split(" ");
  return `${high.endsWith(` ${unit}`) ? number : low}–${high}`;
}

/** Returns the median and the quartiles: "12.1 µs (11.9–12.4 µs)". */
export function medianText(run: Quartiles & { median_us: number }): string {
  const between = quartilesText(run);
  return `${duration(run.median_us)}${between && ` (${between})`}`;
}

/** Returns the buffer's name in the user's Python, else the kernel that wrote it. */
export function bufferName({ id, name, maker }: BufferInfo): string {
  const origin = maker === null ? "" : `result of kernel ${maker}`;
  if (name !== "") return origin === "" ? name : `${name}, ${origin}`;
  return origin || `buffer ${id}`;
}
