// Fourth page: the loop nest of the slowest kernel, opt by opt, with the time of each.

import { type Child, h, prefersReducedMotion, replaceChildren, s } from "../dom";
import { describeOpt } from "../term_meanings";
import { count, duration, figuresText, groupDigits } from "../format";
import { readableName } from "../kernel_labels";
import type { KernelInfo, NestLine } from "../model";
import type { OptSteps } from "../requests";
import type { Store } from "../store";
import { AXIS_WORDS, nestOf } from "../story_chapters";
import { type Page, bold, code } from "./page";

type Step = OptSteps["steps"][number];

/** Opts that are shown together: all but the last change the time by less than SMALL. */
export interface OptGroup {
  opts: string[];
  step: Step;
}

const SMALL = 0.1;

/**
 * Returns the kernel without opts, then its opts; one that changes the time by less than a tenth is merged with the
 * next.
 */
export function groupOpts(steps: readonly Step[]): OptGroup[] {
  if (steps.length === 0) return [];
  const groups: OptGroup[] = [{ opts: [], step: steps[0] }];
  let waiting: string[] = [];
  let before = steps[0].median_us;
  steps.slice(1).forEach((step, i) => {
    waiting.push(step.opt);
    const isSmall = before !== null && step.median_us !== null && Math.abs(step.median_us / before - 1) < SMALL;
    const isLast = i === steps.length - 2;
    if (isSmall && !isLast) return;
    const last = groups[groups.length - 1];
    if (isSmall && last.opts.length > 0) groups[groups.length - 1] = { opts: [...last.opts, ...waiting], step };
    else groups.push({ opts: waiting, step });
    waiting = [];
    before = step.median_us ?? before;
  });
  return groups;
}

/** The part of the output that one iteration of the reduction computes, after some opts. */
export interface Tile {
  rows: number;
  columns: number;
  /** The rows of the output and of the tile. */
  tileRows: number;
  tileColumns: number;
  lanes: number;
  /** The number of further outputs of this size. */
  others: number;
  threads: boolean;
}

export function tileOf(axes: Step["axes"], opts: readonly string[]): Tile | null {
  const outputs = axes.flatMap(([name, kind, size]) => {
    const id = /\d+$/.exec(name)?.[0];
    return kind === "global" && id !== undefined && typeof size === "number" ? [{ id: Number(id), size }] : [];
  });
  if (outputs.length === 0) return null;
  const width = new Map<number, number>();
  let lanes = 1;
  let threads = false;
  for (const opt of opts) {
    const [, name, axis, amount] = /^(\w+)\((\d+)(?:, (\d+))?\)/.exec(opt) ?? [];
    if (name === "THREAD") threads = true;
    if (!["VECTOR", "UPCAST", "LOCAL"].includes(name) || amount === undefined) continue;
    const id = Number(axis);
    if (!outputs.some((output) => output.id === id)) continue;
    width.set(id, (width.get(id) ?? 1) * Number(amount));
    if (name === "VECTOR") lanes = Number(amount);
  }
  const [row, column] = outputs.length === 1 ? [null, outputs[0]] : outputs.slice(-2);
  const of = (axis: { id: number; size: number } | null): [number, number] =>
    axis === null ? [1, 1] : [axis.size, Math.min(axis.size, width.get(axis.id) ?? 1)];
  const [rows, tileRows] = of(row);
  const [columns, tileColumns] = of(column);
  const others = outputs.slice(0, -2).reduce((all, output) => all * output.size, 1);
  return { rows, columns, tileRows, tileColumns, lanes: Math.min(lanes, tileColumns), others, threads };
}

