// The rows of a trace's module costs as a tree, each with the LazyBuffers that it created.

import { isTensor } from "./dialect";
import type { ModuleCost, Trace } from "./model";

export const OUTSIDE = "(outside of modules)";
export const OWN = "(own operations)";
const LEAST_OWN = 0.002; // share of the whole time from which a module's own operations have a row

export interface Module {
  cost: ModuleCost;
  name: string;
  kind: string;
  /** The LazyBuffers created in it and in the modules inside. */
  nodes: number[];
  children: Module[];
}

/** Returns the whole trace with its modules inside; null if it has none. */
export function buildModuleTree(trace: Trace): Module | null {
  const children = new Map<number | null, number[]>();
  for (const node of trace.nodes) {
    const { id, scope } = node;
    if (!isTensor(trace, node)) continue;
    const nodes = children.get(scope);
    if (nodes === undefined) children.set(scope, [id]);
    else nodes.push(id);
  }
  const modules = trace.module_costs.map((cost): Module => {
    const { id, scope } = cost;
    if (id === 0) return { cost, name: trace.title || "trace", kind: trace.title || "trace", nodes: [], children: [] };
    const { name, kind } = scope === null ? { name: OUTSIDE, kind: OUTSIDE } : trace.scopes[scope];
    return { cost, name, kind, nodes: children.get(scope) ?? [], children: [] };
  });
  for (const module of modules) if (module.cost.parent !== null) modules[module.cost.parent].children.push(module);
  for (const module of [...modules].reverse()) {
    module.nodes = [...module.nodes, ...module.children.flatMap(({ nodes }) => nodes)].sort((a, b) => a - b);
  }
  const total = modules[0]?.cost.time_us ?? 0;
  for (const module of modules) addOwn(trace, module, LEAST_OWN * total);
  const root = modules[0] ?? null;
  // the row of a trace repeats its only module: `Sequential` in `Sequential`
  return root?.children.length === 1 && root.children[0].name === root.name ? root.children[0] : root;
}

/** Adds a row for what a module computes outside the modules inside it, so that the times of its rows add up. */
function addOwn(trace: Trace, module: Module, threshold: number): void {
  const { cost, children } = module;
  const inside = new Set(children.flatMap(({ nodes }) => nodes));
  const ownPart = (of: "time_us" | "backward_us" | "result_bytes" | "parameter_bytes"): number =>
    children.reduce((sum, child) => sum - child.cost[of], cost[of]);
  if (children.length === 0 || ownPart("time_us") <= threshold) return;
  const nodes = module.nodes.filter((id) => !inside.has(id));
  const kernels = trace.kernels.filter((kernel) => kernel.nodes.some((id) => nodes.includes(id))).map(({ id }) => id);
  const ownCost = { ...cost, time_us: ownPart("time_us"), backward_us: Math.max(0, ownPart("backward_us")) };
  const sizes = { parameter_bytes: ownPart("parameter_bytes"), result_bytes: ownPart("result_bytes"), kernels };
  children.push({ cost: { ...ownCost, ...sizes }, name: OWN, kind: OWN, nodes, children: [] });
}
