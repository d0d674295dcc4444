// A button that runs the captured program again, with what a panel needs and the capture did not keep.

import { button, h } from "./dom";
import type { AgainRequest } from "./requests";
import type { Store } from "./store";

/** The button; null where the program cannot run again: in a page, and for a capture that is no function's. */
export function againButton(
  store: Store,
  text: string,
  title: string,
  options: Omit<AgainRequest, "ask">,
): HTMLElement | null {
  const { ask } = store;
  if (!store.runsAgain || ask === null) return null;
  const element = h("span", { class: "again", role: "status" });
  const run = (): void => {
    made.disabled = true;
    made.textContent = "running it …";
    // the new trace replaces the view
    ask({ ask: "again", kernel: store.cursor.kernel ?? 0, ...options }).catch((error: unknown) => {
      element.replaceChildren(made, ` ${error instanceof Error ? error.message : String(error)}`);
      made.disabled = false;
      made.textContent = text;
    });
  };
  const made = button(text, title, run);
  element.append(made);
  return element;
}

/** For times: samples, and the ceilings of the machine to compare them with. */
export function measureButton(store: Store): HTMLElement | null {
  const { runs, ceilings } = store.index.trace;
  if (ceilings.length > 0 || runs.some(({ warm }) => warm)) return null;
  return againButton(
    store,
    "Measure this machine",
    "Calls the captured function again with ten samples of each launch, and measures what the machine can do (about 2 s, once)",
    { repeat: 10 },
  );
}
