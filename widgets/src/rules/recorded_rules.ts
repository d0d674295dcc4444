// The rules of a trace, without Python.

import type { Trace } from "../model";
import type { RuleRow } from "../requests";

/** Returns the rules that fired in a trace, the most frequent first. */
export function listRecordedRules(trace: Trace): RuleRow[] {
  const passes = new Map<number, Set<string>>();
  const firings = new Map<number, number>();
  for (const stage of trace.stages) {
    for (const { rule } of stage.steps) {
      if (rule === null) continue;
      firings.set(rule, (firings.get(rule) ?? 0) + 1);
      passes.set(rule, (passes.get(rule) ?? new Set()).add(stage.name));
    }
  }
  const rows = trace.rules.map(({ id, name, law, doc, file, line }) => ({
    name,
    law,
    doc,
    passes: [...(passes.get(id) ?? [])],
    firings: firings.get(id) ?? 0,
    file,
    line,
    own: false,
  }));
  return rows.filter((row) => row.firings > 0).sort((a, b) => b.firings - a.firings);
}
