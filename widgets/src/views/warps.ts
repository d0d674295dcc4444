// A GPU kernel: its grid and groups, the addresses of a warp at each load and store by lane, and the number of groups
// that a multiprocessor holds. Requested from Python; a page shows stored responses.

import { LatestRequest, makeNote, findProgramKernel } from "../latest_request";
import { button, h, replaceChildren, s } from "../dom";
import { count, groupDigits } from "../format";
import type { Change, Store, View } from "../store";
import type { GPUData, WarpAccessData } from "../requests";

const EXAMPLE = { target: "sm_80", words: "an A100" };
const NO_GROUPS = "it has no work-groups"; // part of Python's error for a CPU kernel
const ON_A_CPU =
  "This kernel was compiled for a CPU, which has no warps. Compile it for a GPU to see what the 32 lanes of a warp access together.";
const SIDE = 16; // groups, and work-items, that are drawn along each dimension
const CELL = 7;
const SEGMENT = 32;
const LINE = 128;
const BANKS = 32;
const PICTURE = { width: 560, lanes: 18, gap: 76, low: 28 };
const MOST_SEGMENTS = 64;

export class WarpsView implements View {
  readonly element = h("div", { class: "warps scroll", tabindex: 0, role: "region", "aria-label": "Warps" });
  private kernel: number | null = null;
  private data: GPUData | null = null;
  private chosen = 0;
  private target = ""; // the GPU for which a CPU kernel is modeled
  /** The distinct accesses; copies in an unrolled loop share a row. */
  private groups: WarpAccessData[][] = [];
  private rows: HTMLElement[] = [];

  private readonly latestRequest: LatestRequest;

  constructor(private readonly store: Store) {
    this.latestRequest = new LatestRequest(store, this.element);
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
    if (change.selection) this.follow();
    if (change.selection || change.hover) this.mark();
  }

  private draw(): void {
    const kernel = findProgramKernel(this.store);
    if (this.store.cursor.panel !== "warps" || kernel === this.kernel) return;
    this.kernel = kernel;
    void this.latestRequest.send({
      request: { ask: "gpu", kernel, target: this.target },
      pendingText: "simulating the addresses of every lane …",
      offlineNote: [
        `Kernel ${kernel} is not for a GPU: it has no work-groups. To compile it for a GPU, call `,
        'explore(f, target="sm_80")',
      ],
      show: (found) => this.show(found),
      showNote: (text, code) => this.showNote(text, code),
      onError: () => (this.kernel = null), // the request is repeated when the panel is opened again
    });
  }

  private showNote(text: string, code = ""): void {
    this.data = null;
    this.rows = [];
    const elsewhere = button(`Show it on ${EXAMPLE.words}`, "Compiles this kernel for that GPU; nothing runs", () => {
      [this.target, this.kernel] = [EXAMPLE.target, null];
      this.draw();
    });
    const isPossible = this.store.sendRequest !== null && this.target === "";
    const says = isPossible && text.includes(NO_GROUPS) ? ON_A_CPU : text;
    replaceChildren(this.element, makeNote(says, code), isPossible ? h("p", { class: "note" }, elsewhere) : null);
  }

