// The roofline: each timed kernel by arithmetic intensity and speed, under the machine's ceilings.

import { makeMeasureButton } from "../rerun_button";
import { h, replaceChildren, s } from "../dom";
import { count, figuresText } from "../format";
import { kernelClass } from "../kernel_labels";
import {
  FLAT_SHARES,
  type LabelPlace,
  SLOPE_SHARES,
  placeLabels,
  type Spot,
  listPlaces,
  spreadDots,
} from "../label_placement";
import type { Roofline, RooflinePoint } from "../model";
import { LogScale } from "../roofline_scale";
import type { Change, Store, View } from "../store";
import { selectKernel, nodesOfKernel } from "../kernel_selection";

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 16, 22, 36];
const RADIUS = 9;
const LEAST_WIDTH = 300;
const NUMBERED = 60; // points; above this number, only selected ones have numbers

export class RooflineView implements View {
  readonly element = h("div", { class: "roofline scroll", tabindex: 0, role: "region", "aria-label": "Roofline" });
  private readonly figure: Roofline | null;
  private readonly sizes = new ResizeObserver(() => this.draw());
  private drawn = "";

  constructor(private readonly store: Store) {
    this.figure = store.index.trace.roofline;
    this.sizes.observe(this.element);
  }

  destroy(): void {
    this.sizes.disconnect();
  }

  update(change: Change): void {
    if (change.cursor || change.selection || change.hover) this.mark();
  }

