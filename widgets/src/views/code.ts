// The code panes: the user's Python and every listing of the kernel, linked by one selection, by mutual hover and by
// background colors of related lines.

import { BAND_TITLES, type BandMode, bandOf } from "../line_bands";
import { copyButton } from "../clipboard";
import { languageIn } from "../dialect";
import { button, h, replaceChildren, tab, tabList } from "../dom";
import type { Program, StageText } from "../model";
import { kernelClass } from "../kernel_labels";
import {
  type Piece,
  type LineStop,
  framesOf,
  kernelOfFrame,
  splitAtRanges,
  rangesOf,
  listLineStops,
} from "../source_spans";
import { addOpcodeTooltips } from "../term_meanings";
import type { Change, Cursor, Store, View } from "../store";
import { LazyParts } from "../lazy_parts";
import { tokenize, tokenizePython } from "../tokenizer";

interface Listing {
  key: string;
  title: string;
  language: string;
  lines: { words: string; nodes: readonly number[]; first: string; parts: Piece[] }[];
  text: string;
}

type Listed = Program | StageText;

const MACHINE_CODE = ["asm", "ptx", "amdgcn"];
const PANES: Record<string, { label: string; wanted: string[] }> = {
  a: { label: "Python and UOps", wanted: ["source", "aten", "uops"] },
  b: {
    label: "Source for the compiler",
    wanted: ["c", "llvm", "llvm-opt", "python", "cuda", "hip", "opencl", "metal", "wgsl"],
  },
  c: { label: "Machine code", wanted: [...MACHINE_CODE, "llvm-opt", "llvm", "python", "c", "uops"] },
  // in a medium explorer, the pane below Python
  bc: {
    label: "Source and machine code",
    wanted: ["c", "llvm", "llvm-opt", ...MACHINE_CODE, "python", "cuda", "hip", "opencl", "metal", "wgsl"],
  },
  // in a narrow explorer, the only pane
  all: {
    label: "Code",
    wanted: [
      "source",
      "aten",
      "uops",
      "c",
      "llvm",
      "llvm-opt",
      ...MACHINE_CODE,
      "python",
      "cuda",
      "hip",
      "opencl",
      "metal",
      "wgsl",
    ],
  },
};

/** Returns the pane of a language's listing. */
export function paneOf(language: string): string {
  return MACHINE_CODE.includes(language) ? "c" : ["aten", "uops"].includes(language) ? "a" : "b";
}

/** Returns the tabs after selecting that listing in every pane that has it. */
export function tabsWith(tabs: Cursor["tabs"], language: string): Cursor["tabs"] {
  return { ...tabs, [paneOf(language)]: language, bc: language, all: language };
}

const NARROW = 900; // pixels
const WIDE = 1200; // below this width, two columns of code have fewer than 40 characters
const CHUNK = 64; // lines that the browser may skip together when they are not visible
export class CodeView implements View {
  readonly element = h("section", { class: "codes", "aria-label": "Code" });
  private readonly panes: Record<string, CodePane>;
  private visiblePanes: CodePane[] = [];
  private bands: BandMode = "role";
  private readonly sizes = new ResizeObserver(() => this.arrange());

  /** `only`: the only pane to show, "" for all that fit. */
  constructor(
    private readonly store: Store,
    private readonly only = "",
  ) {
    const keys = Object.keys(PANES);
    this.panes = Object.fromEntries(
      keys.map((key) => [
        key,
        new CodePane(
          key,
          store,
          () => this.bands,
          () => this.cycle(),
        ),
      ]),
    );
    this.arrange();
    this.sizes.observe(this.element);
  }

  destroy(): void {
    this.sizes.disconnect();
    for (const pane of Object.values(this.panes)) pane.destroy();
  }

  /**
   * Arranges three panes in two columns; in a medium explorer two in one column; in a narrow one all listings as tabs.
   */
  private arrange(): void {
    const { a, b, c, bc, all } = this.panes;
    const width = this.element.closest(".tinyexplore")?.clientWidth ?? 0;
    const isWide = width === 0 || (width >= WIDE && this.hasMachineCode());
    const { dialect, sources } = this.store.index.trace;
    const isWithoutPython = dialect !== null && sources.length === 0;
    const fitting = isWithoutPython || (!isWide && width < NARROW) ? [all] : isWide ? [a, b, c] : [a, bc];
    const arranged = this.only === "" ? fitting : [this.panes[this.only]];
    if (arranged.length === this.visiblePanes.length) return;
    this.visiblePanes = arranged;
    const column = (...panes: CodePane[]): HTMLElement =>
      h("div", { class: "column" }, ...panes.map((pane) => pane.element));
    replaceChildren(this.element, ...(arranged.length < 3 ? [column(...arranged)] : [column(a, b), column(c)]));
    this.element.classList.toggle("is-single", arranged.length < 3);
    for (const pane of arranged) pane.draw();
  }

