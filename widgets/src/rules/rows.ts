// What Python says of rules (tinyexplore/explore/playground), and what a trace says without it.

import { h } from "../dom";
import type { Trace } from "../model";

export interface RuleRow {
  name: string;
  law: string;
  doc: string;
  passes: string[];
  firings: number;
  own: boolean;
}

export interface Verdict {
  status: string;
  samples: number;
  reason: string;
  counterexample: { inputs: [string, string][]; before: string; after: string } | null;
}

export interface Match {
  rule: string;
  kernel: number;
  stage: number;
  name: string;
  step: number;
  node: number;
  digest: string;
  before: string;
  after: string;
  verdict: Verdict;
}

/** The rules that fired in a trace, those that fired most first. */
export function recordedRules(trace: Trace): RuleRow[] {
  const passes = new Map<number, Set<string>>();
  const firings = new Map<number, number>();
  for (const stage of trace.stages) {
    for (const { rule } of stage.steps) {
      if (rule === null) continue;
      firings.set(rule, (firings.get(rule) ?? 0) + 1);
      passes.set(rule, (passes.get(rule) ?? new Set()).add(stage.name));
    }
  }
  const rows = trace.rules.map(({ id, name, law, doc }) => ({ name, law, doc, passes: [...(passes.get(id) ?? [])], firings: firings.get(id) ?? 0, own: false }));
  return rows.filter((row) => row.firings > 0).sort((a, b) => b.firings - a.firings);
}

const WORDS: Record<string, string> = { proved: "proved", agrees: "agrees", differs: "wrong", "not checked": "not checked", failed: "failed" };

export function verdictTag(status: string): HTMLElement {
  return h("span", { class: `tag verdict v-${status.replace(" ", "-")}` }, WORDS[status] ?? status);
}

/** The inputs at which two graphs differ, and what each gives there. */
export function counterexample(inputs: readonly (readonly [string, string])[], before: string, after: string): HTMLElement {
  const given = inputs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h("dl", { class: "values rules-values", "aria-label": "Counterexample" }, ...given, h("dt", {}, "before"), h("dd", { class: "come" }, before), h("dt", {}, "after"), h("dd", { class: "gone" }, after));
}
