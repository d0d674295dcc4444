// The opts that created a node: those whose axes occur in its computation.

import { isTensor } from "./dialect";
import type { OptStep } from "./model";
import type { TraceIndex } from "./trace_index";

export interface CreatingOpt {
  opt: OptStep;
  /** The position among the kernel's opts, from 1, and their number. */
  place: number;
  count: number;
}

/** Returns the opts that created UOps of a kernel, in the order of application. */
export function findCreatingOpts(index: TraceIndex, nodes: readonly number[], kernel: number | null): CreatingOpt[] {
  const { stages, nodes: all, kernels } = index.trace;
  const uops = nodes.filter((id) => !isTensor(index.trace, index.node(id)));
  if (kernel === null || uops.length === 0) return [];
  const number = kernels[kernel]?.same_as ?? kernel; // a reused program was compiled there
  const stage = stages.find(
    (candidate) => candidate.kernel === number && candidate.opts.some(({ applied }) => applied),
  );
  if (stage === undefined) return [];
  const read = index.reachable(uops); // the axes of a node are those of all its sources
  const past = new Set([...read, ...index.ancestors(read, kernel)]);
  const reached = index.reachable(stage.after).filter((id) => past.has(id));
  const axes = new Set(
    index
      .reachable(reached)
      .filter((id) => all[id].op === "RANGE")
      .map((id) => all[id].arg.split(" ")[0]),
  );
  const applied = stage.opts.filter((opt) => opt.applied);
  return applied.flatMap((opt, i) =>
    opt.made.some((axis) => axes.has(axis)) ? [{ opt, place: i + 1, count: applied.length }] : [],
  );
}
