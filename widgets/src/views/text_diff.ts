// A text after a stage beside the previous one: changes in color, equal parts folded. A click on a line selects its
// nodes, so that its line of Python, its UOps and its lines in both texts are highlighted.

import { button, h, replaceChildren } from "../dom";
import type { Change, Store, View } from "../store";
import { type TextDiffRow, diffRows, foldEqual } from "../side_by_side_diff";
import { tokenize } from "../tokenizer";

const CONTEXT = 3; // equal lines around a change
const MOST_ROWS = 3000; // lines of one text that are drawn

export interface DiffLine {
  text: string;
  nodes: readonly number[];
  /** Shown at the end of the line, and as its tooltip. */
  remarks?: readonly string[];
}

export interface DiffTexts {
  /** Null for the first text, which is shown whole. */
  before: readonly DiffLine[] | null;
  after: readonly DiffLine[];
  language: string;
}

type Side = "before" | "after";

interface Row {
  element: HTMLElement;
  nodes: readonly number[];
  text: string;
  side: Side;
  place: number;
}

export class TextDiffView implements View {
  readonly element = h("div", {
    class: "textdiff scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "The text after this pass",
  });
  /** Called with the clicked line and its text. */
  onChoose: ((side: Side, line: number) => void) | null = null;
  private texts: DiffTexts | null = null;
  private rows: Row[] = [];
  private isWhole = false;
  private readonly folds = new Map<HTMLElement, readonly TextDiffRow[]>();
  private isFound: ((line: string) => boolean) | null = null;
  private revealed: Set<number> | null = null;

