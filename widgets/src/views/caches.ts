// The memory microscope: which cache level serves each memory access, by a model. It compares a kernel with any opts to
// itself with others, by buffer, loop and line.

import { bytes, count, groupDigits } from "../format";
import type { SendRequest } from "../request_channel";
import { h, replaceChildren, s } from "../dom";
import { parameterName } from "../kernel_labels";
import type { Change, Store, View } from "../store";
import { nameOf } from "../tuner/branch_tree";
import { isFull, whatIfOf } from "../what_if";
import type { CacheModelData, CachesData, Traffic } from "../requests";

/** Opts to model; null for the captured ones. */
type Opts = string[] | null;

const MOST_CELLS = 384; // cells for a buffer's lines
const HISTOGRAM = { width: 560, height: 150, left: 8, right: 8, top: 18, bottom: 30 };

export class CachesView implements View {
  readonly element = h("div", { class: "caches scroll", tabindex: 0, role: "region", "aria-label": "Caches" });
  private kernel: number | null = null;
  private sides: { before: Opts; after: Opts } = { before: [], after: null };
  private isChosen = false;
  private readonly stop: () => void;

  constructor(private readonly store: Store) {
    this.stop = whatIfOf(store.index).subscribe(() => this.follow());
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
  }

  destroy(): void {
    this.stop();
  }

  private draw(): void {
    const { cursor, sendRequest } = this.store;
    const kernel = cursor.kernel ?? 0;
    if (cursor.panel !== "caches") return;
    if (sendRequest === null) return this.showKept(kernel);
    if (kernel === this.kernel) return this.follow();
    this.kernel = kernel;
    this.isChosen = false;
    this.sides = { before: [], after: this.currentOpts() };
    void this.request(sendRequest);
  }

  /** Shows the stored response, in a page. */
  private showKept(kernel: number): void {
    const stored = this.store.responses.of("caches").filter(([{ kernel: number = 0 }]) => number === kernel);
    const lastStored = stored.at(-1)?.[1];
    const asks = [
      "This page has no cache results for this kernel. To store them, call this before you save the page: ",
      h("code", {}, `view.kernels[${kernel}].caches()`),
    ];
    if (lastStored === undefined) replaceChildren(this.element, h("p", { class: "note" }, ...asks));
    else if (kernel !== this.kernel) this.show(lastStored);
    this.kernel = lastStored === undefined ? null : kernel;
  }

  /** Returns the opts of the open branch in the tuner, else the captured ones. */
  private currentOpts(): Opts {
    const branch = this.kernel === null ? null : whatIfOf(this.store.index).currentBranch(this.kernel);
    return branch === null || !isFull(branch) || branch.kernels[0].opts.length === 0 ? null : branch.kernels[0].opts;
  }

  /** Follows the tuner until the user selects a comparison. */
  private follow(): void {
    const { cursor, sendRequest } = this.store;
    if (cursor.panel !== "caches" || sendRequest === null || this.kernel === null || this.isChosen) return;
    const now = this.currentOpts();
    if (keyOf(now) === keyOf(this.sides.after)) return;
    this.sides = { ...this.sides, after: now };
    void this.request(sendRequest);
  }

  private async request(ask: SendRequest): Promise<void> {
    const { kernel } = this;
    const { before, after } = this.sides;
    const sidesText = JSON.stringify(this.sides);
    if (this.element.querySelector(".sides") === null)
      replaceChildren(this.element, h("p", { class: "note", role: "status" }, "simulating the caches …"));
    this.element.setAttribute("aria-busy", "true");
    try {
      const response = await ask({ ask: "caches", kernel: kernel ?? 0, before, after });
      if (kernel === this.kernel && sidesText === JSON.stringify(this.sides)) this.show(response);
    } catch (error) {
      if (kernel !== this.kernel) return;
      const alert = h("p", { class: "note", role: "alert" }, error instanceof Error ? error.message : String(error));
      replaceChildren(this.element, this.makeChoices(), alert);
      if (!this.isChosen) this.kernel = null;
    } finally {
      this.element.removeAttribute("aria-busy");
    }
  }

