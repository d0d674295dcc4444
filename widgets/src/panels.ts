// Where the view of each panel comes from: the bundle, or a chunk that is loaded when the panel is first opened.

import { h } from "./dom";
import { Later, type Source } from "./later";
import type { Change, Panel, Store, View } from "./store";
import { StepperView } from "./views/stepper";
import { TimingView } from "./views/timing";

const SOURCES: Record<Panel, (new (store: Store) => View) | Source> = {
  rewrites: StepperView,
  kernels: { chunk: "kernels" },
  tuner: {
    chunk: "tuner",
    without:
      "Nothing was tried on a kernel of this trace, and a page cannot compile: a notebook can (view.tuner, view.apply).",
  },
  rules: {
    chunk: "tuner",
    without: "No rule was tried on this trace, and rules are Python: a notebook fires them (view.playground).",
  },
  fusion: {
    chunk: "fusion",
    without: "Nothing was cut or joined in this trace. A notebook can: view.fusion.cut, view.fusion.join.",
  },
  modules: { chunk: "modules" },
  timing: TimingView,
  roofline: { chunk: "charts" },
  timeline: { chunk: "charts" },
  memory: { chunk: "charts" },
  throughput: {
    chunk: "throughput",
    asks: ({ cursor, responses }) =>
      responses.of("throughput").length > 0
        ? null
        : [
            "In a notebook this panel runs llvm-mca. A page has the results of ",
            `view.kernels[${cursor.kernel ?? 0}].throughput()`,
          ],
  },
  rosetta: {
    chunk: "rosetta",
    asks: ({ cursor, responses }) =>
      responses.of("rosetta").length > 0
        ? null
        : [
            "In a notebook this panel has Python translate the kernel. For a page: ",
            `view.kernels[${cursor.kernel ?? 0}].translate() before, or view.to_html(path, rosetta=True)`,
          ],
  },
  biography: { chunk: "why" },
  why: { chunk: "why" },
  debugger: {
    chunk: "byhand",
    asks: ({ index }) =>
      index.trace.recordings.length > 0
        ? null
        : ["Python steps kernels. A page steps what was recorded: ", "view.to_html(path, iterations=2000)"],
  },
  caches: {
    chunk: "byhand",
    asks: ({ cursor, responses }) =>
      responses.of("caches").length > 0
        ? null
        : [
            "In a notebook this panel has Python model the caches. A page has the results of ",
            `view.kernels[${cursor.kernel ?? 0}].caches()`,
          ],
  },
  warps: {
    chunk: "warps",
    asks: ({ responses }) =>
      responses.of("gpu").length > 0
        ? null
        : ["No kernel of this trace is a GPU's. One that is, from any machine: ", 'explore(f, target="sm_80")'],
  },
  shape: { chunk: "shape", without: "No node of this trace shows memory otherwise than as it lies." },
  glossary: { chunk: "glossary" },
};

/** The view of a panel; `isOpen` tells whether the reader looks at it, by default always: a widget of its own. */
export function makePanel(store: Store, panel: Panel, isOpen?: () => boolean): View {
  const source = SOURCES[panel];
  if (typeof source !== "function")
    return new Later(store, panel, source, isOpen ?? (() => true), isOpen === undefined);
  return isOpen === undefined ? new source(store) : new WhenOpened(() => new source(store), isOpen);
}

/** A view that is made when it is first looked at. */
export class WhenOpened implements View {
  element: HTMLElement = h("div", { hidden: true });
  private view: View | null = null;

  constructor(
    private readonly make: () => View,
    private readonly isOpen: () => boolean,
  ) {
    if (isOpen()) this.made();
  }

  /** The view, made now if it was not. */
  made(): View {
    if (this.view !== null) return this.view;
    this.view = this.make();
    this.view.element.hidden = this.element.hidden;
    this.element.replaceWith(this.view.element);
    this.element = this.view.element;
    return this.view;
  }

  update(change: Change): void {
    if (this.view !== null) this.view.update(change);
    else if (this.isOpen()) this.made();
  }

  destroy(): void {
    this.view?.destroy?.();
  }
}
