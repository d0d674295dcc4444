// The timeline: stages of the compiler, runs of kernels, memory and buffers over one time axis, with zoom.

import { nodesOfKernel, selectKernel } from "../kernel_selection";
import { button, h, oncePerFrame, replaceChildren, s } from "../dom";
import { bytes, count, duration } from "../format";
import { kernelClass, kernelTitle } from "../kernel_labels";
import { placeOf } from "../links";
import type { Timeline, TimelineSpan as Span } from "../model";
import type { Change, Store, View } from "../store";
import { hasKernelTime, spanWords, chooseTickStep, timelineOf } from "../timeline_axis";

const [ROW, GAP, MEMORY, LANE, AXIS] = [16, 7, 58, 8, 20]; // pixels
const DEPTHS = 4; // levels of nested stages
const MOST_LANES = 14;
const SLIVER = 1.6; // pixels; all shorter stages are one path
const LEAST_RUN = 3;
const CHARACTER = 6.6;
const SHORTEST = 0.05; // µs of the visible range

export class TimelineView implements View {
  readonly element = h("div", { class: "timeline scroll", tabindex: 0, role: "region", "aria-label": "Timeline" });
  private figure: Timeline;
  private compiling = false; // whether the axis includes compile time
  private readonly says = h("span", { class: "readout faint", role: "status" });
  private readonly bar = h("div", { class: "timeline-bar" });
  private readonly svg = s("svg", { role: "group", "aria-label": "Stages, runs and memory over time" });
  private readonly sizes = new ResizeObserver(() => this.draw());
  private from = 0;
  private to: number;
  private label = 120; // pixels of the names at the left
  private width = 0;
  private cursor: SVGElement | null = null;

  constructor(private readonly store: Store) {
    this.figure = timelineOf(store.index.trace, false);
    this.to = this.end;
    if (this.figure.spans.length === 0) {
      this.element.append(h("p", { class: "empty" }, "No part of this trace has a time."));
      return;
    }
    this.element.append(this.bar, this.svg);
    this.writeBar();
    this.listen();
    this.sizes.observe(this.element);
  }

  destroy(): void {
    this.sizes.disconnect();
  }

  update(change: Change): void {
    if (this.figure.spans.length === 0) return;
    if (change.cursor) this.writeBar();
    if (change.cursor || change.selection || change.hover) this.mark();
  }

  private get end(): number {
    return Math.max(this.figure.end_us, 1e-3) * 1.01;
  }

  private writeBar(): void {
    const { kernel } = this.store.cursor;
    const runs = this.figure.spans.filter(({ stage }) => stage === null);
    const kernelRun = runs.find((run) => run.kernel === kernel);
    const around = (spans: Span[], margin: number): void => {
      const [first, last] = [
        Math.min(...spans.map(({ started_us: us }) => us)),
        Math.max(...spans.map(({ started_us: us, elapsed_us: long }) => us + long)),
      ];
      this.showRange(first - (last - first) * margin, last + (last - first) * margin);
    };
    replaceChildren(
      this.bar,
      compileChoice(this.store, this.compiling, (on) => {
        this.compiling = on;
        this.figure = timelineOf(this.store.index.trace, on);
        this.showRange(0, this.end);
        this.writeBar();
        this.bar.querySelector("input")?.focus({ preventScroll: true });
      }),
      button("whole", "The whole trace (0)", () => this.showRange(0, this.end), "quiet"),
      runs.length === 0 || runs.length === this.figure.spans.length
        ? null
        : button("runs", "The time in which kernels ran", () => around(runs, 0.03), "quiet"),
      kernelRun === undefined
        ? null
        : button(`kernel ${kernelRun.kernel}`, "The run of the chosen kernel", () => around([kernelRun], 0.8), "quiet"),
      button("−", "Zoom out (−)", () => this.zoom(0.5, 2), "quiet"),
      button("+", "Zoom in (+)", () => this.zoom(0.5, 0.5), "quiet"),
      this.says,
    );
    this.tell("");
  }

  private tell(text: string): void {
    const all = duration(this.figure.end_us);
    const visibleTime = this.to - this.from >= this.figure.end_us ? all : `${duration(this.to - this.from)} of ${all}`;
    this.says.textContent = text || `${visibleTime} · Ctrl and the wheel zoom, a drag moves`;
  }