  /** Returns the controls for both sides: every branch of the tuner, or typed opts. */
  private makeChoices(): HTMLElement {
    const knownOpts: [string, Opts][] = [
      ["no opts", []],
      ["as captured", null],
    ];
    for (const branch of whatIfOf(this.store.index).of(this.kernel ?? 0)) {
      if (
        branch.status !== "done" ||
        branch.kernels.length === 0 ||
        knownOpts.some(([, opts]) => keyOf(opts) === keyOf(branch.kernels[0].opts))
      )
        continue;
      knownOpts.push([nameOf(branch), branch.kernels[0].opts]);
    }
    const makeSelect = (name: "before" | "after"): HTMLElement => {
      const chosen = this.sides[name];
      const all = knownOpts.some(([, opts]) => keyOf(opts) === keyOf(chosen))
        ? knownOpts
        : [...knownOpts, [chosen!.join(" "), chosen] as [string, Opts]];
      const options = all.map(([text, opts]) =>
        h("option", { value: keyOf(opts), selected: keyOf(opts) === keyOf(chosen) }, text),
      );
      const change = (event: Event): void =>
        this.choose(name, JSON.parse((event.target as HTMLSelectElement).value) as Opts);
      return h(
        "label",
        {},
        `${name} `,
        h("select", { "aria-label": `Opts ${name}`, "data-focus": name, onchange: change }, ...options),
      );
    };
    const typed = h("input", {
      type: "text",
      placeholder: "VECTOR(1, 16), UPCAST(0, 4)",
      "aria-label": "Other opts to compare with",
      title: "Other opts, for the right side (Enter)",
      onkeydown: (event: KeyboardEvent) => {
        event.stopPropagation();
        const { value } = event.target as HTMLInputElement;
        if (event.key === "Enter") this.choose("after", value.match(/\w+\s*\([^)]*\)/g) ?? []);
      },
    });
    return h("div", { class: "steps" }, makeSelect("before"), makeSelect("after"), h("label", {}, "or ", typed));
  }

  private choose(side: "before" | "after", opts: Opts): void {
    const { sendRequest } = this.store;
    this.isChosen = true;
    this.sides = { ...this.sides, [side]: opts };
    if (sendRequest !== null) void this.request(sendRequest);
  }

  private show(found: CachesData): void {
    const { after, before, rows } = renameBuffers(found, (name) =>
      parameterName(this.store.index.trace, this.store.cursor.kernel ?? 0, name),
    );
    const focus = this.element.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.focus
      : undefined;
    const said = after.caches
      .map(([name, nbytes, ways]) => `${name} ${nbytes >> 10} KiB, ${count(ways, "way")}`)
      .join(" · ");
    const legend = after.levels.map((level, i) =>
      h("span", { class: "key" }, h("span", { class: `swatch level${colorIndex(i, after.levels)}` }), level),
    );
    replaceChildren(
      this.element,
      this.store.sendRequest === null ? null : this.makeChoices(),
      h(
        "p",
        { class: "note" },
        "Level that serves each cache line access: ",
        ...legend,
        h("span", { class: "faint" }, ` · ${said} · A model: LRU replacement, no prefetching`),
      ),
      writeHeadline(before, after),
      before === null ? h("div", { class: "sides" }, makeSide("These opts", after)) : makePairs(before, after, rows),
      h("h6", {}, "Reuse distance: the number of other cache lines accessed between two accesses to one line"),
      drawHistogram(before, after),
      before === null ? null : h("div", { class: "sides" }, drawTiles("before", before), drawTiles("after", after)),
      before === null
        ? null
        : h("div", { class: "sides pairs lines" }, ...group("line", "by line of the source", rows, after.levels)),
    );
    if (focus !== undefined) this.element.querySelector<HTMLElement>(`[data-focus="${focus}"]`)?.focus();
  }
}