  private show(data: GPUData): void {
    this.data = data;
    this.groups = groupAlike(data.accesses);
    this.chosen = Math.max(
      0,
      this.groups.findIndex((group) => this.isSelected(group)),
    );
    this.rows = this.groups.map((group, number) => this.makeRow(group, number));
    const head = HEADS.map(([text, title], i) => h("th", { scope: "col", class: i === 1 ? "num" : null, title }, text));
    const where =
      data.group === null ? "the first warp of the grid" : `every warp of the group at (${data.at.join(", ")})`;
    replaceChildren(
      this.element,
      h(
        "p",
        { class: "warps-says" },
        h("b", {}, data.says),
        this.target === "" ? null : " · compiled for this GPU, not run",
        ` · ${data.target}`,
        data.occupancy === null ? null : ` · ${Math.round(100 * data.occupancy.share)} % occupancy`,
      ),
      h(
        "div",
        { class: "warps-body" },
        h(
          "div",
          { class: "accesses" },
          h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...this.rows)),
          h(
            "p",
            { class: "note" },
            `The model simulates ${where}, in the first and the middle step of its loops. The drawing shows the first. Memory moves segments of ${SEGMENT} bytes. Shared memory has ${BANKS} banks, and each serves one word at a time.`,
          ),
        ),
        h(
          "div",
          { class: "beside" },
          h("div", { class: "lanes" }),
          h("div", { class: "warps-top" }, ...drawPlanes(data), drawOccupancy(data)),
        ),
      ),
    );
    this.drawDetail();
    this.mark();
  }

  private makeRow(group: WarpAccessData[], number: number): HTMLElement {
    const [first, ...more] = group;
    const nodes = this.nodesOf(group);
    const code = first.source === "" ? first.text : first.source;
    const choose = (): void => {
      this.chosen = number;
      this.store.select(nodes);
      this.drawDetail();
      this.mark();
    };
    const hover = (on: boolean) => (): void => this.store.hover(on ? nodes : []);
    const title = `${first.stored ? "stores to" : "loads from"} ${first.buffer}${first.loops.length > 0 ? `, inside ${first.loops.join(", ")}` : ""}: ${code}`;
    return h(
      "tr",
      { onclick: choose, onpointerenter: hover(true), onpointerleave: hover(false) },
      h(
        "th",
        { scope: "row" },
        h(
          "button",
          { type: "button", title },
          h("span", { class: "kind" }, first.stored ? "store" : "load"),
          h("code", {}, code),
          more.length === 0 ? null : h("span", { class: "kind" }, `× ${group.length}`),
        ),
      ),
      h(
        "td",
        { class: "num" },
        first.space === "shared"
          ? ""
          : first.requests === 0
            ? "?"
            : `${formatRounded(first.mean)} of ${formatRounded(first.least)}`,
      ),
      h(
        "td",
        {},
        first.efficiency === null
          ? first.space === "shared"
            ? h("span", { class: "faint" }, "shared")
            : null
          : makeMeter(first.efficiency),
      ),
      h("td", { class: `verdict ${rateAccess(first)}` }, first.says),
    );
  }

  private nodesOf(group: WarpAccessData[]): number[] {
    return group.flatMap(({ place }) => this.findNodes(place));
  }

  private isSelected(group: WarpAccessData[]): boolean {
    return this.nodesOf(group).some((node) => this.store.selected.has(node));
  }

  /** Returns the UOps of a line of the listing. */
  private findNodes(line: number): number[] {
    const listed = this.store.index.programsOf(this.kernel).find(({ language }) => language === "uops");
    return listed?.lines[line]?.nodes ?? [];
  }

  /** Highlights the selection of other views. */
  private follow(): void {
    if (this.data === null || this.groups.length === 0 || this.isSelected(this.groups[this.chosen])) return;
    const number = this.groups.findIndex((group) => this.isSelected(group));
    if (number < 0) return;
    this.chosen = number;
    this.drawDetail();
    this.rows[number].scrollIntoView({ block: "nearest" });
  }

  private mark(): void {
    const { related, selected, hovered } = this.store;
    this.rows.forEach((row, number) => {
      const nodes = this.nodesOf(this.groups[number]);
      const is = (set: Set<number>): boolean => nodes.some((node) => set.has(node));
      row.classList.toggle("sel", is(selected));
      row.classList.toggle("rel", !is(selected) && is(related));
      row.classList.toggle("hov", is(hovered));
      row.querySelector("button")!.setAttribute("aria-pressed", String(number === this.chosen));
    });
  }

  private drawDetail(): void {
    const container = this.element.querySelector(".lanes");
    const access = this.groups[this.chosen]?.[0];
    if (container === null) return;
    if (access === undefined) return replaceChildren(container, h("p", { class: "note" }, "No load and no store."));
    const what = `${access.stored ? "Stores to" : "Loads from"} ${access.buffer}, ${count(access.nbytes, "byte")} a lane`;
    const details =
      access.space === "shared" || access.lanes.length === 0
        ? ""
        : ` · ${count(access.segments, "segment")} in ${count(access.lines, "line")} of ${LINE} bytes`;
    replaceChildren(
      container,
      h("h6", {}, `${what}${details}`),
      access.lanes.length === 0
        ? h("p", { class: "note" }, access.says)
        : access.space === "shared"
          ? drawBanks(access)
          : drawSegments(access),
      access.advice ? h("p", { class: "note advice" }, access.advice) : null,
    );
  }
}

