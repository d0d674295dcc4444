// Links tooltips to the glossary: F1 shows the terms that the tooltip under the pointer explains.

import { GLOSSARY } from "./glossary";
import type { Store } from "./store";

export const HINT = "F1: in the glossary";

/** Returns the words of the glossary whose meaning occurs in a text. */
export function findExplainedTerms(text: string): string[] {
  const groups = Object.values(GLOSSARY).flatMap(({ terms }) => Object.entries(terms));
  return [...new Set(groups.filter(([, meaning]) => text.includes(meaning)).map(([word]) => word))];
}

/** Remembers the tooltip under the pointer, adds a hint about F1, and handles F1. */
export function linkTooltips(root: HTMLElement, store: Store, work: () => Promise<void>): void {
  let words: string[] = [];
  root.addEventListener("pointerover", (event) => {
    const target = event.target as Element;
    const titled = target.closest<HTMLElement>("[title]");
    const drawn = target.closest("g")?.querySelector(":scope > title")?.textContent;
    words = findExplainedTerms(titled?.title ?? drawn ?? "");
    if (titled !== null && words.length > 0 && !titled.title.includes(HINT)) titled.title += `\n${HINT}`;
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "F1") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    store.lookedUpTerms = words;
    void work().then(() => store.go({ panel: "glossary" }));
  });
}
