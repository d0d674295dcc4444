// How kernels are told apart: each by its number, and by a hue while there are hues enough.

import type { Trace } from "./model";

export const KERNEL_HUES = 24; // as in style.css

export function kernelClass(kernel: number): string {
  return `by-kernel k-${kernel % KERNEL_HUES}`;
}

/** "kernel 3 · r_64_32": a name may be that of several kernels, a number is not. */
export function kernelTitle({ kernels }: Trace, kernel: number): string {
  return `kernel ${kernel} · ${kernels[kernel]?.name ?? "?"}`;
}
