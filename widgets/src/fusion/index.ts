// The fusion board: the scheduler's cuts and joins, possible changes, and their results.

import { button, h, replaceChildren } from "../dom";
import { makeComparisons } from "../fusion_decisions";
import { bytes, count, duration, groupDigits } from "../format";
import { baseText, ratioText, timeText } from "../tuner/time_comparison";
import type { Branch, FusedKernel, OutputCheck, ScheduleVariant } from "../model";
import type { TraceIndex } from "../trace_index";
import type { Change, Store, View } from "../store";
import { kernelClass } from "../kernel_labels";
import { GraphView } from "../views/graph";
import { type WhatIf, whatIfOf } from "../what_if";
import { makeProgress } from "../progress";
import { BoardStore, type BoardEdge, changeOf, compareKernels, edgesOf, indexOf, numbersOf } from "./board_store";
import { EdgeList, nodeName } from "./edge_list";
import { makeCommandTree } from "./command_tree";

export class FusionView implements View {
  readonly element = h("section", { class: "tuner fusion", "aria-label": "Fusion board" });
  private readonly whatIf: WhatIf;
  private readonly bar = h("div", { class: "bar tuner-bar" });
  private readonly says = h("div", { class: "tuner-status", role: "status" });
  private readonly tree = h("div", { class: "tuner-tree scroll", role: "tree", "aria-label": "Tried schedules" });
  private readonly edges: EdgeList;
  private readonly canvas = h("div", { class: "fusion-graph" });
  private readonly card = h("div", {
    class: "fusion-card",
    tabindex: 0,
    role: "group",
    "aria-label": "The selected edge",
  });
  private readonly table = h("div", {
    class: "fusion-table scroll",
    tabindex: 0,
    role: "group",
    "aria-label": "Before and after",
  });
  private readonly body: HTMLElement;
  private readonly stop: () => void;
  private readonly resizeObserver: ResizeObserver;
  private schedule: number | null = null;
  private graph: { index: TraceIndex; store: BoardStore; view: GraphView } | null = null;
  private drawn: Branch | null | undefined;
  private all: BoardEdge[] = [];
  private lastEdge: [number, number] | null = null;

  constructor(private readonly store: Store) {
    this.whatIf = whatIfOf(store.index);
    this.edges = new EdgeList(
      (edge) => this.choose(edge),
      (edge) => this.changeEdge(edge),
      (edge) => this.isReachable(edge),
    );
    this.stop = this.whatIf.subscribe(() => this.draw(true));
    const left = h("div", { class: "tuner-tried" }, this.tree, this.edges.element);
    this.body = h(
      "div",
      { class: "tuner-body" },
      left,
      this.canvas,
      h("div", { class: "fusion-side" }, this.card, this.table),
    );
    this.resizeObserver = new ResizeObserver(() => this.draw(false));
    this.resizeObserver.observe(this.element);
  }

  update(change: Change): void {
    if (change.selection && this.graph !== null) {
      this.graph.store.select([...this.store.selected], true);
      this.drawCard();
    }
  }

  destroy(): void {
    this.stop();
    this.resizeObserver.disconnect();
    this.forget();
  }

  private forget(): void {
    this.graph?.store.destroy();
    this.graph = null;
  }

  // *** drawing ***

  /** Draws the visible parts: a hidden graph has no size to fit. */
  private draw(changed: boolean): void {
    if (this.element.getClientRects().length === 0 || (!changed && this.drawn !== undefined)) return;
    const { trace } = this.store.index;
    const schedules = trace.stages.filter(({ name, decisions }) => name === "schedule" && decisions.length > 0);
    if (schedules.length === 0) {
      replaceChildren(this.element, h("p", { class: "empty" }, "This trace has no schedule."));
      return;
    }
    this.schedule ??= (schedules.find(({ id }) => this.whatIf.atSchedule(id) !== null) ?? schedules[0]).id;
    const branch = this.whatIf.atSchedule(this.schedule);
    const variant = branch?.schedule ?? null;
    this.drawBar(
      branch,
      schedules.map(({ id }) => id),
    );
    if (this.body.parentElement !== this.element) replaceChildren(this.element, this.bar, this.says, this.body);
    if (branch !== this.drawn || this.graph === null) {
      this.drawn = branch;
      this.drawGraph(variant);
    }
    const rows = makeCommandTree(this.whatIf, this.store.index, this.schedule);
    replaceChildren(this.tree, ...rows);
    this.tree.hidden = rows.length === 0;
    this.edges.draw(this.graph!.index, this.all, this.lastEdge);
    this.drawTable(branch, variant);
    this.drawCard();
  }

