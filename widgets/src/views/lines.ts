// The lines of the user's Python by the time of their kernels; a click on one selects its nodes.

import { LatestRequest } from "../latest_request";
import { selectKernel } from "../kernel_selection";
import { button, h, replaceChildren } from "../dom";
import { count, duration, figuresText } from "../format";
import { kernelClass, kernelTitle } from "../kernel_labels";
import type { LinesByTime, LineTime } from "../requests";
import type { Change, Store, View } from "../store";

const MOST_CHIPS = 6;
type Order = "time" | "source";

export class LinesView implements View {
  readonly element = h("div", { class: "lines-by-time scroll", tabindex: 0, role: "region", "aria-label": "Lines" });
  private readonly latestRequest: LatestRequest;
  private lineTimes: LinesByTime | null = null;
  private order: Order = "time";
  private isAsked = false;

  constructor(private readonly store: Store) {
    this.latestRequest = new LatestRequest(store, this.element);
    this.request();
  }

  update(change: Change): void {
    if (!this.isAsked) this.request();
    if (change.cursor || change.selection || change.hover) this.mark();
  }

  private request(): void {
    this.isAsked = true;
    void this.latestRequest.send({
      request: { ask: "lines" },
      pendingText: "adding up the kernels of each line …",
      offlineNote: ["This page has no times of lines. To compute them, call ", 'view.panels.result("lines")'],
      show: (found) => {
        this.lineTimes = found;
        this.draw();
      },
      showNote: (text, code) =>
        replaceChildren(this.element, h("p", { class: "note" }, text, code ? h("code", {}, code) : "")),
      onError: () => {
        this.isAsked = false; // so that the request is repeated
      },
    });
  }

  private draw(): void {
    const { lineTimes, order } = this;
    if (lineTimes === null) return;
    const lines = order === "source" ? lineTimes.lines : [...lineTimes.lines].sort((a, b) => b.time_us - a.time_us);
    const largest = Math.max(...lines.map(({ time_us }) => time_us), 0);
    const heads = ["line", "time", "", "share", "place", "kernels"].map((title) => h("span", { class: "head" }, title));
    replaceChildren(
      this.element,
      this.makeBar(lineTimes),
      h("div", { class: "module-row heads", "aria-hidden": "true" }, ...heads),
      h("div", { role: "list", "aria-label": "Lines" }, ...lines.map((line) => this.makeRow(line, lineTimes, largest))),
      h("p", { class: "note" }, lineTimes.how),
    );
    this.mark();
  }

  private makeBar({ total_us, untimed, lines }: LinesByTime): HTMLElement {
    const choice = (order: Order, text: string): HTMLElement => {
      const choose = (): void => {
        this.order = order;
        this.draw();
        this.element.querySelector<HTMLElement>(`[data-order="${order}"]`)?.focus();
      };
      const element = button(text, `Lines ${text}`, choose, "quiet");
      element.dataset.order = order;
      element.setAttribute("aria-pressed", String(order === this.order));
      return element;
    };
    const missing = untimed > 0 ? `; ${count(untimed, "kernel")} without a time` : "";
    return h(
      "div",
      { class: "bar" },
      h("span", {}, `${duration(total_us)} in ${count(lines.length, "line")}${missing}`),
      h("span", { class: "space" }),
      choice("time", "by time"),
      choice("source", "in source order"),
    );
  }

  private makeRow(line: LineTime, { total_us }: LinesByTime, largest: number): HTMLElement {
    const { file, text, time_us, share, kernels } = line;
    const number = line.line;
    const time = total_us > 0 ? duration(time_us) : "–";
    const percent = total_us > 0 ? `${figuresText(share * 100)} %` : "–";
    const short = file.split(/[\\/]/).at(-1) ?? file;
    const position = number === 0 ? "" : `${short}:${number}`;
    const says = `${position} ${text}: ${time}, ${percent}, ${count(kernels.length, "kernel")}`;
    const choose = (event: Event): void => {
      event.stopPropagation();
      this.choose(line);
    };
    return h(
      "div",
      {
        class: "module-row",
        role: "listitem",
        "data-line": `${line.source}:${number}`,
        onclick: choose,
        onmouseenter: () => this.store.hover(this.findNodes(line)),
        onmouseleave: () => this.store.hover([]),
      },
      number === 0
        ? h("span", { class: "name faint" }, text)
        : h("button", { type: "button", class: "name quiet", title: text, "aria-label": says, onclick: choose }, text),
      h("span", { class: "num" }, time),
      h("span", { class: "track" }, h("span", { style: `width:${largest === 0 ? 0 : (time_us / largest) * 100}%` })),
      h("span", { class: "num" }, percent),
      h("span", { class: "num", title: `${file}:${number}` }, position),
      this.makeChips(kernels),
    );
  }

  private makeChips(kernels: readonly number[]): HTMLElement {
    const { trace } = this.store.index;
    const chips = kernels.slice(0, MOST_CHIPS).map((kernel) => {
      const open = (): void => selectKernel(this.store, kernel);
      const chip = button(String(kernel), kernelTitle(trace, kernel), open, `key ${kernelClass(kernel)}`);
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

  private findNodes({ source, line }: LineTime): number[] {
    return source === null ? [] : this.store.index.nodesOfLine(source, line);
  }

  private choose(line: LineTime): void {
    if (line.source === null) return;
    this.store.go({ graph: "lazy", place: "lazy" });
    this.store.select(this.findNodes(line));
  }

  /** Highlights the lines of the selection and of the hover. */
  private mark(): void {
    const { selected, hovered } = this.store;
    for (const line of this.lineTimes?.lines ?? []) {
      const row = this.element.querySelector<HTMLElement>(`[data-line="${line.source}:${line.line}"]`);
      const nodes = this.findNodes(line);
      const has = (ids: Set<number>): boolean => ids.size > 0 && nodes.some((id) => ids.has(id));
      const isWhole = has(selected) && selected.size === nodes.length;
      row?.classList.toggle("on", isWhole);
      row?.classList.toggle("lit", !isWhole && has(selected));
      row?.classList.toggle("hov", has(hovered));
      if (isWhole) row?.setAttribute("aria-current", "true");
      else row?.removeAttribute("aria-current");
    }
  }
}
