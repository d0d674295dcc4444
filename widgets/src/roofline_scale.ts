// The axes of a roofline, and the ceilings of a kernel's roof.

import type { Roof, RooflineCeiling } from "./model";

/** Returns the ceilings of `roofs`, each once with its highest rate. */
export function linesOf(roofs: readonly Roof[]): RooflineCeiling[] {
  const lowest = new Map<string, RooflineCeiling>();
  const add = (name: string, kind: RooflineCeiling["kind"], rate: number): void => {
    const key = `${kind} ${name}`;
    if (rate > (lowest.get(key)?.rate ?? 0)) lowest.set(key, { name, kind, rate });
  };
  for (const { arithmetic, gflops } of roofs) add(arithmetic, "arithmetic", gflops);
  for (const { memory, gb_per_s } of roofs) add(memory, "memory", gb_per_s);
  return [...lowest.values()];
}

/** A logarithmic scale with powers of two at its ends. */
export class LogScale {
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

  positionOf(value: number): number {
    return this.start + (Math.log(value / this.low) / Math.log(this.high / this.low)) * (this.stop - this.start);
  }

  /** Returns at most `most` ticks at powers of two. */
  listTicks(limit = 10): number[] {
    const [first, last] = [Math.round(Math.log2(this.low)), Math.round(Math.log2(this.high))];
    const step = 1 + Math.floor((last - first) / limit);
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 2 ** (first + i * step));
  }
}
