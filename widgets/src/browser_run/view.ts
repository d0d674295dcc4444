// "Run here": the reader's browser runs and times the selected kernel, below the captured times.

import { button, h, replaceChildren } from "../dom";
import { count, duration } from "../format";
import { fromBase64 } from "../payload";
import type { Store } from "../store";
import { kernelName } from "../views/pipeline";
import type { RunResult, Runnable, Task, WorkerMessage } from "./messages";
import { WARM_UP_MS, runKernel } from "./worker";

type State = { is: "running"; end: () => void } | { is: "done"; outcome: RunResult } | { is: "failed"; text: string };

export class BrowserRun {
  readonly element = h("section", { class: "run-here", "aria-label": "Run here", "aria-live": "polite" });
  private readonly states = new Map<number, State>();

  constructor(
    private readonly store: Store,
    private readonly runnable: readonly Runnable[],
  ) {}

  draw(): void {
    const chosen = this.store.cursor.kernel ?? this.runnable[0]?.kernel;
    const runnable = this.runnable.find(({ kernel }) => kernel === chosen);
    const kernel = chosen === undefined ? undefined : this.store.index.trace.kernels[chosen];
    const head = h("h3", {}, "In this browser");
    if (runnable === undefined || kernel === undefined) {
      replaceChildren(
        this.element,
        head,
        h("p", { class: "note" }, "The page has no WebAssembly of the chosen kernel."),
      );
      return;
    }
    const state = this.states.get(runnable.kernel);
    const isRunning = state?.is === "running";
    const title = "Runs the kernel as WebAssembly in a worker of this page, and times it";
    const act = isRunning
      ? button("Stop", "Stops the worker", state.end)
      : button(state === undefined ? "Run here" : "Run again", title, () => this.run(runnable));
    const row = h("div", { class: "run-row" }, kernelName(kernel), act, ...this.describeState(runnable, state));
    replaceChildren(
      this.element,
      head,
      row,
      ...(state?.is === "done" ? [h("p", { class: "note" }, this.describeMeasurement(runnable, state.outcome))] : []),
    );
  }

  private describeState(runnable: Runnable, state: State | undefined): (HTMLElement | string)[] {
    if (state === undefined)
      return [h("span", { class: "note" }, `${count(fromBase64(runnable.wasm).length, "byte")} of WebAssembly`)];
    if (state.is === "running") return [h("span", { class: "note" }, "running …")];
    if (state.is === "failed") return [h("span", { class: "wrong", role: "alert" }, state.text)];
    const { low, median, high } = computeQuartiles(state.outcome.times_us);
    const run = this.store.index.runOf(runnable.kernel);
    const against = run === null ? "" : ` · captured, in another process: ${duration(run.median_us)}`;
    return [
      h("span", { class: "num strong", "data-median-us": median }, duration(median)),
      h(
        "span",
        { class: "num" },
        `quartiles ${duration(low)} – ${duration(high)}, n ${state.outcome.times_us.length}${against}`,
      ),
      describeCheck(state.outcome),
    ];
  }

  private describeMeasurement(runnable: Runnable, { calls }: RunResult): string {
    const fed =
      runnable.inputs === undefined ? "generated numbers (0, 1, 2 … 96, repeated)" : "the inputs of the capture";
    const each = calls === 1 ? "one call" : `${count(calls, "call")} in a row`;
    return `One thread, vectors of 16 bytes, on ${fed}, warm; each sample is ${each}, by the clock of the page.`;
  }

  private run(runnable: Runnable): void {
    const text = `const work = ${runKernel.toString()};
onmessage = ({ data }) => work(data, () => performance.now(), ${WARM_UP_MS}).then((outcome) => postMessage({ outcome }), (error) => postMessage({ error: String(error) }));`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(url);
    const end = (state: State | null): void => {
      worker.terminate();
      URL.revokeObjectURL(url);
      if (state === null) this.states.delete(runnable.kernel);
      else this.states.set(runnable.kernel, state);
      this.draw();
    };
    worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) =>
      end("outcome" in data ? { is: "done", outcome: data.outcome } : { is: "failed", text: data.error });
    worker.onerror = (event) => end({ is: "failed", text: event.message || "this browser cannot start a worker" });
    worker.postMessage(taskOf(runnable));
    this.states.set(runnable.kernel, { is: "running", end: () => end(null) });
    this.draw();
  }
}

export function taskOf(runnable: Runnable): Task {
  return {
    name: runnable.name,
    wasm: fromBase64(runnable.wasm) as Uint8Array<ArrayBuffer>,
    values: runnable.values,
    buffers: runnable.buffers,
    inputs: runnable.inputs?.map((text) => (text === null ? null : fromBase64(text))) ?? null,
    results: (runnable.results ?? []).map(({ buffer, step, sample }) => ({ buffer, step, sample: fromBase64(sample) })),
  };
}

export function computeQuartiles(times: readonly number[]): { low: number; median: number; high: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const quantile = (share: number): number => sorted[Math.round(share * (sorted.length - 1))];
  return { low: quantile(0.25), median: quantile(0.5), high: quantile(0.75) };
}

function describeCheck({ compared, differing, largest }: RunResult): HTMLElement {
  const count = compared.toLocaleString("en-US");
  if (compared === 0) return h("span", { class: "note" }, "no result to compare with");
  if (differing > 0)
    return h(
      "span",
      { class: "wrong", role: "alert" },
      `✗ ${differing.toLocaleString("en-US")} of ${count} results differ`,
    );
  const off = largest === 0 ? "exactly" : `off by at most ${largest.toExponential(1)} of the largest value`;
  return h("span", { class: "right" }, `✓ ${count} results as expected, ${off}`);
}