  private get root(): ScheduleVariant | null {
    const all = this.schedule === null ? [] : this.whatIf.ofSchedule(this.schedule);
    return all.find(({ schedule }) => schedule !== null)?.schedule ?? null;
  }

  private drawGraph(variant: ScheduleVariant | null): void {
    const { root, store } = this;
    const index = variant === null || root === null ? store.index : indexOf(store.index, root, variant);
    this.all = edgesOf(index, variant, this.schedule!);
    this.forget();
    const boardStore = new BoardStore(index, store);
    boardStore.select([...store.selected], true);
    const view = new GraphView(boardStore);
    view.element.setAttribute("aria-label", "Graph of the fusion board");
    boardStore.add(view);
    replaceChildren(this.canvas, view.element);
    this.graph = { index, store: boardStore, view };
    view.openAt(this.lastEdge ?? (variant === null ? [] : [...variant.cut, ...variant.join].slice(-1)));
  }

  private drawBar(branch: Branch | null, schedules: number[]): void {
    const { whatIf } = this;
    const variant = branch?.schedule ?? null;
    const select = h(
      "select",
      { "aria-label": "Schedule", class: "tuner-kernel" },
      ...schedules.map((id, place) =>
        h("option", { value: id, selected: id === this.schedule }, `schedule ${place + 1} of ${schedules.length}`),
      ),
    );
    select.addEventListener("change", () => {
      this.schedule = Number(select.value);
      this.lastEdge = null;
      this.draw(true);
    });
    const facts =
      variant === null
        ? []
        : [
            h("b", { class: "tuner-current" }, count(variant.kernels.length, "kernel")),
            h("b", { class: "tuner-current" }, timeText(variant) || "not timed"),
            variant === this.root || baseText(variant) === ""
              ? null
              : h("span", { class: "tuner-base" }, `as captured ${baseText(variant)}`),
            writeVerdict(variant),
          ];
    const begin = button(
      "Run it as captured",
      "Schedules, compiles and times this graph as captured. Cuts and joins are compared with this result",
      () =>
        whatIf.ask(
          { kind: "AsScheduled", schedule: this.schedule! },
          "scheduling, compiling and timing the captured graph",
        ),
      "tuner-begin",
    );
    begin.disabled = whatIf.working !== null;
    const parent = branch?.parent === null || branch === null ? null : whatIf.branches[branch.parent];
    const undo = button("Undo", "Back to the parent branch", () => parent !== null && whatIf.go(parent));
    undo.disabled = parent === null;
    const tools = branch !== null ? [undo] : whatIf.send !== null ? [begin] : [];
    replaceChildren(
      this.bar,
      schedules.length > 1 ? select : h("b", {}, "Fusion"),
      ...facts,
      h("span", { class: "space" }),
      ...tools,
    );
    this.drawStatus(branch);
  }

  private drawStatus(branch: Branch | null): void {
    const { working, error, send } = this.whatIf;
    const parts: (Element | string)[] = [];
    if (working !== null) parts.push(...makeProgress(this.whatIf, working));
    else if (error !== "") parts.push(h("span", { class: "tuner-error" }, error));
    else if (branch !== null && branch.reason !== "") parts.push(h("span", {}, branch.reason));
    else if (send === null)
      parts.push(
        h(
          "span",
          {},
          branch === null
            ? "No schedule was tried. A page cannot schedule; a notebook can (view.fusion.cut, view.fusion.join)."
            : "A page cannot schedule. The tried schedules can be opened.",
        ),
      );
    else if (branch === null)
      parts.push(
        h(
          "span",
          {},
          `Cut or join an edge. The engine schedules and compiles the changed graph, and compares it with the captured one. ${this.whatIf.inPage ? "A page measures no times." : "Both are timed."}`,
        ),
      );
    replaceChildren(this.says, ...parts);
    this.says.hidden = parts.length === 0;
  }

  // *** edges ***

  private currentEdge(): BoardEdge | null {
    const { selected } = this.store;
    const edgeBetween = (src: number, dst: number): BoardEdge | undefined =>
      this.all.find((edge) => edge.src === src && edge.dst === dst);
    if (selected.size === 2) {
      const [a, b] = [...selected];
      const match = edgeBetween(a, b) ?? edgeBetween(b, a);
      if (match !== undefined) this.lastEdge = [match.src, match.dst];
    } else if (selected.size > 0) {
      const found = this.all.find(({ src }) => selected.has(src));
      if (found !== undefined) this.lastEdge = [found.src, found.dst];
    }
    return this.lastEdge === null ? null : (edgeBetween(...this.lastEdge) ?? null);
  }

