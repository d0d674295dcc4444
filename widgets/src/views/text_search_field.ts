// The search field over texts: matches are highlighted in the visible text, and Enter goes to the next match in all texts.

import { h } from "../dom";
import { count } from "../format";
import { type TextPosition, parseLineQuery, findNextPlace, findPlaces } from "../stage_text_search";

interface Owner {
  /** Returns the lines of each text; empty for a text that equals the previous one. */
  texts: () => readonly (readonly { text: string }[])[];
  /** Returns the current position: the visible text, and the line that was selected last, -1 for none. */
  at: () => TextPosition;
  show: (place: TextPosition) => void;
  mark: () => void;
}

export class TextSearchField {
  readonly input: HTMLInputElement;
  readonly status = h("span", { class: "faint found", role: "status" });
  private places: TextPosition[] = [];
  private matcher: ((line: string) => boolean) | null = null;

  constructor(private readonly owner: Owner) {
    this.input = h("input", {
      type: "search",
      class: "search",
      placeholder: "find in all texts",
      "aria-label": "Search the lines of all texts: words, /regular expressions/",
      title: "Words, /regular expressions/; Enter goes to the next match, Shift+Enter to the one before",
    });
    this.input.addEventListener("input", () => this.run());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Searches for `query`, and shows the first match. */
  searchFor(query: string): void {
    this.input.value = query;
    this.run();
    const [first] = this.places;
    if (first !== undefined) this.owner.show(first);
  }

  /** Whether a line matches the query. */
  hits(line: string): boolean {
    return this.matcher?.(line) ?? false;
  }

  private run(): void {
    const matcher = parseLineQuery(this.input.value);
    const isQuery = typeof matcher === "function";
    this.matcher = isQuery ? matcher : null;
    this.places = isQuery ? findPlaces(this.owner.texts(), matcher) : [];
    this.input.classList.toggle("bad", matcher !== null && !isQuery);
    const texts = new Set(this.places.map(({ text }) => text)).size;
    this.status.textContent =
      matcher === null
        ? ""
        : isQuery
          ? `${count(this.places.length, "line")} of ${count(texts, "text")}`
          : matcher.error;
    this.owner.mark();
  }

  private onKey(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.input.value = "";
      this.run();
      this.input.blur();
    }
    if (event.key !== "Enter") return;
    const next = findNextPlace(this.places, this.owner.at(), event.shiftKey ? -1 : 1);
    if (next !== undefined) this.owner.show(next);
  }
}
