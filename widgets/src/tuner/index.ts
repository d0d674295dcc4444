// The kernel tuner: the loops of a kernel, the legal opts, all branches, and their changes.

import { button, h, replaceChildren } from "../dom";
import { count, figuresText } from "../format";
import { baseText, ratioText, timeText } from "./time_comparison";
import type { Branch, KernelVariant } from "../model";
import type { Change, Store, View } from "../store";
import { kernelName } from "../views/pipeline";
import { kernelTitle } from "../kernel_labels";
import { type WhatIf, isFull, variantOf, whatIfOf } from "../what_if";
import { makeProgress } from "../progress";
import { drawAttempts } from "./attempt_chart";
import { TunerListing } from "./listing";
import { makeNestTable } from "./nest_table";
import { OptButtons } from "./opt_buttons";
import { TreeList, nameBase, nameOf, uopsText } from "./branch_tree";

const BEAM_WIDTH = 2;

export class TunerView implements View {
  readonly element = h("section", { class: "tuner", "aria-label": "Kernel tuner" });
  private readonly whatIf: WhatIf;
  private readonly bar = h("div", { class: "bar tuner-bar" });
  private readonly says = h("div", { class: "tuner-status", role: "status" });
  private readonly nest = h("div", { class: "tuner-loops scroll", tabindex: 0, role: "group", "aria-label": "Loops" });
  private readonly figure = h("div", {});
  private readonly opts: OptButtons;
  private readonly tree: TreeList;
  private readonly listing: TunerListing;
  private readonly body: HTMLElement;
  private readonly stop: () => void;
  private drawn = "";

  constructor(private readonly store: Store) {
    this.whatIf = whatIfOf(store.index);
    this.opts = new OptButtons(this.whatIf, () => this.draw(true));
    this.listing = new TunerListing(this.whatIf);
    this.tree = new TreeList(this.whatIf, () => this.draw(true));
    this.stop = this.whatIf.subscribe(() => this.draw(true));
    const tried = h("div", { class: "tuner-tried" }, this.tree.element, this.tree.search, this.figure);
    const loops = h("div", { class: "tuner-loops" }, this.opts.element, this.nest);
    const middle = h("div", { class: "tuner-main" }, loops);
    this.body = h("div", { class: "tuner-body" }, tried, middle, this.listing.element);
    this.draw(true);
  }

  update(change: Change): void {
    if (change.cursor) this.draw(false);
  }

  destroy(): void {
    this.stop();
  }

  private get kernel(): number | null {
    const { index, cursor } = this.store;
    const kernel = cursor.kernel === null ? undefined : index.trace.kernels[cursor.kernel];
    return kernel === undefined ? null : (kernel.same_as ?? kernel.id);
  }

  private draw(changed: boolean): void {
    const { kernel } = this;
    const key = `${kernel} ${this.store.cursor.panel}`;
    if (!changed && key === this.drawn) return;
    this.drawn = key;
    if (kernel === null) {
      replaceChildren(this.element, h("p", { class: "empty" }, "This trace has no kernels."));
      return;
    }
    const branch = this.whatIf.currentBranch(kernel);
    this.drawBar(kernel, branch);
    const variant = variantOf(branch);
    if (branch === null || variant === null) {
      replaceChildren(this.element, this.bar, this.says, this.makeInvitation(kernel));
      return;
    }
    this.tree.draw(kernel);
    const picture = drawAttempts(this.whatIf, kernel, this.store.index.trace);
    replaceChildren(this.figure, picture);
    replaceChildren(
      this.nest,
      makeNestTable(variant, {
        hovered: (axis) => this.opts.highlightAxis(axis),
        chosen: (axis) => {
          this.opts.choose(axis);
          this.draw(true);
        },
        isChosen: (axis) => axis === this.opts.chosen,
      }),
    );
    this.opts.draw(kernel, variant);
    this.listing.draw(branch, this.whatIf.base(kernel));
    if (this.body.parentElement !== this.element) replaceChildren(this.element, this.bar, this.says, this.body);
  }

  /** Returns the text before the first command. */
  private makeInvitation(kernel: number): HTMLElement {
    const begin = button(
      "Open this kernel",
      "Compiles and times the kernel as captured, without opts, and with the heuristics' opts",
      () => this.begin(kernel),
      "tuner-begin",
    );
    const live = this.whatIf.send !== null;
    const text =
      live && this.whatIf.inPage
        ? "Change this kernel's loops, opt by opt. The interpreter in this page runs each change, checks the results and counts the UOps. A page measures no times."
        : live
          ? "Change this kernel's loops, opt by opt. Each change is compiled, compared with the heuristics' results, and timed."
          : "No opts were tried on this kernel, and a page cannot compile; a notebook can (view.panels.tuner, view.kernels[i].apply).";
    begin.disabled = this.whatIf.working !== null;
    return h("div", { class: "tuner-empty" }, h("p", {}, text), live ? begin : null);
  }

  private begin(kernel: number): void {
    this.whatIf.begin(kernel, "compiling and timing the kernel as captured, without opts, and by the heuristics");
  }