/** Returns an opt as a sentence for first-time readers. */
export function optWords(opt: string): string {
  const [, name, , amount = ""] = /^(\w+)\((\d+)(?:, (\d+))?\)/.exec(opt) ?? [];
  switch (name) {
    case "VECTOR":
      return `${amount} neighbors in one vector register`;
    case "UPCAST":
      return `${amount} steps written out: they share loads`;
    case "UNROLL":
      return `${amount} steps of the sum written out`;
    case "THREAD":
      return "the steps are divided among the cores";
    case "STAGE":
      return "an operand is copied into scratch memory first";
    case "LOCAL":
      return `blocks of ${amount} steps; on a GPU, a work-group`;
    default:
      return describeOpt(opt).replace(`${opt}: `, "").split(/[.;]/)[0];
  }
}

interface Row {
  key: string;
  depth: number;
  text: string;
  kind: string;
}

/** Returns the lines of a nest with keys that stay equal from step to step. */
export function addKeys(nest: readonly Pick<NestLine, "depth" | "text" | "kind">[]): Row[] {
  const counts = new Map<string, number>();
  return nest.map(({ depth, text, kind }) => {
    const name =
      kind === "" ? `= ${/^(\w+)/.exec(text)?.[1] ?? ""}` : `${kind} ${/^for (\w+)/.exec(text)?.[1] ?? text}`;
    const times = (counts.get(name) ?? 0) + 1;
    counts.set(name, times);
    return { key: `${name} ${times}`, depth, text, kind };
  });
}

export class LoopsPage implements Page {
  readonly element = h("div", { class: "story-loops" });
  readonly beat = 2400;
  private readonly cards = h("div", { class: "opts" });
  private readonly nest = h("div", {
    class: "nest-rows",
    tabindex: 0,
    role: "group",
    "aria-label": "Loops of the kernel",
  });
  private readonly picture = s("svg", { class: "tile", role: "img", "aria-label": "No tile" });
  private readonly rows = new Map<string, HTMLElement>();
  private groups: OptGroup[] = [];
  private step = 0;
  private frame = 0;
  private isWaiting = false;
  private readonly sizes = new ResizeObserver(() => this.draw(0));

  /** `changed`: called with a new number of steps. */
  constructor(
    private readonly store: Store,
    private readonly kernel: KernelInfo,
    private readonly changed: () => void,
  ) {
    this.element.append(this.cards, this.nest, h("div", { class: "tile-side" }, this.picture));
    this.take(this.findStored() ?? this.makePlainSteps());
    void this.ask();
    this.sizes.observe(this.nest);
  }

  private get owner(): number {
    return this.kernel.same_as ?? this.kernel.id;
  }

  private findStored(): OptSteps | undefined {
    const { responses } = this.store;
    const kernel = this.owner;
    const timed = responses.get({ ask: "opt steps", kernel, timed: true });
    if (timed !== undefined) return timed;
    const stored = responses.get({ ask: "opt steps", kernel, timed: false });
    if (stored === undefined) return undefined;
    const us = this.store.index.runOf(this.kernel.id)?.median_us ?? null; // that of all opts is known
    const steps = stored.steps.map((step, i) => (i < stored.steps.length - 1 ? step : { ...step, median_us: us }));
    return { ...stored, steps };
  }

  /** Returns the final kernel alone, which a trace has without Python. */
  private makePlainSteps(): OptSteps {
    const { index } = this.store;
    const run = index.runOf(this.kernel.id);
    const nest = nestOf(index, this.kernel).map((line) => ({
      touches: [],
      bytes: 0,
      cache: "",
      axis: null,
      size: 0,
      ...line,
    }));
    const step = {
      opt: "",
      nest,
      axes: this.kernel.axes,
      median_us: run?.median_us ?? null,
      low_us: null,
      high_us: null,
      samples: 0,
      note: "",
    };
    return { kernel: this.kernel.id, steps: [step] } as unknown as OptSteps;
  }

