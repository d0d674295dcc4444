// The schedule of a branch as an index of its own: the same nodes in other kernels, so that the graph view draws it
// like a captured one.

import { type EdgeDecision, edgeDecisionOf } from "../fusion_decisions";
import type { FusedKernel, KernelInfo, Run, ScheduleVariant, Trace } from "../model";
import { TraceIndex } from "../trace_index";
import { Store, type Cursor } from "../store";

export interface BoardEdge extends EdgeDecision {
  /** The user's decision on its source. */
  override: "cut" | "join" | null;
}

/** Returns the change that the user can make at an edge. */
export function changeOf({ mark }: BoardEdge): "cut" | "join" {
  return mark === "cut" ? "join" : "cut";
}

/** Returns the edges between LazyBuffers of one schedule, in graph order. */
export function edgesOf(index: TraceIndex, variant: ScheduleVariant | null, schedule: number): BoardEdge[] {
  const decided = new Set(index.trace.stages[schedule].decisions.map(({ node }) => node));
  const edges: BoardEdge[] = [];
  for (const { src, dst } of index.trace.fusion_edges) {
    const edgeDecision = edgeDecisionOf(index, src, dst);
    if (edgeDecision === null || !decided.has(dst) || !index.node(dst).src.includes(src)) continue;
    const override =
      variant === null ? null : variant.cut.includes(src) ? "cut" : variant.join.includes(src) ? "join" : null;
    edges.push({ ...edgeDecision, override });
  }
  return edges;
}

/** Compares the kernels of two schedules: those in both, only in `before`, and only in `after`. */
export function compareKernels(
  before: readonly FusedKernel[],
  after: readonly FusedKernel[],
): { kept: FusedKernel[]; vanished: FusedKernel[]; appeared: FusedKernel[] } {
  const key = ({ digest, roots }: FusedKernel): string => `${digest} ${roots.join()}`;
  const left = new Map<string, FusedKernel[]>();
  for (const kernel of before) left.set(key(kernel), [...(left.get(key(kernel)) ?? []), kernel]);
  const [kept, appeared]: [FusedKernel[], FusedKernel[]] = [[], []];
  for (const kernel of after) (left.get(key(kernel))?.shift() === undefined ? appeared : kept).push(kernel);
  return { kept, vanished: [...left.values()].flat(), appeared };
}

/**
 * Returns a number for each kernel of `variant`: that of the equal captured kernel, else of a removed one, else a new
 * one.
 */
export function numbersOf(root: ScheduleVariant, variant: ScheduleVariant, count: number): number[] {
  const ownKernels = root.kernels.flatMap(({ kernel }) => kernel ?? []);
  const numbered = new Set(variant.kernels.flatMap(({ kernel }) => kernel ?? []));
  const free = ownKernels.filter((kernel) => !numbered.has(kernel));
  let next = count;
  return variant.kernels.map(({ kernel }) => kernel ?? free.shift() ?? next++);
}

const indexOfVariant = new WeakMap<ScheduleVariant, TraceIndex>();

/** Returns `index` with the kernels and decisions of `variant` instead of those of its schedule. */
export function indexOf(index: TraceIndex, root: ScheduleVariant, variant: ScheduleVariant): TraceIndex {
  const cached = indexOfVariant.get(variant);
  if (cached !== undefined) return cached;
  const { trace } = index;
  const kernels: KernelInfo[] = trace.kernels.map((kernel) =>
    root.kernels.some((rootKernel) => rootKernel.kernel === kernel.id) ? { ...kernel, nodes: [], roots: [] } : kernel,
  );
  const runs: Run[] = trace.runs.filter((run) => kernels[run.kernel].roots.length > 0);
  numbersOf(root, variant, kernels.length).forEach((id, place) => {
    const fused = variant.kernels[place];
    const captured = fused.kernel === null ? null : trace.kernels[fused.kernel];
    kernels[id] = captured ?? makeKernel(id, fused);
    if (fused.median_us === null || fused.low_us === null || fused.high_us === null) return;
    runs.push({
      id: runs.length,
      kernel: id,
      times_us: [fused.median_us],
      median_us: fused.median_us,
      low_us: fused.low_us,
      high_us: fused.high_us,
      started_us: 0,
      first_us: fused.median_us,
      warm: true,
      single_us: [],
      waited: null,
    });
  });
  const decided = new Set(variant.decisions.map(({ node }) => node));
  const stages = trace.stages.map((stage) =>
    stage.id === variant.stage
      ? { ...stage, decisions: [...stage.decisions.filter(({ node }) => !decided.has(node)), ...variant.decisions] }
      : stage,
  );
  const links = trace.links.filter(({ how }) => how === "split");
  const computed = new Set(variant.edges.map(({ dst }) => dst));
  const edges = [...trace.fusion_edges.filter(({ dst }) => !computed.has(dst)), ...variant.edges];
  const changed = new TraceIndex({ ...trace, kernels, runs, stages, links, fusion_edges: edges } satisfies Trace);
  indexOfVariant.set(variant, changed);
  return changed;
}

function makeKernel(id: number, { name, device, nodes, roots, flops, bytes_moved }: FusedKernel): KernelInfo {
  const nothing = {
    buffers: [],
    opts: [],
    axes: [],
    calls: [],
    compile_us: 0,
    cached: false,
    same_as: null,
    known: "",
    code_bytes: 0,
    not_run: "",
    nest: [],
    bytes_written: 0,
    arithmetic: [],
    title: "",
  };
  return { id, name, device, nodes, roots, flops, bytes_moved, ...nothing };
}

/** The store of the board's graph: it always shows the LazyBuffers, and shares the selection of `main`. */
export class BoardStore extends Store {
  constructor(index: TraceIndex, main: Store) {
    super(index, { ...main.cursor, graph: "lazy", kernel: null, stage: null });
    this.onSelect = (nodes) => main.select(nodes);
  }

  override go({ kernel }: Partial<Cursor>, silent = false): void {
    if (kernel !== undefined) super.go({ kernel }, silent);
  }
}