  update(change: Change): void {
    for (const pane of this.visiblePanes) pane.update(change);
  }

  /**
   * Whether the pane of machine code has content; for this compiler it always has, at least the reason why it is
   * empty.
   */
  private hasMachineCode(): boolean {
    const { dialect, kernels, programs } = this.store.index.trace;
    return dialect === null ? kernels.length > 0 : programs.some(({ language }) => paneOf(language) === "c");
  }

  private cycle(): void {
    const modes = Object.keys(BAND_TITLES) as BandMode[];
    this.bands = modes[(modes.indexOf(this.bands) + 1) % modes.length];
    for (const pane of this.visiblePanes) pane.draw();
  }

  showPlace(): void {
    const { place, tabs } = this.store.cursor;
    const { a, b, bc, all } = this.panes;
    const compiled = this.visiblePanes.includes(bc) ? bc : b;
    const pane = place === "python" || place === "uops" ? a : place === "code" ? compiled : null;
    if (pane === null) return;
    if (this.visiblePanes.length > 1) pane.flash();
    else {
      const listing = pane.first(place === "python" ? "source" : place === "uops" ? "uops" : "");
      if (listing !== null) this.store.go({ tabs: { ...tabs, all: listing } });
      all.flash();
    }
  }
}

class CodePane {
  readonly element: HTMLElement;
  private readonly bar = h("div", { class: "bar" });
  private readonly body = h("div", { class: "listing scroll", tabindex: 0, role: "group" });
  private rows: HTMLElement[] = [];
  private parts: { element: HTMLElement; frames: number[] }[] = [];
  private listing: Listing | null = null;
  private program: Listed | null = null;
  private kernel: number | null = null;
  private lastScrolledFor: Set<number> | null = null;
  private readonly highlighter: LazyParts;

  constructor(
    private readonly key: string,
    private readonly store: Store,
    private readonly bands: () => BandMode,
    private readonly cycleBands: () => void,
  ) {
    this.element = h("div", { class: `code pane-${key}`, "data-pane": key }, this.bar, this.body);
    this.highlighter = new LazyParts(this.body, (chunk) => this.highlight(chunk));
    this.body.addEventListener("mouseover", (event) => this.store.hover(this.findNodes(event)));
    this.body.addEventListener("mouseleave", () => this.store.hover([]));
    this.body.addEventListener("click", (event) => this.choose(event));
    this.body.addEventListener("keydown", (event) => this.walk(event));
  }

  destroy(): void {
    this.highlighter.stop();
  }

  update(change: Change): void {
    const chosen = this.findChosen(this.listListings());
    const isOther = chosen?.key !== this.listing?.key || (chosen?.program ?? null) !== this.program;
    if (change.cursor && (isOther || this.kernel !== this.store.cursor.kernel)) this.draw();
    else if (change.selection || change.hover) this.mark();
    if (change.selection) this.scrollToMarked();
  }

  /** Returns the first listing of this pane whose key begins with `start`. */
  first(start: string): string | null {
    return this.listListings().find(({ key }) => key.startsWith(start))?.key ?? null;
  }

  flash(): void {
    this.element.classList.remove("flash");
    void this.element.offsetWidth; // restarts the animation
    this.element.classList.add("flash");
  }

