// How kernels are distinguished: each by its number, and by a hue while there are hues enough.

import { bufferName } from "./format";
import type { Trace } from "./model";

export const KERNEL_HUES = 24; // as in style.css

export function kernelClass(kernel: number): string {
  return `by-kernel k-${kernel % KERNEL_HUES}`;
}

/** "kernel 3 · r_64_32": a name may be that of several kernels, a number is not. */
export function kernelTitle({ kernels }: Trace, kernel: number): string {
  return `kernel ${kernel} · ${kernels[kernel]?.name ?? "?"}`;
}

/** "x · data1": as the user's Python calls what the program calls data1. */
export function parameterName({ buffers, kernels }: Trace, kernel: number, name: string): string {
  const parameter = /^data(\d+)$/.exec(name);
  const buffer = parameter === null ? undefined : buffers[kernels[kernel].buffers[Number(parameter[1])]];
  return buffer === undefined ? name : `${bufferName(buffer)} · ${name}`;
}