  private drawBar(kernel: number, current: Branch | null): void {
    const { whatIf } = this;
    const { trace } = this.store.index;
    const variant = variantOf(current);
    const busy = whatIf.working !== null;
    const live = whatIf.send !== null && !busy;
    const choices = trace.kernels.filter((choice) => choice.same_as === null && choice.axes.length > 0);
    const select = h(
      "select",
      { "aria-label": "Kernel", class: "tuner-kernel" },
      ...choices.map((choice) =>
        h("option", { value: choice.id, selected: choice.id === kernel }, kernelTitle(trace, choice.id)),
      ),
    );
    select.addEventListener("change", () => this.store.go({ kernel: Number(select.value) }));
    const labeled = (label: string): Branch | undefined =>
      whatIf.of(kernel).find((branch) => branch.labels.includes(label));
    const jump = (
      label: string,
      text: string,
      title: string,
      kind: string,
      more: Record<string, string | number> = {},
    ): HTMLButtonElement => {
      const there = labeled(label);
      const element = button(text, title, () =>
        there !== undefined && isFull(there) ? whatIf.go(there) : whatIf.ask({ kind, kernel, ...more }, `${text}…`),
      );
      element.disabled = there !== undefined ? !(isFull(there) || live) : !live;
      element.setAttribute("aria-pressed", String(there !== undefined && there.id === current?.id));
      return element;
    };
    const undo = button("Undo", "Remove the last opt or edit", () => whatIf.undo(kernel));
    const before = variant === null ? null : whatIf.withOpts(kernel, variant.opts.slice(0, -1));
    if (current?.edited == null)
      undo.disabled = variant === null || variant.opts.length === 0 || !(before !== null || live);
    const beam = button(
      `BEAM ${BEAM_WIDTH}`,
      "Searches for the fastest opts by measuring; the tree lists the candidates below",
      () => whatIf.ask({ kind: "SearchOpts", kernel, width: BEAM_WIDTH }, "searching"),
    );
    beam.disabled = !live || whatIf.inPage;
    if (whatIf.inPage) beam.title = "A search needs measurements, and a page cannot measure";
    const tools =
      current === null
        ? []
        : [
            undo,
            jump("no opts", "No opts", "The loops as the scheduler wrote them", "SetOpts", { opts: "" }),
            jump("heuristics", "Heuristics", "What the heuristics choose, without measuring", "UseHeuristics"),
            labeled("BEAM") === undefined
              ? beam
              : jump("BEAM", "BEAM’s", "The fastest candidate of the search", "SearchOpts", { width: BEAM_WIDTH }),
          ];
    replaceChildren(
      this.bar,
      choices.length > 1
        ? select
        : kernelName(
            variant === null
              ? trace.kernels[kernel]
              : { ...trace.kernels[kernel], name: variant.name, axes: variant.axes },
          ),
      ...(variant === null ? [] : this.listFacts(kernel, variant)),
      h("span", { class: "space" }),
      ...tools.filter(({ disabled }) => whatIf.send !== null || !disabled), // a page cannot compile
    );
    this.drawStatus(current);
  }

  /** Returns the time of the open branch, and that of the captured kernel, which was measured alternately. */
  private listFacts(kernel: number, variant: KernelVariant): HTMLElement[] {
    const { times_us } = variant;
    const base = this.whatIf.base(kernel);
    const plain = this.whatIf.of(kernel).find((branch) => branch.labels.includes("no opts"));
    const others = [...new Set([plain, base ?? undefined])].filter(
      (other) => other !== undefined && other !== this.whatIf.currentBranch(kernel),
    ) as Branch[];
    const time = timeText(variant);
    if (time === "") return this.listCounts(variant, others);
    const facts = [
      h(
        "b",
        {
          class: "tuner-current",
          title: `Median and quartiles of ${count(times_us.length, "sample")}, measured in a separate process`,
        },
        time,
      ),
    ];
    const beside = baseText(variant);
    if (beside === "") return facts;
    const name = nameBase(this.whatIf.currentBranch(kernel));
    const hint = "Measured interleaved with the open branch. Compare only these two times";
    facts.push(
      h("span", { class: "tuner-base", title: `${name} ${beside}\n${hint}` }, `${name} ${beside.split(" (")[0]}`),
      h("span", { class: `tuner-ratio ${variant.verdict}`, title: ratioText(variant, name) }, ratioText(variant, "")),
    );
    return facts;
  }

  /** Returns the number of UOps that one run executes, if there is no time. */
  private listCounts({ uops }: KernelVariant, others: readonly Branch[]): HTMLElement[] {
    if (uops === 0) return [h("span", { class: "tuner-current" }, "not timed")];
    const facts = [
      h(
        "b",
        {
          class: "tuner-current",
          title: "UOps that one run executes. A vector UOp counts as one. Counted in the program, not timed",
        },
        `${uopsText(uops)} a run`,
      ),
    ];
    for (const other of others) {
      const count = variantOf(other)?.uops ?? 0;
      if (count === 0) continue;
      const ratio = count / uops;
      const words = ratio >= 1 ? `${figuresText(ratio)}× fewer` : `${figuresText(1 / ratio)}× more`;
      facts.push(
        h("span", { class: `tuner-ratio ${ratio >= 1 ? "faster" : "slower"}` }, `${words} than ${nameOf(other)}`),
      );
    }
    return facts;
  }

  private drawStatus(branch: Branch | null): void {
    const { working, error } = this.whatIf;
    const parts: (Element | string)[] = [];
    if (working !== null) parts.push(...makeProgress(this.whatIf, working));
    else if (error !== "") parts.push(h("span", { class: "tuner-error" }, error));
    else if (branch !== null && branch.reason !== "") parts.push(h("span", {}, branch.reason));
    replaceChildren(this.says, ...parts);
    this.says.hidden = parts.length === 0;
  }
}