/** Returns the same with buffers renamed by `called`. */
function renameBuffers(data: CachesData, called: (name: string) => string): CachesData {
  const model = <M extends CacheModelData | null>(side: M): M =>
    side === null || side.tile === null
      ? side
      : {
          ...side,
          tile: { ...side.tile, buffers: side.tile.buffers.map(([name, ...lines]) => [called(name), ...lines]) },
        };
  const rows = data.rows.map(([of, name, ...counts]): CachesData["rows"][number] => [
    of,
    of === "buffer" ? called(name) : name,
    ...counts,
  ]);
  return { after: model(data.after), before: model(data.before), rows };
}

function keyOf(opts: Opts): string {
  return JSON.stringify(opts);
}

// *** two side by side ***

function makePairs(before: CacheModelData, after: CacheModelData, rows: CachesData["rows"]): HTMLElement {
  const { levels } = after;
  const head = (title: string, { name, opts }: CacheModelData): HTMLElement =>
    h("h5", {}, title, h("span", { class: "faint" }, ` · ${name} · ${opts.join(" ") || "no opts"}`));
  const largest = Math.max(1, sum(before.total), sum(after.total));
  const parts: HTMLElement[] = [
    head("Before", before),
    head("After", after),
    ...makePair("all", "every access", before.total, after.total, levels, largest),
  ];
  const titles: [string, string][] = [
    ["buffer", "by buffer"],
    ["loop", "by loop"],
  ];
  parts.push(...titles.flatMap(([of, title]) => group(of, title, rows, levels)));
  return h("div", { class: "sides pairs" }, ...parts);
}

/** Returns the rows of one kind below their title. */
function group(of: string, title: string, rows: CachesData["rows"], levels: string[]): HTMLElement[] {
  const groupRows = rows.filter(([kind]) => kind === of);
  if (groupRows.length === 0) return [];
  const largest = Math.max(
    1,
    ...groupRows.flatMap(([, , before, other]) => [before, other]).map((counts) => (counts === null ? 0 : sum(counts))),
  );
  const lines = groupRows.flatMap(([, name, before, other]) =>
    makePair(name, of === "line" ? name : `${of} ${name}`, before, other, levels, largest),
  );
  return [h("h6", { class: "wide" }, title), ...lines];
}

function makePair(
  name: string,
  title: string,
  before: Traffic | null,
  after: Traffic | null,
  levels: string[],
  largest: number,
): HTMLElement[] {
  const none = (): HTMLElement =>
    h(
      "div",
      { class: "traffic none", title },
      h("span", { class: "name" }, name),
      h("span", { class: "faint" }, "not here"),
    );
  const ratio = before === null || after === null ? "" : writeTimes(sum(before), sum(after));
  return [
    before === null ? none() : makeRow(name, title, before, levels, largest),
    after === null ? none() : makeRow(name, title, after, levels, largest, ratio),
  ];
}

/** Returns the traffic with memory, in lines and bytes, and its change. The miss rate may rise while this falls. */
function writeHeadline(before: CacheModelData | null, after: CacheModelData): HTMLElement {
  const line = after.caches[0]?.[3] ?? 64;
  const trafficText = ({ total }: CacheModelData): string =>
    `${groupDigits(total.served.at(-1)!)} lines, ${bytes(total.served.at(-1)! * line)}`;
  const change = before === null ? "" : writeTimes(before.total.served.at(-1)!, after.total.served.at(-1)!);
  const words = before === null ? trafficText(after) : `${trafficText(before)} → ${trafficText(after)}`;
  return h(
    "p",
    { class: "headline" },
    h("b", {}, "Read from memory: "),
    words,
    change === "" ? null : h("b", {}, ` ${change}`),
  );
}

