// The kernels as a table: what each does, how it was scheduled, what it cost; any column sorts.

import { h, replaceChildren } from "../dom";
import { bytes, duration, figures } from "../format";
import type { KernelInfo } from "../model";
import { throughput } from "../provenance";
import type { Change, Store, View } from "../store";
import { kernelName } from "./pipeline";

interface Column {
  key: string;
  title: string;
  hint: string;
  numeric: boolean;
  value: (kernel: KernelInfo) => number | string;
  cell: (kernel: KernelInfo) => string | Element;
}

export class KernelsView implements View {
  readonly element = h("div", { class: "kernels scroll", tabindex: 0, role: "region", "aria-label": "Kernels" });
  private sortKey = "id";
  private descending = false;
  private readonly columns: Column[];

  constructor(private readonly store: Store) {
    this.columns = this.makeColumns();
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor || change.selection) this.draw();
  }

  private makeColumns(): Column[] {
    const { index } = this.store;
    const run = (kernel: KernelInfo): number => index.runOf(kernel.id)?.median_us ?? -1;
    const speed = (kernel: KernelInfo): ReturnType<typeof throughput> => throughput(kernel, index.runOf(kernel.id));
    const number = (key: string, title: string, hint: string, value: Column["value"], cell: Column["cell"]): Column => {
      return { key, title, hint, numeric: true, value, cell };
    };
    const text = (key: string, title: string, hint: string, value: Column["value"], cell: Column["cell"]): Column => {
      return { key, title, hint, numeric: false, value, cell };
    };
    return [
      number("id", "#", "in the order of the schedule", (k) => k.id, (k) => String(k.id)),
      text("name", "kernel", "sizes coloured by the kind of their axis", (k) => k.name, (k) => kernelName(k)),
      text("calls", "of", "the calls in Python that it computes", (k) => k.calls.join(), (k) => k.calls.join(", ")),
      text("opts", "opts", "applied, in order", (k) => k.opts.join(), (k) => optChips(k)),
      number("time", "time", "median", run, (k) => (run(k) < 0 ? "–" : duration(run(k)))),
      number("gflops", "GFLOP/s", "operations over the median", (k) => speed(k).gflops ?? -1, (k) => {
        return k.flops === 0 ? "–" : figure(speed(k).gflops);
      }),
      number("gbps", "GB/s", "bytes that must move over the median", (k) => speed(k).gbps ?? -1, (k) => {
        return figure(speed(k).gbps);
      }),
      number("flops", "FLOP", "operations", (k) => k.flops, (k) => k.flops.toLocaleString("en-US")),
      number("bytes", "bytes", "that must move at least", (k) => k.bytes_moved, (k) => bytes(k.bytes_moved)),
      number("compile", "compile", "time of the compiler", (k) => k.compile_us, (k) => duration(k.compile_us)),
      text("cached", "cache", "whether the program came from a cache", cacheText, cacheText),
    ];
  }

  private draw(): void {
    const { trace } = this.store.index;
    const column = this.columns.find(({ key }) => key === this.sortKey)!;
    const sorted = [...trace.kernels].sort((a, b) => compare(column.value(a), column.value(b)));
    if (this.descending) sorted.reverse();
    const head = this.columns.map((one) => this.headCell(one));
    const lit = new Set([...this.store.related].map((id) => this.store.index.kernelOf.get(id)));
    const rows = sorted.map((kernel) => {
      const active = kernel.id === this.store.cursor.kernel;
      const choose = (): void => this.store.go({ kernel: kernel.id, place: "kernels", ...this.stageOf(kernel) });
      return h(
        "tr",
        {
          class: [active ? "on" : "", lit.has(kernel.id) ? "lit" : ""].join(" ").trim() || null,
          tabindex: 0,
          "aria-selected": String(active),
          "data-kernel": kernel.id,
          onclick: choose,
          onkeydown: (event: KeyboardEvent) => {
            if (event.key === "Enter") choose();
          },
        },
        ...this.columns.map((one) => h("td", { class: one.numeric ? "num" : null }, one.cell(kernel))),
      );
    });
    const none = trace.kernels.length === 0 ? h("p", { class: "empty" }, "This trace has no kernels.") : null;
    replaceChildren(
      this.element,
      h("table", { "aria-label": "Kernels" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
      none,
    );
  }

  private headCell(column: Column): HTMLElement {
    const sorted = column.key === this.sortKey;
    const direction = sorted ? (this.descending ? "descending" : "ascending") : "none";
    const sort = (): void => {
      this.descending = sorted ? !this.descending : column.numeric && column.key !== "id";
      this.sortKey = column.key;
      this.draw();
    };
    const mark = sorted ? (this.descending ? " ↓" : " ↑") : "";
    return h(
      "th",
      { scope: "col", "aria-sort": direction, class: column.numeric ? "num" : null },
      h("button", { type: "button", title: `${column.hint}; click to sort`, onclick: sort }, `${column.title}${mark}`),
    );
  }

  private stageOf(kernel: KernelInfo): { stage: number; step: number } | object {
    const { index } = this.store;
    const owner = index.trace.stages.some((stage) => stage.kernel === kernel.id) ? kernel.id : kernel.same_as;
    const stages = index.trace.stages.filter((stage) => stage.kernel === owner && stage.kernel !== null);
    const best = stages.reduce((a, b) => (b.steps.length > (a?.steps.length ?? 0) ? b : a), stages[0]);
    return best === undefined ? {} : { stage: best.id, step: index.endOf(best) };
  }
}

function optChips(kernel: KernelInfo): Element {
  if (kernel.opts.length === 0) return h("span", { class: "faint" }, "none");
  return h("span", { class: "chips" }, ...kernel.opts.map((opt) => h("span", { class: "chip" }, opt)));
}

function cacheText(kernel: KernelInfo): string {
  if (kernel.same_as !== null) return `same as ${kernel.same_as}`;
  return kernel.cached ? "from cache" : "compiled";
}

function figure(value: number | null): string {
  return value === null ? "–" : figures(value);
}

function compare(a: number | string, b: number | string): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
