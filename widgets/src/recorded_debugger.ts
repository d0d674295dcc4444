// The debugger without Python: it walks recorded steps forwards and backwards in the page, with the same responses as
// Python.

import { count } from "./format";
import type { RecordedBuffer, RecordedStep, Recording } from "./model";
import type { DebugRequest, DebuggerState, TensorData } from "./requests";

/** The fields of a request to the debugger, except for the kernel. */
export type Action = Omit<DebugRequest, "ask" | "kernel">;

const CELLS = 256; // most visible elements of a tensor
const RECENT = 64;
const HELP = 'A page without Python accepts "nan", "inf", "data1[37]" and "%12 > 100".';

export class RecordedDebugger {
  private position = 0;
  private reason = "not started";
  private readonly lanes: number;

  constructor(private readonly recording: Recording) {
    this.lanes = recording.steps.reduce((lanes, { value }) => Math.max(lanes, value.length), 1);
  }

  respond(action: Action): DebuggerState {
    const lane = (action.lane as number | undefined) ?? null;
    const count = Number(action.count ?? 1);
    switch (action.do) {
      case "step":
        this.go(this.position + count, "step");
        break;
      case "back":
        this.go(this.position - count, this.position - count <= 0 ? "at the start" : "back");
        break;
      case "restart":
        this.go(0, "not started");
        break;
      case "finish":
        this.go(Infinity, "step");
        break;
      case "run to":
        this.runUntil(this.testForLine(Number(action.line)), `at line ${String(action.line)}`);
        break;
      case "run until":
        this.runUntil(this.parseCondition(String(action.condition)), String(action.condition));
        break;
      case "iteration":
        this.iterate(action.counters as Record<string, number>);
    }
    return this.makeState(lane);
  }

  private go(position: number, reason: string): void {
    const { steps, ended } = this.recording;
    this.position = Math.max(0, Math.min(position, steps.length));
    this.reason =
      position <= steps.length
        ? reason
        : ended
          ? "at the end"
          : `the recording ends here, after ${count(steps.length, "step")}`;
  }

  /** Goes forwards to the first step for which `test` holds. */
  private runUntil(test: (step: RecordedStep, index: number) => boolean, reason: string): void {
    const { steps } = this.recording;
    for (let stepIndex = this.position; stepIndex < steps.length; stepIndex += 1)
      if (test(steps[stepIndex], stepIndex)) return this.go(stepIndex + 1, reason);
    this.go(Infinity, reason);
  }

  /** Returns the test for a line; for a line that is no step, the next one that is. */
  private testForLine(line: number): (step: RecordedStep) => boolean {
    const places = new Set(this.recording.steps.map(({ place }) => place));
    const target = [...places].filter((place) => place >= line).sort((a, b) => a - b)[0];
    return ({ place }) => place === target;
  }

