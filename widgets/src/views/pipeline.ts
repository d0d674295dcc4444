// The pipeline strip: the current position, and the content and time of each stage; a click goes there.

import { button, h, replaceChildren } from "../dom";
import { findMeaning } from "../term_meanings";
import { count, duration, kernelNameParts } from "../format";
import { kernelClass, kernelLabel } from "../kernel_labels";
import type { Figures } from "../model";
import type { Change, Cursor, Place, Store, View } from "../store";

/** The parts of the strip, by their terms in the glossary. */
const STAGES: Record<Place, string> = {
  python: "Python",
  lazy: "LazyBuffers",
  kernels: "Kernels",
  passes: "Passes",
  uops: "UOps",
  code: "Code",
  run: "Run",
};

const NO_FIGURES: Figures = {
  kernel: null,
  parts: [],
  compile_us: 0,
  search_us: 0,
  run_us: 0,
  firings: 0,
  passes: [],
  code: null,
  summary: [],
};

export class PipelineView implements View {
  readonly element = h("nav", { class: "pipeline", "aria-label": "Pipeline" });
  private isOfOne = false; // whether the figures are those of the selected kernel
  private lastPlace: Place | null = null; // the part that was scrolled to last

  constructor(private readonly store: Store) {
    this.element.classList.toggle("is-foreign", store.index.trace.dialect !== null); // with fewer parts
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
  }

  /** The kernel whose figures are shown; null for all kernels. */
  private get scope(): number | null {
    return this.isOfOne ? this.store.cursor.kernel : null;
  }

  private findFigures(kernel: number | null): Figures {
    return this.store.index.trace.figures.find((figures) => figures.kernel === kernel) ?? NO_FIGURES;
  }

  private draw(): void {
    const { trace } = this.store.index;
    const { cursor } = this.store;
    const { parts, search_us: searchUs } = this.findFigures(this.scope);
    const scope = this.scope === null ? count(trace.kernels.length, "kernel", "kernels") : `kernel ${this.scope}`;
    const longest = Math.max(1, ...parts.map((part) => part.time_us));
    const focused = this.element.contains(document.activeElement);
    const kernel = cursor.kernel === null ? undefined : trace.kernels[cursor.kernel];
    const buttons: HTMLElement[] = parts.map(({ place: part, title, words, time_us: us }) => {
      const stage = part as Place;
      const active = cursor.place === stage;
      const searched = stage === "kernels" && searchUs > 0 ? `, and ${duration(searchUs)} of search` : "";
      const hint = `${title}, of ${scope}: ${words}${us > 0 ? `; ${duration(us)}` : ""}${searched}\n${findMeaning("stage", STAGES[stage])}${words.includes("with changes") ? `\nwith changes: ${findMeaning("word", "with changes")}` : ""}`;
      const attributes = { type: "button", class: "part", title: hint, "data-place": stage };
      const bar = h("span", { class: "bar", style: `width:${us > 0 ? Math.max(2, (us / longest) * 100) : 0}%` });
      const time = us > 0 ? h("span", { class: "took" }, duration(us)) : null;
      const head = h("span", { class: "head" }, h("b", {}, title), time);
      const name = stage === "kernels" && kernel !== undefined ? [" · ", kernelLabel(kernel, 24)] : [];
      return h(
        "button",
        { ...attributes, "aria-current": active ? "step" : null, onclick: () => this.store.go(this.targetOf(stage)) },
        head,
        h("span", { class: "what" }, words, ...name),
        bar,
      );
    });
    if (trace.kernels.length > 1 && kernel !== undefined) buttons.push(this.makeScopeChoice(kernel.id));
    replaceChildren(this.element, ...buttons);
    if (focused) this.element.querySelector<HTMLElement>('[aria-current="step"]')?.focus();
    if (this.lastPlace !== cursor.place) requestAnimationFrame(() => this.scrollToCurrent());
    this.lastPlace = cursor.place;
  }

  /** Scrolls a strip that is too long to the current position, without moving anything around it. */
  private scrollToCurrent(): void {
    const currentPart = this.element.querySelector<HTMLElement>('[aria-current="step"]');
    const { scrollLeft, clientWidth, scrollWidth } = this.element;
    if (currentPart === null || scrollWidth <= clientWidth) return;
    const { offsetLeft, offsetWidth } = currentPart;
    if (offsetLeft < scrollLeft || offsetLeft + offsetWidth > scrollLeft + clientWidth)
      this.element.scrollLeft = offsetLeft - (clientWidth - offsetWidth) / 2;
  }

  /** Creates the control for the figures: of all kernels, or of the selected one. */
  private makeScopeChoice(kernel: number): HTMLElement {
    const choice = (text: string, isOfOne: boolean): HTMLElement => {
      const choose = (): void => {
        this.isOfOne = isOfOne;
        this.draw();
      };
      const element = button(text, `Statistics of ${text}`, choose, "quiet");
      element.setAttribute("aria-pressed", String(this.isOfOne === isOfOne));
      return element;
    };
    return h(
      "div",
      { class: "scope", role: "group", "aria-label": "Statistics of" },
      choice("all kernels", false),
      choice(`kernel ${kernel}`, true),
    );
  }

  private targetOf(place: Place): Partial<Cursor> {
    const { cursor, index } = this.store;
    const tabs = { ...cursor.tabs };
    const owner = cursor.kernel === null ? null : (index.trace.kernels[cursor.kernel]?.same_as ?? cursor.kernel);
    const kernelStages = index.trace.stages.filter((stage) => stage.kernel === owner);
    const { passes, code } = this.findFigures(cursor.kernel);
    switch (place) {
      case "python":
        return { place, tabs: { ...tabs, a: "source 0" } };
      case "lazy":
        return { place, graph: "lazy" };
      case "kernels":
        return { place, panel: "kernels" };
      case "passes": {
        const first = passes.find((pass) => index.changed(index.trace.stages[pass]));
        const isThere = cursor.stage !== null && passes.includes(cursor.stage);
        const move = isThere || first === undefined ? {} : { stage: first, step: 0 };
        return { place, graph: "uops", panel: "rewrites", ...move };
      }
      case "uops": {
        const last = kernelStages.findLast(
          (stage) => stage.after.length > 0 && (index.children.get(stage.id) ?? []).length === 0,
        );
        const move = last === undefined ? {} : { stage: last.id, step: index.endOf(last) };
        return { place, graph: "uops", tabs: { ...tabs, a: "uops" }, ...move };
      }
      case "code":
        // the stage that generated the machine code: its panel has every listing
        return { place, panel: "rewrites", ...(code === null ? {} : { stage: code, step: 0 }) };
      case "run":
        return { place, panel: "timing" };
    }
  }
}

/** Returns a kernel's number and name (which others may share); sizes in the name have the color of their axis kind. */
export function kernelName(kernel: Parameters<typeof kernelNameParts>[0], isNumbered = true): HTMLElement {
  const axes = kernel.axes
    .map(([name, kind, size]) => `${size}: ${name}, ${kind}: ${findMeaning("axis", kind)}`)
    .join("\n");
  const parts = kernelNameParts(kernel).map(({ text, kind }) =>
    h("span", { class: kind ? `axis-${kind}` : null }, text),
  );
  return h(
    "span",
    { class: "kernel-name", title: axes || null },
    ...(isNumbered ? [kernelNumber(kernel.id), " "] : []),
    ...parts,
  );
}

/** Returns a kernel's number in its hue. */
export function kernelNumber(kernel: number): HTMLElement {
  return h("span", { class: `kernel-number ${kernelClass(kernel)}` }, String(kernel));
}