  private listListings(): { key: string; title: string; program: Listed | null; source: number }[] {
    const { index, cursor } = this.store;
    const texts = index.shownTexts(cursor.stage).map((text, i) => ({
      key: `text ${text.title || i}`,
      title: text.title || languageIn(index.trace, text.language),
      program: text,
      source: -1,
    }));
    const origins = index.trace.origins.filter(({ kernel }) => kernel === cursor.kernel);
    const all = [...index.programsOf(cursor.kernel), ...origins].map((program) => ({
      key: program.language,
      title: languageIn(index.trace, program.language),
      program,
      source: -1,
    }));
    const sources = index.trace.sources.map((source) => ({
      key: `source ${source.id}`,
      title: index.trace.sources.length === 1 ? "Python" : shortenName(source.name),
      program: null,
      source: source.id,
    }));
    const { wanted } = PANES[this.key];
    const rank = (key: string): number => wanted.indexOf(key.startsWith("source") ? "source" : key);
    const isAssigned = (key: string): boolean => Object.values(PANES).some(({ wanted: w }) => w.includes(key));
    return [...sources, ...texts, ...all]
      .filter(
        ({ key }) =>
          rank(key) >= 0 || (["b", "bc", "all"].includes(this.key) && !key.startsWith("source") && !isAssigned(key)),
      )
      .sort((x, y) => rank(x.key) - rank(y.key));
  }

  private findChosen<T extends { key: string }>(listings: T[]): T | null {
    const selected = this.store.cursor.tabs[this.key];
    return listings.find(({ key }) => key === selected) ?? listings[0] ?? null;
  }

  draw(): void {
    const listings = this.listListings();
    const entry = this.findChosen(listings);
    this.kernel = this.store.cursor.kernel;
    this.program = entry?.program ?? null;
    const tabs = listings.map(({ key, title }) => {
      const open = (): void => this.store.go({ tabs: { ...this.store.cursor.tabs, [this.key]: key } });
      return tab(key, title, key === entry?.key, open);
    });
    const mode = this.bands();
    const bandsTitle = `Bands of color: ${BAND_TITLES[mode]}. Click to change.`;
    replaceChildren(
      this.bar,
      tabList(PANES[this.key].label, ...tabs),
      h("span", { class: "space" }),
      ["a", "all"].includes(this.key) ? button(`colors: ${mode}`, bandsTitle, this.cycleBands, "quiet bands") : null,
      entry === null ? null : copyButton("Copy this listing", () => this.listing?.text ?? ""),
    );
    this.rows = [];
    if (entry === null) {
      this.listing = null;
      replaceChildren(this.body, h("p", { class: "empty" }, this.emptyText()));
      return;
    }
    this.listing = entry.program === null ? this.listSource(entry.source) : this.listProgram(entry.program, entry.key);
    this.body.setAttribute("aria-label", `${entry.title} listing`);
    this.body.dataset.language = this.listing.language;
    this.writeLines(this.listing);
    this.body.scrollLeft = 0;
    this.mark();
    this.lastScrolledFor = null;
    if (this.body.isConnected) this.scrollToMarked();
    else requestAnimationFrame(() => this.scrollToMarked());
  }

  private emptyText(): string {
    const { index, cursor } = this.store;
    if (this.key === "a" || this.key === "all") return "This trace has no Python source.";
    const { kernels } = index.trace;
    if (cursor.kernel === null) return kernels.length === 0 ? "This trace has no kernel." : "Choose a kernel.";
    const name = index.trace.kernels[cursor.kernel]?.name ?? `kernel ${cursor.kernel}`;
    return this.key === "c" ? `No machine code was listed for ${name}.` : `${name} was not rendered in this trace.`;
  }

  private listSource(id: number): Listing {
    const source = this.store.index.trace.sources[id];
    const text = source.text.replace(/\n+$/, "");
    const ranges = rangesOf(this.store.index.trace.frames, id, text);
    const lines = tokenizePython(text).map((tokens, i) => {
      const parts = splitAtRanges(tokens, ranges.get(i + 1) ?? []);
      return { words: "", nodes: this.store.index.nodesOfLine(id, i + 1), first: String(i + 1), parts };
    });
    return { key: `source ${id}`, title: source.name, language: "source", lines, text };
  }

  private listProgram(program: Listed, key = program.language): Listing {
    const { language } = program;
    const numbered = language === "uops";
    const lines = program.lines.map((line, i) => {
      const numberMatch = numbered ? /^\s*(\d+)\s\s/.exec(line.text) : null; // the listing has its own line numbers
      const words = numberMatch === null ? line.text : line.text.slice(numberMatch[0].length);
      return { words, nodes: line.nodes, first: numberMatch === null ? String(i + 1) : numberMatch[1], parts: [] };
    });
    const text = program.lines.map((line) => line.text).join("\n");
    return { key, title: languageIn(this.store.index.trace, language), language, lines, text };
  }

