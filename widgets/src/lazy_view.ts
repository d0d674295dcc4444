// A view whose code is loaded on first use; a line of text takes its place until then.

import { ChunkMissing } from "./chunks";
import { h, replaceChildren } from "./dom";
import { PANEL_ROWS } from "./panel_rows";
import type { Change, Panel, Store, View } from "./store";

export class LazyView implements View {
  element: HTMLElement = h("div", { class: "lazy-view scroll", tabindex: 0, role: "region" });
  private view: View | null = null;
  private loading: Promise<void> | null = null;
  private isGone = false;

  /**
   * `chunk`: the entry in src/chunks with the view. `isOpen`: whether the panel is visible. `isAlone`: whether it is a
   * standalone widget.
   */
  constructor(
    private readonly store: Store,
    private readonly panel: Panel,
    private readonly chunk: string,
    private readonly isOpen: () => boolean,
    private readonly isAlone: boolean,
  ) {
    this.element.setAttribute("aria-label", PANEL_ROWS[panel].title);
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

  /** Resolves when it shows its content, as far as it was opened. */
  get ready(): Promise<void> {
    return this.loading ?? Promise.resolve();
  }

  private open(): void {
    if (this.loading !== null || !this.isOpen()) return;
    const { needsPython, needs = [] } = PANEL_ROWS[this.panel];
    if (needsPython && this.store.sendRequest === null && !needs.some((need) => this.store.hasData(need)))
      return this.showAlternative();
    this.element.setAttribute("aria-busy", "true");
    this.loading = this.load();
  }

  private async load(): Promise<void> {
    try {
      const { views, standaloneViews, css = "" } = await this.store.chunks.load(this.chunk);
      if (this.isGone) return;
      addChunkStyle(this.element, this.chunk, css);
      const ViewClass = (this.isAlone ? standaloneViews?.[this.panel] : undefined) ?? views[this.panel]!;
      this.show(new ViewClass(this.store));
    } catch (error) {
      this.element.removeAttribute("aria-busy");
      if (error instanceof ChunkMissing && PANEL_ROWS[this.panel].emptyText !== undefined)
        return this.showAlternative();
      const text = error instanceof Error ? error.message : String(error);
      replaceChildren(this.element, h("p", { class: "note", role: "alert" }, text));
    }
  }

  /** Shows the alternative if there is no content. */
  private showAlternative(): void {
    const [text, code] = PANEL_ROWS[this.panel].emptyText ?? ["", ""];
    const call = code.replace("KERNEL", String(this.store.cursor.kernel ?? 0));
    replaceChildren(this.element, h("p", { class: "note" }, text, call === "" ? null : h("code", {}, call)));
  }

  private show(view: View): void {
    view.element.hidden = this.element.hidden;
    this.element.replaceWith(view.element);
    this.element = view.element;
    this.view = view;
  }
}

/** Adds the style of a chunk to an explorer, once. */
export function addChunkStyle(element: Element, chunk: string, css: string): void {
  const root = element.closest(".tinyexplore");
  if (css === "" || root === null || root.querySelector(`style[data-chunk="${chunk}"]`) !== null) return;
  root.firstElementChild!.after(h("style", { "data-chunk": chunk }, css));
}
