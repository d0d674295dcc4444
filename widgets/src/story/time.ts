// Last page: the verdict. Whether the program is fast relative to the machine's limits, and why.

import { type Child, h, replaceChildren, s } from "../dom";
import { count, duration, figuresText, samplesText, sumText, truncate } from "../format";
import { readableName } from "../kernel_labels";
import {
  FLAT_SHARES,
  LETTER,
  type LabelPlace,
  SLOPE_SHARES,
  placeLabels,
  listPlaces,
  spreadDots,
} from "../label_placement";
import type { KernelInfo, RooflineCeiling, RooflinePoint } from "../model";
import type { TraceIndex } from "../trace_index";
import type { Store } from "../store";
import { type VerdictRow, arePending, makeVerdictCard, verdictOn, verdictsOf } from "../verdicts";
import { type Page, bold } from "./page";

const COMING = "The verdict is being computed.";
const MOST_CARDS = 3;
const MOST_NUMBERS = 5; // of a card; the workbench has all
const LEAST_INTENSITY = 0.05; // operations for each byte; below, the roofline says nothing that bars do not
const AGREE = 1.5; // the factor within which the roofline and the verdicts name one share of the limit
const LOW_ROW = 50; // the least height of a kernel's bars
const DOT = 10; // the radius of a kernel's dot

/** Returns the least time of a kernel's work on this machine, in microseconds; null if unknown. */
export function computeLeastTime({ trace }: TraceIndex, { id, flops, bytes_moved: moved }: KernelInfo): number | null {
  const roof = trace.roofs.find((row) => row.kernel === id);
  if (roof === undefined) return null;
  const arithmetic = roof.gflops > 0 ? flops / roof.gflops / 1e3 : 0;
  const memory = roof.gb_per_s > 0 ? moved / roof.gb_per_s / 1e3 : 0;
  return Math.max(arithmetic, memory) || null;
}

/** Returns the time of launching the smallest kernel, in microseconds. */
export function launchTime({ trace }: TraceIndex): number | null {
  return trace.ceilings.find(({ kind }) => kind === "launch")?.rate ?? null;
}

interface Timed {
  kernel: KernelInfo;
  us: number;
  least: number | null;
}

export class TimePage implements Page {
  readonly element = h("div", { class: "story-time" });
  readonly beat = 2600;
  private readonly timed: Timed[];
  private readonly bar = h("div", { class: "time-bar" });
  private readonly picture = h("div", { class: "time-picture" });
  private readonly cards = h("div", { class: "time-cards" });
  private step = 0;
  private readonly sizes = new ResizeObserver(() => this.drawPicture());

  /** `changed`: called when the verdicts arrive. */
  constructor(
    private readonly store: Store,
    private readonly changed: () => void,
  ) {
    const { index } = store;
    this.timed = index.trace.kernels.flatMap((kernel) => {
      const us = index.runOf(kernel.id)?.median_us;
      return us === undefined ? [] : [{ kernel, us, least: computeLeastTime(index, kernel) }];
    });
    this.element.append(this.bar, this.picture, this.cards);
    this.drawBar();
    this.drawCards();
    this.sizes.observe(this.picture);
  }

  /** The slowest kernels, in execution order. */
  private get visibleKernels(): Timed[] {
    const slow = [...this.timed].sort((a, b) => b.us - a.us).slice(0, MOST_CARDS);
    return this.timed.filter((timed) => slow.includes(timed));
  }

  get count(): number {
    return 1 + (this.timed.length > 1 ? this.visibleKernels.length : 0);
  }

  /** The statistic of the times: "medians". */
  private get statistic(): string {
    const runs = this.timed.map(({ kernel }) => this.store.index.runOf(kernel.id)!);
    return this.timed.length === 1 && runs[0].warm ? "the median" : sumText(runs);
  }

  private findVerdict(kernel: number): VerdictRow | undefined {
    return verdictOn(this.findVerdicts(), kernel);
  }

  private findVerdicts(): ReturnType<typeof verdictsOf> {
    return verdictsOf(this.store, () => {
      if (!this.element.isConnected) return;
      this.drawBar();
      this.drawCards();
      this.drawPicture();
      this.changed();
    });
  }

  /** The statistic as a heading: "Median time" for samples. */
  private get timeWord(): string {
    return this.timed.every(({ kernel }) => this.store.index.runOf(kernel.id)!.warm) ? "Median time" : "Time";
  }

