// The texts of a stage in the stepper, each beside the previous text. The search covers the texts of all stages, and a
// line shows its history.

import { languageIn } from "../dialect";
import { button, h, replaceChildren, tab, tabList } from "../dom";
import { count, truncate } from "../format";
import type { StageText } from "../model";
import type { Change, Store, View } from "../store";
import { type TextPosition, findLineHistory } from "../stage_text_search";
import { TextDiffView } from "./text_diff";
import { TextSearchField } from "./text_search_field";

/** One view per store, so that the search and the selected line survive a change of stage. */
const views = new WeakMap<Store, StageTextView>();

function viewOf(store: Store): StageTextView {
  const view = views.get(store) ?? new StageTextView(store);
  views.set(store, view);
  return view;
}

/** Creates the view of a stage's texts. */
export function makeTexts(store: Store, texts: readonly StageText[]): View {
  const view = viewOf(store);
  view.show(texts);
  return view;
}

/** Searches the texts of all stages, and shows the first match. */
export function findInTexts(store: Store, query: string): void {
  viewOf(store).finder.searchFor(query);
}

/** Returns the history of the selected line; a click goes to an entry. */
export function listHistory(store: Store): HTMLElement[] {
  const { chosen } = viewOf(store);
  if (chosen === null)
    return [h("p", { class: "note" }, "Choose a line of a text: the lines that it came from are listed here.")];
  const { trace } = store.index;
  const history = findLineHistory(trace, chosen);
  const { id, language, lines } = trace.stage_texts[chosen.text];
  const head = h(
    "p",
    { class: "note" },
    h("b", {}, truncate(lines[chosen.line].text.trim(), 80)),
    `: ${languageIn(trace, language)}, line ${chosen.line + 1}. `,
    history.length === 1 ? "No earlier line led here." : `${count(history.length - 1, "earlier line")} led here.`,
  );
  const rows = history.map((place) => {
    const text = trace.stage_texts[place.text];
    const isLast = place.text === id;
    return h(
      "button",
      {
        type: "button",
        class: "event of-line",
        "aria-current": isLast ? "step" : null,
        onclick: () => viewOf(store).go(place),
      },
      h("span", { class: "faint" }, `${languageIn(trace, text.language)}, line ${place.line + 1}`),
      h("b", {}, trace.stages[text.stage].name),
      h("code", {}, truncate(text.lines[place.line].text.trim(), 110)),
    );
  });
  return [head, ...rows];
}

class StageTextView implements View {
  readonly element = h("div", { class: "stagetext" });
  readonly finder: TextSearchField;
  /** The line that was selected last. */
  chosen: TextPosition | null = null;
  private readonly diff: TextDiffView;
  private readonly bar = h("div", { class: "bar" });
  private readonly history: HTMLButtonElement;
  private texts: readonly StageText[] = [];
  private textIndex = 0;
  private isWhole = false;

  constructor(private readonly store: Store) {
    this.diff = new TextDiffView(store);
    this.diff.onChoose = (side, line) => this.choose(side, line);
    this.finder = new TextSearchField({
      texts: () => store.index.trace.stage_texts.map(({ lines }) => lines),
      at: () => {
        const text = this.texts[this.textIndex]?.id ?? 0;
        return this.chosen?.text === text ? this.chosen : { text, line: -1 };
      },
      show: (place) => this.go(place),
      mark: () => this.diff.find((line) => this.finder.hits(line)),
    });
    this.history = button("history", "The lines that led to the chosen line (B)", () => {
      store.go({ panel: "history" });
    });
    this.history.classList.add("quiet");
    this.element.append(this.bar, this.diff.element);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target === this.finder.input) return;
      event.preventDefault();
      event.stopPropagation();
      this.finder.input.focus();
      this.finder.input.select();
    });
  }

  update(change: Change): void {
    this.diff.update(change);
  }

  /** Shows the texts of a stage, first that of the selected line if it is one of them. */
  show(texts: readonly StageText[]): void {
    this.texts = texts;
    this.textIndex = Math.max(
      0,
      texts.findIndex(({ id }) => id === this.chosen?.text),
    );
    this.draw();
  }

  /** Goes to a line of any stage, and selects it. */
  go(place: TextPosition): void {
    const { store } = this;
    const text = store.index.trace.stage_texts[place.text];
    const { kernel } = store.index.trace.stages[text.stage];
    const { input } = this.finder;
    const hadFocus = input.matches(":focus");
    this.chosen = place;
    const same = this.texts.findIndex(({ id }) => id === place.text);
    store.go({ stage: text.stage, kernel: kernel ?? store.cursor.kernel, place: "passes", panel: "rewrites" });
    store.select(text.lines[place.line].nodes);
    if (same >= 0) {
      this.textIndex = same;
      this.draw();
    }
    if (hadFocus) requestAnimationFrame(() => input.focus()); // by then the other stage's text is shown
  }

  private choose(side: "before" | "after", line: number): void {
    const text = this.texts[this.textIndex];
    const id = side === "after" ? text.id : text.before;
    if (id === null) return;
    this.chosen = { text: id, line };
    this.diff.caret(side, line);
    this.nameHistory();
  }

  private nameHistory(): void {
    this.history.disabled = this.chosen === null;
    this.history.textContent = this.chosen === null ? "history" : `history of line ${this.chosen.line + 1}`;
  }

  private draw(): void {
    const { trace } = this.store.index;
    const text = this.texts[this.textIndex];
    const before = text.before === null ? null : trace.stage_texts[text.before];
    const isSame = before !== null && before.language === text.language;
    const tabs = this.texts.map(({ title, language }, i) =>
      tab(String(i), title || languageIn(trace, language), i === this.textIndex, () => {
        this.textIndex = i;
        this.draw();
      }),
    );
    const wholeButton = button(
      "whole text",
      "Show the equal lines, too",
      () => {
        this.isWhole = !this.isWhole;
        this.diff.whole(this.isWhole);
        wholeButton.setAttribute("aria-pressed", String(this.isWhole));
      },
      "quiet",
    );
    wholeButton.setAttribute("aria-pressed", String(this.isWhole));
    const says = `${languageIn(trace, text.language)}, ${count(text.lines.length, "line")}`;
    replaceChildren(
      this.bar,
      this.texts.length > 1 ? tabList("Texts of this stage", ...tabs) : null,
      h("span", { class: "faint" }, before === null ? says : `${says}; left: before this stage`),
      h("span", { class: "space" }),
      this.finder.status,
      this.finder.input,
      trace.rules.length > 0 ? null : this.history, // otherwise the panel lists firings there
      isSame ? wholeButton : null,
    );
    this.nameHistory();
    this.diff.show({ before: isSame ? before.lines : null, after: text.lines, language: text.language });
    this.diff.find((line) => this.finder.hits(line));
    if (this.chosen?.text === text.id) this.diff.caret("after", this.chosen.line, true);
  }
}
