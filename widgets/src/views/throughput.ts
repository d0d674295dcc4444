// The throughput of a kernel's busiest loop, by LLVM's model of the CPU: the bottleneck of an iteration, the ports that
// each instruction occupies, and the measured cycles. Requested from Python; a page shows stored responses.

import { LatestRequest, makeNote } from "../latest_request";
import { h, replaceChildren } from "../dom";
import type { Change, Store, View } from "../store";
import { kernelTitle } from "../kernel_labels";
import { makeSlowestButton } from "./empty_selection";
import { nameOf } from "../tuner/branch_tree";
import { whatIfOf } from "../what_if";
import type { ThroughputData } from "../requests";

const WORDS = {
  ports: "the ports",
  "front end": "the front end",
  dependencies: "dependencies",
  unknown: "an effect outside of the model",
};
const LEAST_SHOWN = 0.005; // cycles
const MOST_BEYOND = 4; // factor of the simulated cycles; longer measured bars are cut

export class ThroughputView implements View {
  readonly element = h("div", { class: "throughput scroll", tabindex: 0, role: "region", "aria-label": "Throughput" });
  private kernel: number | null = null;
  private branch: number | null = null;
  private readonly stop: () => void;

  private readonly latestRequest: LatestRequest;

  constructor(private readonly store: Store) {
    this.latestRequest = new LatestRequest(store, this.element);
    this.stop = whatIfOf(store.index).subscribe(() => this.follow());
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
  }

  destroy(): void {
    this.stop();
  }

  private draw(): void {
    const { cursor } = this.store;
    const kernel = cursor.kernel ?? 0;
    if (cursor.panel !== "throughput" || kernel === this.kernel) return;
    this.kernel = kernel;
    this.branch = null;
    this.request();
  }

  /** Updates the choices when branches are added. */
  private follow(): void {
    const head = this.element.querySelector(".steps");
    if (head !== null) head.replaceWith(this.makeChoices());
  }

  private request(): void {
    const { kernel, branch } = this;
    void this.latestRequest.send({
      request: { ask: "throughput", kernel: kernel ?? 0, branch },
      pendingText: "running llvm-mca …",
      offlineNote: [
        "This page has no llvm-mca result for this loop. Run it in a notebook: ",
        `view.kernels[${kernel}].throughput()`,
      ],
      show: (found) => this.show(found),
      showNote: (text, code) => {
        const other = this.store.sendRequest === null ? null : makeSlowestButton(this.store);
        replaceChildren(
          this.element,
          this.makeChoices(),
          makeNote(text, code),
          other === null ? null : h("p", { class: "note" }, other),
        );
      },
      // for the captured kernel, the request is repeated when the panel is opened again
      onError: () => (this.kernel = branch === null ? null : kernel),
    });
  }

  /** Returns the control for the kernel: as captured, or of a branch of the tuner. */
  private makeChoices(): HTMLElement {
    const { index } = this.store;
    const branches = whatIfOf(index)
      .of(this.kernel ?? 0)
      .filter(
        ({ status, kernels }) =>
          status === "done" && kernels.some(({ listings }) => listings.some(({ language }) => language === "asm")),
      );
    const options = branches.map((branch) =>
      h("option", { value: branch.id, selected: branch.id === this.branch }, `${nameOf(branch)} (branch ${branch.id})`),
    );
    const change = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      this.branch = value === "" ? null : Number(value);
      this.request();
    };
    const select = h(
      "select",
      { "aria-label": "Branch of the kernel", onchange: change },
      h("option", { value: "", selected: this.branch === null }, "as captured"),
      ...options,
    );
    return h(
      "div",
      { class: "steps" },
      h("b", {}, kernelTitle(index.trace, this.kernel ?? 0)),
      branches.length === 0 ? null : select,
    );
  }

  private show(data: ThroughputData): void {
    const { kernel, cycles, bound, reason, cpu, tool, lines, notes } = data;
    const where = lines === null ? "" : ` · lines ${lines[0] + 1} to ${lines[1] + 1} of the assembly`;
    replaceChildren(
      this.element,
      this.makeChoices(),
      h(
        "p",
        { class: "throughput-says" },
        h("b", {}, `${cycles.toFixed(2)} cycles`),
        bound === "unknown" ? ` an iteration by the model` : ` an iteration, bound by `,
        bound === "unknown" ? "" : h("b", {}, WORDS[bound]),
        `: ${reason}.`,
      ),
      h("div", { class: "bounds" }, ...drawBounds(data)),
      h(
        "div",
        { class: "costs", tabindex: 0, role: "group", "aria-label": "Costs of the instructions" },
        this.makeTable(data),
      ),
      h(
        "p",
        { class: "note" },
        `The busiest loop of ${kernel}${where}, as ${tool} models ${cpu}: all loads hit the L1 cache, and all branches are predicted correctly.`,
      ),
      ...notes.map((text) => h("p", { class: "note" }, capitalize(text))),
    );
  }

  private makeTable({ instructions, ports }: ThroughputData): HTMLElement {
    const busiest = Math.max(...ports.map(([, cycles]) => cycles), LEAST_SHOWN);
    const largest = Math.max(...instructions.flatMap(([, , , used]) => used.map(([, cycles]) => cycles)), LEAST_SHOWN);
    const head = ports.map(([name, cycles]) =>
      h(
        "th",
        { scope: "col", class: "num", title: `${name}: busy ${cycles.toFixed(2)} cycles an iteration` },
        shortenPort(name, ports),
      ),
    );
    const rows = instructions.map(([text, uops, latency, used, line]) => {
      const usedPorts = new Map(used);
      const cells = ports.map(([name]) => makeCell(usedPorts.get(name) ?? 0, largest));
      const nodes = line === null || this.branch !== null ? [] : this.findNodes(line);
      const hover = (on: boolean) => (): void => this.store.hover(on ? nodes : []);
      const acts =
        nodes.length === 0
          ? {}
          : {
              onpointerenter: hover(true),
              onpointerleave: hover(false),
              onclick: () => this.store.select(nodes),
              class: "known",
            };
      return h(
        "tr",
        acts,
        h("th", { scope: "row" }, text),
        h("td", { class: "num" }, String(uops)),
        h("td", { class: "num" }, String(latency)),
        ...cells,
      );
    });
    const sums = ports.map(([, cycles]) =>
      h("td", { class: cycles > 0.95 * busiest ? "num strong" : "num" }, cycles.toFixed(2)),
    );
    const uops = instructions.reduce((sum, [, count]) => sum + count, 0);
    return h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "instruction"),
          h("th", { scope: "col", class: "num" }, "µops"),
          h("th", { scope: "col", class: "num", title: "Cycles until the result is available" }, "latency"),
          ...head,
        ),
      ),
      h("tbody", {}, ...rows),
      h(
        "tfoot",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "row" }, "an iteration"),
          h("td", { class: "num" }, String(uops)),
          h("td", {}),
          ...sums,
        ),
      ),
    );
  }

  /** Returns the UOps of a line of the captured assembly. */
  private findNodes(line: number): number[] {
    const listed = this.store.index.programsOf(this.kernel).find(({ language }) => language === "asm");
    return listed?.lines[line]?.nodes ?? [];
  }
}

