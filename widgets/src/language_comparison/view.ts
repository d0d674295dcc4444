// Language comparison: a kernel in two or three languages side by side, with lines aligned by the nodes of its AST.
// Python computes it; a page shows stored responses.

import { LatestRequest, makeNote, findProgramKernel } from "../latest_request";
import { button, h, replaceChildren } from "../dom";
import { count } from "../format";
import type { Change, Store, View } from "../store";
import { tokenize } from "../tokenizer";
import { type LanguageLine, type Row, alignTexts } from "./align_texts";
import type { LanguageComparisonData, TranslationData } from "../requests";

const FIRST = ["c", "cuda", "llvm"];
const WIDE = 1000; // pixels; from this width on there are three columns
const FOLDED = 3; // lines before the function; more are folded

export class LanguageComparisonView implements View {
  readonly element = h("div", {
    class: "languages scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "Language comparison",
  });
  private kernel: number | null = null;
  private translations: LanguageComparisonData | null = null;
  private chosen: (string | null)[] | null = null;
  private isUnfolded = false;
  /** The origin under the pointer. */
  private pointed: number | null = null;
  private lines: { element: HTMLElement; row: number | null; origins: number[] }[] = [];

  private readonly latestRequest: LatestRequest;

  constructor(private readonly store: Store) {
    this.latestRequest = new LatestRequest(store, this.element);
    this.element.addEventListener("mouseover", (event) => this.onPointer(event));
    this.element.addEventListener("mouseleave", () => this.markOrigin(null));
    this.element.addEventListener("click", (event) => this.choose(event));
    this.element.addEventListener("keydown", (event) => this.walk(event));
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
    if (change.selection || change.hover) this.mark();
  }

  private draw(): void {
    const kernel = findProgramKernel(this.store);
    if (this.store.cursor.panel !== "rosetta" || kernel === this.kernel) return;
    this.kernel = kernel;
    void this.latestRequest.send({
      request: { ask: "rosetta", kernel },
      pendingText: "translating …",
      offlineNote: [
        "This page has no translation of this kernel. To store one, call this before you save the page: ",
        `view.kernels[${kernel}].translate()`,
      ],
      show: (found) => this.show(found),
      showNote: (text, code) => this.showNote(text, code),
      onError: () => (this.kernel = null), // the request is repeated when the panel is opened again
    });
  }

  private showNote(text: string, code = ""): void {
    this.translations = null;
    this.lines = [];
    replaceChildren(this.element, makeNote(text, code));
  }