  /** Creates the lines, those near the head in color; the others are colored when they come near. */
  private writeLines(listing: Listing): void {
    const { index, cursor } = this.store;
    const chunks: HTMLElement[] = [];
    this.parts = [];
    listing.lines.forEach(({ words, nodes, first, parts }, i) => {
      const text = parts.length > 0 ? parts.map((piece) => this.makePart(piece)) : [words];
      const classes = [
        "line",
        bandOf(index, cursor.kernel, this.bands(), listing.language, nodes),
        nodes.length > 0 ? "linked" : "",
      ]
        .filter(Boolean)
        .join(" ");
      const row = h(
        "div",
        { class: classes, "data-line": i },
        h("u", { "aria-hidden": "true" }, first),
        h("code", {}, ...text),
      );
      if (i % CHUNK === 0) chunks.push(h("div", { class: "chunk" }));
      chunks[chunks.length - 1].append(row);
      this.rows.push(row);
    });
    const width = Math.max(2, ...listing.lines.slice(-1).map((line) => line.first.length));
    this.body.style.setProperty("--gutter", `${width + 1}ch`);
    replaceChildren(this.body, ...chunks);
    if (listing.language !== "source") this.highlighter.watch(chunks);
  }

  private highlight(chunk: HTMLElement): void {
    const { language, lines } = this.listing!;
    for (const row of [...chunk.children] as HTMLElement[]) {
      const tokens = tokenize(language, lines[Number(row.dataset.line)].words);
      const spans = tokens.flatMap(([kind, text]) => {
        if (kind === "" || kind === "register") return this.addName(text, kind, language);
        return h("span", { class: `t-${kind}` }, text);
      });
      row.lastElementChild!.replaceChildren(...spans);
    }
    void addOpcodeTooltips(this.store.chunks, language, chunk);
  }

  /**
   * Creates a piece of the user's Python; a part that created nodes can be selected alone, and has its kernel's color.
   */
  private makePart({ token: [kind, text], frames }: Piece): HTMLElement | string {
    const visibleText =
      kind === "" && frames.length === 0 ? text : h("span", { class: kind === "" ? null : `t-${kind}` }, text);
    if (typeof visibleText === "string" || frames.length === 0) return visibleText;
    const kernel = kernelOfFrame(this.store.index, frames[0]);
    visibleText.classList.add("piece", ...(kernel === null ? [] : kernelClass(kernel).split(" ")));
    visibleText.dataset.frame = String(frames[0]);
    this.parts.push({ element: visibleText, frames });
    return visibleText;
  }

  /** Adds the buffer's name to data1 in a text; the name is drawn beside it, and is not part of the copied text. */
  private addName(text: string, kind: string, language: string): (string | HTMLElement)[] {
    const { index } = this.store;
    const parts = language === "source" ? [text] : text.split(/(\bdata\d+\b)/);
    return parts.flatMap((part, i): (string | HTMLElement)[] => {
      if (part === "") return [];
      const says = i % 2 === 0 ? "" : index.argumentText(this.kernel, Number(part.slice(4)));
      if (says === "") return [kind === "" ? part : h("span", { class: `t-${kind}` }, part)];
      return [
        h(
          "span",
          { class: `argument${kind === "" ? "" : ` t-${kind}`}`, title: `${part}: ${says}`, "data-name": says },
          part,
        ),
      ];
    });
  }

  private mark(): void {
    const { selected, related, hovered, hoverRelated } = this.store;
    const { index } = this.store;
    const [chosen, origins, pointed] =
      this.parts.length === 0 ? [] : [selected, related, hovered].map((nodes) => framesOf(index, nodes));
    for (const { element, frames } of this.parts) {
      element.classList.toggle("at", chosen.has(frames[0]));
      element.classList.toggle(
        "in",
        frames.some((frame) => chosen.has(frame)),
      );
      element.classList.toggle("from", chosen.size === 0 && origins.has(frames[0]));
      element.classList.toggle("hov", pointed.has(frames[0]));
    }
    this.listing?.lines.forEach(({ nodes }, i) => {
      const { classList } = this.rows[i];
      const isSelected = nodes.some((id) => selected.has(id));
      classList.toggle("sel", isSelected);
      classList.toggle("rel", !isSelected && nodes.some((id) => related.has(id)));
      classList.toggle("hov", hoverRelated.size > 0 && nodes.some((id) => hovered.has(id) || hoverRelated.has(id)));
    });
  }

