// The glossary: every term of the explorer, by group, with a search field.

import { h, replaceChildren } from "../dom";
import { GLOSSARY } from "../glossary";
import type { Store, View } from "../store";

export class GlossaryView implements View {
  readonly element = h("div", { class: "glossary scroll", tabindex: 0, role: "region", "aria-label": "Glossary" });
  private readonly field = h("input", {
    class: "search",
    type: "search",
    placeholder: "find a word",
    "aria-label": "Find a word in the glossary",
  });
  private readonly list = h("div", { class: "groups" });

  private drawn: readonly string[] = [];

  constructor(private readonly store: Store) {
    this.field.addEventListener("input", () => {
      store.lookedUpTerms = [];
      this.draw();
    });
    this.element.append(this.field, this.list);
    this.draw();
  }

  update(): void {
    if (this.store.lookedUpTerms !== this.drawn) this.draw();
  }

  private draw(): void {
    const words = this.store.lookedUpTerms;
    this.drawn = words;
    if (words.length > 0) this.field.value = "";
    this.field.placeholder = words.length > 0 ? `shown: ${words.join(", ")}` : "find a word";
    const query = this.field.value.trim().toLowerCase();
    const isShown = (word: string, text: string): boolean =>
      words.length > 0 ? words.includes(word) : `${word} ${text}`.toLowerCase().includes(query);
    const groups = Object.entries(GLOSSARY).flatMap(([key, { title, terms }]) => {
      const matches = Object.entries(terms).filter(([word, text]) => isShown(word, text));
      if (matches.length === 0) return [];
      const mark = (word: string): string | null =>
        key === "axis" ? `axis-${word}` : key === "decision" ? `tag d-${word}` : null;
      const rows = matches.flatMap(([word, text]) => [
        h("dt", {}, h("span", { class: mark(word) }, word)),
        h("dd", {}, text),
      ]);
      return [h("section", {}, h("h5", {}, title), h("dl", {}, ...rows))];
    });
    replaceChildren(this.list, ...(groups.length > 0 ? groups : [h("p", { class: "empty" }, "No such word.")]));
  }
}