  private showRange(from: number, to: number): void {
    const length = Math.min(Math.max(to - from, SHORTEST), this.end);
    this.from = Math.min(Math.max(0, from), this.end - length);
    this.to = this.from + length;
    this.tell("");
    this.redraw();
  }

  /** Scales the visible range by `factor`, with the time at `share` of the width fixed. */
  private zoom(share: number, factor: number): void {
    const time = this.from + share * (this.to - this.from);
    const length = (this.to - this.from) * factor;
    this.showRange(time - share * length, time + (1 - share) * length);
  }

  private xOf(us: number): number {
    return this.label + ((us - this.from) / (this.to - this.from)) * (this.width - this.label - 8);
  }

  private timeAt(event: MouseEvent): number {
    const share = (event.clientX - this.svg.getBoundingClientRect().left - this.label) / (this.width - this.label - 8);
    return this.from + Math.min(Math.max(share, 0), 1) * (this.to - this.from);
  }

  private readonly redraw = oncePerFrame(() => this.draw());

  private draw(): void {
    const width = this.element.clientWidth - 6;
    if (width <= 0) return;
    this.width = width;
    this.label = width < 560 ? 74 : 124;
    const { rows, spans } = this.figure;
    const drawn: SVGElement[] = [];
    let y = 4;
    for (const [row, name] of rows) {
      const rowSpans = spans.filter((span) => span.row === row && span.depth < DEPTHS);
      if (rowSpans.length === 0) continue;
      drawn.push(this.name(name, y), ...this.drawBars(rowSpans, y));
      y += (Math.max(...rowSpans.map(({ depth }) => depth)) + 1) * ROW + GAP;
    }
    drawn.push(...this.drawMemory(y));
    y += MEMORY + GAP;
    const lanes = this.drawLanes(y);
    drawn.push(...lanes.drawn);
    y += lanes.height;
    this.cursor = s("path", { class: "now", d: "" });
    this.svg.setAttribute("width", String(width));
    this.svg.setAttribute("height", String(y + AXIS));
    replaceChildren(this.svg, ...this.drawTicks(y), ...drawn, this.cursor);
    this.mark();
  }

  private name(text: string, y: number): SVGElement {
    const short = this.label < 100 ? text.replace("compiler, ", "") : text;
    return s("text", { class: "row-name", x: 8, y: y + 12 }, short);
  }

  /** Draws the bars of a row; stages too short to be visible are one path per color. */
  private drawBars(spans: readonly Span[], top: number): SVGElement[] {
    const slivers = new Map<string, Set<string>>();
    const elements: SVGElement[] = [];
    for (const span of spans) {
      const [left, right] = [
        Math.max(this.xOf(span.started_us), this.label),
        Math.min(this.xOf(span.started_us + span.elapsed_us), this.width - 8),
      ];
      if (right < this.label || left > this.width - 8) continue;
      const y = top + span.depth * ROW;
      const cls = span.kernel === null ? "stage" : kernelClass(span.kernel);
      if (span.stage !== null && right - left < SLIVER) {
        const marks = slivers.get(cls) ?? new Set();
        slivers.set(cls, marks.add(`M${Math.round(left) + 0.5} ${y}v${ROW - 2}`));
      } else
        elements.push(this.drawSpan(span, left, Math.max(right - left, span.stage === null ? LEAST_RUN : 1), y, cls));
    }
    return [
      ...[...slivers].map(([cls, marks]) => s("path", { class: `sliver ${cls}`, d: [...marks].join("") })),
      ...elements,
    ];
  }