  private drawBar(): void {
    const total = this.timed.reduce((sum, { us }) => sum + us, 0);
    const launch = launchTime(this.store.index);
    const parts = this.timed.flatMap(({ kernel, us }) => {
      const start = launch === null ? 0 : Math.min(launch, us);
      const isNamed = start / total > 0.12; // then the launch has its own number beside it
      const name = `${readableName(kernel)} ${duration(isNamed ? us - start : us)}`;
      const tone = this.findVerdict(kernel.id)?.tone ?? "none";
      const begin =
        start / total > 0.015
          ? [
              h(
                "span",
                { class: "launch", style: `flex-grow:${start}`, title: `launch ${duration(start)}` },
                isNamed ? `launch ${figuresText(start)}` : "",
              ),
            ]
          : [];
      return [
        ...begin,
        h(
          "span",
          {
            class: `work tone-${tone}`,
            style: `flex-grow:${Math.max(us - start, total / 400)}`,
            title: `kernel ${kernel.id} · ${name}`,
          },
          us / total > 0.08 ? name : "",
        ),
      ];
    });
    replaceChildren(
      this.bar,
      ...parts,
      this.timed.length === 0 ? null : h("b", { title: this.statistic }, duration(total)),
    );
  }

  private drawCards(): void {
    const cards = this.visibleKernels.map(({ kernel, us }) => {
      const verdict = this.findVerdict(kernel.id);
      const run = this.store.index.runOf(kernel.id)!;
      return h(
        "section",
        { class: `time-card tone-${verdict?.tone ?? "none"}`, "data-kernel": kernel.id },
        h(
          "h3",
          {},
          h("span", { title: readableName(kernel) }, truncate(readableName(kernel), 40)),
          h("b", {}, duration(us)),
        ),
        h("p", { class: "code-name" }, `kernel ${kernel.id} · ${kernel.name}`),
        verdict === undefined
          ? h("p", {}, arePending(this.store) ? COMING : "No verdict: there are too few samples, or no ceilings.")
          : makeVerdictCard(this.store, { ...verdict, evidence: verdict.evidence.slice(0, MOST_NUMBERS), missing: [] }),
        h("p", { class: "faint" }, run.warm ? `median of ${samplesText(run)}` : samplesText(run)),
      );
    });
    const hiddenCount = this.timed.length - cards.length;
    replaceChildren(
      this.cards,
      ...cards,
      hiddenCount > 0 ? h("p", { class: "faint rest" }, `and ${count(hiddenCount, "shorter kernel")}`) : null,
    );
    this.cards.dataset.count = String(cards.length);
    this.mark();
  }

  private mark(): void {
    const chosen = this.step === 0 ? undefined : this.visibleKernels[this.step - 1]?.kernel.id;
    for (const card of this.cards.querySelectorAll<HTMLElement>(".time-card"))
      card.classList.toggle("on", chosen !== undefined && Number(card.dataset.kernel) === chosen);
    for (const mark of this.picture.querySelectorAll<SVGElement>("[data-kernel]"))
      mark.classList.toggle("on", chosen !== undefined && Number(mark.dataset.kernel) === chosen);
  }

  show(step: number): void {
    this.step = step;
    this.mark();
  }

  private drawPicture(): void {
    const [width, height] = [this.picture.clientWidth, this.picture.clientHeight];
    if (width < 60 || height < 60) return;
    const { points, ceilings: lines } = this.store.index.trace.roofline ?? { points: [], ceilings: [] };
    const drawn = this.isRoofline(points, lines)
      ? this.drawRoofline(points, lines, width, height)
      : this.drawBars(width, height);
    replaceChildren(this.picture, ...drawn);
    this.mark();
  }

  /** Whether every kernel has a point, and no point contradicts its verdict: that counts the operations executed. */
  private isRoofline(points: readonly RooflinePoint[], lines: readonly RooflineCeiling[]): boolean {
    if (points.length !== this.timed.length || points.length === 0 || lines.length === 0) return false;
    return points.every(({ kernel, flops_per_byte: intensity, gflops, attainable }) => {
      const share = this.findVerdict(kernel)?.share ?? null;
      if (intensity < LEAST_INTENSITY) return false;
      if (share === null || attainable === null || this.findVerdict(kernel)?.kind === "launch overhead") return true;
      const factor = gflops / attainable / share;
      return factor < AGREE && factor > 1 / AGREE;
    });
  }

