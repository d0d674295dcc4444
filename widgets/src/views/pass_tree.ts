// The tree of passes: the time of each compiler stage and its number of firings; a click goes there.

import { type Child, h, replaceChildren } from "../dom";
import { findMeaning } from "../term_meanings";
import { count, duration } from "../format";
import { readableName } from "../kernel_labels";
import type { Stage } from "../model";
import type { Store } from "../store";
import { countFirings } from "../step_navigation";

export class PassTree {
  readonly element = h("div", { class: "passes" });
  private readonly closed = new Set<number>();
  private hideUnchanged = true;
  private shownAt = ""; // the stage and panel at the last scroll to the active row
  private drawn = "";

  constructor(
    private readonly store: Store,
    private readonly open: (stage: Stage) => void,
  ) {
    for (const stage of store.index.trace.stages) {
      const other = stage.kernel !== null && stage.kernel !== store.cursor.kernel;
      if (other && this.childrenOf(stage).length > 0) this.closed.add(stage.id);
    }
    this.draw();
  }

  /** Highlights the row of the cursor. */
  follow(): void {
    const { stage, panel } = this.store.cursor;
    this.openAround(stage);
    this.draw();
    if (this.shownAt !== `${stage} ${panel}`) requestAnimationFrame(() => this.showActive()); // after it is visible
    this.shownAt = `${stage} ${panel}`;
  }

  private childrenOf(stage: Stage): Stage[] {
    return this.store.index.children.get(stage.id) ?? [];
  }

  private isUnchanged(stage: Stage): boolean {
    const inside = this.childrenOf(stage);
    if (inside.length > 0) return inside.every((child) => this.isUnchanged(child));
    if (stage.decisions.length + stage.opts.length + stage.candidates.length > 0) return false;
    return this.store.index.changed(stage) === false;
  }

  visibleStages(): Stage[] {
    const visible: Stage[] = [];
    const visit = (stage: Stage): void => {
      if (this.hideUnchanged && this.isUnchanged(stage) && stage.id !== this.store.cursor.stage) return;
      visible.push(stage);
      if (!this.closed.has(stage.id)) this.childrenOf(stage).forEach(visit);
    };
    (this.store.index.children.get(null) ?? []).forEach(visit);
    return visible;
  }

  private openAround(id: number | null): void {
    const { stages } = this.store.index.trace;
    for (let ancestor = id === null ? null : stages[id].parent; ancestor !== null; ancestor = stages[ancestor].parent)
      this.closed.delete(ancestor);
  }

  private draw(): void {
    const { index, cursor } = this.store;
    const visibleStages = this.visibleStages();
    const key = JSON.stringify([
      visibleStages.map((stage) => stage.id),
      cursor.stage,
      [...this.closed],
      this.hideUnchanged,
    ]);
    if (key === this.drawn) {
      this.updateCounts();
      return;
    }
    this.drawn = key;
    const hidden = index.trace.stages.filter((stage) => this.childrenOf(stage).length === 0 && this.isUnchanged(stage));
    const toggle = h("input", { type: "checkbox", checked: this.hideUnchanged }) as HTMLInputElement;
    toggle.addEventListener("change", () => {
      this.hideUnchanged = toggle.checked;
      this.draw();
    });
    const says = `${count(hidden.length, "stage")} changed nothing`;
    const bar = h(
      "div",
      { class: "bar" },
      h("b", {}, "Passes"),
      h("span", { class: "space" }),
      h("label", { title: says }, h("span", {}, "hide unchanged"), toggle),
    );
    const rows = visibleStages.map((stage) => this.makeRow(stage));
    const list = h("div", { class: "rows scroll", role: "tree", "aria-label": "Passes" }, ...rows);
    const old = this.element.querySelector(".rows");
    const scrolled = old?.scrollTop ?? 0;
    const focused = old?.contains(document.activeElement) ?? false;
    replaceChildren(this.element, bar, list);
    list.scrollTop = scrolled;
    const active = list.querySelector<HTMLElement>('[aria-selected="true"]');
    if (focused) active?.focus({ preventScroll: true });
    if (active !== null) scrollIntoView(list, active);
    this.updateCounts();
  }