  /** Scrolls to the first highlighted line, if none is visible. */
  private scrollToMarked(): void {
    if (this.store.selected.size === 0 && this.lastScrolledFor === null) {
      const first = this.findFirstLine();
      if (first)
        this.body.scrollTop +=
          // including the whole line above it
          first.getBoundingClientRect().top - this.body.getBoundingClientRect().top - first.offsetHeight;
    }
    if (this.store.selected === this.lastScrolledFor || this.store.selected.size === 0) return;
    this.lastScrolledFor = this.store.selected;
    const lit = this.rows.filter((row) => row.classList.contains("sel"));
    const all = this.findMostSpecific(lit.length > 0 ? lit : this.rows.filter((row) => row.classList.contains("rel")));
    if (all.length === 0) return;
    const { top, bottom } = this.body.getBoundingClientRect();
    const isSeen = (row: HTMLElement): boolean => {
      const box = row.getBoundingClientRect();
      return box.top >= top && box.bottom <= bottom;
    };
    if (all.some(isSeen)) return;
    const line = Math.max(1, all[0].offsetHeight);
    this.body.scrollTop +=
      all[0].getBoundingClientRect().top - top - Math.round(this.body.clientHeight / 3 / line) * line;
    this.body.scrollLeft = 0;
  }

  /** Returns the lines with the fewest nodes: a typedef that half the program shares is not what the user searches. */
  private findMostSpecific(rows: HTMLElement[]): HTMLElement[] {
    const breadth = (row: HTMLElement): number => this.listing!.lines[Number(row.dataset.line)].nodes.length;
    const narrowest = Math.min(...rows.map(breadth));
    return rows.filter((row) => breadth(row) === narrowest);
  }

  /** Returns the first interesting line: the user's first line with nodes, or the head of the kernel's function. */
  private findFirstLine(): HTMLElement | undefined {
    if (this.listing?.language === "source") return this.rows.find((row) => row.classList.contains("linked"));
    const name = this.kernel === null ? undefined : this.store.index.trace.kernels[this.kernel]?.name;
    return name === undefined ? undefined : this.rows.find((row) => row.textContent?.includes(`${name}(`));
  }

  private findLine(event: Event): number {
    const row = (event.target as Element | null)?.closest?.<HTMLElement>(".line");
    return row === null || row === undefined ? -1 : Number(row.dataset.line);
  }

  /** Returns the nodes of the line, or of the part of a Python line at the event. */
  private findNodes(event: Event): readonly number[] {
    const piece = (event.target as Element | null)?.closest?.<HTMLElement>(".piece");
    if (piece) return this.store.index.nodesOfFrame(Number(piece.dataset.frame));
    return this.listing?.lines[this.findLine(event)]?.nodes ?? [];
  }

  private choose(event: Event): void {
    if ((getSelection()?.toString() ?? "") !== "") return; // the user is copying text
    const line = this.findLine(event);
    if (line >= 0) this.selectLine(line, this.findNodes(event));
  }

  private selectLine(line: number, nodes: readonly number[]): void {
    this.lastScrolledFor = null;
    this.store.select(nodes);
    this.rows.forEach((row, i) => row.classList.toggle("caret", i === line));
  }

  /** Handles up and down: walks the lines with nodes, in Python their parts too; the pane scrolls along. */
  private walk(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || this.listing === null) return;
    event.preventDefault();
    event.stopPropagation();
    const { index, selected } = this.store;
    const stops = listLineStops(index, this.listing.lines);
    const isHere = ({ nodes }: LineStop): boolean =>
      nodes.length === selected.size && nodes.every((id) => selected.has(id));
    const caret = this.rows.findIndex((row) => row.classList.contains("caret"));
    let current = stops.findIndex((stop) => stop.line === caret && isHere(stop));
    if (current < 0)
      current =
        Math.max(
          0,
          stops.findIndex(({ nodes }) => nodes.some((id) => selected.has(id))),
        ) - (step > 0 ? 1 : 0);
    const stop = stops[current + step];
    if (stop === undefined) return;
    this.selectLine(stop.line, stop.nodes);
    this.rows[stop.line].scrollIntoView({ block: "nearest" });
    this.body.scrollLeft = 0;
  }
}

function shortenName(name: string): string {
  return name.split(/[\\/]/).pop() ?? name;
}