  /** Returns bars with the time of each kernel and the least time on the machine. */
  private drawBars(width: number, height: number): Element[] {
    const longest = Math.max(...this.timed.map(({ us }) => us), 1e-9);
    const slowest = [...this.timed]
      .sort((a, b) => b.us - a.us)
      .slice(0, Math.max(1, Math.floor((height - 44) / LOW_ROW)));
    const tall = Math.max(LOW_ROW, Math.min(92, (height - 44) / slowest.length)); // of a row
    const [first, second] = [13, 9].map((share) => Math.round((share * tall) / 58)); // heights of its bars
    const rows = slowest.flatMap(({ kernel, us, least: roof }, i) => {
      const share = this.findVerdict(kernel.id)?.share ?? null;
      const leastUs = share === null ? roof : Math.min(share, 1) * us; // the verdict's limit, where there is one
      const y = 36 + i * tall;
      const room = width - 96;
      const bar = (value: number): number => Math.max(2, (value / longest) * room);
      return [
        s("text", { class: "strong", x: 0, y }, truncate(readableName(kernel), Math.floor(width / 8))),
        s("rect", {
          class: "bar-time",
          "data-kernel": kernel.id,
          x: 0,
          y: y + 7,
          width: bar(us),
          height: first,
          rx: 3,
        }),
        s("text", { class: "small", x: bar(us) + 7, y: y + 11 + first / 2 }, duration(us)),
        ...(leastUs === null
          ? []
          : [
              s("rect", { class: "bar-least", x: 0, y: y + 10 + first, width: bar(leastUs), height: second, rx: 3 }),
              s(
                "text",
                { class: "small", x: bar(leastUs) + 7, y: y + 14 + first + second / 2 },
                `least ${duration(leastUs)}`,
              ),
            ]),
      ];
    });
    const what = slowest.some(({ least }) => least !== null)
      ? `${this.timeWord} compared with the machine's limit`
      : `${this.timeWord} of each kernel`;
    return [
      s(
        "svg",
        { width, height, role: "img", "aria-label": what },
        s("text", { class: "strong", x: 0, y: 14 }, what),
        ...rows,
      ),
    ];
  }

  private drawRoofline(
    points: readonly RooflinePoint[],
    lines: readonly RooflineCeiling[],
    width: number,
    height: number,
  ): Element[] {
    const [left, right, top, bottom] = [46, 12, 44, 34];
    const peaks = lines.filter(({ kind }) => kind === "arithmetic").map(({ rate }) => rate);
    const slopes = lines.filter(({ kind }) => kind === "memory");
    const peak = Math.max(...peaks, ...points.map(({ gflops }) => gflops));
    const ridge = slopes.length === 0 ? 1 : peak / Math.min(...slopes.map(({ rate }) => rate));
    const log = Math.log10;
    const xs = [...points.map((point) => point.flops_per_byte), ridge];
    const [x0, x1] = [log(Math.min(...xs)) - 0.5, log(Math.max(...xs)) + 0.5];
    const [y0, y1] = [
      Math.min(log(Math.min(...points.map(({ gflops }) => gflops))) - 0.5, log(peak) - 1.5),
      log(peak) + 0.35,
    ];
    const x = (value: number): number => left + ((log(value) - x0) / (x1 - x0)) * (width - left - right);
    const y = (value: number): number => height - bottom - ((log(value) - y0) / (y1 - y0)) * (height - top - bottom);
    const marks: Element[] = [];
    for (let power = Math.ceil(y0); power <= y1; power += 1) {
      const lineY = y(10 ** power);
      marks.push(
        s("path", { class: "grid-line", d: `M${left} ${lineY}H${width - right}` }),
        s("text", { class: "small", x: left - 6, y: lineY + 4, "text-anchor": "end" }, figuresText(10 ** power)),
      );
    }
    for (let power = Math.ceil(x0 * 1); power <= x1; power += 1)
      marks.push(
        s(
          "text",
          { class: "small", x: x(10 ** power), y: height - bottom + 16, "text-anchor": "middle" },
          figuresText(10 ** power),
        ),
      );
    const roofs: Element[] = [];
    const drawn: (readonly [readonly [number, number], readonly [number, number]])[] = [];
    const labels: [text: string, places: LabelPlace[]][] = [];
    slopes.forEach(({ name, rate }, i) => {
      const end = Math.min(10 ** x1, peak / rate);
      const begin = Math.max(10 ** x0, 10 ** y0 / rate);
      if (begin >= end) return;
      const [from, to] = [begin, end].map((value) => [x(value), y(value * rate)] as const);
      const text = `${name} ${figuresText(rate)} GB/s`;
      drawn.push([from, to]);
      roofs.push(s("path", { class: `roof-line${i > 0 ? " dashed" : ""}`, d: `M${from.join(" ")}L${to.join(" ")}` }));
      labels.push([text, listPlaces(text, from, to, SLOPE_SHARES)]);
    });
    for (const { name, rate, kind } of lines) {
      if (kind !== "arithmetic") continue;
      const from = Math.max(left, x(rate / Math.max(1e-9, ...slopes.map((ceiling) => ceiling.rate))));
      const text = `${name} ${figuresText(rate)} GFLOP/s`;
      drawn.push([
        [from, y(rate)],
        [width - right, y(rate)],
      ]);
      roofs.push(s("path", { class: "roof-line", d: `M${from} ${y(rate)}H${width - right}` }));
      const shares = [...FLAT_SHARES].reverse();
      labels.push([text, listPlaces(text, [left, y(rate)], [width - right, y(rate)], [1, ...shares])]);
    }
    const spots = spreadDots(
      points.map((point) => [x(point.flops_per_byte), y(point.gflops)] as const),
      DOT,
    );
    points.forEach((point, i) => {
      const [cx, cy] = spots[i];
      const text = dotWords(this.store.index, point);
      const beside = 17 + (text.length * LETTER) / 2;
      const all = [
        [cx + beside, cy],
        [cx - beside, cy],
        [cx, cy + 22],
        [cx, cy - 20],
      ];
      const inside = all.filter(([x]) => x - beside > left - 14 && x + beside < width + 14);
      labels.push([text, (inside.length > 0 ? inside : all).map(([labelX, down]): LabelPlace => [labelX, down, 0])]);
    });
    const many = points.length > 6 ? labels.length - points.length : labels.length;
    const texts = placeLabels(labels.slice(0, many), { points: spots, lines: drawn, top: 40 }).map(
      ([labelX, down, angle], i) => {
        const transform = `translate(${labelX.toFixed(1)} ${down.toFixed(1)}) rotate(${angle.toFixed(1)})`;
        return s("text", { class: "small halo", transform, y: 4, "text-anchor": "middle" }, labels[i][0]);
      },
    );
    const dots = points
      .map((point, i) => ({ point, spot: spots[i] }))
      .sort((a, b) => a.point.time_us - b.point.time_us)
      .map(({ point: { kernel, gflops, attainable }, spot: [cx, cy] }) => {
        const name = readableName(this.store.index.trace.kernels[kernel]);
        const gap = attainable === null ? null : s("path", { class: "gap", d: `M${cx} ${cy - DOT}V${y(attainable)}` });
        return s(
          "g",
          { class: `roof-dot tone-${this.findVerdict(kernel)?.tone ?? "none"}`, "data-kernel": kernel },
          s("title", {}, `${name}: ${figuresText(gflops)} GFLOP/s`),
          gap,
          s("circle", { cx, cy, r: DOT }),
          s("text", { class: "dot-number", x: cx, y: cy + 4, "text-anchor": "middle" }, String(kernel)),
        );
      });
    return [
      s(
        "svg",
        { width, height, role: "img", "aria-label": "Roofline: the distance of each kernel from the machine's limit" },
        s(
          "text",
          { class: "strong", x: 0, y: 14 },
          `Distance from the machine's limit, at the ${this.timeWord.toLowerCase()}`,
        ),
        s("text", { class: "small", x: 0, y: 32 }, "GFLOP/s"),
        ...marks,
        ...roofs,
        ...dots,
        ...texts,
        s(
          "text",
          { class: "small", x: width - right, y: height - 3, "text-anchor": "end" },
          "operations for each byte moved",
        ),
      ),
    ];
  }

