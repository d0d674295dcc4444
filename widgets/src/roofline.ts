// The roofline of a trace: a point for each kernel that was timed, under what the machine does at best. The same
// figures as tinyexplore/explore/pictures/rooflines.py.

import { count, figures } from "./format";
import type { Ceiling, KernelInfo, Trace } from "./model";

export interface Point {
  kernel: number;
  /** Operations for each byte that it reads or writes. */
  intensity: number;
  gflops: number;
  /** GFLOP/s that the ceilings leave it, and which kind of them that is. */
  attainable: number;
  limit: "memory" | "arithmetic";
  us: number;
}

export interface Roofline {
  points: Point[];
  ceilings: readonly Ceiling[];
  /** Whether the ceilings are the machine's; else they are the best that kernels of this trace do. */
  measured: boolean;
  /** Timed kernels that do no floating-point arithmetic. */
  idle: number[];
}

export function roofline(trace: Trace): Roofline {
  const times = new Map(trace.runs.filter((run) => run.median_us > 0).map((run) => [run.kernel, run.median_us]));
  const timed = trace.kernels.filter(({ id }) => times.has(id));
  const measured = trace.ceilings.length > 0;
  const ceilings = measured ? trace.ceilings : bestOf(timed, times);
  const peak = Math.max(...ceilings.filter(({ kind }) => kind === "arithmetic").map(({ rate }) => rate));
  const isPlaced = ({ flops, bytes_moved: moved }: KernelInfo): boolean => flops > 0 && moved > 0;
  const points = timed.filter(isPlaced).map(({ id, flops, bytes_moved: moved }): Point => {
    const us = times.get(id)!;
    const byMemory = bandwidth(ceilings, moved) * (flops / moved);
    const isMemory = byMemory < peak * (1 - 1e-9); // where both are the same kernel's, rounding must not choose
    return { kernel: id, intensity: flops / moved, gflops: flops / us / 1e3, attainable: isMemory ? byMemory : peak, limit: isMemory ? "memory" : "arithmetic", us };
  });
  return { points, ceilings, measured, idle: timed.filter((kernel) => !isPlaced(kernel)).map(({ id }) => id) };
}

function bestOf(timed: readonly KernelInfo[], times: Map<number, number>): Ceiling[] {
  const most = (rate: (kernel: KernelInfo) => number): number => Math.max(0, ...timed.map((kernel) => rate(kernel) / times.get(kernel.id)! / 1e3));
  const found: Ceiling[] = [
    { name: "most arithmetic here", kind: "arithmetic", rate: most(({ flops }) => flops), holds: 0 },
    { name: "most bytes here", kind: "memory", rate: most(({ bytes_moved: moved }) => moved), holds: 0 },
  ];
  return found.filter(({ rate }) => rate > 0);
}

/** Of the nearest memory that so many bytes fit into. */
function bandwidth(ceilings: readonly Ceiling[], bytes: number): number {
  const fitting = ceilings.filter(({ kind, holds }) => kind === "memory" && (holds === 0 || bytes <= holds));
  return fitting.length === 0 ? Infinity : Math.max(...fitting.map(({ rate }) => rate));
}

/** "kernel 3 · r_64_32: 12.3 GFLOP/s at 0.25 FLOP/B, 45.0 % of what memory allows". */
export function pointWords(trace: Trace, { kernel, gflops, intensity, attainable, limit }: Point): string {
  const whose = trace.ceilings.length > 0 ? `what ${limit} allows` : `the best here, by ${limit}`;
  const rate = `${figures(gflops)} GFLOP/s at ${figures(intensity)} FLOP/B`;
  return `kernel ${kernel} · ${trace.kernels[kernel].name}: ${rate}, ${figures(100 * (gflops / attainable))} % of ${whose}`;
}

export function noteWords({ measured, idle }: Roofline): string {
  const whose = measured ? "ceilings measured on this machine" : "ceilings: the best of these kernels";
  if (idle.length === 0) return whose;
  return `${whose} · ${count(idle.length, "kernel")} without floating-point arithmetic: ${idle.slice(0, 6).join(", ")}${idle.length > 6 ? ", …" : ""}`;
}

/** A logarithmic scale with whole powers of two at its ends. */
export class Scale {
  readonly low: number;
  readonly high: number;

  constructor(
    values: readonly number[],
    private readonly start: number,
    private readonly stop: number,
  ) {
    this.low = 2 ** Math.floor(Math.log2(Math.min(...values)) - 0.4);
    this.high = 2 ** Math.ceil(Math.log2(Math.max(...values)) + 0.4);
  }

  at(value: number): number {
    return this.start + (Math.log(value / this.low) / Math.log(this.high / this.low)) * (this.stop - this.start);
  }

  /** Powers of two, at most `most` of them. */
  ticks(most = 10): number[] {
    const [first, last] = [Math.round(Math.log2(this.low)), Math.round(Math.log2(this.high))];
    const step = 1 + Math.floor((last - first) / most);
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 2 ** (first + i * step));
  }
}
