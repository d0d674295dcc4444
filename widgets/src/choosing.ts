// Choosing a kernel, so that all views show it: its code, and what it computes.

import type { TraceIndex } from "./provenance";
import type { Store } from "./store";

/** The LazyBuffers that a kernel computes. */
export function nodesOfKernel(index: TraceIndex, kernel: number): number[] {
  const { nodes, roots } = index.trace.kernels[kernel];
  return [...new Set([...nodes, ...roots])];
}

export function chooseKernel(store: Store, kernel: number): void {
  store.go({ kernel });
  store.select(nodesOfKernel(store.index, kernel));
}