  head(step: number): Child[] {
    const { index } = this.store;
    const verdicts = this.findVerdicts();
    const chosen =
      step === 0 ? (verdicts?.whole ?? undefined) : this.findVerdict(this.visibleKernels[step - 1].kernel.id);
    if (chosen !== undefined) {
      const end = chosen.text.indexOf(". ");
      if (end < 0) return [bold(chosen.text)];
      return [bold(chosen.text.slice(0, end + 1)), chosen.text.slice(end + 1)];
    }
    if (this.timed.length === 0) {
      const reason = index.trace.kernels.map(({ not_run: text }) => text).find((text) => text !== "");
      return [bold("This program has no times. "), reason ?? "The kernels did not run here."];
    }
    const total = this.timed.reduce((sum, { us }) => sum + us, 0);
    const slow = this.timed.reduce((best, timed) => (timed.us > best.us ? timed : best));
    const share =
      this.timed.length > 1 ? ` ${Math.round((slow.us / total) * 100)} % of it in ${readableName(slow.kernel)}.` : "";
    return [
      bold(
        `${this.timed.length === 1 ? "The kernel takes" : `The ${this.timed.length} kernels take`} ${duration(total)}`,
      ),
      `, ${this.statistic}.${share}`,
    ];
  }

  caption(step: number): string {
    return step === 0 ? "this program" : truncate(readableName(this.visibleKernels[step - 1].kernel), 28);
  }

  destroy(): void {
    this.sizes.disconnect();
  }
}

/** Returns the label of a dot: "x @ w: 12.3". */
function dotWords({ trace }: TraceIndex, { kernel, gflops }: RooflinePoint): string {
  return `${truncate(readableName(trace.kernels[kernel]), 18)}: ${figuresText(gflops)}`;
}