/** Draws the cycles of an iteration on one scale: lower bounds, simulated, measured. */
function drawBounds(data: ThroughputData): HTMLElement[] {
  const { cycles, ports, front_end: front, bound, measured, instructions } = data;
  const busiest = Math.max(...ports.map(([, used]) => used), 0);
  const uops = instructions.reduce((sum, [, count]) => sum + count, 0);
  const names = ports.filter(([, used]) => used > 0.95 * busiest).map(([name]) => shortenPort(name, ports));
  const rows: [key: string, title: string, words: string, value: number][] = [
    ["ports", "ports", `the busiest: ${names.slice(0, 4).join(", ")}${names.length > 4 ? ", …" : ""}`, busiest],
    ["front end", "front end", `${uops} µops to issue`, front],
    [
      "dependencies",
      "simulated",
      bound === "dependencies" ? "dependence chains limit it" : "dependences included",
      cycles,
    ],
  ];
  const largest = Math.max(
    ...rows.map(([, , , value]) => value),
    LEAST_SHOWN,
    Math.min(measured ?? 0, MOST_BEYOND * cycles),
  );
  if (measured !== null)
    rows.push([
      "measured",
      "measured",
      measured > largest
        ? "measured over the whole kernel, not this loop alone; exceeds the scale"
        : "measured over a run",
      measured,
    ]);
  return rows.map(([key, title, words, value]) =>
    h(
      "div",
      { class: `bound ${key === bound ? "binds" : ""}`.trim(), "data-bound": key },
      h("span", { class: "name" }, title),
      h(
        "span",
        { class: "meter" },
        h("span", {
          class: `level-${key.replace(" ", "-")}`,
          style: `width:${Math.min(100, (100 * value) / largest)}%`,
        }),
      ),
      h("span", { class: "num" }, value.toFixed(2)),
      h("span", { class: "words" }, words, key === bound ? h("b", {}, " · the bottleneck") : null),
    ),
  );
}

function makeCell(cycles: number, largest: number): HTMLElement {
  if (cycles < LEAST_SHOWN) return h("td", {});
  return h("td", { class: "num used", style: `--share:${Math.round((100 * cycles) / largest)}%` }, cycles.toFixed(2));
}

/** Returns "P0" for "SKXPort0"; other names without their common beginning. */
function shortenPort(name: string, ports: ThroughputData["ports"]): string {
  const port = /Port0*(\d+)$/.exec(name);
  if (port !== null) return `P${port[1]}`;
  const brand = /^[A-Z]+[a-z]?\d*(?=[A-Z])/.exec(name)?.[0] ?? "";
  const isShared = ports.filter((port) => port[0].startsWith(brand)).length > ports.length / 2;
  return isShared && brand.length < name.length ? name.slice(brand.length) : name;
}

function capitalize(text: string): string {
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}