function writeTimes(was: number, now: number): string {
  if (was === now || was === 0 || now === 0) return "";
  return now < was ? `÷ ${(was / now).toFixed(1)}` : `× ${(now / was).toFixed(1)}`;
}

/** Draws the accesses by reuse distance, in powers of two, with the cache sizes; the last bar is first accesses. */
function drawHistogram(before: CacheModelData | null, after: CacheModelData): HTMLElement {
  const { width, height, left, right, top, bottom } = HISTOGRAM;
  const sides = before === null ? [after] : [before, after];
  const last = after.total.reuse.length - 1;
  const used = sides.map(({ total }) =>
    total.reuse.slice(0, last).reduce((most, count, i) => (count > 0 ? i : most), 0),
  );
  const groups = Math.max(...used, ...after.caches.map(([, nbytes, , line]) => groupOf(nbytes / line))) + 1;
  const each = (width - left - right) / (groups + 1.5);
  const largest = Math.max(1, ...sides.flatMap(({ total }) => total.reuse));
  const tall = (count: number): number =>
    count === 0 ? 0 : Math.max(1.5, (Math.log2(1 + count) / Math.log2(1 + largest)) * (height - top - bottom));
  const x = (group: number): number => left + (group === last ? groups + 0.5 : group) * each;
  const bars = sides.flatMap(({ total }, k) =>
    total.reuse.flatMap((count, group) => {
      if (count === 0) return [];
      const wide = (each - 3) / sides.length;
      const cls = before !== null && k === 0 ? "was" : "now";
      const text = `${group === last ? "first access" : `${formatDistance(group)} lines between`}: ${groupDigits(count)} accesses${before === null ? "" : k === 0 ? " before" : " after"}`;
      return [
        s(
          "rect",
          {
            class: cls,
            x: (x(group) + k * wide).toFixed(1),
            y: (height - bottom - tall(count)).toFixed(1),
            width: wide.toFixed(1),
            height: tall(count).toFixed(1),
          },
          s("title", {}, text),
        ),
      ];
    }),
  );
  const marks = after.caches.flatMap(([name, nbytes, , line]) => {
    const capacityX = x(groupOf(nbytes / line)) - 1.5;
    return [
      s("path", { class: "holds", d: `M${capacityX.toFixed(1)} ${top - 8}V${height - bottom}` }),
      s("text", { x: (capacityX - 3).toFixed(1), y: top - 6, "text-anchor": "end" }, `fits in ${name}`),
    ];
  });
  const ticks = Array.from({ length: groups }, (_, i) => i).filter((i) => i % Math.ceil(groups / 9) === 0);
  const labels = ticks.map((group) =>
    s(
      "text",
      { x: (x(group) + each / 2).toFixed(1), y: height - bottom + 12, "text-anchor": "middle" },
      formatDistance(group),
    ),
  );
  labels.push(
    s("text", { x: (x(last) + each / 2).toFixed(1), y: height - bottom + 12, "text-anchor": "middle" }, "first"),
  );
  const words = s(
    "text",
    { class: "unit", x: width - right, y: height - 4, "text-anchor": "end" },
    "other lines in between; heights are logarithmic",
  );
  const legend =
    before === null
      ? []
      : [
          s("rect", { class: "was", x: left, y: height - 11, width: 9, height: 9 }),
          s("text", { x: left + 13, y: height - 3 }, "before"),
          s("rect", { class: "now", x: left + 58, y: height - 11, width: 9, height: 9 }),
          s("text", { x: left + 71, y: height - 3 }, "after"),
        ];
  return h(
    "figure",
    { class: "reuse" },
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Accesses by reuse distance" },
      ...bars,
      ...marks,
      ...labels,
      words,
      ...legend,
    ),
  );
}

/** Returns the group of a distance: 0, 1, 2-3, 4-7 … */
function groupOf(lines: number): number {
  return lines < 1 ? 0 : Math.floor(Math.log2(lines)) + 1;
}

