// The origin of each panel's view: the bundle, or a chunk that is loaded on first use.

import { h } from "./dom";
import { LazyView } from "./lazy_view";
import { PANEL_ROWS } from "./panel_rows";
import { BUNDLED } from "./panel_views";
import type { Change, Panel, Store, View } from "./store";

/** Creates the view of a panel. `isOpen`: whether the panel is visible; by default always, for a standalone widget. */
export function makePanel(store: Store, panel: Panel, isOpen?: () => boolean): View {
  const { chunk } = PANEL_ROWS[panel];
  if (chunk !== undefined) return new LazyView(store, panel, chunk, isOpen ?? (() => true), isOpen === undefined);
  const ViewClass: new (store: Store) => View = BUNDLED[panel as keyof typeof BUNDLED];
  return isOpen === undefined ? new ViewClass(store) : new DeferredView(() => new ViewClass(store), isOpen);
}

/** A view that is created when it is first shown. */
export class DeferredView implements View {
  element: HTMLElement = h("div", { hidden: true });
  private view: View | null = null;

  constructor(
    private readonly make: () => View,
    private readonly isOpen: () => boolean,
  ) {
    if (isOpen()) this.getOrCreate();
  }

  /** Returns the view; creates it on the first call. */
  getOrCreate(): View {
    if (this.view !== null) return this.view;
    this.view = this.make();
    this.view.element.hidden = this.element.hidden;
    this.element.replaceWith(this.view.element);
    this.element = this.view.element;
    return this.view;
  }

  update(change: Change): void {
    if (this.view !== null) this.view.update(change);
    else if (this.isOpen()) this.getOrCreate();
  }

  destroy(): void {
    this.view?.destroy?.();
  }
}