  constructor(private readonly store: Store) {
    this.element.addEventListener("mouseover", (event) => this.store.hover(this.findNodes(event)));
    this.element.addEventListener("mouseleave", () => this.store.hover([]));
    this.element.addEventListener("click", (event) => this.choose(event));
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.choose(event);
    });
  }

  update(change: Change): void {
    if (change.selection || change.hover) this.mark();
    if (change.selection) this.scrollToSelected();
  }

  /** Whether equal lines are visible, too. */
  whole(isWhole: boolean): void {
    this.isWhole = isWhole;
    if (this.texts !== null) this.show(this.texts);
  }

  /** Highlights the lines for which `isFound` is true. */
  find(isFound: (line: string) => boolean): void {
    this.isFound = isFound;
    for (const row of this.rows) row.element.classList.toggle("hit", isFound(row.text));
  }

  /** Marks one line as selected. `isShown`: whether to open its fold and scroll to it. */
  caret(side: Side, line: number, isShown = false): void {
    const isIt = (row: Row): boolean => row.side === side && row.place === line;
    if (isShown && !this.rows.some(isIt)) this.open(side, line);
    for (const row of this.rows) row.element.classList.toggle("caret", isIt(row));
    if (!isShown) return;
    const element = this.rows.find(isIt)?.element;
    const scroll = (): void => {
      if (element === undefined) return;
      const box = element.getBoundingClientRect();
      const viewport = this.element.getBoundingClientRect();
      if (box.top < viewport.top || box.bottom > viewport.bottom)
        this.element.scrollTop += box.top - viewport.top - this.element.clientHeight / 3;
    };
    if (this.element.isConnected) scroll();
    requestAnimationFrame(scroll); // after layout
  }

  /** Opens the fold that contains a line. */
  private open(side: Side, line: number): void {
    for (const [element, hidden] of this.folds) if (hidden.some((row) => row[side] === line)) element.click();
  }

  show(texts: DiffTexts): void {
    this.texts = texts;
    this.rows = [];
    this.folds.clear();
    const { before, after } = texts;
    this.element.classList.toggle("is-one", before === null);
    this.element.dataset.language = texts.language;
    const rows =
      before === null
        ? after.map((_, i): TextDiffRow => ({ before: null, after: i, same: true }))
        : diffRows(
            before.map(({ text }) => text),
            after.map(({ text }) => text),
          );
    const changed = rows.findIndex(({ same }) => !same);
    const drawn = this.isWhole || before === null ? rows : foldEqual(rows, CONTEXT);
    const elements = drawn
      .slice(0, MOST_ROWS)
      .map((row) => ("hidden" in row ? this.fold(row.hidden) : this.makeRow(row)));
    if (drawn.length > MOST_ROWS)
      elements.push(h("p", { class: "note" }, `${drawn.length - MOST_ROWS} more lines are not drawn.`));
    replaceChildren(this.element, ...elements);
    this.element.scrollTop = 0;
    if (this.isWhole && changed > 0)
      this.element.children[Math.max(0, changed - CONTEXT)]?.scrollIntoView({ block: "start" });
    this.mark();
    this.revealed = null;
    this.scrollToSelected();
  }

  private fold(hidden: readonly TextDiffRow[]): HTMLElement {
    const says = `${hidden.length} equal lines`;
    const foldButton: HTMLElement = button(
      `⋯ ${says}`,
      `Show ${says}`,
      () => {
        this.folds.delete(foldButton);
        foldButton.replaceWith(...hidden.map((row) => this.makeRow(row)));
        this.mark();
      },
      "quiet fold",
    );
    this.folds.set(foldButton, hidden);
    return foldButton;
  }

  private makeRow({ before, after, same }: TextDiffRow): HTMLElement {
    const { texts } = this;
    const left = before === null ? null : (texts!.before?.[before] ?? null);
    const right = after === null ? null : texts!.after[after];
    const cells = texts!.before === null ? [] : [this.makeCell(left, same ? "" : "del", before, "before")];
    return h(
      "div",
      { class: same ? "texts same" : "texts" },
      ...cells,
      this.makeCell(right, same ? "" : "add", after, "after"),
    );
  }

  private makeCell(line: DiffLine | null, kind: string, place: number | null, side: Side): HTMLElement {
    if (line === null) return h("div", { class: "cell none" });
    const { text, nodes, remarks = [] } = line;
    const code = tokenize(this.texts!.language, text).map(([token, part]) =>
      token === "" ? part : h("span", { class: `t-${token}` }, part),
    );
    const notes = remarks.map((remark) => h("span", { class: "remark", title: remark }, remark));
    const element = h(
      "div",
      {
        class: `cell ${kind}${nodes.length > 0 ? " linked" : ""}${this.isFound?.(text) ? " hit" : ""}`,
        tabindex: nodes.length > 0 ? -1 : null,
        "data-row": this.rows.length,
      },
      h("u", { "aria-hidden": "true" }, String((place ?? 0) + 1)),
      h("code", {}, ...code),
      ...notes,
    );
    this.rows.push({ element, nodes, text, side, place: place ?? 0 });
    return element;
  }

  private findNodes(event: Event): readonly number[] {
    const cell = (event.target as Element | null)?.closest?.<HTMLElement>("[data-row]");
    return cell === null || cell === undefined ? [] : this.rows[Number(cell.dataset.row)].nodes;
  }

  private choose(event: Event): void {
    if ((getSelection()?.toString() ?? "") !== "") return; // the user is copying text
    if ((event.target as Element).closest("[data-row]") === null) return;
    const cell = (event.target as Element).closest<HTMLElement>("[data-row]")!;
    const { side, place } = this.rows[Number(cell.dataset.row)];
    this.onChoose?.(side, place);
    this.revealed = new Set(this.findNodes(event));
    this.store.select(this.findNodes(event));
  }

  private mark(): void {
    const { selected, related, hovered, hoverRelated } = this.store;
    for (const { element, nodes } of this.rows) {
      const isSelected = nodes.some((id) => selected.has(id));
      element.classList.toggle("sel", isSelected);
      element.classList.toggle("rel", !isSelected && nodes.some((id) => related.has(id)));
      element.classList.toggle("hov", hoverRelated.size > 0 && nodes.some((id) => hovered.has(id)));
    }
  }

  /** Scrolls to the first selected line, if the selection came from elsewhere. */
  private scrollToSelected(): void {
    const { selected } = this.store;
    const revealed = this.revealed;
    this.revealed = null;
    if (selected.size === 0 || (revealed !== null && revealed.size === selected.size)) return;
    const lit = this.rows.filter(({ element }) => element.classList.contains("sel"));
    const { top, bottom } = this.element.getBoundingClientRect();
    const isSeen = ({ element }: { element: HTMLElement }): boolean => {
      const box = element.getBoundingClientRect();
      return box.top >= top && box.bottom <= bottom;
    };
    if (lit.length === 0 || lit.some(isSeen)) return;
    const offset = lit[0].element.getBoundingClientRect().top - top;
    this.element.scrollTop += offset - this.element.clientHeight / 3;
  }
}
