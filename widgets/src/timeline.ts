// A trace on a time axis: what the compiler did, when kernels ran, what memory held. The same spans as
// tinyexplore/explore/tracefile/timeline.py.

import { bufferName } from "./format";
import type { BufferInfo, Run, Stage, Trace } from "./model";

const [COMPILER, DEVICE, THREADS] = [1, 2, 2]; // the rows; further threads come after the device

export interface Span {
  row: number;
  name: string;
  us: number;
  long: number;
  /** How many spans of its row it lies in. */
  depth: number;
  kernel: number | null;
  stage: number | null;
}

/** A buffer while it is there; lives of one lane do not overlap. */
export interface Life {
  buffer: number;
  name: string;
  bytes: number;
  us: number;
  end: number;
  lane: number;
}

export interface Timeline {
  rows: Map<number, string>;
  spans: Span[];
  /** (time, bytes alive from then on), in order. */
  memory: [number, number][];
  lives: Life[];
  end: number;
}

export function timeline(trace: Trace): Timeline {
  const threads = [...new Set(trace.stages.map(({ thread }) => thread))].sort((a, b) => a - b);
  const rows = new Map([
    [COMPILER, "compiler"],
    [DEVICE, "device"],
  ]);
  for (const thread of threads) if (thread > 0) rows.set(THREADS + thread, `compiler, thread ${thread}`);
  const own = trace.stages.map(({ elapsed_us: us }) => us);
  const depths: number[] = [];
  const outerOf = ({ parent }: Stage): Stage | undefined => (parent === null ? undefined : trace.stages[parent]);
  for (const stage of trace.stages) {
    const outer = outerOf(stage);
    if (outer !== undefined && outer.thread !== stage.thread) own[outer.id] -= stage.elapsed_us;
    depths.push(outer === undefined || outer.thread !== stage.thread ? 0 : depths[outer.id] + 1);
  }
  const spans = trace.stages.map(({ id, name, kernel, thread, started_us: us }): Span => {
    return {
      row: thread > 0 ? THREADS + thread : COMPILER,
      name,
      us,
      long: own[id],
      depth: depths[id],
      kernel,
      stage: id,
    };
  });
  for (const { kernel, started_us: us, median_us: long } of trace.runs) {
    spans.push({ row: DEVICE, name: trace.kernels[kernel].name, us, long, depth: 0, kernel, stage: null });
  }
  const end = spans.reduce((latest, span) => Math.max(latest, span.us + span.long), 0);
  return { rows, spans, memory: liveBytes(trace.buffers), lives: livesOf(trace, end), end };
}

/** A time of the trace → kernel time: the medians of all runs before it, in execution order. Null where nothing was timed. */
export function kernelClock({ runs }: Trace): { clock: (us: number) => number; runs: Run[]; end: number } | null {
  const timed = runs.filter(({ median_us: us }) => us > 0).sort((a, b) => a.started_us - b.started_us);
  if (timed.length === 0) return null;
  const totals = [0];
  for (const { median_us: us } of timed) totals.push(totals.at(-1)! + us);
  const clock = (us: number): number => {
    const place = timed.findLastIndex(({ started_us: began }) => began <= us);
    if (place < 0) return 0;
    const { started_us: began, first_us: first, median_us: median } = timed[place];
    return totals[place] + Math.min((us - began) / (first || median), 1) * median;
  };
  return { clock, runs: timed, end: totals.at(-1)! };
}

/** The timeline in kernel time: runs in execution order, with nothing between them; all of it where nothing was timed. */
export function kernelTimeline(trace: Trace): Timeline {
  const whole = timeline(trace);
  const found = kernelClock(trace);
  if (found === null) return whole;
  const { clock, runs, end } = found;
  let us = 0;
  const spans = runs.map(({ kernel, median_us: long }): Span => {
    us += long;
    return { row: DEVICE, name: trace.kernels[kernel].name, us: us - long, long, depth: 0, kernel, stage: null };
  });
  const memory = whole.memory.map(([at, live]): [number, number] => [clock(at), live]);
  const lives = whole.lives.map((life) => ({ ...life, us: clock(life.us), end: clock(life.end) }));
  return { rows: new Map([[DEVICE, "device"]]), spans, memory, lives, end };
}

function livesOf({ buffers }: Trace, end: number): Life[] {
  const born = buffers.filter(({ allocated_us: us }) => us !== null).sort((a, b) => a.allocated_us! - b.allocated_us!);
  const free: number[] = [];
  return born.map((buffer): Life => {
    const us = buffer.allocated_us!;
    const until = buffer.freed_us ?? Math.max(us, end);
    let lane = free.findIndex((from) => from <= us);
    if (lane < 0) lane = free.length;
    free[lane] = until;
    return { buffer: buffer.id, name: bufferName(buffer), bytes: buffer.bytes, us, end: until, lane };
  });
}

/** (time, bytes alive from then on), in order; from 0 on what was there before. */
export function liveBytes(buffers: readonly BufferInfo[]): [number, number][] {
  const changes = buffers.flatMap((buffer): [number, number][] => {
    const start: [number, number] = [buffer.allocated_us ?? 0, buffer.bytes];
    return buffer.freed_us === null ? [start] : [start, [buffer.freed_us, -buffer.bytes]];
  });
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let live = 0;
  return changes.map(([at, change]) => {
    live += change;
    return [at, live];
  });
}

/** The distance of ticks: 1, 2 or 5 times a power of ten. */
export function tickStep(length: number, most: number): number {
  const least = length / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= least)!;
}

/** "kernel 3", "simplify": what a bar says, the longest first. */
export function spanWords({ stage, name, kernel }: Span): string[] {
  if (stage !== null && name !== "kernel") return [name];
  return kernel === null ? [name] : [`kernel ${kernel}`, String(kernel)];
}