  private drawSpan(span: Span, left: number, width: number, y: number, cls: string): SVGElement {
    const { index } = this.store;
    const words = spanWords(span).find((text) => width > text.length * CHARACTER + 6);
    const kernelText = span.kernel === null ? "" : kernelTitle(index.trace, span.kernel);
    const what = span.stage === null ? `${kernelText}: median` : [kernelText, span.name].filter(Boolean).join(": ");
    const says = `${what}, ${duration(span.elapsed_us)} from ${duration(span.started_us)} on`;
    const attributes = {
      class: `span ${cls}`,
      "data-kernel": span.kernel,
      "data-stage": span.stage,
      "data-says": says,
    };
    return s(
      "g",
      attributes,
      s("title", {}, says),
      s("rect", { x: left.toFixed(1), y, width: width.toFixed(1), height: ROW - 2, rx: 2 }),
      words === undefined ? null : s("text", { x: left + 4, y: y + 11 }, words),
    );
  }

  private drawMemory(top: number): SVGElement[] {
    const { memory } = this.figure;
    const peak = Math.max(0, ...memory.map(([, live]) => live));
    const bottom = top + MEMORY;
    const name = this.name("memory", top);
    const says = s("text", { class: "row-name", x: 8, y: top + 26 }, peak === 0 ? "none" : `≤ ${bytes(peak)}`);
    if (peak === 0) return [name, says];
    const clamp = (us: number): string => Math.min(Math.max(this.xOf(us), this.label), this.width - 8).toFixed(1);
    const path = memory
      .map(([us, live]) => `H${clamp(us)}V${(bottom - (live / peak) * (MEMORY - 4)).toFixed(1)}`)
      .join("");
    return [
      name,
      says,
      s("path", { class: "held", d: `M${this.label} ${bottom}${path}H${this.width - 8}V${bottom}Z` }),
    ];
  }

  /** Draws the lifetimes of buffers, each in the color of the kernel that wrote it. */
  private drawLanes(top: number): { drawn: SVGElement[]; height: number } {
    const lives = this.figure.lives.flatMap((life) => (life.lane === null ? [] : { ...life, lane: life.lane }));
    const { trace } = this.store.index;
    const lanes = lives.reduce((most, { lane }) => Math.max(most, lane + 1), 0);
    if (lanes === 0) return { drawn: [], height: 0 };
    const visibleLives = lives.filter(
      ({ lane, started_us: us, ended_us: end }) => lane < MOST_LANES && end >= this.from && us <= this.to,
    );
    const drawn = visibleLives.map(({ buffer, name, bytes: size, started_us: us, ended_us: end, lane }) => {
      const { maker } = trace.buffers[buffer];
      const [left, right] = [Math.max(this.xOf(us), this.label), Math.min(this.xOf(end), this.width - 8)];
      const says = `${name}: ${bytes(size)}, for ${duration(end - us)}`;
      const box = { x: left, y: top + lane * LANE, width: Math.max(2, right - left), height: LANE - 2, rx: 2 };
      return s(
        "g",
        {
          class: `span buffer-span ${maker === null ? "stage" : kernelClass(maker)}`,
          "data-kernel": maker,
          "data-says": says,
        },
        s("title", {}, says),
        s("rect", box),
      );
    });
    const left = lanes - MOST_LANES;
    const more = left > 0 ? [s("text", { class: "row-name", x: 8, y: top + 26 }, `+ ${count(left, "row")}`)] : [];
    return {
      drawn: [this.name("buffers", top), ...drawn, ...more],
      height: Math.max(Math.min(lanes, MOST_LANES) * LANE, left > 0 ? 30 : 16) + 2,
    };
  }

