// The verdicts on the kernels of a trace: requested once, when a view first shows them; a page stores them.

import { canShow } from "./panel_availability";
import { h } from "./dom";
import type { VerdictList, VerdictRow } from "./requests";
import { type Cursor, PANELS, type Panel, type Store } from "./store";

export type { VerdictRow } from "./requests";

const QUESTION = { ask: "verdicts" } as const;
const requested = new WeakMap<object, VerdictList | null>(); // by trace; null: unknown, or not received yet
const waiting = new WeakMap<object, Set<() => void>>();

/** Returns the verdicts received so far; without Python and stored responses there are none. */
export function findStoredVerdicts({ index, responses }: Store): VerdictList | null {
  return responses.get(QUESTION) ?? requested.get(index.trace) ?? null;
}

/** Returns the same, and requests missing verdicts; `redraw` is called when they arrive. */
export function verdictsOf(store: Store, redraw: () => void): VerdictList | null {
  const { trace } = store.index;
  const existing = findStoredVerdicts(store);
  if (existing !== null || store.sendRequest === null || !trace.runs.some(({ warm }) => warm)) return existing;
  if (waiting.has(trace)) {
    waiting.get(trace)!.add(redraw);
    return null;
  }
  if (requested.has(trace)) return null;
  const redraws = new Set([redraw]);
  waiting.set(trace, redraws);
  requested.set(trace, null);
  store
    .sendRequest(QUESTION)
    .then((list) => {
      requested.set(trace, list);
      for (const redraw of redraws) redraw();
    })
    .catch(() => undefined) // then there is no verdict, and only the times are shown
    .finally(() => waiting.delete(trace));
  return null;
}

/** Whether the verdicts are requested and not received yet. */
export function arePending({ index }: Store): boolean {
  return waiting.has(index.trace);
}

/** Returns the verdict on one kernel. */
export function verdictOn(verdicts: VerdictList | null, kernel: number): VerdictRow | undefined {
  return verdicts?.rows.find((verdict) => verdict.kernel === kernel);
}

/** The meanings of the colors, as text. */
export const TONE_WORDS: Record<string, string> = {
  fast: "fast: 65 % of its limit or more",
  middle: "30 to 65 % of its limit",
  slow: "slow: less than 30 % of its limit",
  none: "launch overhead, or not known",
};

/** Returns the kind as a colored word, with the sentence as tooltip. */
export function makeKindTag(verdict: VerdictRow): HTMLElement {
  const level = verdict.level === "" ? "" : `${verdict.level} `;
  const share = verdict.share === null || verdict.tone === "none" ? "" : ` ${Math.round(100 * verdict.share)} %`;
  const guess = verdict.likely === verdict.kind ? "" : ` (${verdict.likely})`;
  const word = `${level}${verdict.kind}${guess}${share}`;
  return h("span", { class: `verdict-kind tone-${verdict.tone}`, title: verdict.text }, word);
}

/** Returns the sentence, its numbers (buttons that open their evidence, if available) and suggestions. */
export function makeVerdictCard(store: Store, verdict: VerdictRow): HTMLElement {
  const end = verdict.text.indexOf(". ");
  const head = end < 0 ? verdict.text : verdict.text.slice(0, end + 1);
  const kernel = verdict.kernel ?? undefined;
  const numbers = verdict.evidence.map(({ name, value, panel }) => {
    const place = evidencePlace(store, panel, kernel);
    const words = [`${name} `, h("b", {}, value)];
    if (place === null) return h("span", { class: "evidence" }, ...words);
    const go = (): void => lead(store, { ...(kernel === undefined ? {} : { kernel }), ...place });
    const title = `Show the facts of this verdict: ${panel}`;
    return h("button", { type: "button", class: "evidence", title, onclick: go }, ...words);
  });
  const tries = verdict.suggestions.map(({ text, result }) =>
    h("p", { class: "try" }, h("b", {}, "Try "), text, result === "" ? null : h("b", { class: "gain" }, ` ${result}`)),
  );
  const missing =
    verdict.missing.length === 0 ? null : h("p", { class: "faint" }, `Not known: ${verdict.missing.join("; ")}.`);
  return h(
    "section",
    { class: `verdict-card tone-${verdict.tone}`, "aria-label": "Verdict", "data-kind": verdict.kind },
    h("p", { class: "sentence" }, h("strong", {}, head), end < 0 ? "" : verdict.text.slice(end + 1)),
    h("div", { class: "numbers" }, ...numbers),
    ...tries,
    missing,
    kernel === undefined ? null : decisionsLink(store, kernel),
  );
}

/** Goes to a position of the workbench, also from the story. */
function lead(store: Store, place: Partial<Cursor>): void {
  store.go(place);
  store.openWorkbench?.();
}

/** Returns a link to the decisions on a kernel's opts, which explain its loops; the verdict explains its speed. */
function decisionsLink(store: Store, kernel: number): HTMLElement | null {
  const { stages, kernels } = store.index.trace;
  const owner = kernels[kernel]?.same_as ?? kernel;
  const stage = stages.find((stage) => stage.kernel === owner && stage.choices.length > 0);
  if (stage === undefined) return null;
  const go = (): void => {
    store.select([]);
    lead(store, { kernel, stage: stage.id, graph: "uops", place: "passes", panel: "why" });
  };
  return h(
    "p",
    { class: "faint" },
    h(
      "button",
      { type: "button", class: "link", title: "Opens Decisions: each opt with its reason", onclick: go },
      "Why it has these loops",
    ),
  );
}

// evidence with a name that differs from its panel's
const PANEL_OF: Record<string, Panel> = { gpu: "warps", samples: "timing" };

/** Returns the position that shows an evidence: a panel, or the assembly listing; null if it is unavailable here. */
export function evidencePlace(store: Store, evidence: string, kernel: number | undefined): Partial<Cursor> | null {
  if (evidence === "code") {
    const programs = kernel === undefined ? [] : store.index.programsOf(kernel);
    return programs.length > 0 ? { place: "code" } : null;
  }
  const panel = PANEL_OF[evidence] ?? PANELS.find((name) => name === evidence);
  return panel !== undefined && canShow(store, panel) ? { panel } : null;
}