  private drawCard(): void {
    const edge = this.currentEdge();
    const index = this.graph?.index;
    this.edges.mark(this.lastEdge);
    if (edge === null || index === undefined) {
      replaceChildren(
        this.card,
        h("p", { class: "faint" }, "Choose an edge: click its mark in the graph, or its row in the list."),
      );
      return;
    }
    const others = this.all.filter(({ src }) => src === edge.src).length;
    const marks: Record<string, string> = {
      fused: "fused",
      cut: "stored in memory",
      again: "computed again in each kernel",
      read: "read from memory",
    };
    const { decision } = edge;
    const overridden = edge.override !== null;
    const makeButton = (what: "cut" | "join", text: string, title: string): Element => {
      const isDone = changeOf(edge) !== what;
      const says = isDone ? `This edge is already ${what === "cut" ? "cut" : "joined"}` : edge.illegal || title;
      const element = button(text, says, () => this.changeEdge(edge));
      element.disabled = isDone || !this.isReachable(edge);
      return element;
    };
    const leave = button("Leave to the scheduler", "Removes the cut or join", () => this.leaveToScheduler(edge));
    leave.disabled = !overridden || (this.whatIf.send === null && this.findWithout(edge) === null);
    replaceChildren(
      this.card,
      h(
        "h4",
        {},
        `${nodeName(index, edge.src)} → ${nodeName(index, edge.dst)}`,
        h("span", { class: `chip ${edge.mark}` }, marks[edge.mark]),
      ),
      decision === undefined ? null : h("p", {}, `${decision.decision}: ${decision.reason}`),
      decision === undefined || decision.compared.length === 0 ? null : makeComparisons(decision),
      h(
        "div",
        { class: "fusion-tools" },
        makeButton("cut", "✂ Cut", "Store the tensor in memory; other kernels read it."),
        makeButton(
          "join",
          "⊕ Join",
          "Compute the tensor in each kernel that reads it. Several kernels may repeat the computation.",
        ),
        overridden ? leave : null,
      ),
      edge.illegal === ""
        ? null
        : h(
            "p",
            { class: "fusion-legality-error" },
            `${edge.mark === "cut" ? "Cannot be joined" : "Cannot be cut"}: ${edge.illegal}.`,
          ),
      others > 1 && edge.illegal === ""
        ? h(
            "p",
            { class: "faint" },
            `${count(others, "edge")} read ${nodeName(index, edge.src)}. A cut changes all of them.`,
          )
        : null,
    );
  }

  private choose({ src, dst }: BoardEdge): void {
    this.lastEdge = [src, dst];
    this.store.select([src, dst]);
    this.drawCard();
  }

  private override({ src }: BoardEdge, what: "cut" | "join" | null): [number[], number[]] {
    const variant = this.drawn?.schedule;
    const cut = (variant?.cut ?? []).filter((node) => node !== src);
    const join = (variant?.join ?? []).filter((node) => node !== src);
    return [what === "cut" ? [...cut, src] : cut, what === "join" ? [...join, src] : join];
  }

  private findBranch(edge: BoardEdge, what: "cut" | "join"): Branch | null {
    return this.whatIf.withOverrides(this.schedule!, ...this.override(edge, what));
  }

  private findWithout(edge: BoardEdge): Branch | null {
    return this.whatIf.withOverrides(this.schedule!, ...this.override(edge, null));
  }

  private isReachable(edge: BoardEdge): boolean {
    return (
      edge.illegal === "" &&
      this.whatIf.working === null &&
      (this.whatIf.send !== null || this.findBranch(edge, changeOf(edge)) !== null)
    );
  }

  private changeEdge(edge: BoardEdge): void {
    if (!this.isReachable(edge)) return;
    const what = changeOf(edge);
    this.lastEdge = [edge.src, edge.dst];
    const branch = this.findBranch(edge, what);
    const kind = what === "cut" ? "Cut" : "Join";
    if (branch !== null) this.whatIf.go(branch);
    else
      this.whatIf.ask(
        { kind, schedule: this.schedule!, src: edge.src, dst: edge.dst },
        "scheduling, compiling, comparing and timing",
      );
  }

  private leaveToScheduler(edge: BoardEdge): void {
    const branch = this.findWithout(edge);
    if (branch !== null) this.whatIf.go(branch);
    else
      this.whatIf.ask(
        { kind: "Leave", schedule: this.schedule!, src: edge.src },
        "scheduling, compiling, comparing and timing",
      );
  }

  // *** before and after ***

