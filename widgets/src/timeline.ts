// Words and ticks of the timelines that a trace has.

import type { Timeline, TimelineSpan, Trace } from "./model";

const NOTHING: Timeline = { rows: [], spans: [], memory: [], lives: [], end_us: 0 };

/** The timeline of a trace in kernel time, or over the time that passed. */
export function timelineOf({ kernel_time: kernel, elapsed_time: elapsed }: Trace, compiling: boolean): Timeline {
  return (compiling ? elapsed : kernel) ?? NOTHING;
}

/** Whether the timeline in kernel time is another one than that of the time that passed. */
export function hasKernelTime({ runs }: Trace): boolean {
  return runs.some(({ median_us: us }) => us > 0);
}

/** The distance of ticks: 1, 2 or 5 times a power of ten. */
export function tickStep(length: number, most: number): number {
  const least = length / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= least)!;
}

/** "kernel 3", "simplify": what a bar says, the longest first. */
export function spanWords({ stage, name, kernel }: TimelineSpan): string[] {
  if (stage !== null && name !== "kernel") return [name];
  return kernel === null ? [name] : [`kernel ${kernel}`, String(kernel)];
}
