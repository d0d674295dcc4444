// A trace by module: the user's objects (`model`, its `layers[0]`, …) as a tree, with the time and memory of each. The
// same figures as tinyexplore/explore/tracefile/modules.py.

import type { KernelInfo, Node, Trace } from "./model";

export const OUTSIDE = "(outside of modules)";

/** A module and what it cost, the modules inside included. */
export interface Module {
  /** null for the whole trace, and for what no module made. */
  scope: number | null;
  name: string;
  kind: string;
  /** Its share of the kernels' medians; `backwardUs` is the part for gradients. */
  us: number;
  backwardUs: number;
  parameterBytes: number;
  resultBytes: number;
  kernels: number[];
  /** The LazyBuffers that were made in it. */
  nodes: number[];
  children: Module[];
}

interface Sum {
  us: number;
  backwardUs: number;
  resultBytes: number;
  kernels: Set<number>;
  nodes: number[];
}

const APART = new Set(["movement", "const", "buffer"]);

export function modules(trace: Trace): Module {
  const sums = new Map<number | null, Sum>();
  const sumOf = (scope: number | null): Sum => {
    const found = sums.get(scope) ?? { us: 0, backwardUs: 0, resultBytes: 0, kernels: new Set(), nodes: [] };
    sums.set(scope, found);
    return found;
  };
  const medians = new Map(trace.runs.map((run) => [run.kernel, run.median_us]));
  for (const kernel of trace.kernels) {
    for (const { scope, backward, share } of sharesOf(trace, kernel)) {
      const us = share * (medians.get(kernel.id) ?? 0);
      const sum = sumOf(scope);
      sum.us += us;
      if (backward) sum.backwardUs += us;
      sum.kernels.add(kernel.id);
    }
    kernel.roots.slice(0, kernel.buffers.length).forEach((root, i) => {
      sumOf(trace.nodes[root].scope).resultBytes += trace.buffers[kernel.buffers[i]].bytes;
    });
  }
  const hasOutside = sums.has(null);
  for (const { id, kind, scope } of trace.nodes) if (kind === "lazybuffer") sumOf(scope).nodes.push(id);
  const inner = new Map<number | null, number[]>();
  for (const { id, parent } of trace.scopes) inner.set(parent, [...(inner.get(parent) ?? []), id]);
  const moduleOf = (id: number): Module => {
    const { name, kind, parameter_bytes: bytes } = trace.scopes[id];
    return whole(id, name, kind, sums.get(id), bytes, (inner.get(id) ?? []).map(moduleOf));
  };
  const children = (inner.get(null) ?? []).map(moduleOf);
  if (hasOutside) children.push(whole(null, OUTSIDE, OUTSIDE, sums.get(null), 0, []));
  const title = trace.title || "trace";
  return whole(null, title, title, undefined, 0, children);
}

/** A module of its own part and those of its children. */
function whole(
  scope: number | null,
  name: string,
  kind: string,
  own: Sum | undefined,
  parameters: number,
  children: Module[],
): Module {
  const add = (of: (module: Module) => number, start: number): number =>
    children.reduce((sum, child) => sum + of(child), start);
  const join = (of: (module: Module) => number[], start: Iterable<number>): number[] => {
    return [...new Set([...start, ...children.flatMap(of)])].sort((a, b) => a - b);
  };
  return {
    scope,
    name,
    kind,
    us: add((one) => one.us, own?.us ?? 0),
    backwardUs: add((one) => one.backwardUs, own?.backwardUs ?? 0),
    parameterBytes: add((one) => one.parameterBytes, parameters),
    resultBytes: add((one) => one.resultBytes, own?.resultBytes ?? 0),
    kernels: join((one) => one.kernels, own?.kernels ?? []),
    nodes: join((one) => one.nodes, own?.nodes ?? []),
    children,
  };
}

/** The parts that modules have of a kernel, by the elements that each computes; they add up to 1. */
function sharesOf(
  trace: Trace,
  { nodes, roots }: KernelInfo,
): { scope: number | null; backward: boolean; share: number }[] {
  const work = new Map<string, { scope: number | null; backward: boolean; share: number }>();
  const enter = ({ scope, backward }: Node, amount: number): void => {
    const key = `${scope} ${backward}`;
    const part = work.get(key) ?? { scope, backward, share: 0 };
    part.share += amount;
    work.set(key, part);
  };
  for (const id of new Set([...nodes, ...roots])) {
    const node = trace.nodes[id];
    if (node.kind === "lazybuffer" && !APART.has(node.group)) enter(node, elements(trace, node));
  }
  let parts = [...work.values()];
  const total = parts.reduce((sum, { share }) => sum + share, 0);
  if (total > 0) return parts.map((part) => ({ ...part, share: part.share / total }));
  work.clear();
  for (const root of roots) enter(trace.nodes[root], 1);
  parts = [...work.values()];
  if (parts.length === 0) parts.push({ scope: null, backward: false, share: 1 });
  return parts.map((part) => ({ ...part, share: 1 / parts.length }));
}

/** How many elements an operation goes through: a reduction those that it reads. */
function elements(trace: Trace, node: Node): number {
  const sources = node.group === "reduce" ? node.src.map((src) => trace.nodes[src]) : [];
  return Math.max(sizeOf(node), ...sources.map(sizeOf));
}

/** Elements of a shape; of a symbolic size ("v=3") what it was bound to. */
function sizeOf({ shape }: Node): number {
  return (shape ?? []).reduce<number>((product, size) => {
    const bound = String(size).split("=").at(-1)!;
    return product * (/^\d+$/.test(bound) ? Number(bound) : 1);
  }, 1);
}
