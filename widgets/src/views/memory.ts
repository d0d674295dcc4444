// The life of every buffer, and how many bytes are alive.

import { h, replaceChildren, s } from "../dom";
import { liveBytes } from "../figures";
import { bufferName, bytes, count, duration, grouped } from "../format";
import type { BufferInfo } from "../model";
import type { Change, Store, View } from "../store";

const MAX_LANES = 400;

export class MemoryView implements View {
  readonly element = h("div", { class: "memory scroll", tabindex: 0, role: "region", "aria-label": "Memory" });

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
    const known = trace.buffers.flatMap((b) => [b.allocated_us, b.freed_us]).filter((at): at is number => at !== null);
    const stages = trace.stages.map((stage) => stage.started_us + stage.elapsed_us);
    const end = Math.max(1, ...known, ...stages) * 1.02;
    const steps = liveBytes(trace.buffers);
    const peak = Math.max(...steps.map(([, live]) => live));
    const kernel = this.store.cursor.kernel === null ? undefined : trace.kernels[this.store.cursor.kernel];
    const mine = new Set(kernel?.buffers ?? []);
    const shown = trace.buffers.slice(0, MAX_LANES);
    const lanes = shown.map((buffer) => this.lane(buffer, end, mine.has(buffer.id)));
    const left = trace.buffers.length - shown.length;
    const text = `${count(trace.buffers.length, "buffer")}, ${bytes(peak)} alive at most, over ${duration(end / 1.02)}.`;
    const rest = left > 0 ? ` The first ${MAX_LANES} are drawn, ${left} are not.` : "";
    const used = mine.size > 0 ? " Strong bars: buffers of the chosen kernel." : "";
    const open = shown.some(({ freed_us }) => freed_us === null) ? " A bar that fades outlives the trace." : "";
    replaceChildren(this.element, h("p", { class: "note" }, text + used + open + rest), area(steps, end, peak), ...lanes);
  }

  private lane(buffer: BufferInfo, end: number, mine: boolean): HTMLElement {
    const start = buffer.allocated_us ?? 0;
    const stop = buffer.freed_us ?? end;
    const life = `${buffer.allocated_us === null ? "before the trace" : duration(start)} – ${
      buffer.freed_us === null ? "outlives the trace" : duration(stop)
    }`;
    const label = `${bufferName(buffer)}: ${buffer.dtype} × ${grouped(buffer.size)}, ${bytes(buffer.bytes)}`;
    const bar = h("span", {
      class: `life${mine ? " mine" : ""}${buffer.freed_us === null ? " open" : ""}`,
      style: `left:${(start / end) * 100}%;width:${Math.max(0.4, ((stop - start) / end) * 100)}%`,
    });
    const what = h("span", { class: "label" }, label);
    return h("div", { class: "lane", title: `${label} on ${buffer.device}; ${life}` }, what, h("span", { class: "track" }, bar));
  }
}

function area(steps: [number, number][], end: number, peak: number): HTMLElement {
  const height = 44;
  const x = (us: number): string => ((us / end) * 1000).toFixed(1);
  const y = (live: number): string => (height - 1 - (live / Math.max(1, peak)) * (height - 6)).toFixed(1);
  let path = `M0 ${height}V${y(0)}`;
  for (const [at, live] of steps) path += `H${x(at)}V${y(live)}`;
  path += `H1000V${height}Z`;
  const size = { viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none", role: "img" };
  const drawing = s("svg", { ...size, "aria-label": `Bytes alive over time, ${bytes(peak)} at most` }, s("path", { d: path }));
  return h("div", { class: "lane total" }, h("span", { class: "label" }, `alive: ${bytes(peak)} at most`), drawing);
}
