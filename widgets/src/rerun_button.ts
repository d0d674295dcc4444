// A button that runs the captured program again with options that a panel needs.

import { button, h } from "./dom";
import type { RunAgainRequest } from "./requests";
import type { Store } from "./store";

/** Creates the button; null if the program cannot run again: in a page, and for a capture without a function. */
export function makeRerunButton(
  store: Store,
  text: string,
  title: string,
  options: Omit<RunAgainRequest, "ask">,
): HTMLElement | null {
  const { sendRequest } = store;
  if (!store.canRerun || sendRequest === null) return null;
  const element = h("span", { class: "rerun", role: "status" });
  const run = (): void => {
    runButton.disabled = true;
    runButton.textContent = "running …";
    // the new trace replaces the view
    sendRequest({ ask: "again", kernel: store.cursor.kernel ?? 0, ...options }).catch((error: unknown) => {
      element.replaceChildren(runButton, ` ${error instanceof Error ? error.message : String(error)}`);
      runButton.disabled = false;
      runButton.textContent = text;
    });
  };
  const runButton = button(text, title, run);
  element.append(runButton);
  return element;
}

/** Creates the button for times: it requests samples and the machine's ceilings. */
export function makeMeasureButton(store: Store): HTMLElement | null {
  const { runs, ceilings } = store.index.trace;
  if (ceilings.length > 0 || runs.some(({ warm }) => warm)) return null;
  return makeRerunButton(
    store,
    "Measure this machine",
    "Calls the captured function again with ten samples of each launch, and measures the machine's ceilings (2 s, once)",
    { repeat: 10 },
  );
}
