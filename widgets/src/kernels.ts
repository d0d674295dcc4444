// How kernels are distinguished: each by its number, and by a hue while there are hues enough.

import { h } from "./dom";
import { bufferName, callName, truncate } from "./format";
import type { KernelInfo, Trace } from "./model";

export const KERNEL_HUES = 24; // as in style.css

export function kernelClass(kernel: number): string {
  return `by-kernel k-${kernel % KERNEL_HUES}`;
}

/** What a kernel computes, from the user's Python ("x @ w"); the program's name where nothing is known of it. */
export function humanName({ title, calls, name }: KernelInfo): string {
  return title || calls.map(callName).join(", ") || name;
}

/** The number and what it computes, as HTML; the program's name when one points at it. */
export function kernelLabel(kernel: KernelInfo, most = 60): HTMLElement {
  const number = h("span", { class: `kernel-number ${kernelClass(kernel.id)}` }, String(kernel.id));
  return h("span", { class: "kernel-label", title: kernel.name }, number, ` ${truncate(humanName(kernel), most)}`);
}

/** "kernel 3 · x @ w (r_64_32)": a name may be that of several kernels, a number is not. */
export function kernelTitle({ kernels }: Trace, kernel: number): string {
  const info = kernels[kernel];
  if (info === undefined) return `kernel ${kernel} · ?`;
  const name = humanName(info);
  return `kernel ${kernel} · ${name}${name === info.name ? "" : ` (${info.name})`}`;
}

/** "x · data1": as the user's Python calls what the program calls data1. */
export function parameterName({ buffers, kernels }: Trace, kernel: number, name: string): string {
  const parameter = /^data(\d+)$/.exec(name);
  const buffer = parameter === null ? undefined : buffers[kernels[kernel].buffers[Number(parameter[1])]];
  return buffer === undefined ? name : `${bufferName(buffer)} · ${name}`;
}
