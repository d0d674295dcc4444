// Runs the kernels of a page in the reader's browser.

import type { Runnable } from "../browser_run/messages";
import { BrowserRun } from "../browser_run/view";
import type { Store } from "../store";

export { default as css } from "../browser_run/browser_run.css";
export const views = {};

const viewOfStore = new WeakMap<Store, BrowserRun>();

/** Appends "run here" to the panel of times. */
export function attach(panel: HTMLElement, store: Store, runnable: readonly Runnable[]): void {
  const view = viewOfStore.get(store) ?? new BrowserRun(store, runnable);
  viewOfStore.set(store, view);
  panel.append(view.element);
  view.draw();
}
