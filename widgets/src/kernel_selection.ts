// Selects a kernel, so that all views show its code and its operations.

import type { TraceIndex } from "./trace_index";
import type { Store } from "./store";

/** Returns the LazyBuffers that a kernel computes. */
export function nodesOfKernel(index: TraceIndex, kernel: number): number[] {
  const { nodes, roots } = index.trace.kernels[kernel];
  return [...new Set([...nodes, ...roots])];
}

export function selectKernel(store: Store, kernel: number): void {
  store.go({ kernel });
  store.select(nodesOfKernel(store.index, kernel));
}
