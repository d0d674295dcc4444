// The memory microscope: which level of the caches answers each load and store, by a model; as it is beside without opts,
// and the cache lines that one pass of the innermost loop touches.

import type { Ask } from "../asking";
import { h, replaceChildren } from "../dom";
import type { Change, Store, View } from "../store";

interface Counts {
  found: number[];
}

interface Model {
  name: string;
  opts: string[];
  levels: string[];
  caches: [string, number, number, number][];
  total: Counts;
  accesses: (Counts & { text: string; stored: boolean; buffer: string })[];
  loops: [string, Counts][];
  tile: { counters: [string, number][]; buffers: [string, number[], number][] } | null;
}

/** `caches_data` in tinyexplore/explore/byhand/answers.py. */
interface Answer {
  after: Model;
  before: Model | null;
}

const MOST_CELLS = 384; // of a buffer's lines that are drawn

export class CachesView implements View {
  readonly element = h("div", { class: "caches scroll", tabindex: 0, role: "region", "aria-label": "Caches" });
  private kernel: number | null = null;

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
  }

  private draw(): void {
    const { cursor, ask } = this.store;
    const kernel = cursor.kernel ?? 0;
    if (cursor.panel !== "caches" || kernel === this.kernel) return;
    if (ask === null) {
      replaceChildren(this.element, h("p", { class: "note" }, "The caches are modelled by Python. In a notebook this panel asks it; anywhere else: ", h("code", {}, `view.caches(${kernel})`)));
      return;
    }
    this.kernel = kernel;
    void this.request(ask, kernel);
  }

  private async request(ask: Ask, kernel: number): Promise<void> {
    replaceChildren(this.element, h("p", { class: "note", role: "status" }, "sending every load and store through the caches …"));
    try {
      const found = (await ask({ ask: "caches", kernel })) as Answer;
      if (kernel === this.kernel) this.show(found);
    } catch (error) {
      if (kernel !== this.kernel) return;
      replaceChildren(this.element, h("p", { class: "note", role: "alert" }, error instanceof Error ? error.message : String(error)));
      this.kernel = null;
    }
  }

  private show({ after, before }: Answer): void {
    const most = Math.max(sum(after.total), before === null ? 0 : sum(before.total));
    const said = after.caches.map(([name, nbytes, ways]) => `${name} ${nbytes >> 10} KiB, ${ways} ways`).join(" · ");
    const legend = after.levels.map((level, i) => h("span", { class: "key" }, h("span", { class: `swatch level${colour(i, after.levels)}` }), level));
    replaceChildren(
      this.element,
      h("p", { class: "note" }, "Who answers each touch of a cache line: ", ...legend, h("span", { class: "faint" }, ` · ${said} · a model: least recently used goes, nothing is prefetched`)),
      h("div", { class: "sides" }, before === null ? null : side("Without opts", before, most), side(before === null ? "This kernel has no opts" : "As it is", after, most)),
    );
  }
}

function side(title: string, model: Model, most: number): HTMLElement {
  const { accesses, loops, total, levels, tile } = model;
  const largest = Math.max(1, ...accesses.map(sum));
  return h(
    "section",
    {},
    h("h5", {}, title, h("span", { class: "faint" }, ` · ${model.name}${model.opts.length === 0 ? "" : ` · ${model.opts.join(" ")}`}`)),
    row("all", "every touch", total, levels, most),
    h("h6", {}, "by access"),
    ...accesses.map((one) => row(one.text, `${one.stored ? "stores to" : "loads from"} ${one.buffer}`, one, levels, largest)),
    h("h6", {}, "by loop"),
    ...loops.map(([name, counts]) => row(name, `inside ${name}`, counts, levels, Math.max(1, sum(total)))),
    tile === null ? null : h("h6", {}, `cache lines of one pass at ${tile.counters.map(([name, value]) => `${name}=${value}`).join(", ")}`),
    ...(tile?.buffers ?? []).map(([name, lines, of]) => strip(name, lines, of)),
  );
}

function row(name: string, title: string, counts: Counts, levels: string[], most: number): HTMLElement {
  const all = sum(counts);
  const shares = counts.found.map((count, i) => ({ count, level: levels[i], i })).filter(({ count }) => count > 0);
  const words = shares.map(({ count, level }) => `${level} ${((100 * count) / all).toFixed(1)} %`).join(", ");
  const bars = shares.map(({ count, i }) => h("span", { class: `level${colour(i, levels)}`, style: `width:${(100 * count) / most}%` }));
  return h(
    "div",
    { class: "traffic", title },
    h("span", { class: "name" }, name),
    h("span", { class: "meter", role: "img", "aria-label": `${all.toLocaleString("en")} touches: ${words || "none"}` }, ...bars),
    h("span", { class: "num" }, all.toLocaleString("en")),
    h("span", { class: "words" }, words),
  );
}

/** The lines of a buffer in rows, those that are touched filled; of a large one several to a cell. */
function strip(name: string, lines: number[], of: number): HTMLElement {
  const each = Math.max(1, Math.ceil(of / MOST_CELLS));
  const touched = new Set(lines.map((line) => Math.floor(line / each)));
  const cells = Array.from({ length: Math.ceil(of / each) }, (_, i) => h("span", { class: touched.has(i) ? "unit on" : "unit" }));
  const scale = each === 1 ? "" : ` · a cell is ${each} lines`;
  const text = `${name}: ${lines.length.toLocaleString("en")} of ${of.toLocaleString("en")} lines${scale}`;
  return h("figure", { class: "strip" }, h("figcaption", {}, text), h("div", { class: "units", role: "img", "aria-label": text }, ...cells));
}

function sum({ found }: Counts): number {
  return found.reduce((a, b) => a + b, 0);
}

/** 0 for the nearest cache … 3 for memory. */
function colour(i: number, levels: string[]): number {
  return i === levels.length - 1 ? 3 : Math.min(i, 2);
}