const HEADS = [
  ["a work-item's access", "The line of the program; × is the number of lines with the same access"],
  ["segments", "Segments of 32 bytes that one access of a warp transfers, and the minimum"],
  ["bytes used", "Used bytes / transferred bytes"],
  ["access pattern", "How the memory system serves the lanes of the first warp"],
];

function groupAlike(accesses: WarpAccessData[]): WarpAccessData[][] {
  const groups = new Map<string, WarpAccessData[]>();
  for (const access of accesses) {
    const key = JSON.stringify([
      access.stored,
      access.buffer,
      access.loops,
      access.mean,
      access.least,
      access.degree,
      access.says,
    ]);
    groups.set(key, [...(groups.get(key) ?? []), access]);
  }
  return [...groups.values()];
}

function formatRounded(count: number): string {
  return String(Math.round(count * 10) / 10);
}

/** Returns the rating of an access (good, acceptable or bad), which a word accompanies. */
function rateAccess(access: WarpAccessData): string {
  if (access.degree > 1) return access.degree > 4 ? "bad" : "fair";
  if (access.requests === 0 || access.space === "shared" || access.mean <= access.least) return "good";
  return access.mean > 2 * access.least ? "bad" : "fair";
}

function makeMeter(share: number): HTMLElement {
  const text = `${Number((100 * share).toPrecision(3))} %`;
  return h(
    "span",
    { class: "used" },
    h(
      "span",
      { class: "meter", role: "img", "aria-label": `${text} of the bytes are used` },
      h("span", { style: `width:${100 * share}%` }),
    ),
    text,
  );
}

// *** the grid, a group, and occupancy ***

/** The appearance of a cell: the selected one, or one of two alternating kinds. */
type PlaneStyle = "on" | "other" | "";

function drawPlanes({ grid, group, at, warp }: GPUData): HTMLElement[] {
  const warpOf = (x: number, y: number, across: number): PlaneStyle => {
    const warpIndex = Math.floor((x + y * across) / warp);
    return warpIndex === 0 ? "on" : warpIndex % 2 === 0 ? "other" : "";
  };
  if (group === null) return [drawPlane(grid, "work-items in the grid, by warp", (x, y) => warpOf(x, y, grid[0]))];
  const row = (at[1] ?? 0) + (at[2] ?? 0) * (grid[1] ?? 1);
  const chosen = (x: number, y: number): PlaneStyle => (x === at[0] && y === row ? "on" : "");
  return [
    drawPlane(grid, `${grid.every((size) => size === 1) ? "group" : "groups"} in the grid`, chosen),
    drawPlane(group, `work-items in a group, by warp of ${warp}`, (x, y) => warpOf(x, y, group[0])),
  ];
}

/**
 * Draws a plane of cells, around the selected group if it is too large. One dimension is wrapped into rows; the planes
 * of a third dimension are below each other.
 */
function drawPlane(sizes: number[], words: string, styleOf: (x: number, y: number) => PlaneStyle): HTMLElement {
  const [across, down] = [sizes[0] ?? 1, (sizes[1] ?? 1) * (sizes[2] ?? 1)];
  const isLine = down === 1 && across > SIDE;
  const columns = isLine ? 2 * SIDE : Math.min(across, 2 * SIDE);
  const rows = Math.min(SIDE, isLine ? Math.ceil(across / columns) : down);
  const [left, top] = isLine ? [0, 0] : [start(across, 2 * SIDE, styleOf), start(down, SIDE, styleOf)];
  const cells = [];
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      const lit = isLine ? styleOf(x + y * columns, 0) : styleOf(x + left, y + top);
      if (!isLine || x + y * columns < across)
        cells.push(s("rect", { class: lit, x: x * CELL, y: y * CELL, width: CELL - 1.5, height: CELL - 1.5 }));
    }
  }
  const [wide, high] = [columns * CELL, rows * CELL];
  const isWhole = isLine ? across <= columns * rows : across <= columns && down <= rows;
  const text = `${sizes.map((size) => groupDigits(size)).join(" × ")} ${words}${isWhole ? "" : "; a part is drawn"}`;
  return h(
    "figure",
    { class: "plane" },
    s("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": text }, ...cells),
    h("figcaption", {}, text),
  );
}

