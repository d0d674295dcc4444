// The search field over the graph: matches are highlighted, and Enter goes to the next match.

import { h } from "../dom";
import { parseQuery } from "../search_query";
import type { DrawnBox } from "../visible_graph";
import type { Store } from "../store";
import { containsAny } from "./drawing";

interface Owner {
  boxes: () => readonly DrawnBox[];
  /** Returns every node of the visible graph, drawn or not. */
  nodes: () => Iterable<number>;
  mark: () => void;
  show: (box: DrawnBox) => void;
  leave: () => void;
}

export class GraphSearchField {
  readonly input: HTMLInputElement;
  readonly matchCount = h("span", { class: "found", role: "status" });
  /** The boxes that match; null without a search. */
  hits: Set<number> | null = null;

  constructor(
    private readonly store: Store,
    private readonly owner: Owner,
  ) {
    this.input = h("input", {
      type: "search",
      class: "search",
      placeholder: "find",
      "aria-label": "Search the graph: words, /regular expressions/, op: dtype: shape: group: arg:",
      title: "Words, /regular expressions/, op: dtype: shape: group: arg: detail:; Enter goes to the next match",
    });
    this.input.addEventListener("input", () => {
      this.run();
      this.owner.mark();
    });
    this.input.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Searches for `query`, and focuses the field. */
  searchFor(query: string): void {
    this.input.value = query;
    this.run();
    this.owner.mark();
    this.input.focus({ preventScroll: true });
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  run(): void {
    const matcher = parseQuery(this.input.value, this.store.index.trace.nodes);
    this.input.classList.remove("bad");
    this.hits = null;
    this.matchCount.textContent = "";
    if (matcher === null) return;
    if (typeof matcher !== "function") {
      this.input.classList.add("bad");
      this.matchCount.textContent = matcher.error;
      return;
    }
    const isHit = (node: number): boolean => matcher(this.store.index.node(node));
    const boxes = this.owner.boxes();
    this.hits = new Set(boxes.filter((box) => box.members.some(isHit)).map((box) => box.id));
    const drawn = boxes.reduce((sum, box) => sum + box.members.filter(isHit).length, 0);
    const all = [...this.owner.nodes()].filter(isHit).length;
    this.matchCount.textContent = `${all} found${all > drawn ? `, ${all - drawn} not drawn` : ""}`;
  }

  private onKey(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.input.value = "";
      this.run();
      this.owner.mark();
      this.owner.leave();
    }
    if (event.key !== "Enter" || this.hits === null || this.hits.size === 0) return;
    const hits = this.owner.boxes().filter((box) => this.hits!.has(box.id));
    const current = hits.findIndex((box) => containsAny(box, this.store.selected));
    this.owner.show(hits[(current + (event.shiftKey ? hits.length - 1 : 1)) % hits.length]);
  }
}