  private drawTicks(bottom: number): SVGElement[] {
    const length = this.to - this.from;
    const step = chooseTickStep(length, Math.max(2, Math.floor((this.width - this.label) / 110)));
    const elements: SVGElement[] = [];
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = this.xOf(time);
      elements.push(
        s("path", { class: "grid", d: `M${x} 2V${bottom + 3}` }),
        s("text", { x, y: bottom + 15, "text-anchor": x > this.width - 24 ? "end" : "middle" }, tickWords(time, step)),
      );
    }
    return elements;
  }

  private mark(): void {
    const { index, cursor, related, hovered } = this.store;
    const kernels = (nodes: Set<number>): Set<number | undefined> =>
      new Set([...nodes].map((id) => index.kernelOf.get(id)));
    const [lit, pointed] = [kernels(related), kernels(hovered)];
    for (const span of this.svg.querySelectorAll<SVGGElement>(".span")) {
      const kernel = span.dataset.kernel === undefined ? null : Number(span.dataset.kernel);
      span.classList.toggle("on", kernel !== null && kernel === cursor.kernel && span.dataset.stage === undefined);
      span.classList.toggle("lit", kernel !== null && lit.has(kernel));
      span.classList.toggle("hov", kernel !== null && pointed.has(kernel));
    }
  }

  private listen(): void {
    const { store, svg } = this;
    let drag: { px: number; from: number; moved: boolean } | null = null;
    const spanAt = (event: Event): SVGGElement | null => (event.target as Element).closest<SVGGElement>(".span");
    svg.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls
        event.preventDefault();
        this.zoom((this.timeAt(event) - this.from) / (this.to - this.from), Math.exp(event.deltaY * 0.0022));
      },
      { passive: false },
    );
    svg.addEventListener(
      "pointerdown",
      (event) => (drag = event.button === 0 ? { px: event.clientX, from: this.from, moved: false } : null),
    );
    svg.addEventListener("pointermove", (event) => {
      this.onPointer(event, spanAt(event));
      if (drag === null) return;
      const dx = event.clientX - drag.px;
      if (!drag.moved && Math.abs(dx) < 4) return;
      if (!drag.moved) svg.setPointerCapture(event.pointerId);
      drag.moved = true;
      const by = (dx / (this.width - this.label - 8)) * (this.to - this.from);
      this.showRange(drag.from - by, drag.from - by + this.to - this.from);
    });
    svg.addEventListener("pointerup", (event) => {
      const isClick = drag !== null && !drag.moved;
      drag = null;
      const span = spanAt(event);
      if (isClick && span !== null) this.choose(span);
    });
    svg.addEventListener("pointercancel", () => (drag = null));
    svg.addEventListener("pointerleave", () => {
      this.tell("");
      this.cursor?.setAttribute("d", "");
      store.hover([]);
    });
    this.element.addEventListener("keydown", (event) => {
      const moves: Record<string, () => void> = {
        "+": () => this.zoom(0.5, 0.5),
        "-": () => this.zoom(0.5, 2),
        "0": () => this.showRange(0, this.end),
      };
      if (moves[event.key] === undefined || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      moves[event.key]();
    });
  }

  /** Shows the span under the pointer, and the memory at that time. */
  private onPointer(event: PointerEvent, span: SVGGElement | null): void {
    const us = this.timeAt(event);
    const x = this.xOf(us).toFixed(1);
    this.cursor?.setAttribute("d", `M${x} 2V${this.svg.getAttribute("height")}`);
    const held = this.figure.memory.findLast(([time]) => time <= us)?.[1] ?? 0;
    this.tell(`${duration(us)} · ${bytes(held)} held${span === null ? "" : ` · ${span.dataset.says}`}`);
    const kernel = span?.dataset.kernel;
    this.store.hover(kernel === undefined ? [] : nodesOfKernel(this.store.index, Number(kernel)));
  }

  private choose(span: SVGGElement): void {
    const { kernel, stage } = span.dataset;
    if (stage !== undefined) this.store.go(placeOf(this.store.index, Number(stage)));
    if (kernel !== undefined) selectKernel(this.store, Number(kernel));
  }
}

/** Creates the control for compile time on the axis: null if there is only compile time, or none. */
export function compileChoice({ index }: Store, on: boolean, change: (on: boolean) => void): HTMLElement | null {
  if (!hasKernelTime(index.trace) || index.trace.stages.length === 0) return null;
  const box = h("input", {
    type: "checkbox",
    checked: on,
    onchange: (event: Event) => change((event.target as HTMLInputElement).checked),
  });
  return h(
    "label",
    {
      class: "compile-time",
      title: "Off: kernel time in execution order. On: elapsed time, with the stages of the compiler",
    },
    box,
    " compile time",
  );
}

/** Returns a time between ticks of `step`, with enough digits to differ from the next. */
function tickWords(us: number, step: number): string {
  if (us === 0) return "0";
  const [unit, size] = us >= 1e6 ? ["s", 1e6] : us >= 1e3 ? ["ms", 1e3] : ["µs", 1];
  const places = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return `${(us / size).toFixed(places)} ${unit}`;
}