/** Returns where the visible part of a large plane begins: around the middle if only the middle is highlighted. */
function start(size: number, visible: number, styleOf: (x: number, y: number) => PlaneStyle): number {
  return size <= visible || styleOf(0, 0) !== "" ? 0 : Math.min(size - visible, (size >> 1) - visible / 2);
}

function drawOccupancy({ occupancy, why, shared_bytes }: GPUData): HTMLElement {
  if (occupancy === null)
    return h("section", { class: "held" }, h("p", { class: "note" }, `${why[0].toUpperCase()}${why.slice(1)}.`));
  const { share, limits, limit, registers, known, groups, advice } = occupancy;
  const largest = Math.max(...limits.map(([, , , allowed]) => allowed));
  const rows = limits.map(([name, need, have, allowed]) =>
    h(
      "div",
      { class: `bound ${name === limit ? "binds" : ""}`.trim(), "data-bound": name },
      h("span", { class: "name" }, name),
      h("span", { class: "meter" }, h("span", { style: `width:${(100 * allowed) / largest}%` })),
      h("span", { class: "num" }, groupDigits(allowed)),
      h(
        "span",
        { class: "words" },
        `${groupDigits(need)} of ${groupDigits(have)}`,
        name === limit ? h("b", {}, " · the limit") : null,
      ),
    ),
  );
  const taken = `${known ? "" : "about "}${count(registers, "register")} a work-item${known ? "" : " (estimated: a compiler may take others)"}${shared_bytes > 0 ? `, ${count(shared_bytes, "byte")} of shared memory a group` : ""}`;
  return h(
    "section",
    { class: "held" },
    h(
      "h6",
      {},
      h("b", {}, `${Math.round(100 * share)} % occupancy`),
      ` · ${count(groups, "group")} on a multiprocessor`,
    ),
    ...rows,
    h(
      "p",
      { class: "note" },
      `Groups that each resource allows. The smallest number is the limit. A kernel takes ${taken}.${advice ? ` For more: ${advice}.` : ""}`,
    ),
  );
}

// *** the lanes ***

/** Draws the lanes above, and below them the accessed segments with each lane's bytes. */
function drawSegments({ lanes, nbytes, says }: WarpAccessData): HTMLElement {
  const { width, lanes: tall, gap, low } = PICTURE;
  const touched = [
    ...new Set(
      lanes.flatMap((address) =>
        address === null ? [] : [Math.floor(address / SEGMENT), Math.floor((address + nbytes - 1) / SEGMENT)],
      ),
    ),
  ]
    .sort((a, b) => a - b)
    .slice(0, MOST_SEGMENTS);
  const wide = Math.min(150, (width - 2) / Math.max(1, touched.length));
  const left = (width - wide * touched.length) / 2;
  const segmentX = new Map(touched.map((segment, i) => [segment, left + i * wide]));
  const x = (address: number): number =>
    (segmentX.get(Math.floor(address / SEGMENT)) ?? 0) + 1 + ((address % SEGMENT) / SEGMENT) * (wide - 2);
  const y = tall + gap;
  const boxes = touched.map((segment) =>
    s(
      "rect",
      { class: "segment", x: segmentX.get(segment)! + 0.5, y, width: wide - 1, height: low },
      s("title", {}, `bytes ${segment * SEGMENT} to ${segment * SEGMENT + SEGMENT - 1}`),
    ),
  );
  const addresses = new Set(lanes.filter((address): address is number => address !== null));
  const used = [...addresses].map((address) =>
    s("rect", {
      class: "on",
      x: x(address),
      y: y + 3,
      width: Math.max(1.2, (nbytes / SEGMENT) * (wide - 2) - 0.6),
      height: low - 6,
    }),
  );
  const every = Math.max(1, Math.ceil(touched.length / 8));
  const labels = touched.flatMap((segment, i) =>
    i % every === 0
      ? [
          s(
            "text",
            { x: segmentX.get(segment)! + 1, y: y + low + 13 },
            `+${groupDigits(segment * SEGMENT - touched[0] * SEGMENT)}`,
          ),
        ]
      : [],
  );
  return drawLanes(
    lanes,
    says,
    y + low + 18,
    (address) => [x(address) + Math.max(1.2, (nbytes / SEGMENT) * (wide - 2)) / 2, y + 3],
    boxes,
    used,
    labels,
  );
}