  private parseCondition(text: string): (step: RecordedStep, index: number) => boolean {
    const wanted = text.trim();
    if (wanted === "nan" || wanted === "inf")
      return ({ value }) =>
        value.some((lane) => (wanted === "nan" ? lane === "nan" : lane === "inf" || lane === "-inf"));
    const access = /^(?:(load|store)\s+)?([^\s[]+)\[(\d+)\]$/.exec(wanted);
    if (access !== null) {
      const [, kind, buffer, element] = access;
      return (step) =>
        step.buffer === buffer &&
        step.index.includes(Number(element)) &&
        (kind === undefined || (kind === "store") === step.stored);
    }
    const comparison = /^(\S+?)\s*(==|!=|<=|>=|<|>)\s*(-?[\w.+-]+)$/.exec(wanted);
    const slot = comparison === null ? undefined : this.slotOf(comparison[1]);
    if (comparison === null || slot === undefined) throw new Error(`${wanted} is not a condition. ${HELP}`);
    const holds = compare(comparison[2], Number(comparison[3]));
    return (step) => (slot === null || step.slot === slot) && step.value.some((lane) => holds(numberOf(lane)));
  }

  /** Returns the line of a name; null for "value", which is any. */
  private slotOf(name: string): number | null | undefined {
    if (name === "value") return null;
    const loop = this.recording.loops.find((loop) => loop.name === name);
    if (loop !== undefined) return loop.begin;
    if (/^%\d+$/.test(name)) return Number(name.slice(1));
    const line = this.recording.listing.findIndex((text) => text.includes(`DEFINE_ACC ${name} `));
    return line < 0 ? undefined : line;
  }

  /** Goes to the first step at which these loops have these counters. */
  private iterate(counters: Record<string, number>): void {
    const { loops, steps } = this.recording;
    const wanted = Object.entries(counters).map(([name, value]) => {
      const loop = loops.find((loop) => loop.name === name);
      if (loop === undefined)
        throw new Error(`no loop ${name}; available: ${loops.map((loop) => loop.name).join(", ") || "none"}`);
      return { begin: loop.begin, value };
    });
    const now = new Map<number, number>();
    const text = Object.entries(counters).map(([name, value]) => `${name}=${value}`);
    const innermost = Math.max(...wanted.map(({ begin }) => begin));
    for (let index = 0; index < steps.length; index += 1) {
      const { slot, value } = steps[index];
      if (!loops.some(({ begin }) => begin === slot)) continue;
      now.set(slot, Number(value[0]));
      if (slot === innermost && wanted.every(({ begin, value: count }) => now.get(begin) === count))
        return this.go(index + 1, text.join(", "));
    }
    throw new Error(`${text.join(", ")} is not in the ${count(steps.length, "recorded step")}`);
  }

  // *** state ***

  private makeState(lane: number | null): DebuggerState {
    const { name, note, listing, loops, steps, buffers, ended } = this.recording;
    const done = steps.slice(0, this.position);
    const values = new Map<number, string[]>();
    for (const { slot, value } of done) values.set(slot, value);
    const last = done.at(-1);
    if (last !== undefined) values.set(last.place, last.value);
    const line = last?.place ?? null;
    const around = line === null ? [] : loops.filter(({ begin, end }) => begin <= line && line < end);
    return {
      name,
      note,
      listing,
      lanes: this.lanes,
      nest: loops.map((loop) => [
        loop.name,
        loops.filter(({ begin, end }) => begin < loop.begin && loop.end < end).map((outer) => outer.name),
      ]),
      values: [...values].sort(([a], [b]) => a - b).map(([element, value]) => [element, valueText(value, lane)]),
      tensors: buffers.map((buffer) => makeTensor(buffer, done, lane)),
      position: this.position,
      place: line,
      ended: ended && this.position === steps.length,
      reason: this.reason,
      loops: around.map((loop) => [loop.name, counterOf(values, loop.begin) ?? 0]),
      accesses:
        last === undefined || last.buffer === ""
          ? []
          : [[last.buffer, last.stored, last.index, valueText(last.value, null)]],
    };
  }
}

function counterOf(values: Map<number, string[]>, begin: number): number | null {
  const counter = values.get(begin);
  return counter === undefined ? null : Number(counter[0]);
}

/** Returns a buffer after these steps, in rows around the last access. */
function makeTensor(
  { name, size, width, cells }: RecordedBuffer,
  done: RecordedStep[],
  lane: number | null,
): TensorData {
  const now = new Map<number, string>();
  const recent: number[] = [];
  for (let stepIndex = done.length - 1, count = 0; stepIndex >= 0 && count < RECENT; stepIndex -= 1) {
    if (done[stepIndex].buffer === "") continue;
    count += 1;
    if (done[stepIndex].buffer === name) recent.push(...done[stepIndex].index.filter((element) => element !== null));
  }
  for (const { buffer, stored, index, value } of done) {
    if (stored && buffer === name)
      index.forEach((position, i) => position !== null && now.set(position, value[i] ?? value[0]));
  }
  const last = done.at(-1);
  const isHere = last?.buffer === name;
  const touched = !isHere ? [] : lane === null || lane >= last.index.length ? last.index : [last.index[lane]];
  const rows = Math.max(1, Math.floor(CELLS / width));
  const latest = isHere ? last.index.find((place) => place !== null) : recent[0];
  const first =
    Math.max(0, Math.min(Math.floor((latest ?? 0) / width) - Math.floor(rows / 2), Math.ceil(size / width) - rows)) *
    width;
  const values = Array.from(
    { length: Math.max(0, Math.min(rows * width, size - first)) },
    (_, i) => now.get(first + i) ?? cells[first + i] ?? "…",
  );
  return {
    name,
    size,
    width,
    first,
    cells: values.map(shorten),
    lit: touched.filter((place): place is number => place !== null),
    recent: [...new Set(recent)].sort((a, b) => a - b),
    stored: isHere && last.stored,
  };
}

/** Shortens a decimal number to three digits. */
function shorten(text: string): string {
  return /^-?\d+\.\d|e/.test(text) ? String(Number(Number(text).toPrecision(3))) : text;
}

function valueText(value: string[], lane: number | null): string {
  if (value.length === 1) return value[0];
  if (lane !== null && lane < value.length) return value[lane];
  return `[${value.slice(0, 8).join(", ")}${value.length > 8 ? ", …" : ""}]`;
}

function numberOf(text: string): number {
  if (text === "True" || text === "False") return Number(text === "True");
  return text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
}

function compare(sign: string, b: number): (a: number) => boolean {
  const comparisons: Record<string, (a: number) => boolean> = {
    "==": (a) => a === b,
    "!=": (a) => a !== b,
    "<=": (a) => a <= b,
    ">=": (a) => a >= b,
    "<": (a) => a < b,
    ">": (a) => a > b,
  };
  return comparisons[sign];
}
