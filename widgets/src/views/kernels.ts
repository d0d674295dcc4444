// The table of kernels: what each computes, its opts, its cost; each column can sort it.

import { copyButton, saveFile } from "../clipboard";
import { button, h, replaceChildren } from "../dom";
import { findMeaning, describeName, describeOpt } from "../term_meanings";
import { bytes, duration, figuresText, groupDigits } from "../format";
import type { KernelInfo } from "../model";
import { computeThroughput } from "../trace_index";
import { readableName } from "../kernel_labels";
import { hasReproducer, writeReproducer } from "../kernel_script";
import type { Change, Store, View } from "../store";
import { type VerdictRow, makeKindTag, findStoredVerdicts, verdictOn, verdictsOf } from "../verdicts";
import { kernelName, kernelNumber } from "./pipeline";

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
    if (this.element.hidden && this.store.cursor.panel !== "kernels") return;
    if (change.cursor || change.selection) this.draw();
  }

  private makeColumns(): Column[] {
    const { index } = this.store;
    const run = (kernel: KernelInfo): number => index.runOf(kernel.id)?.median_us ?? -1;
    const speed = (kernel: KernelInfo): ReturnType<typeof computeThroughput> =>
      computeThroughput(kernel, index.runOf(kernel.id));
    const number = (key: string, title: string, value: Column["value"], cell: Column["cell"]): Column => {
      return { key, title, hint: findMeaning("column", title), numeric: true, value, cell };
    };
    const text = (key: string, title: string, value: Column["value"], cell: Column["cell"]): Column => {
      return { key, title, hint: findMeaning("column", title), numeric: false, value, cell };
    };
    return [
      number(
        "id",
        "#",
        (k) => k.id,
        (k) => kernelNumber(k.id),
      ),
      text(
        "name",
        "kernel",
        (k) => readableName(k),
        (k) => namesOf(k),
      ),
      number("time", index.trace.runs.every(({ warm }) => warm) ? "median" : "time", run, (k) =>
        run(k) < 0 ? h("span", { title: k.not_run || null }, "–") : duration(run(k)),
      ),
      text(
        "verdict",
        "verdict",
        (k) => this.findVerdict(k)?.kind ?? "",
        (k) => {
          const verdict = this.findVerdict(k);
          return verdict === undefined ? "–" : makeKindTag(verdict);
        },
      ),
      text(
        "opts",
        "opts",
        (k) => k.opts.join(),
        (k) => makeOptChips(k),
      ),
      number(
        "gflops",
        "GFLOP/s",
        (k) => speed(k).gflops ?? -1,
        (k) => {
          return k.flops === 0 ? "–" : formatFigure(speed(k).gflops);
        },
      ),
      number(
        "gbps",
        "GB/s",
        (k) => speed(k).gbps ?? -1,
        (k) => {
          return formatFigure(speed(k).gbps);
        },
      ),
      number(
        "flops",
        "FLOP",
        (k) => k.flops,
        (k) => groupDigits(k.flops),
      ),
      number(
        "bytes",
        "bytes",
        (k) => k.bytes_moved,
        (k) => bytes(k.bytes_moved),
      ),
      number(
        "compile",
        "compile",
        (k) => k.compile_us,
        (k) => duration(k.compile_us),
      ),
      number(
        "code",
        "code",
        (k) => k.code_bytes,
        (k) => (k.code_bytes === 0 ? "–" : bytes(k.code_bytes)),
      ),
      text("cached", "cache", cacheText, cacheText),
    ];
  }

  private findVerdict(kernel: KernelInfo): VerdictRow | undefined {
    return verdictOn(findStoredVerdicts(this.store), kernel.id);
  }

  private draw(): void {
    verdictsOf(this.store, () => this.draw());
    const { trace } = this.store.index;
    const column = this.columns.find(({ key }) => key === this.sortKey)!;
    const sorted = [...trace.kernels].sort((a, b) => compare(column.value(a), column.value(b)));
    if (this.descending) sorted.reverse();
    const head = this.columns.map((column) => this.makeHeadCell(column));
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
        ...this.columns.map((column) => h("td", { class: column.numeric ? "num" : null }, column.cell(kernel))),
      );
    });
    const none = trace.kernels.length === 0 ? h("p", { class: "empty" }, "This trace has no kernels.") : null;
    replaceChildren(
      this.element,
      this.nameLegend(),
      h("table", { "aria-label": "Kernels" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
      none,
    );
  }

  /** Returns the parts of the selected kernel's name: each size with the kind of its axis. */
  private nameLegend(): HTMLElement | null {
    const { index, cursor } = this.store;
    const kernel = cursor.kernel === null ? undefined : index.trace.kernels[cursor.kernel];
    if (kernel === undefined || kernel.axes.length === 0) return null;
    const axes = kernel.axes.map(([name, kind, size]) =>
      h(
        "span",
        { class: "axis", title: findMeaning("axis", kind) || null },
        h("span", { class: `size axis-${kind}` }, String(size)),
        ` ${kind} ${name}`,
      ),
    );
    const says = describeName(kernel.name);
    return h(
      "p",
      { class: "note name-legend" },
      kernelName(kernel),
      says === "" ? null : h("span", { class: "axis" }, says),
      ...axes,
      ...this.makeScriptButtons(kernel),
    );
  }

  /**
   * Returns buttons that copy or save the kernel as a script. It is created from the trace, so a page needs nothing
   * else.
   */
  private makeScriptButtons({ id, name, same_as: first }: KernelInfo): HTMLElement[] {
    const { index } = this.store;
    const owner = hasReproducer(index, id) ? id : first;
    if (owner === null || !hasReproducer(index, owner)) return [];
    const save = async (): Promise<void> => saveFile(`kernel_${id}_${name}.py`, await writeReproducer(index, owner));
    const tell = (error: unknown): void => window.alert(`No script: ${error instanceof Error ? error.message : error}`);
    const what = "a script that compiles, runs and times this kernel with NumPy and llvmlite, or a C compiler";
    return [
      button("script", `Download ${what}`, () => void save().catch(tell), "script"),
      copyButton(`Copy ${what}`, () => writeReproducer(index, owner)),
    ];
  }

  private makeHeadCell(column: Column): HTMLElement {
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
      h("button", { type: "button", title: `${column.hint} A click sorts.`, onclick: sort }, `${column.title}${mark}`),
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

/**
 * Returns what it computes in the user's Python, and below it the program's name with sizes in the colors of their
 * axes.
 */
function namesOf(kernel: KernelInfo): Element {
  const name = readableName(kernel);
  if (name === kernel.name) return kernelName(kernel, false);
  return h("span", { class: "names" }, h("b", {}, name), h("small", {}, kernelName(kernel, false)));
}

function makeOptChips(kernel: KernelInfo): Element {
  if (kernel.opts.length === 0) return h("span", { class: "faint" }, "none");
  return h(
    "span",
    { class: "chips" },
    ...kernel.opts.map((opt) => h("span", { class: "chip", title: describeOpt(opt) || null }, opt)),
  );
}

function cacheText(kernel: KernelInfo): string {
  if (kernel.same_as !== null) return `same as ${kernel.same_as}`;
  return kernel.cached ? "from cache" : "compiled";
}

function formatFigure(value: number | null): string {
  return value === null ? "–" : figuresText(value);
}

function compare(a: number | string, b: number | string): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