/** Draws the lanes above, and the banks below: stacked words of one bank are served one after another. */
function drawBanks({ lanes, banks, degree, says }: WarpAccessData): HTMLElement {
  const { width, lanes: tall, gap } = PICTURE;
  const each = width / BANKS;
  const rows = Math.min(8, degree);
  const y = tall + gap;
  const boxes = banks.flatMap((words, bank) => {
    const visibleRows = Math.min(words, rows);
    const frame = s(
      "rect",
      { class: "segment", x: bank * each + 1, y, width: each - 2, height: 12 * rows + 2 },
      s("title", {}, `bank ${bank}: ${count(words, "word")}`),
    );
    return [
      frame,
      ...Array.from({ length: visibleRows }, (_, i) =>
        s("rect", {
          class: words > 1 ? "conflict" : "on",
          x: bank * each + 3,
          y: y + 2 + 12 * i,
          width: each - 6,
          height: 9,
        }),
      ),
    ];
  });
  const labels = banks.flatMap((words, bank) =>
    words > rows
      ? [s("text", { x: (bank + 0.5) * each, y: y + 12 * rows + 14, "text-anchor": "middle" }, `× ${words}`)]
      : bank % 8 === 0
        ? [s("text", { x: bank * each + 2, y: y + 12 * rows + 14 }, `bank ${bank}`)]
        : [],
  );
  return drawLanes(
    lanes,
    says,
    y + 12 * rows + 20,
    (address) => [((Math.floor(address / 4) % BANKS) + 0.5) * each, y],
    boxes,
    [],
    labels,
  );
}

function drawLanes(
  lanes: (number | null)[],
  says: string,
  height: number,
  to: (address: number) => [number, number],
  ...parts: SVGElement[][]
): HTMLElement {
  const { width, lanes: tall } = PICTURE;
  const each = width / lanes.length;
  const ways = lanes.flatMap((address, lane) => {
    if (address === null) return [];
    const [x, y] = to(address);
    const from = (lane + 0.5) * each;
    return [
      s(
        "path",
        {
          class: "way",
          d: `M${from.toFixed(1)} ${tall}C${from.toFixed(1)} ${tall + 34},${x.toFixed(1)} ${y - 34},${x.toFixed(1)} ${y}`,
        },
        s("title", {}, `lane ${lane}: byte ${address}`),
      ),
    ];
  });
  const boxes = lanes.map((address, lane) =>
    s(
      "rect",
      { class: address === null ? "masked" : "lane", x: lane * each + 1, y: 0.5, width: each - 2, height: tall - 1 },
      s("title", {}, address === null ? `lane ${lane}: masked` : `lane ${lane}: byte ${address}`),
    ),
  );
  const few = lanes.length > 32 ? 8 : 4;
  const numbers = lanes.map((_, lane) =>
    lane % few === 0
      ? s("text", { class: "number", x: (lane + 0.5) * each, y: tall - 5, "text-anchor": "middle" }, String(lane))
      : null,
  );
  return h(
    "figure",
    { class: "request" },
    s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Lanes and what they access: ${says}` },
      ...ways,
      ...boxes,
      ...numbers,
      ...parts.flat(),
    ),
    h("figcaption", {}, says),
  );
}
