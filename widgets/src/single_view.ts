// One view as a standalone widget: the classes of the explorer, on a shared store.

import { WIDGETS } from "./panel_rows";
import { makePanel } from "./panels";
import { makeShell, handleKey } from "./shell";
import type { Store, View } from "./store";
import { CodeView } from "./views/code";
import { GraphView } from "./views/graph";
import { StepperView } from "./views/stepper";

export type Kind = "graph" | "code" | keyof typeof WIDGETS;

/**
 * The appearance of a part. `pane`: the only visible pane of the code. `look`: "lazy" for a graph colored by role,
 * without frames.
 */
export interface ViewOptions {
  height: string;
  pane?: string;
  look?: string;
}

/** Draws one view into `element`. Returns a function that removes it. */
export function mountView(
  element: HTMLElement,
  store: Store,
  kind: Kind,
  { height, pane = "", look = "" }: ViewOptions,
): () => void {
  const { title } = store.index.trace;
  const { root, release } = makeShell(`${kind} of ${title}`, height, "auto");
  root.classList.add("part", `part-${kind}`);
  root.dataset.only = pane;
  root.dataset.look = look;
  const view = makeView(store, kind, pane, look);
  store.add(view);
  const graph = view instanceof GraphView ? view : null;
  const stepper = view instanceof StepperView ? () => view : null;
  root.addEventListener("keydown", (event) => handleKey(event, { store, graph, stepper, root, panels: false }));
  root.append(view.element);
  element.append(root);
  return () => {
    store.drop([view]);
    release();
  };
}

function makeView(store: Store, kind: Kind, pane: string, look: string): View {
  if (kind === "graph") return new GraphView(store, look === "lazy" ? "role" : "kernel");
  if (kind === "code") return new CodeView(store, pane);
  return makePanel(store, WIDGETS[kind]);
}
