// The roofline of a trace: a point for each kernel that was timed, under the roof of its machine. The same
// figures as tinyexplore/explore/tracefile/pictures/rooflines.py.

import { count, figures } from "./format";
import type { KernelInfo, Roof, Trace } from "./model";

export interface Point {
  kernel: number;
  /** Operations for each byte that it reads or writes. */
  intensity: number;
  gflops: number;
  /** GFLOP/s that its roof leaves it, null without a roof; which ceiling that is, and its name. */
  attainable: number | null;
  limit: "memory" | "arithmetic" | "";
  ceiling: string;
  us: number;
}

/** A ceiling that is drawn: GFLOP/s or GB/s. */
export interface Line {
  name: string;
  kind: "memory" | "arithmetic";
  rate: number;
}

export interface Roofline {
  points: Point[];
  /** The ceilings of the kernels' roofs, each once. */
  lines: Line[];
  /** Whether the trace has ceilings. */
  measured: boolean;
  /** Timed kernels that do no floating-point arithmetic. */
  idle: number[];
}

export function roofline(trace: Trace): Roofline {
  const times = new Map(trace.runs.filter((run) => run.median_us > 0).map((run) => [run.kernel, run.median_us]));
  const timed = trace.kernels.filter(({ id }) => times.has(id));
  const roofs = new Map(trace.roofs.map((roof) => [roof.kernel, roof]));
  const isPlaced = ({ flops, bytes_moved: moved }: KernelInfo): boolean => flops > 0 && moved > 0;
  const points = timed.filter(isPlaced).map(({ id, flops, bytes_moved: moved }): Point => {
    const us = times.get(id)!;
    return {
      kernel: id,
      intensity: flops / moved,
      gflops: flops / us / 1e3,
      ...limitOf(roofs.get(id), flops / moved),
      us,
    };
  });
  const lines = linesOf(points.flatMap(({ kernel }) => roofs.get(kernel) ?? []));
  return {
    points,
    lines,
    measured: trace.ceilings.length > 0,
    idle: timed.filter((kernel) => !isPlaced(kernel)).map(({ id }) => id),
  };
}

/** The ceilings of `roofs`, each once with its highest rate. */
export function linesOf(roofs: readonly Roof[]): Line[] {
  const found = new Map<string, Line>();
  const add = (name: string, kind: Line["kind"], rate: number): void => {
    const key = `${kind} ${name}`;
    if (rate > (found.get(key)?.rate ?? 0)) found.set(key, { name, kind, rate });
  };
  for (const { arithmetic, gflops } of roofs) add(arithmetic, "arithmetic", gflops);
  for (const { memory, gb_per_s } of roofs) add(memory, "memory", gb_per_s);
  return [...found.values()];
}

function limitOf(roof: Roof | undefined, intensity: number): Pick<Point, "attainable" | "limit" | "ceiling"> {
  if (roof === undefined) return { attainable: null, limit: "", ceiling: "" };
  const byMemory = roof.gb_per_s * intensity;
  if (byMemory > 0 && (byMemory < roof.gflops || roof.gflops === 0))
    return { attainable: byMemory, limit: "memory", ceiling: roof.memory };
  return { attainable: roof.gflops || null, limit: "arithmetic", ceiling: roof.arithmetic };
}

/** "kernel 3 · r_64_32: 12.3 GFLOP/s at 0.25 FLOP/B, 45.0 % of L2 bandwidth". */
export function pointWords(trace: Trace, { kernel, gflops, intensity, attainable, limit, ceiling }: Point): string {
  const text = `kernel ${kernel} · ${trace.kernels[kernel].name}: ${figures(gflops)} GFLOP/s at ${figures(intensity)} FLOP/B`;
  return attainable === null
    ? text
    : `${text}, ${figures(100 * (gflops / attainable))} % of ${ceiling}${limit === "memory" ? " bandwidth" : ""}`;
}

export function noteWords({ measured, idle }: Roofline): string {
  const whose = measured ? "ceilings measured on the machine of this trace" : "no ceilings are known for this trace";
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
