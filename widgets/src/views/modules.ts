// The trace by module: a tree of the user's objects with the time and memory of each; a click selects its nodes.

import { selectKernel } from "../kernel_selection";
import { button, h, replaceChildren } from "../dom";
import { bytes, count, duration } from "../format";
import { kernelClass, kernelTitle } from "../kernel_labels";
import { type Module, buildModuleTree } from "../module_tree";
import type { Change, Store, View } from "../store";

const OPEN_ROWS = 12; // rows; further levels are initially closed
const MOST_CHIPS = 6;

interface Row {
  module: Module;
  depth: number;
  key: string;
}

export class ModulesView implements View {
  readonly element = h("div", { class: "modules scroll", role: "region", "aria-label": "Modules" });
  private readonly root: Module | null;
  private readonly open = new Set<string>();
  private focused = "";

  constructor(private readonly store: Store) {
    this.root = buildModuleTree(store.index.trace);
    this.openFirst();
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor || change.selection || change.hover) this.mark();
  }

  /** Opens the outermost level, and inner ones while there are few rows. */
  private openFirst(): void {
    for (let level = this.listRows(); ; level = this.listRows()) {
      const closed = level.filter(({ module, key }) => module.children.length > 0 && !this.open.has(key));
      const more = closed.reduce((sum, { module }) => sum + module.children.length, 0);
      if (closed.length === 0 || (level.length > 1 && level.length + more > OPEN_ROWS)) return;
      for (const { key } of closed) this.open.add(key);
    }
  }

  /** Returns the visible rows, outermost first. */
  private listRows(): Row[] {
    const rows: Row[] = [];
    const add = (module: Module, depth: number, key: string): void => {
      rows.push({ module, depth, key });
      if (this.open.has(key)) module.children.forEach((child, i) => add(child, depth + 1, `${key}.${i}`));
    };
    if (this.root !== null) add(this.root, 0, "0");
    return rows;
  }

  private draw(): void {
    const { root } = this;
    if (root === null) {
      const says =
        "No module made a tensor in this trace. A module is an object that holds Tensors and whose methods create tensors.";
      replaceChildren(this.element, h("p", { class: "empty" }, says));
      return;
    }
    const rows = this.listRows();
    if (!rows.some(({ key }) => key === this.focused)) this.focused = rows[0].key;
    const heads = ["module", "time", "", "parameters", "results", "kernels"].map((title) =>
      h("span", { class: "head" }, title),
    );
    const tree = h(
      "div",
      { class: "module-tree", role: "tree", "aria-label": "Modules" },
      ...rows.map((row) => this.makeRow(row, root.cost.time_us)),
    );
    replaceChildren(
      this.element,
      h("div", { class: "module-row heads", "aria-hidden": "true" }, ...heads),
      tree,
      this.makeNote(root.cost.backward_us > 0),
    );
    this.mark();
  }

  private makeNote(hasGradients: boolean): HTMLElement {
    const back = hasGradients ? " The darker part is for gradients." : "";
    return h(
      "p",
      { class: "note" },
      `Where several modules share a kernel, its time is divided by the number of elements that each computes.${back} A click selects, a double click isolates.`,
    );
  }

  private makeRow({ module, depth, key }: Row, wholeUs: number): HTMLElement {
    const { cost, name, kind, children } = module;
    const { time_us: us, backward_us: backwardUs, kernels } = cost;
    const { parameter_bytes: parameterBytes, result_bytes: resultBytes } = cost;
    const share = (part: number): string => `${wholeUs === 0 ? 0 : (part / wholeUs) * 100}%`;
    const isOpen = children.length > 0 ? this.open.has(key) : null;
    const mark = children.length === 0 ? "" : isOpen ? "▾" : "▸";
    const disclosure = h("span", { class: "disclosure", onclick: (event: Event) => this.toggle(key, event) }, mark);
    const title = h(
      "span",
      { class: "name", style: `padding-left:${depth * 14}px` },
      disclosure,
      h("b", {}, name),
      kind === name ? "" : h("span", { class: "faint" }, ` ${kind}`),
    );
    const backward = backwardUs > 0 ? `, of which ${duration(backwardUs)} for gradients` : "";
    const says = `${name}, ${kind}: ${duration(us)}${backward}, ${count(module.nodes.length, "LazyBuffer")}, ${count(kernels.length, "kernel")}`;
    const bar = h(
      "span",
      { class: "track", title: says },
      h("span", { class: "forward", style: `width:${share(us)}` }),
      h("span", { class: "backward", style: `width:${share(backwardUs)}` }),
    );
    return h(
      "div",
      {
        class: "module-row",
        role: "treeitem",
        tabindex: key === this.focused ? 0 : -1,
        "aria-level": depth + 1,
        "aria-expanded": isOpen === null ? null : String(isOpen),
        "data-module": key,
        onclick: () => this.choose(module, key),
        ondblclick: () => this.store.isolate(module.nodes),
        onkeydown: (event: KeyboardEvent) => this.walk(event, module, key),
        onmouseenter: () => this.store.hover(module.nodes),
        onmouseleave: () => this.store.hover([]),
      },
      title,
      h("span", { class: "num" }, duration(us)),
      bar,
      h("span", { class: "num" }, parameterBytes === 0 ? "–" : bytes(parameterBytes)),
      h("span", { class: "num" }, resultBytes === 0 ? "–" : bytes(resultBytes)),
      this.makeChips(kernels),
    );
  }

  private makeChips(kernels: readonly number[]): HTMLElement {
    const { trace } = this.store.index;
    const chips = kernels.slice(0, MOST_CHIPS).map((kernel) => {
      const chip = button(
        String(kernel),
        kernelTitle(trace, kernel),
        () => selectKernel(this.store, kernel),
        `key ${kernelClass(kernel)}`,
      );
      chip.tabIndex = -1; // the keyboard uses the table of kernels instead
      chip.addEventListener("click", (event) => event.stopPropagation());
      return chip;
    });
    const more = kernels.length - chips.length;
    return h(
      "span",
      { class: "kernel-chips" },
      h("span", { class: "kernel-count" }, String(kernels.length)),
      ...chips,
      more > 0 ? h("span", { class: "faint" }, `+ ${more}`) : null,
    );
  }

  private choose(module: Module, key: string): void {
    this.focused = key;
    this.store.go({ graph: "lazy", place: "lazy" });
    this.store.select(module.nodes);
  }

  private toggle(key: string, event: Event): void {
    event.stopPropagation();
    if (!this.open.delete(key)) this.open.add(key);
    this.focused = key;
    this.draw();
    this.focus();
  }

  private focus(): void {
    this.element.querySelector<HTMLElement>(`[data-module="${this.focused}"]`)?.focus();
  }

  /**
   * Handles keys: up and down walk the rows, right opens, left closes or goes to the parent, Enter selects, I
   * isolates.
   */
  private walk(event: KeyboardEvent, module: Module, key: string): void {
    const rows = this.listRows();
    const current = rows.findIndex((row) => row.key === key);
    const to = (row: Row | undefined): void => {
      if (row === undefined) return;
      this.focused = row.key;
      for (const element of this.element.querySelectorAll<HTMLElement>("[data-module]"))
        element.tabIndex = element.dataset.module === row.key ? 0 : -1;
      this.focus();
    };
    const isOpen = this.open.has(key);
    const outer = rows.find((row) => row.key === key.split(".").slice(0, -1).join("."));
    const actions: Record<string, () => void> = {
      ArrowDown: () => to(rows[current + 1]),
      ArrowUp: () => to(rows[current - 1]),
      ArrowRight: () =>
        module.children.length > 0 && !isOpen ? this.toggle(key, event) : to(isOpen ? rows[current + 1] : undefined),
      ArrowLeft: () => (isOpen ? this.toggle(key, event) : to(outer)),
      Enter: () => this.choose(module, key),
      " ": () => this.choose(module, key),
      i: () => this.store.isolate(module.nodes),
    };
    const action = actions[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget)
      return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  /** Highlights the modules of the selection and of the hover. */
  private mark(): void {
    const { selected, hovered } = this.store;
    const byKey = new Map(this.listRows().map(({ module, key }) => [key, module]));
    for (const row of this.element.querySelectorAll<HTMLElement>(".module-row[data-module]")) {
      const nodes = byKey.get(row.dataset.module!)?.nodes ?? [];
      const has = (ids: Set<number>): boolean => ids.size > 0 && nodes.some((id) => ids.has(id));
      const isWhole = has(selected) && selected.size === nodes.length;
      row.classList.toggle("on", isWhole);
      row.classList.toggle("lit", !isWhole && has(selected));
      row.classList.toggle("hov", has(hovered));
      row.setAttribute("aria-selected", String(isWhole));
    }
  }
}
