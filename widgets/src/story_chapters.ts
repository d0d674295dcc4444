// The pages of the story: which of them a trace has, and where the workbench shows more of each.

import { isTensor } from "./dialect";
import { callName } from "./format";
import type { KernelInfo, NestLine, Stage } from "./model";
import type { TraceIndex } from "./trace_index";
import type { Cursor } from "./store";

export type ChapterKey = "python" | "tensors" | "kernels" | "loops" | "rewrites" | "code" | "time";

export interface Chapter {
  key: ChapterKey;
  title: string;
  /** The subject of the page. */
  about: string;
  /** The position of the views with more details. */
  place: Partial<Cursor>;
  /** The kernel of the page. */
  kernel: number | null;
}

/** Returns the pages that the trace has, in order. */
export function listChapters(index: TraceIndex): Chapter[] {
  const { trace } = index;
  const kernel = findSlowest(index);
  const lazy = trace.nodes.filter((node) => isTensor(trace, node));
  const kernelStages = kernel === null ? [] : stagesOf(index, kernel);
  const opts = kernelStages.find((stage) => stage.opts.length > 0);
  const fired = trace.stages.some((stage) => stage.kernel !== null && index.firings(stage) > 0);
  const isTimed = trace.runs.length > 0 || trace.kernels.some(({ not_run: reason }) => reason !== "");
  const page = (isThere: boolean, chapter: Omit<Chapter, "kernel">): Omit<Chapter, "kernel">[] =>
    isThere ? [chapter] : [];
  const nests: Partial<Cursor> =
    opts === undefined ? { place: "kernels" } : { place: "passes", stage: opts.id, graph: "uops", panel: "rewrites" };
  const pages = [
    ...page(
      lazy.some(({ user }) => user !== null),
      {
        key: "python",
        title: "Python",
        about: "what each part of your Python builds",
        place: { place: "python" },
      },
    ),
    ...page(lazy.length > 0, {
      key: "tensors",
      title: "Tensors",
      about: "the graph of tensor operations",
      place: { place: "lazy", graph: "lazy" },
    }),
    ...page(kernel !== null && lazy.length > 0, {
      key: "kernels",
      title: "Kernels",
      about: "where the graph is cut into kernels, and why",
      place: { place: "kernels", graph: "lazy", panel: "kernels" },
    }),
    ...page(kernel !== null && kernel.axes.length > 0, {
      key: "loops",
      title: "Loops",
      about: "the loops of the slowest kernel, opt by opt",
      place: nests,
    }),
    ...page(fired, {
      key: "rewrites",
      title: "Rewrites",
      about: "the rewrites that change this program most",
      place: { place: "passes", graph: "uops", panel: "rewrites" },
    }),
    ...page(kernel !== null && index.programsOf(kernel.id).length > 0, {
      key: "code",
      title: "Code",
      about: "one inner loop, line by line",
      place: { place: "code" },
    }),
    ...page(isTimed, {
      key: "time",
      title: "Time",
      about: "is it fast, and if not, why",
      place: { place: "run", panel: "timing" },
    }),
  ] as Omit<Chapter, "kernel">[];
  const id = kernel?.id ?? null;
  return pages.map((chapter) => ({
    ...chapter,
    kernel: id,
    place: { ...chapter.place, ...(id === null ? {} : { kernel: id }) },
  }));
}

/** Returns the slowest kernel; without times, the first one. */
export function findSlowest(
  index: TraceIndex,
  kernels: readonly KernelInfo[] = index.trace.kernels.filter(({ id }) => !index.earlier.has(id)),
): KernelInfo | null {
  const us = ({ id }: KernelInfo): number => index.runOf(id)?.median_us ?? -1;
  return kernels.reduce<KernelInfo | null>(
    (best, kernel) => (best === null || us(kernel) > us(best) ? kernel : best),
    null,
  );
}

/** Returns the loops and statements of a kernel; for a trace that has only axes, these as nested loops. */
export function nestOf({ trace }: TraceIndex, kernel: KernelInfo): Pick<NestLine, "depth" | "text" | "kind">[] {
  const { nest } = kernel.nest.length > 0 || kernel.same_as === null ? kernel : trace.kernels[kernel.same_as];
  if (nest.length > 0) return nest;
  const loops = kernel.axes.map(([name, kind, size], depth) => ({
    depth,
    text: `for ${name} in range(${size})`,
    kind,
  }));
  const step = kernel.calls.length > 0 ? `one step of ${kernel.calls.map(callName).join(", ")}` : "one step";
  return [...loops, { depth: loops.length, text: step, kind: "" }];
}

/** Explanations of axis kinds for beginners. */
export const AXIS_WORDS: Record<string, string> = {
  global: "an ordinary loop over results",
  thread: "divided among the cores",
  warp: "the lanes of a warp, which hold the operands of a tensor core together",
  local: "a block of steps inside the other loops; on a GPU, the work-items of a group",
  reduce: "accumulates: each step adds to the result of the previous step",
  group: "a reduction in blocks, each with a partial result; on a GPU, one per work-item",
  unroll: "an unrolled reduction: each step has an accumulator",
  upcast: "an unrolled output loop: each result has its own register",
  vector: "one vector instruction computes several steps, one per lane",
  scan: "in order: each step needs the result of the previous step",
  copy: "fills scratch memory for a later loop",
  row: "computes a row into scratch memory for a later loop",
  rare: "cold path: runs once, or not at all",
};

/** Returns the stages of a kernel; a kernel that reuses a program has those of the first kernel. */
export function stagesOf(index: TraceIndex, kernel: KernelInfo): Stage[] {
  const kernelStages = index.trace.stages.filter((stage) => stage.kernel === kernel.id);
  if (kernelStages.length > 0 || kernel.same_as === null) return kernelStages;
  return stagesOf(index, index.trace.kernels[kernel.same_as]);
}
