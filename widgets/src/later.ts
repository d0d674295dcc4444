// A view whose code comes when it is first looked at; a line stands in its place until then.

import { ChunkMissing } from "./chunks";
import { h, replaceChildren } from "./dom";
import type { Change, Panel, Store, View } from "./store";

export interface Source {
  /** The entry in src/chunks that has the view. */
  chunk: string;
  /** For a view that asks Python: what to say where nobody answers, and what to call instead; null if it has something to show all the same. */
  asks?: (store: Store) => [text: string, code: string] | null;
  /** What to say in a page that was saved without the chunk, because it would have nothing to show. */
  without?: string;
}

export class Later implements View {
  element: HTMLElement = h("div", { class: "later scroll", tabindex: 0, role: "region" });
  private view: View | null = null;
  private loading: Promise<void> | null = null;
  private isGone = false;

  /** `isOpen`: whether the reader looks at it; `isAlone`: as a widget of its own. */
  constructor(
    private readonly store: Store,
    private readonly panel: Panel,
    private readonly source: Source,
    private readonly isOpen: () => boolean,
    private readonly isAlone: boolean,
  ) {
    this.element.setAttribute("aria-label", `${panel[0].toUpperCase()}${panel.slice(1)}`);
    this.open();
  }

  update(change: Change): void {
    if (this.view !== null) this.view.update(change);
    else this.open();
  }

  destroy(): void {
    this.isGone = true;
    this.view?.destroy?.();
  }

  /** Resolves when it shows what it has to show, as far as it was opened. */
  get ready(): Promise<void> {
    return this.loading ?? Promise.resolve();
  }

  private open(): void {
    if (this.loading !== null || !this.isOpen()) return;
    const told = this.store.ask === null ? this.source.asks?.(this.store) : null;
    if (told) {
      const [text, code] = told;
      replaceChildren(this.element, h("p", { class: "note" }, text, h("code", {}, code)));
      return;
    }
    this.element.setAttribute("aria-busy", "true");
    this.loading = this.load();
  }

  private async load(): Promise<void> {
    try {
      const { views, lone, css = "" } = await this.store.chunks.load(this.source.chunk);
      if (this.isGone) return;
      this.dress(css);
      const Made = (this.isAlone ? lone?.[this.panel] : undefined) ?? views[this.panel]!;
      this.show(new Made(this.store));
    } catch (error) {
      this.element.removeAttribute("aria-busy");
      const { without } = this.source;
      const isMeant = error instanceof ChunkMissing && without !== undefined;
      const text = isMeant ? without : error instanceof Error ? error.message : String(error);
      replaceChildren(this.element, h("p", { class: "note", role: isMeant ? null : "alert" }, text));
    }
  }

  private show(view: View): void {
    view.element.hidden = this.element.hidden;
    this.element.replaceWith(view.element);
    this.element = view.element;
    this.view = view;
  }

  /** The style of a chunk stands once in each explorer. */
  private dress(css: string): void {
    const root = this.element.closest(".tinyexplore");
    const { chunk } = this.source;
    if (css === "" || root === null || root.querySelector(`style[data-chunk="${chunk}"]`) !== null) return;
    root.firstElementChild!.after(h("style", { "data-chunk": chunk }, css));
  }
}