  private show(data: LanguageComparisonData): void {
    this.translations = data;
    this.pointed = null;
    this.lines = [];
    const columns = this.listColumns(data);
    const rows = alignTexts(columns.map(({ lines }) => lines));
    const heads = columns.map((column, i) => this.makeHead(data, column, i));
    const body = this.foldHelpers(rows, columns).map((row) =>
      row instanceof HTMLElement ? row : this.makeRow(data, columns, row),
    );
    const note =
      "Each row is a node of the kernel's AST, before any opt, with its lines in each language. Lines keep their order. A gap is marked where the counterpart is on another row.";
    replaceChildren(
      this.element,
      h(
        "div",
        { class: "steps" },
        h("b", {}, data.kernel),
        columns.length < 3 ? this.makeThirdColumnButton(data) : null,
      ),
      h(
        "table",
        { "data-columns": columns.length },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("small", {}, "AST node")), ...heads)),
        h("tbody", {}, ...body),
      ),
      h("p", { class: "note" }, note),
    );
    this.mark();
  }

  /** Returns the texts of the columns: those that the user chose, as far as they exist. */
  private listColumns({ translations }: LanguageComparisonData): TranslationData[] {
    const limit = this.element.clientWidth >= WIDE ? 3 : 2;
    const accepted = translations.filter(({ refusal }) => refusal === "");
    const first = new Set([...FIRST.flatMap((name) => accepted.filter(({ target }) => target === name)), ...accepted]);
    this.chosen ??= [...first].slice(0, limit).map(({ target }) => target);
    const chosen = this.chosen.flatMap((name) => translations.filter(({ target }) => target === name));
    return chosen.length > 0 ? chosen : translations.slice(0, limit);
  }

  private makeHead(
    data: LanguageComparisonData,
    { target, opts, refusal }: TranslationData,
    columnIndex: number,
  ): HTMLElement {
    const options = data.translations.map((translation) =>
      h(
        "option",
        { value: translation.target, selected: translation.target === target },
        `${translation.words}${translation.machine === "" ? "" : ` · ${translation.machine}`}`,
      ),
    );
    const none = columnIndex < 2 ? [] : [h("option", { value: "" }, "no third column")];
    const select = h(
      "select",
      {
        "aria-label": `Language of column ${columnIndex + 1}`,
        onchange: (event: Event) => this.chooseLanguage(columnIndex, (event.target as HTMLSelectElement).value),
      },
      ...options,
      ...none,
    );
    return h(
      "th",
      { scope: "col" },
      select,
      h(
        "span",
        { class: "opts", title: opts.join(", ") },
        refusal !== "" ? "" : opts.length > 0 ? opts.join(", ") : "no opts",
      ),
    );
  }

  private makeThirdColumnButton(data: LanguageComparisonData): HTMLElement {
    const next =
      data.translations.find(({ target, refusal }) => refusal === "" && !this.chosen!.includes(target)) ??
      data.translations[0];
    return button(
      "add a column",
      "Adds a third language",
      () => this.chooseLanguage(this.chosen!.length, next.target),
      "quiet",
    );
  }

  private chooseLanguage(columnIndex: number, target: string): void {
    const chosen = [...this.chosen!];
    if (target === "") chosen.splice(columnIndex, 1);
    else chosen[columnIndex] = target;
    this.chosen = chosen;
    if (this.translations !== null) this.show(this.translations);
    this.element.querySelectorAll("select")[Math.min(columnIndex, chosen.length - 1)]?.focus();
  }

  /** Folds the lines before the function (helpers and types) if there are many. */
  private foldHelpers(rows: Row[], columns: TranslationData[]): (Row | HTMLElement)[] {
    const start = rows.findIndex(({ origin }) => origin !== null);
    const longest = Math.max(
      0,
      ...rows.slice(0, start).flatMap(({ spans }) => spans.map(([first, end]) => end - first)),
    );
    if (start <= 0 || longest <= FOLDED || this.isUnfolded) return rows;
    const unfold = (): void => {
      this.isUnfolded = true;
      this.show(this.translations!);
    };
    const cells = columns.map((_, i) => {
      const lines = rows.slice(0, start).reduce((sum, { spans }) => sum + spans[i][1] - spans[i][0], 0);
      const words = `${count(lines, "line")} before the function`;
      return h(
        "td",
        { "data-language": columns[i].words },
        lines === 0 ? null : button(words, "Show types and helpers", unfold, "quiet"),
      );
    });
    return [h("tr", { class: "fold" }, h("td", {}), ...cells), ...rows.slice(start)];
  }

  private makeRow(
    { origins }: LanguageComparisonData,
    columns: TranslationData[],
    { origin, spans, elsewhere }: Row,
  ): HTMLElement {
    const [label, detail, group, , ends] = origin === null ? ["", "", "", null, false] : origins[origin];
    const cells = columns.map((column, i) => {
      const [first, end] = spans[i];
      const said = { "data-language": column.words };
      if (column.refusal !== "")
        return h("td", { ...said, class: "no-translation" }, i === 0 || origin === 0 ? column.refusal : "");
      if (first === end)
        return h(
          "td",
          { ...said, class: "gap" },
          origin === null ? "" : elsewhere[i] ? "on another row" : "no counterpart",
        );
      return h("td", said, ...column.lines.slice(first, end).map((line) => this.makeLine(column.language, line)));
    });
    const isNamed = label !== "" || detail !== "";
    const name = h(
      isNamed ? "th" : "td",
      { scope: isNamed ? "row" : null, class: group === "" ? null : `of-${group}`, title: detail },
      ends ? `${label} ${detail}` : label,
    );
    if (detail !== "" && !ends) name.append(h("small", {}, detail));
    return h("tr", origin === null ? {} : { "data-origin": origin }, name, ...cells);
  }

  private makeLine(language: string, [text, row, origins]: LanguageLine): HTMLElement {
    const indent = text.length - text.trimStart().length;
    const parts = tokenize(language, text.trimStart()).map(([kind, part]) =>
      kind === "" ? part : h("span", { class: `t-${kind}` }, part),
    );
    const element = h(
      "div",
      { class: "line", style: `--indent: ${indent}` },
      ...(parts.length === 0 ? ["\u00a0"] : parts),
    );
    this.lines.push({ element, row, origins });
    return element;
  }

  // *** hover and selection ***

  private findOrigin(event: Event): number | null {
    const row = (event.target as Element | null)?.closest?.<HTMLElement>("tr[data-origin]");
    return row === null || row === undefined ? null : Number(row.dataset.origin);
  }

  private nodesOf(origin: number | null): number[] {
    const node = origin === null ? null : (this.translations?.origins[origin][3] ?? null);
    return node === null ? [] : [node];
  }

  private onPointer(event: Event): void {
    this.markOrigin(this.findOrigin(event));
  }

  private markOrigin(origin: number | null): void {
    if (origin === this.pointed) return;
    this.pointed = origin;
    this.store.hover(this.nodesOf(origin));
    this.mark();
  }

  private choose(event: Event): void {
    const target = event.target as Element | null;
    if ((getSelection()?.toString() ?? "") !== "" || target?.closest("select, button") != null) return;
    const origin = this.findOrigin(event);
    const nodes = this.nodesOf(origin);
    if (nodes.length === 0) return;
    this.store.select(nodes);
    const gap = target?.closest<HTMLTableCellElement>("td.gap");
    if (gap != null) this.scrollTo(gap.cellIndex, origin!);
  }

  /** Scrolls to the first corresponding line of a column. */
  private scrollTo(column: number, origin: number): void {
    const line = this.lines.find(
      ({ element, origins }) => origins.includes(origin) && element.closest("td")!.cellIndex === column,
    );
    line?.element.scrollIntoView({ block: "center" });
  }

  private walk(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || (event.target as Element).closest("select") !== null) return;
    event.preventDefault();
    event.stopPropagation();
    const rows = [...this.element.querySelectorAll<HTMLElement>("tr[data-origin]")].filter(
      ({ dataset }) => this.nodesOf(Number(dataset.origin)).length > 0,
    );
    const caretRow = rows.findIndex((row) => row.classList.contains("caret"));
    const next = rows[caretRow < 0 ? (step > 0 ? 0 : rows.length - 1) : caretRow + step];
    if (next === undefined) return;
    for (const row of rows) row.classList.toggle("caret", row === next);
    this.store.select(this.nodesOf(Number(next.dataset.origin)));
    next.scrollIntoView({ block: "nearest" });
  }

  private mark(): void {
    if (this.translations === null) return;
    const { selected, related, hovered, hoverRelated } = this.store;
    const { origins } = this.translations;
    const nodeOf = (origin: number): number => origins[origin][3] ?? -1;
    const isPointed = (origin: number): boolean =>
      this.pointed !== null
        ? origin === this.pointed
        : hovered.has(nodeOf(origin)) || (hoverRelated.size > 0 && hoverRelated.has(nodeOf(origin)));
    for (const { element, row, origins: lineOrigins } of this.lines) {
      const isSelected = lineOrigins.some((origin) => selected.has(nodeOf(origin)));
      element.classList.toggle("sel", isSelected);
      element.classList.toggle("rel", !isSelected && row !== null && related.has(nodeOf(row)));
      element.classList.toggle("hov", lineOrigins.some(isPointed));
    }
    for (const row of this.element.querySelectorAll<HTMLElement>("tr[data-origin]"))
      row.classList.toggle("hov", isPointed(Number(row.dataset.origin)));
  }
}