  /** Requests the nests, then the times, from Python if available. */
  private async ask(): Promise<void> {
    const { sendRequest, responses } = this.store;
    const kernel = this.owner;
    if (sendRequest === null || responses.get({ ask: "opt steps", kernel, timed: true }) !== undefined) return;
    this.isWaiting = true;
    try {
      this.take(await sendRequest({ ask: "opt steps", kernel }));
      this.take(await sendRequest({ ask: "opt steps", kernel, timed: true }));
    } catch {
      // then the final kernel is shown without the steps
    } finally {
      this.isWaiting = false;
    }
  }

  private take({ steps }: OptSteps): void {
    this.groups = groupOpts(steps);
    this.drawCards();
    if (this.element.isConnected) {
      this.changed();
      this.draw(0);
    }
  }

  get count(): number {
    return Math.max(1, this.groups.length);
  }

  private drawCards(): void {
    const longest = Math.max(...this.groups.map(({ step }) => step.median_us ?? 0));
    const reasons = new Map(
      this.store.index.trace.stages
        .filter(({ kernel }) => kernel === this.owner)
        .flatMap(({ opts }) => opts.map(({ opt, reason }) => [opt, reason] as const)),
    );
    const cards = this.groups.map(({ opts, step }, i) => {
      const us = step.median_us;
      const title = opts.map((opt) => `${opt}: ${reasons.get(opt) ?? ""}`).join("\n");
      const bar =
        us === null
          ? h("span", { class: "time faint" }, this.isWaiting ? "measuring …" : "")
          : h(
              "span",
              { class: "time" },
              h("i", { style: `width:${Math.max(2, (us / longest) * 100)}px` }),
              duration(us),
            );
      const words =
        opts.length === 0
          ? [this.groups.length > 1 ? "as written: one element at a time" : "as it runs"]
          : opts.map(optWords);
      const name =
        opts.length === 0 ? (this.groups.length > 1 ? "no opts" : readableName(this.kernel)) : opts.join(" ");
      return h(
        "button",
        { type: "button", class: "opt-card", title, onclick: () => this.store.select([]), "data-step": i },
        h("b", {}, name),
        h("span", {}, words.join("; ")),
        bar,
      );
    });
    const timed = this.groups.find(({ step }) => step.samples > 0);
    const note =
      timed === undefined
        ? this.makeUntimedNote()
        : h(
            "p",
            { class: "faint" },
            `Each time is the median of ${timed.step.samples} samples, measured in a separate process.`,
          );
    replaceChildren(this.cards, ...cards, note);
    this.mark();
  }

  /** How a page gets the times of the kernel before its last opt. */
  private makeUntimedNote(): HTMLElement | null {
    if (this.groups.length < 2 || this.isWaiting || this.store.sendRequest !== null) return null;
    const call = `view.kernels[${this.kernel.id}].opt_steps()`;
    return h("p", { class: "faint" }, "Times of all steps: call ", code(call), " before you save the page.");
  }

  private mark(): void {
    this.cards.querySelectorAll(".opt-card").forEach((card, i) => {
      card.classList.toggle("on", i === this.step && this.groups.length > 1);
      if (i === this.step) card.setAttribute("aria-current", "step");
      else card.removeAttribute("aria-current");
    });
    const on = this.cards.querySelector<HTMLElement>(".opt-card.on");
    if (on !== null) this.cards.scrollTop = Math.max(0, on.offsetTop - this.cards.clientHeight / 2);
  }

  show(step: number, ms: number): void {
    this.step = Math.min(step, this.count - 1);
    this.mark();
    this.draw(ms);
  }

