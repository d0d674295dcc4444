// The kernels' times: medians with their quartiles.

import { makeMeasureButton } from "../rerun_button";
import { h, replaceChildren } from "../dom";
import { findMeaning } from "../term_meanings";
import { count, duration, figuresText, quartilesText, samplesText, sumText } from "../format";
import { kernelLabel } from "../kernel_labels";
import type { KernelInfo } from "../model";
import { computeThroughput } from "../trace_index";
import type { Change, Store, View } from "../store";
import { makeVerdictCard, verdictOn, verdictsOf } from "../verdicts";

export class TimingView implements View {
  readonly element = h("div", { class: "timing scroll", tabindex: 0, role: "region", "aria-label": "Timing" });

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(change: Change): void {
    if (this.element.hidden && this.store.cursor.panel !== "timing") return;
    if (change.cursor) this.draw();
  }

  /** Returns the verdict on the selected kernel, else on the program. */
  private makeVerdict(): HTMLElement | null {
    const verdicts = verdictsOf(this.store, () => this.draw());
    const { kernel } = this.store.cursor;
    const verdict = (kernel === null ? undefined : verdictOn(verdicts, kernel)) ?? verdicts?.whole ?? undefined;
    if (verdict !== undefined) {
      const card = makeVerdictCard(this.store, verdict);
      const { kernels } = this.store.index.trace;
      const subject = verdict.kernel === null || verdict.kernel === undefined ? undefined : kernels[verdict.kernel];
      if (subject !== undefined && kernels.length > 1) card.prepend(h("p", { class: "subject" }, kernelLabel(subject)));
      return card;
    }
    const measure = makeMeasureButton(this.store);
    return measure && h("p", { class: "note" }, "One cold run is not a reliable time. ", measure);
  }

  private draw(): void {
    const { index, cursor } = this.store;
    const timed = index.trace.kernels.flatMap((kernel) => {
      const run = index.runOf(kernel.id);
      return run === null ? [] : [{ kernel, run }];
    });
    if (timed.length === 0) {
      replaceChildren(this.element, h("p", { class: "empty" }, explainUntimed(index.trace.kernels)));
      this.store.runHere?.(this.element, this.store);
      return;
    }
    // a single disturbed sample must not flatten all other bars: whiskers are cut at twice the largest median
    const slowest = Math.max(...timed.map(({ run }) => run.median_us));
    const longest = Math.min(2 * slowest, Math.max(...timed.map(({ run }) => run.high_us)));
    const total = timed.reduce((sum, { run }) => sum + run.median_us, 0);
    const rows = timed.map(({ kernel, run }) => {
      const { gflops, gbps } = computeThroughput(kernel, run);
      const percentOf = (us: number): string => `${(Math.min(us, longest) / longest) * 100}%`;
      const isCut = run.high_us > longest;
      const times = samplesText(run);
      const spread = run.times_us.length < 2 ? times : `quartiles ${quartilesText(run)}, of ${times}`;
      const chart = h(
        "span",
        { class: "chart", title: spread },
        h("span", { class: "median", style: `width:${percentOf(run.median_us)}` }),
        h("span", {
          class: "whisker",
          style: `left:${percentOf(run.low_us)};right:calc(100% - ${percentOf(run.high_us)})`,
        }),
        isCut ? h("span", { class: "cut", title: `up to ${duration(run.high_us)}` }, "▸") : null,
      );
      return h(
        "button",
        {
          type: "button",
          class: "timed",
          "aria-current": kernel.id === cursor.kernel ? "true" : null,
          onclick: () => this.store.go({ kernel: kernel.id }),
        },
        kernelLabel(kernel),
        chart,
        h("span", { class: "num strong" }, duration(run.median_us)),
        h(
          "span",
          { class: "num", title: `${spread}\n${findMeaning("word", "quartiles")}` },
          [quartilesText(run), times].filter(Boolean).join(" · "),
        ),
        h("span", { class: "num" }, `${figuresText((run.median_us / total) * 100)} %`),
        h("span", { class: "num" }, kernel.flops > 0 && gflops !== null ? `${figuresText(gflops)} GFLOP/s` : ""),
        h("span", { class: "num" }, gbps !== null ? `${figuresText(gbps)} GB/s` : ""),
      );
    });
    const whiskers = timed.some(({ run }) => run.times_us.length > 1) ? "; whiskers are quartiles" : "";
    const sum =
      timed.length === 1
        ? `${duration(total)}${whiskers}.`
        : `${duration(total)} in ${count(timed.length, "kernel")}: ${sumText(timed.map(({ run }) => run))}${whiskers}.`;
    const untimed = timed.length < index.trace.kernels.length ? ` ${joinReasons(index.trace.kernels)}` : "";
    replaceChildren(this.element, this.makeVerdict(), h("p", { class: "note" }, sum + untimed), ...rows);
    this.store.runHere?.(this.element, this.store);
  }
}

/** Returns why no kernel has a time. */
export function explainUntimed(kernels: readonly KernelInfo[]): string {
  return joinReasons(kernels) || "No kernel of this trace was run.";
}

function joinReasons(kernels: readonly KernelInfo[]): string {
  return [...new Set(kernels.map(({ not_run }) => not_run).filter(Boolean))].join(" ");
}
