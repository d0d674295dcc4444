// The rows of a trace's module costs as a tree, each with the LazyBuffers that it created.

import { isTensor } from "./dialect";
import type { ModuleCost, Trace } from "./model";

export const OUTSIDE = "(outside of modules)";

export interface Module {
  cost: ModuleCost;
  name: string;
  kind: string;
  /** The LazyBuffers created in it and in the modules inside. */
  nodes: number[];
  children: Module[];
}

/** Returns the whole trace with its modules inside; null if it has none. */
export function moduleTree(trace: Trace): Module | null {
  const made = new Map<number | null, number[]>();
  for (const node of trace.nodes) {
    const { id, scope } = node;
    if (!isTensor(trace, node)) continue;
    const nodes = made.get(scope);
    if (nodes === undefined) made.set(scope, [id]);
    else nodes.push(id);
  }
  const modules = trace.module_costs.map((cost): Module => {
    const { id, scope } = cost;
    if (id === 0) return { cost, name: trace.title || "trace", kind: trace.title || "trace", nodes: [], children: [] };
    const { name, kind } = scope === null ? { name: OUTSIDE, kind: OUTSIDE } : trace.scopes[scope];
    return { cost, name, kind, nodes: made.get(scope) ?? [], children: [] };
  });
  for (const module of modules) if (module.cost.parent !== null) modules[module.cost.parent].children.push(module);
  for (const module of [...modules].reverse()) {
    module.nodes = [...module.nodes, ...module.children.flatMap(({ nodes }) => nodes)].sort((a, b) => a - b);
  }
  return modules[0] ?? null;
}