  private showActive(): void {
    const list = this.element.querySelector<HTMLElement>(".rows");
    const active = list?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (list && active && list.clientHeight > 0) scrollIntoView(list, active);
  }

  private makeRow(stage: Stage): HTMLElement {
    const { index, cursor } = this.store;
    let depth = 0;
    for (let ancestor = stage.parent; ancestor !== null; ancestor = index.trace.stages[ancestor].parent) depth += 1;
    const inside = this.childrenOf(stage).length > 0;
    const open = inside && !this.closed.has(stage.id);
    const active = stage.id === cursor.stage;
    const kernel = stage.kernel === null ? undefined : index.trace.kernels[stage.kernel];
    const parentKernel = stage.parent === null ? null : index.trace.stages[stage.parent].kernel;
    const hasWrongFiring = index.trace.checks.some((check) => check.stage === stage.id && check.verdict === "differs");
    const name =
      kernel !== undefined && stage.kernel !== parentKernel
        ? `${stage.name} ${kernel.id} · ${readableName(kernel)}`
        : stage.name;
    const fold = (event: Event): void => {
      event.stopPropagation();
      if (open) this.closed.add(stage.id);
      else this.closed.delete(stage.id);
      this.draw();
    };
    const disclosure = inside
      ? h("span", { class: "disclosure", "aria-hidden": "true", onclick: fold }, open ? "▾" : "▸")
      : h("span", { class: "disclosure" });
    return h(
      "div",
      {
        class: `row${this.isUnchanged(stage) ? " dim" : ""}${hasWrongFiring ? " wrong" : ""}`,
        role: "treeitem",
        tabindex: active ? 0 : -1,
        style: `padding-left:${6 + depth * 13}px`,
        title: [
          stage.elapsed_us > 0 ? `${name}: ${duration(stage.elapsed_us)}` : name,
          findMeaning("pass", stage.name),
          this.isUnchanged(stage) ? "changed nothing" : "",
          hasWrongFiring ? "a rewrite in this pass changed the value" : "",
        ]
          .filter(Boolean)
          .join("\n"),
        "aria-selected": String(active),
        "aria-expanded": inside ? String(open) : null,
        "aria-level": depth + 1,
        "data-stage": stage.id,
        onclick: () => this.open(stage),
      },
      disclosure,
      h("span", { class: "name" }, ...addBreaks(name)),
      h("span", { class: "n" }),
      h("span", { class: "took" }, stage.elapsed_us > 0 ? duration(stage.elapsed_us) : ""),
    );
  }

  private updateCounts(): void {
    const { index, cursor } = this.store;
    for (const row of this.element.querySelectorAll<HTMLElement>(".row")) {
      const stage = index.trace.stages[Number(row.dataset.stage)];
      const firings = index.firings(stage);
      const done = stage.id === cursor.stage ? countFirings(stage, cursor.step) : firings;
      const counts = stage.decisions.length || stage.opts.length || stage.candidates.length;
      // a transform processes the whole graph at once
      const scope = stage.transform !== null && index.changed(stage) ? "graph" : "";
      const text =
        firings > 0 ? (done < firings ? `${done} / ${firings}` : String(firings)) : counts ? `${counts}` : scope;
      row.querySelector(".n")!.textContent = text;
    }
  }
}

/** Returns the name of a pass with break opportunities between its words: `reduce_|window`, `Canonicalizer|Pass`. */
function addBreaks(name: string): Child[] {
  const words = name.split(/(?<=[_-])|(?<=[a-z])(?=[A-Z])/);
  return words.flatMap((word, i) => (i === 0 ? [word] : [h("wbr"), word]));
}

function scrollIntoView(box: HTMLElement, row: HTMLElement): void {
  const top = row.offsetTop - box.offsetTop;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + row.offsetHeight > box.scrollTop + box.clientHeight)
    box.scrollTop = top + row.offsetHeight - box.clientHeight;
}