  private drawTable(branch: Branch | null, variant: ScheduleVariant | null): void {
    const { root } = this;
    if (branch === null || variant === null || root === null) {
      replaceChildren(this.table);
      return;
    }
    const isRoot = variant === root;
    const sum = (schedule: ScheduleVariant, what: "bytes_moved" | "flops"): number =>
      schedule.kernels.reduce((total, kernel) => total + kernel[what], 0);
    const number = (value: number): string => groupDigits(value);
    const rows: [string, string, string][] = [
      ["kernels", number(root.kernels.length), number(variant.kernels.length)],
      ["bytes moved", bytes(sum(root, "bytes_moved")), bytes(sum(variant, "bytes_moved"))],
      ["operations", number(sum(root, "flops")), number(sum(variant, "flops"))],
      ["peak of intermediates", bytes(root.peak_bytes), bytes(variant.peak_bytes)],
      ["time", baseText(variant) || "no time", timeText(variant) || "no time"],
    ];
    const lines = rows.map(([what, before, after]) =>
      h(
        "tr",
        { class: !isRoot && what !== "time" && before !== after ? "differs" : null },
        h("th", { scope: "row" }, what),
        isRoot ? null : h("td", {}, ...splitTime(before)),
        h("td", {}, ...splitTime(after)),
      ),
    );
    const head = h(
      "tr",
      {},
      h("th", {}),
      ...(isRoot
        ? []
        : [h("th", { scope: "col", title: "Timed again, interleaved with this schedule" }, "as captured")]),
      h("th", { scope: "col" }, isRoot ? "as captured" : "here"),
    );
    const { kept, vanished, appeared } = compareKernels(root.kernels, variant.kernels);
    const numbers = numbersOf(root, variant, this.store.index.trace.kernels.length);
    const numberOf = (kernel: FusedKernel): number | null =>
      variant.kernels.includes(kernel) ? numbers[variant.kernels.indexOf(kernel)] : kernel.kernel;
    const row = (sign: string, kernel: FusedKernel): Element => {
      const choose = (): void => this.store.select(kernel.roots);
      const time = kernel.median_us === null ? "" : duration(kernel.median_us);
      const words = [
        h("span", { class: "tuner-sign" }, sign),
        h("i", { class: `swatch ${kernelClass(numberOf(kernel) ?? 0)}` }),
        h("code", {}, kernel.name),
        h("span", { class: "space" }),
        h("span", { class: "num" }, bytes(kernel.bytes_moved)),
        h("span", { class: "num" }, time),
      ];
      return h(
        "button",
        {
          type: "button",
          class: `fusion-kernel ${sign === "+" ? "new" : sign === "−" ? "removed" : ""}`,
          title: "Select the tensors that it stores",
          onclick: choose,
        },
        ...words,
      );
    };
    const equal =
      variant.outputs.length === 0 || isRoot ? null : h("p", { class: "faint" }, equalText(variant.outputs));
    replaceChildren(
      this.table,
      h("table", { class: "fusion-before" }, h("thead", {}, head), h("tbody", {}, ...lines)),
      isRoot ? null : h("p", {}, writeVerdict(variant)),
      equal,
      ...vanished.map((kernel) => row("−", kernel)),
      ...appeared.map((kernel) => row("+", kernel)),
      ...kept.map((kernel) => row("", kernel)),
    );
  }
}

/**
 * Returns in which sense the outputs equal those of the captured schedule: exactly, or within a tolerance of their
 * dtype.
 */
function equalText(outputs: ScheduleVariant["outputs"]): string {
  const apart = (output: OutputCheck): number => (output.magnitude > 0 ? output.difference / output.magnitude : 0);
  const worst = outputs.reduce((worstSoFar, candidate) =>
    apart(candidate) > apart(worstSoFar) ? candidate : worstSoFar,
  );
  const all = `${count(outputs.length, "output")} compared with the captured schedule: `;
  if (outputs.every(({ difference }) => difference === 0)) return `${all}equal to the last bit.`;
  const allowed = worst.tolerance > 0 ? `; ${worst.dtype} allows ${worst.tolerance.toExponential(0)} of a value` : "";
  return `${all}equal within the tolerance. The largest difference is ${worst.difference.toExponential(1)}, ${apart(worst).toExponential(1)} of the largest value${allowed}.`;
}

/** Returns a time and its quartiles, which wrap in a narrow column. */
function splitTime(text: string): Element[] {
  return text.split(/(?= \()/).map((part) => h("span", {}, part));
}

/** Returns the comparison of the times; nothing for the captured schedule itself. */
function writeVerdict(variant: ScheduleVariant): HTMLElement {
  if (variant.cut.length + variant.join.length === 0) return h("span", {});
  return h("span", { class: `tuner-ratio ${variant.verdict}` }, ratioText(variant));
}
