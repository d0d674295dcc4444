// Texts and ticks of the timelines of a trace.

import type { Timeline, TimelineSpan, Trace } from "./model";

const NOTHING: Timeline = { rows: [], spans: [], memory: [], lives: [], end_us: 0 };

/** Returns the timeline of a trace in kernel time, or in elapsed time. */
export function timelineOf({ kernel_time: kernel, elapsed_time: elapsed }: Trace, compiling: boolean): Timeline {
  return (compiling ? elapsed : kernel) ?? NOTHING;
}

/** Whether the timeline in kernel time differs from the one in elapsed time. */
export function hasKernelTime({ runs }: Trace): boolean {
  return runs.some(({ median_us: us }) => us > 0);
}

/** Returns the distance of ticks: 1, 2 or 5 times a power of ten. */
export function chooseTickStep(length: number, limit: number): number {
  const shortest = length / limit;
  const power = 10 ** Math.floor(Math.log10(shortest));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= shortest)!;
}

/** Returns labels of a span, the longest first: "kernel 3", "simplify". */
export function spanWords({ stage, name, kernel }: TimelineSpan): string[] {
  if (stage !== null && name !== "kernel") return [name];
  return kernel === null ? [name] : [`kernel ${kernel}`, String(kernel)];
}