  private draw(ms: number): void {
    if (this.nest.clientHeight === 0) return;
    const { index } = this.store;
    const now = addKeys(this.groups[this.step].step.nest);
    const previous = this.step > 0 ? addKeys(this.groups[this.step - 1].step.nest) : [];
    const texts = new Map(previous.map((row) => [row.key, row.text]));
    const tall = Math.max(19, Math.min(31, (this.nest.clientHeight - 14) / Math.max(1, now.length)));
    const deepest = Math.max(...now.map(({ depth }) => depth));
    const indent = Math.min(16, Math.max(7, (this.nest.clientWidth * 0.22) / Math.max(1, deepest)));
    const isQuick = ms === 0 || prefersReducedMotion();
    this.nest.classList.toggle("no-motion", isQuick);
    this.nest.classList.toggle("is-dense", tall < 25);
    const present = new Set<string>();
    now.forEach(({ key, depth, text, kind }, i) => {
      present.add(key);
      const isNew = this.step > 0 && texts.get(key) !== text;
      let row = this.rows.get(key);
      if (row === undefined) {
        row = h("div", { class: "nest-row" });
        row.style.transform = `translateY(${7 + (i + 0.4) * tall}px)`;
        row.style.opacity = "0";
        this.nest.append(row);
        this.rows.set(key, row);
        void row.offsetWidth; // the animation starts from there
      }
      const namedText = index.withNames(text, this.owner);
      replaceChildren(
        row,
        h("span", { class: "text", title: namedText }, ...colorText(namedText)),
        kind === "" ? null : h("span", { class: `axis-tag axis-${kind}`, title: AXIS_WORDS[kind] ?? "" }, kind),
      );
      row.style.height = `${tall}px`;
      row.style.paddingLeft = `${12 + depth * indent}px`;
      row.style.transform = `translateY(${7 + i * tall}px)`;
      row.style.opacity = "1";
      row.classList.toggle("new", isNew);
    });
    for (const [key, row] of this.rows) {
      if (present.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    this.drawTile(isQuick ? 0 : ms);
  }

  private drawTile(ms: number): void {
    cancelAnimationFrame(this.frame);
    const opts = this.groups.slice(0, this.step + 1).flatMap((group) => group.opts);
    const first = this.groups[0];
    const tile = tileOf(first.step.axes, this.groups.length > 1 ? opts : this.kernel.opts);
    if (tile === null || this.groups.length < 2) {
      this.picture.setAttribute("aria-label", "No tile");
      return replaceChildren(this.picture);
    }
    const { columns, rows } = tile;
    const height = this.picture.parentElement?.clientHeight ?? 0;
    const [room, tallest] = [176, Math.max(60, Math.min(300, height - 96))];
    const ratio = Math.max(0.12, Math.min(6, rows / columns));
    const w = Math.min(room, tallest / ratio);
    const tall = w * ratio;
    const [x, y] = [26, 40];
    this.picture.setAttribute("width", "212");
    this.picture.setAttribute("height", String(y + tall + 54));
    const words = `${groupDigits(tile.tileRows * tile.tileColumns)} element${tile.tileRows * tile.tileColumns === 1 ? "" : "s"} at a time`;
    this.picture.setAttribute("aria-label", `Output of ${rows} by ${columns}: ${words}`);
    const [stepW, stepH] = [(w * tile.tileColumns) / columns, (tall * tile.tileRows) / rows];
    const [tileW, tileH] = [Math.max(2, stepW), Math.max(2, stepH)]; // a smaller box would be invisible
    const [across, down] = [Math.ceil(columns / tile.tileColumns), Math.ceil(rows / tile.tileRows)];
    const done = s("path", { class: "done" });
    const box = s("rect", { class: "now", width: tileW, height: tileH });
    const lanes = s("path", { class: "lanes", d: drawLaneLines(tile, tileW, tileH) });
    const put = (index: number): void => {
      const [row, column] = [Math.floor(index / across), index % across];
      const [left, top] = [x + Math.min(w - tileW, column * stepW), y + Math.min(tall - tileH, row * stepH)];
      for (const layer of [box, lanes]) layer.setAttribute("transform", `translate(${left} ${top})`);
      done.setAttribute(
        "d",
        `M${x} ${y}h${w}v${Math.min(tall, row * stepH)}h${-w}z M${x} ${y + row * stepH}h${Math.min(w, column * stepW)}v${Math.min(stepH, tall - row * stepH)}h${-Math.min(w, column * stepW)}z`,
      );
    };
    const many = tile.others > 1 ? `${groupDigits(tile.others)} × ` : "";
    replaceChildren(
      this.picture,
      s("text", { class: "strong", x, y: 14 }, `Output: ${many}${groupDigits(rows)} × ${groupDigits(columns)}`),
      s("text", { class: "small mono", x: x + w / 2, y: 32, "text-anchor": "middle" }, "columns"),
      s(
        "text",
        { class: "small mono", transform: `translate(16 ${y + tall / 2}) rotate(-90)`, "text-anchor": "middle" },
        tall > 50 ? "rows" : "",
      ),
      s("rect", { class: "whole", x, y, width: w, height: tall }),
      done,
      box,
      lanes,
      s("text", { class: "strong", x, y: y + tall + 22 }, words),
      s(
        "text",
        { class: "small", x, y: y + tall + 40 },
        `${count(across * down * tile.others, "tile")}${tile.threads ? ", shared by the cores" : ""}`,
      ),
    );
    const total = across * down;
    const end = Math.min(total - 1, Math.floor(total * 0.62));
    put(end);
    if (ms === 0) return;
    const begin = performance.now();
    const tick = (now: number): void => {
      const t = Math.min(1, Math.max(0, (now - begin) / (ms * 2.4)));
      put(Math.floor(end * t));
      if (t < 1) this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  head(step: number): Child[] {
    const { kernels } = this.store.index.trace;
    const name = code(readableName(this.kernel));
    const which: Child[] = kernels.length === 1 ? [name] : ["The slowest kernel, ", name, ","];
    const group = this.groups[Math.min(step, this.count - 1)];
    const [first] = this.groups;
    const size = (axes: Step["axes"]): string => count(axes.length, "loop");
    if (this.groups.length < 2)
      return [
        ...which,
        ` runs as ${size(group.step.axes)}`,
        this.kernel.opts.length > 0 ? `. The compiler applied ${count(this.kernel.opts.length, "opt")}.` : ".",
      ];
    if (step === 0) {
      const us = first.step.median_us;
      return [
        ...which,
        kernels.length === 1 ? ", as written: " : " as written: ",
        bold(size(first.step.axes)),
        us === null ? "." : `, ${duration(us)}.`,
        ` ${count(this.groups.length - 1, "change")} follow${this.groups.length === 2 ? "s" : ""}.`,
      ];
    }
    const [now, begin] = [group.step.median_us, first.step.median_us];
    const words = group.opts.map(optWords).join("; ");
    const factor =
      now === null || begin === null
        ? ""
        : now <= begin
          ? ` ${figuresText(begin / now)}× faster than as written.`
          : ` ${figuresText(now / begin)}× slower than as written.`;
    return [bold(group.opts.join(" ")), `: ${words}.`, factor];
  }

  caption(step: number): string {
    const group = this.groups[Math.min(step, this.count - 1)];
    return group.opts.length === 0 ? (this.groups.length > 1 ? "as written" : "as it runs") : group.opts.join(" ");
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
  }
}

function drawLaneLines(tile: Tile, w: number, tall: number): string {
  const across = Math.round(tile.tileColumns / Math.max(1, tile.lanes));
  if (tile.lanes < 2 || tile.tileRows * across > 128) return "";
  const lines: string[] = [];
  for (let i = 1; i < across; i += 1) lines.push(`M${(i * w) / across} 0v${tall}`);
  for (let i = 1; i < tile.tileRows; i += 1) lines.push(`M0 ${(i * tall) / tile.tileRows}h${w}`);
  return lines.join("");
}

function colorText(text: string): Child[] {
  return text
    .split(/\b(for|in|range)\b/)
    .map((part) => (/^(for|in|range)$/.test(part) ? h("span", { class: "keyword" }, part) : part));
}
