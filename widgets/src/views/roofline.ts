// The roofline: each timed kernel by what it does with a byte and how fast, under the machine's ceilings.

import { measureButton } from "../again";
import { h, replaceChildren, s } from "../dom";
import { count, figures } from "../format";
import { kernelClass } from "../kernels";
import type { Roofline, RooflineCeiling, RooflinePoint } from "../model";
import { Scale } from "../roofline";
import type { Change, Store, View } from "../store";
import { chooseKernel, nodesOfKernel } from "../choosing";

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 16, 22, 36];
const RADIUS = 9;
const LEAST_WIDTH = 300;
const NUMBERED = 60; // points; of more, only those that are chosen bear numbers

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
    const x = new Scale(
      points.map((point) => point.flops_per_byte),
      LEFT,
      width - RIGHT,
    );
    const y = new Scale([...points.map(({ gflops }) => gflops), ...peaks], height - BOTTOM, TOP);
    const drawing = s(
      "svg",
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "group",
        "aria-label": `Roofline of ${count(points.length, "kernel")}`,
      },
      ...this.axes(x, y, width, height),
      ...this.ceilings(ceilings, x, y, width),
      ...[...points].sort((a, b) => b.time_us - a.time_us).map((point) => this.dot(point, x, y, points.length)),
    );
    const measure = measureButton(this.store);
    replaceChildren(this.element, drawing, h("p", { class: "note" }, figure.note, measure && " ", measure));
    this.mark();
  }

  private axes(x: Scale, y: Scale, width: number, height: number): SVGElement[] {
    const bottom = height - BOTTOM;
    const word = (text: string, at: object): SVGElement => s("text", { ...at }, text);
    return [
      ...x
        .ticks(width < 500 ? 5 : 10)
        .flatMap((value) => [
          s("path", { class: "grid", d: `M${x.at(value)} ${TOP}V${bottom}` }),
          word(tick(value), { x: x.at(value), y: bottom + 14, "text-anchor": "middle" }),
        ]),
      ...y
        .ticks(height < 260 ? 5 : 10)
        .flatMap((value) => [
          s("path", { class: "grid", d: `M${LEFT} ${y.at(value)}H${width - RIGHT}` }),
          word(tick(value), { x: LEFT - 6, y: y.at(value) + 4, "text-anchor": "end" }),
        ]),
      word("operations for each byte that is moved (FLOP/B)", {
        x: (LEFT + width - RIGHT) / 2,
        y: height - 6,
        "text-anchor": "middle",
      }),
      word("GFLOP/s", { x: 6, y: 13 }),
    ];
  }

  private ceilings(lines: readonly RooflineCeiling[], x: Scale, y: Scale, width: number): SVGElement[] {
    const peaks = lines.filter(({ kind }) => kind === "arithmetic");
    const top = Math.max(0, ...peaks.map(({ rate }) => rate)) || y.high;
    const flat = peaks.map(({ name, rate }) => [
      s("path", { class: "roof", d: `M${LEFT} ${y.at(rate)}H${width - RIGHT}` }),
      s("text", { class: "halo", x: LEFT + 8, y: y.at(rate) - 5 }, `${name}: ${figures(rate)} GFLOP/s`),
    ]);
    const slopes = lines
      .filter(({ kind }) => kind === "memory")
      .map(({ name, rate }, i) => {
        const [from, to] = [Math.max(x.low, y.low / rate), Math.min(x.high, top / rate)];
        if (from >= to) return [];
        const [x0, y0, x1, y1] = [x.at(from), y.at(from * rate), x.at(to), y.at(to * rate)];
        const angle = (Math.atan2(y1 - y0, x1 - x0) * 180) / Math.PI;
        const share = 0.34 + 0.14 * i; // not one above the other
        const place = `translate(${x0 + (x1 - x0) * share} ${y0 + (y1 - y0) * share}) rotate(${angle})`;
        return [
          s("path", { class: "roof slope", d: `M${x0} ${y0}L${x1} ${y1}` }),
          s(
            "text",
            { class: "halo", transform: place, y: -5, "text-anchor": "middle" },
            `${name}: ${figures(rate)} GB/s`,
          ),
        ];
      });
    return [...flat, ...slopes].flat();
  }

  private dot(point: RooflinePoint, x: Scale, y: Scale, count: number): SVGElement {
    const { store } = this;
    const isCrowded = count > NUMBERED;
    const choose = (): void => chooseKernel(store, point.kernel);
    return s(
      "g",
      {
        class: `dot ${kernelClass(point.kernel)}`,
        transform: `translate(${x.at(point.flops_per_byte).toFixed(1)} ${y.at(point.gflops).toFixed(1)})`,
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

  /** The chosen kernel, and those of which something is selected or pointed at. */
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

function tick(value: number): string {
  return value >= 1 ? String(value) : `1/${1 / value}`;
}