  private draw(): void {
    const [width, height] = [
      Math.max(LEAST_WIDTH, this.element.clientWidth - 4),
      Math.max(190, this.element.clientHeight - 30),
    ];
    if (this.element.clientWidth === 0 || this.drawn === `${width} ${height}`) return;
    this.drawn = `${width} ${height}`;
    const figure = this.figure;
    if (figure === null || figure.points.length === 0) {
      replaceChildren(
        this.element,
        h("p", { class: "empty" }, "No kernel of this trace that does floating-point arithmetic was timed."),
      );
      return;
    }
    const { points, ceilings } = figure;
    const peaks = ceilings.filter(({ kind }) => kind === "arithmetic").map(({ rate }) => rate);
    const x = new LogScale(
      points.map((point) => point.flops_per_byte),
      LEFT,
      width - RIGHT,
    );
    const y = new LogScale([...points.map(({ gflops }) => gflops), ...peaks], height - BOTTOM, TOP);
    const exact = points.map(
      ({ flops_per_byte: intensity, gflops }) => [x.positionOf(intensity), y.positionOf(gflops)] as const,
    );
    const spots = points.length > NUMBERED ? exact : spreadDots(exact, RADIUS);
    const drawing = s(
      "svg",
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "group",
        "aria-label": `Roofline of ${count(points.length, "kernel")}`,
      },
      ...this.drawAxes(x, y, width, height),
      ...this.drawCeilings(figure, x, y, width, spots),
      ...points
        .map((point, i) => ({ point, spot: spots[i] }))
        .sort((a, b) => b.point.time_us - a.point.time_us)
        .map(({ point, spot }) => this.drawDot(point, spot, points.length)),
    );
    const measure = makeMeasureButton(this.store);
    replaceChildren(this.element, drawing, h("p", { class: "note" }, figure.note, measure && " ", measure));
    this.mark();
  }

  private drawAxes(x: LogScale, y: LogScale, width: number, height: number): SVGElement[] {
    const bottom = height - BOTTOM;
    const word = (text: string, position: object): SVGElement => s("text", { ...position }, text);
    return [
      ...x
        .listTicks(width < 500 ? 5 : 10)
        .flatMap((value) => [
          s("path", { class: "grid", d: `M${x.positionOf(value)} ${TOP}V${bottom}` }),
          word(formatTick(value), { x: x.positionOf(value), y: bottom + 14, "text-anchor": "middle" }),
        ]),
      ...y
        .listTicks(height < 260 ? 5 : 10)
        .flatMap((value) => [
          s("path", { class: "grid", d: `M${LEFT} ${y.positionOf(value)}H${width - RIGHT}` }),
          word(formatTick(value), { x: LEFT - 6, y: y.positionOf(value) + 4, "text-anchor": "end" }),
        ]),
      word("operations for each byte that is moved (FLOP/B)", {
        x: (LEFT + width - RIGHT) / 2,
        y: height - 6,
        "text-anchor": "middle",
      }),
      word("GFLOP/s", { x: 6, y: 13 }),
    ];
  }

  private drawCeilings(figure: Roofline, x: LogScale, y: LogScale, width: number, dots: readonly Spot[]): SVGElement[] {
    const peaks = figure.ceilings.filter(({ kind }) => kind === "arithmetic");
    const top = Math.max(0, ...peaks.map(({ rate }) => rate)) || y.high;
    const lines: SVGElement[] = [];
    const drawn: (readonly [readonly [number, number], readonly [number, number]])[] = [];
    const labels: [text: string, places: LabelPlace[]][] = [];
    for (const { name, rate, kind } of figure.ceilings) {
      const [from, to] = [Math.max(x.low, y.low / rate), Math.min(x.high, top / rate)];
      if (kind !== "memory" || from >= to) continue;
      const [start, end] = [from, to].map((value) => [x.positionOf(value), y.positionOf(value * rate)] as const);
      const text = `${name}: ${figuresText(rate)} GB/s`;
      drawn.push([start, end]);
      lines.push(s("path", { class: "roof slope", d: `M${start.join(" ")}L${end.join(" ")}` }));
      labels.push([text, listPlaces(text, start, end, SLOPE_SHARES)]);
    }
    // slopes are short and have few positions for their labels, so they come first
    for (const { name, rate } of peaks) {
      const roofY = y.positionOf(rate);
      const text = `${name}: ${figuresText(rate)} GFLOP/s`;
      drawn.push([
        [LEFT, roofY],
        [width - RIGHT, roofY],
      ]);
      lines.push(s("path", { class: "roof", d: `M${LEFT} ${roofY}H${width - RIGHT}` }));
      labels.push([text, listPlaces(text, [LEFT + 4, roofY], [width - RIGHT, roofY], FLAT_SHARES)]);
    }
    const places = placeLabels(labels, { points: dots, radius: RADIUS, lines: drawn, top: 8 });
    const texts = labels.map(([text], i) => {
      const [left, down, angle] = places[i];
      const transform = `translate(${left.toFixed(1)} ${down.toFixed(1)}) rotate(${angle.toFixed(1)})`;
      return s("text", { class: "halo", transform, y: 4, "text-anchor": "middle" }, text);
    });
    return [...lines, ...texts];
  }

  private drawDot(point: RooflinePoint, [left, down]: Spot, count: number): SVGElement {
    const { store } = this;
    const isCrowded = count > NUMBERED;
    const choose = (): void => selectKernel(store, point.kernel);
    return s(
      "g",
      {
        class: `dot ${kernelClass(point.kernel)}`,
        transform: `translate(${left.toFixed(1)} ${down.toFixed(1)})`,
        "data-kernel": point.kernel,
        tabindex: 0,
        role: "button",
        "aria-label": point.text,
        onclick: choose,
        onkeydown: (event: KeyboardEvent) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          choose();
        },
        onmouseenter: () => store.hover(nodesOfKernel(store.index, point.kernel)),
        onmouseleave: () => store.hover([]),
      },
      s("title", {}, point.text),
      s("circle", { r: isCrowded ? RADIUS - 3 : RADIUS }),
      s("text", { y: 4, "text-anchor": "middle", class: isCrowded ? "crowded" : null }, String(point.kernel)),
    );
  }

  /** Highlights the selected kernel, and those of selected or hovered nodes. */
  private mark(): void {
    const { index, cursor, related, hovered } = this.store;
    const kernels = (nodes: Set<number>): Set<number | undefined> =>
      new Set([...nodes].map((id) => index.kernelOf.get(id)));
    const [lit, pointed] = [kernels(related), kernels(hovered)];
    for (const dot of this.element.querySelectorAll<SVGGElement>(".dot")) {
      const kernel = Number(dot.dataset.kernel);
      dot.classList.toggle("on", kernel === cursor.kernel);
      dot.classList.toggle("lit", lit.has(kernel));
      dot.classList.toggle("hov", pointed.has(kernel));
      dot.setAttribute("aria-current", String(kernel === cursor.kernel));
    }
  }
}

function formatTick(value: number): string {
  return value >= 1 ? String(value) : `1/${1 / value}`;
}
