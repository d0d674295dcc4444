// What Python says of rules (tinyexplore/explore/whatif/playground), and what a trace says without it.

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
  const rows = trace.rules.map(({ id, name, law, doc }) => ({
    name,
    law,
    doc,
    passes: [...(passes.get(id) ?? [])],
    firings: firings.get(id) ?? 0,
    own: false,
  }));
  return rows.filter((row) => row.firings > 0).sort((a, b) => b.firings - a.firings);
}
