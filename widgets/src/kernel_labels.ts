// How kernels are distinguished: by number, and by hue as long as there are enough hues.

import { h } from "./dom";
import { bufferName, callName, truncate } from "./format";
import type { KernelInfo, Trace } from "./model";

export const KERNEL_HUES = 24; // as in style.css

export function kernelClass(kernel: number): string {
  return `by-kernel k-${kernel % KERNEL_HUES}`;
}

/** Returns what a kernel computes in the user's Python ("x @ w"), else the name of the program. */
export function readableName({ title, calls, name }: KernelInfo): string {
  return title || calls.map(callName).join(", ") || name;
}

/** Returns the number and the human name as HTML, with the program's name as tooltip. */
export function kernelLabel(kernel: KernelInfo, most = 60): HTMLElement {
  const number = h("span", { class: `kernel-number ${kernelClass(kernel.id)}` }, String(kernel.id));
  return h("span", { class: "kernel-label", title: kernel.name }, number, ` ${truncate(readableName(kernel), most)}`);
}

/** Returns "kernel 3 · x @ w (r_64_32)": several kernels may share a name, but not a number. */
export function kernelTitle({ kernels }: Trace, kernel: number): string {
  const info = kernels[kernel];
  if (info === undefined) return `kernel ${kernel} · ?`;
  const name = readableName(info);
  return `kernel ${kernel} · ${name}${name === info.name ? "" : ` (${info.name})`}`;
}

/** Returns "x · data1": the name in the user's Python and the name in the program. */
export function parameterName({ buffers, kernels }: Trace, kernel: number, name: string): string {
  const parameter = /^data(\d+)$/.exec(name);
  const buffer = parameter === null ? undefined : buffers[kernels[kernel].buffers[Number(parameter[1])]];
  return buffer === undefined ? name : `${bufferName(buffer)} · ${name}`;
}