function formatDistance(group: number): string {
  const from = group === 0 ? 0 : 2 ** (group - 1);
  return from < 1024 ? String(from) : from < 1 << 20 ? `${from >> 10}k` : `${from >> 20}M`;
}

// *** one side ***

function makeSide(title: string, model: CacheModelData): HTMLElement {
  const { accesses, loops, total, levels } = model;
  const largest = Math.max(1, ...accesses.map(sum));
  return h(
    "section",
    {},
    h(
      "h5",
      {},
      title,
      h("span", { class: "faint" }, ` · ${model.name}${model.opts.length === 0 ? "" : ` · ${model.opts.join(" ")}`}`),
    ),
    makeRow("all", "every access", total, levels, Math.max(1, sum(total))),
    h("h6", {}, "by access"),
    ...accesses.map((access) =>
      makeRow(access.text, `${access.stored ? "stores to" : "loads from"} ${access.buffer}`, access, levels, largest),
    ),
    h("h6", {}, "by loop"),
    ...loops.map(([name, counts]) => makeRow(name, `inside ${name}`, counts, levels, Math.max(1, sum(total)))),
    drawTiles("", model),
  );
}

function drawTiles(which: string, { tile }: CacheModelData): HTMLElement {
  if (tile === null) return h("section", {});
  const counters = tile.counters.map(([name, value]) => `${name}=${value}`).join(", ");
  const title = `${which === "" ? "" : `${which}: `}cache lines of one pass of the innermost loop, at ${counters}`;
  return h("section", {}, h("h6", {}, title), ...tile.buffers.map(([name, lines, of]) => strip(name, lines, of)));
}

function makeRow(
  name: string,
  title: string,
  counts: Traffic,
  levels: string[],
  largest: number,
  more = "",
): HTMLElement {
  const all = sum(counts);
  const shares = counts.served.map((count, i) => ({ count, level: levels[i], i })).filter(({ count }) => count > 0);
  const words = shares
    .toReversed()
    .map(({ count, level }) => `${level} ${groupDigits(count)} (${((100 * count) / all).toFixed(1)} %)`)
    .join(", ");
  const bars = shares.map(({ count, i }) =>
    h("span", { class: `level${colorIndex(i, levels)}`, style: `width:${(100 * count) / largest}%` }),
  );
  return h(
    "div",
    { class: "traffic", title },
    h("span", { class: "name" }, name),
    h(
      "span",
      { class: "meter", role: "img", "aria-label": `${groupDigits(all)} accesses: ${words || "none"}` },
      ...bars,
    ),
    h("span", { class: "num" }, groupDigits(all), more === "" ? null : h("b", {}, ` ${more}`)),
    h("span", { class: "words" }, words),
  );
}

/**
 * Draws the lines of a buffer in rows, with accessed lines filled; a cell of a large buffer stands for several lines.
 */
function strip(name: string, lines: number[], of: number): HTMLElement {
  const each = Math.max(1, Math.ceil(of / MOST_CELLS));
  const touched = new Set(lines.map((line) => Math.floor(line / each)));
  const cells = Array.from({ length: Math.ceil(of / each) }, (_, i) =>
    h("span", { class: touched.has(i) ? "unit on" : "unit" }),
  );
  const scale = each === 1 ? "" : ` · a cell is ${each} lines`;
  const text = `${name}: ${groupDigits(lines.length)} of ${groupDigits(of)} lines${scale}`;
  return h(
    "figure",
    { class: "strip" },
    h("figcaption", {}, text),
    h("div", { class: "units", role: "img", "aria-label": text }, ...cells),
  );
}

function sum({ served }: Traffic): number {
  return served.reduce((a, b) => a + b, 0);
}

/** Returns 0 for the nearest cache … 3 for memory. */
function colorIndex(i: number, levels: string[]): number {
  return i === levels.length - 1 ? 3 : Math.min(i, 2);
}
