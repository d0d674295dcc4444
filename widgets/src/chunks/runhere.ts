// Runs the kernels of a page in the reader's browser.

import type { Runnable } from "../runhere/protocol";
import { RunHere } from "../runhere/view";
import type { Store } from "../store";

export { default as css } from "../runhere/runhere.css";
export const views = {};

const made = new WeakMap<Store, RunHere>();

/** Appends "run here" to the panel of times. */
export function attach(panel: HTMLElement, store: Store, runnable: readonly Runnable[]): void {
  const view = made.get(store) ?? new RunHere(store, runnable);
  made.set(store, view);
  panel.append(view.element);
  view.draw();
}
