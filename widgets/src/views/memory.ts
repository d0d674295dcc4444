// The lifetime of every buffer, and the number of allocated bytes.

import { h, replaceChildren, s } from "../dom";
import { bufferName, bytes, count, duration, groupDigits } from "../format";
import type { BufferInfo, BufferLifetime } from "../model";
import type { Change, Store, View } from "../store";
import { hasKernelTime, timelineOf } from "../timeline_axis";
import { compileChoice } from "./timeline";

const MAX_LANES = 400;

export class MemoryView implements View {
  readonly element = h("div", { class: "memory scroll", tabindex: 0, role: "region", "aria-label": "Memory" });

  private compiling = false; // whether the axis includes compile time

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(change: Change): void {
    if (this.element.hidden && this.store.cursor.panel !== "memory") return;
    if (change.cursor) this.draw();
  }

  private draw(): void {
    const { trace } = this.store.index;
    if (trace.buffers.length === 0) {
      replaceChildren(this.element, h("p", { class: "empty" }, "This trace allocated no buffers."));
      return;
    }
    const { memory: steps, lives, end_us } = timelineOf(trace, this.compiling);
    const end = Math.max(end_us, ...lives.map(({ ended_us: us }) => us), 1e-3) * 1.02;
    const isKernelTime = !this.compiling && hasKernelTime(trace);
    const peak = Math.max(0, ...steps.map(([, live]) => live));
    const kernel = this.store.cursor.kernel === null ? undefined : trace.kernels[this.store.cursor.kernel];
    const mine = new Set(kernel?.buffers ?? []);
    const visibleBuffers = trace.buffers.slice(0, MAX_LANES);
    const lifeOf = new Map(lives.map((life) => [life.buffer, life]));
    const lanes = visibleBuffers.flatMap((buffer) => {
      const life = lifeOf.get(buffer.id);
      return life === undefined ? [] : [this.makeLane(buffer, life, end, mine.has(buffer.id))];
    });
    const left = trace.buffers.length - visibleBuffers.length;
    const text = `${count(trace.buffers.length, "buffer")}, peak ${bytes(peak)}, over ${duration(end / 1.02)}${isKernelTime ? " of kernel time, in execution order" : ""}.`;
    const omitted = left > 0 ? ` The first ${MAX_LANES} are drawn, ${left} are not.` : "";
    const used = mine.size > 0 ? " Strong bars: buffers of the chosen kernel." : "";
    const open = visibleBuffers.some(({ freed_us }) => freed_us === null)
      ? " Faded end: still in use when the trace ends."
      : "";
    replaceChildren(
      this.element,
      compileChoice(this.store, this.compiling, (on) => this.choose(on)),
      h("p", { class: "note" }, text + used + open + omitted),
      drawArea(steps, end, peak),
      ...lanes,
    );
  }

  private choose(on: boolean): void {
    this.compiling = on;
    this.draw();
    this.element.querySelector("input")?.focus({ preventScroll: true });
  }

  private makeLane(
    buffer: BufferInfo,
    { started_us: start, ended_us }: BufferLifetime,
    end: number,
    mine: boolean,
  ): HTMLElement {
    const stop = buffer.freed_us === null ? end : ended_us;
    const life = `${buffer.allocated_us === null ? "before the trace" : duration(start)} – ${
      buffer.freed_us === null ? "outlives the trace" : duration(stop)
    }`;
    const label = `${bufferName(buffer)}: ${buffer.dtype} × ${groupDigits(buffer.size)}, ${bytes(buffer.bytes)}`;
    const bar = h("span", {
      class: `life${mine ? " mine" : ""}${buffer.freed_us === null ? " open" : ""}`,
      style: `left:${Math.min(99.6, (start / end) * 100)}%;width:${Math.max(0.4, ((stop - start) / end) * 100)}%`,
    });
    const what = h("span", { class: "label" }, label);
    return h(
      "div",
      { class: "lane", title: `${label} on ${buffer.device}; ${life}` },
      what,
      h("span", { class: "track" }, bar),
    );
  }
}

function drawArea(steps: [number, number][], end: number, peak: number): HTMLElement {
  const height = 44;
  const x = (us: number): string => ((us / end) * 1000).toFixed(1);
  const y = (live: number): string => (height - 1 - (live / Math.max(1, peak)) * (height - 6)).toFixed(1);
  let path = `M0 ${height}V${y(0)}`;
  for (const [time, live] of steps) path += `H${x(time)}V${y(live)}`;
  path += `H1000V${height}Z`;
  const size = { viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none", role: "img" };
  const drawing = s(
    "svg",
    { ...size, "aria-label": `Live bytes over time, peak ${bytes(peak)}` },
    s("path", { d: path }),
  );
  return h("div", { class: "lane total" }, h("span", { class: "label" }, `peak: ${bytes(peak)}`), drawing);
}
