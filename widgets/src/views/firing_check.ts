// The check of a firing, at its step: from the trace, or requested from Python when the user clicks.

import { button, h, replaceChildren } from "../dom";
import type { FiringCheck, Stage } from "../model";
import type { TraceIndex } from "../trace_index";
import type { Store } from "../store";

type CheckText = Pick<FiringCheck, "says" | "inputs" | "was" | "has_become"> & { verdict: string };

const WORDS: Record<string, string> = { differs: "wrong" };
const pendingChecks = new WeakMap<object, Map<string, CheckText>>(); // by trace: the responses of Python

export function makeVerdictTag(status: string): HTMLElement {
  return h("span", { class: `tag verdict v-${status.replace(" ", "-")}` }, WORDS[status] ?? status);
}

/** Returns the inputs at which two graphs differ, with both values. */
export function makeCounterexample(
  inputs: readonly (readonly [string, string])[],
  before: string,
  after: string,
): HTMLElement {
  const inputRows = inputs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h(
    "dl",
    { class: "values rules-values", "aria-label": "Counterexample" },
    ...inputRows,
    h("dt", {}, "before"),
    h("dd", {}, before),
    h("dt", {}, "after"),
    h("dd", { class: "removed" }, after),
  );
}

/** Returns the wrong verdicts on a pass's firings, by step. */
export function listWrongSteps({ trace }: TraceIndex, stage: Stage): number[] {
  return trace.checks
    .filter((check) => check.stage === stage.id && check.verdict === "differs")
    .map(({ step }) => step);
}

/** Returns the verdict on the firing of `step`, or a button that requests it; null if it is unavailable. */
export function verdictOf(store: Store, stage: Stage, step: number): HTMLElement | null {
  const { trace } = store.index;
  const response = pendingChecks.get(trace)?.get(`${stage.id} ${step}`);
  const storedCheck = trace.checks.find((check) => check.stage === stage.id && check.step === step) ?? response;
  const element = h("div", { class: "firing-check", role: "status" });
  if (storedCheck !== undefined) showCheck(element, storedCheck);
  else if (store.sendRequest !== null)
    element.append(
      button(
        "check it",
        "Computes both sides for many values, and compares the results",
        () => void check(store, stage, step, element),
      ),
    );
  else return null;
  return element;
}

function showCheck(element: HTMLElement, { verdict, says, inputs, was, has_become: now }: CheckText): void {
  const isShown = verdict === "differs" && was !== "";
  replaceChildren(
    element,
    h("p", {}, makeVerdictTag(verdict), isShown ? " here the two differ:" : ` ${says}`),
    isShown ? makeCounterexample(inputs, was, now) : null,
  );
  element.dataset.verdict = verdict;
}

async function check(store: Store, stage: Stage, step: number, element: HTMLElement): Promise<void> {
  replaceChildren(element, h("p", { class: "faint" }, "computing both sides …"));
  try {
    const verdict = await store.sendRequest!({ ask: "check", stage: stage.id, step });
    const said = { ...verdict, verdict: verdict.status };
    const { trace } = store.index;
    if (!pendingChecks.has(trace)) pendingChecks.set(trace, new Map());
    pendingChecks.get(trace)!.set(`${stage.id} ${step}`, said);
    showCheck(element, said);
  } catch (error) {
    replaceChildren(element, h("p", { role: "alert" }, error instanceof Error ? error.message : String(error)));
  }
}
