// Ranks the firings of rules that change a program most: the share of the final program that derives from the result,
// and the operations that it saved or added; one firing per rule.

import type { KernelInfo, RuleInfo, Stage, Step } from "../model";
import type { TraceIndex } from "../trace_index";

export interface RankedFiring {
  stage: Stage;
  /** The number of finished steps after this one. */
  position: number;
  step: Step;
  rule: RuleInfo;
  /** The number of firings of the rule on this kernel. */
  times: number;
  kernel: KernelInfo;
  /** Operations and loads that only the graph before has. */
  removed: number;
  added: number;
  /** The share of the final program's UOps that derive from the rule's result, 0 to 1. */
  reach: number;
  score: number;
}

interface Difference {
  removed: number;
  added: number;
  /** The number of kinds of operations that only one side has. */
  kinds: number;
  /** The nodes that only the side after has. */
  fresh: number[];
}

const SAMPLES = 3; // firings of one rule on one kernel that are examined
const FREE = new Set(["CONST", "DEFINE_GLOBAL", "DEFINE_VAR", "RANGE", "INDEX", "SINK", "NOOP", "GROUP"]);
const LOAD = 4; // number of operations with the cost of a load or store

/** Returns the most consequential firings, the best first, at most one per rule and (if possible) per pass. */
export function chooseLargestFirings(index: TraceIndex, limit = 3): RankedFiring[] {
  const best = new Map<number, RankedFiring>();
  for (const kernel of index.trace.kernels) {
    for (const firing of firingsIn(index, kernel)) {
      const better = best.get(firing.rule.id);
      if (better === undefined || firing.score > better.score) best.set(firing.rule.id, firing);
    }
  }
  const ranked = [...best.values()].sort(
    (a, b) => b.score - a.score || a.stage.id - b.stage.id || a.position - b.position,
  );
  const chosen: RankedFiring[] = [];
  for (const fromOtherPasses of [true, false]) {
    for (const firing of ranked) {
      if (chosen.length >= limit || chosen.includes(firing)) continue;
      if (fromOtherPasses && chosen.some(({ stage }) => stage.name === firing.stage.name)) continue;
      chosen.push(firing);
    }
  }
  return chosen.sort((a, b) => a.stage.id - b.stage.id || a.position - b.position);
}

function firingsIn(index: TraceIndex, kernel: KernelInfo): RankedFiring[] {
  const { trace } = index;
  const stages = trace.stages.filter((stage) => stage.kernel === kernel.id);
  const counts = new Map<number, number>();
  const firings: (Pick<RankedFiring, "stage" | "position" | "step" | "rule" | "kernel"> & Difference)[] = [];
  for (const stage of stages) {
    stage.steps.forEach((step, i) => {
      if (step.rule === null) return;
      const times = (counts.get(step.rule) ?? 0) + 1;
      counts.set(step.rule, times);
      if (times > SAMPLES) return;
      firings.push({
        stage,
        position: i + 1,
        step,
        rule: trace.rules[step.rule],
        kernel,
        ...countDifference(index, step),
      });
    });
  }
  const final = findFinalNodes(index, kernel);
  const share = shareOf(index, kernel);
  return firings.map(({ kinds, fresh, ...impact }) => {
    const reach = reachOf(index, [impact.step.after, ...fresh], kernel.id, final);
    const times = counts.get(impact.rule.id)!;
    const saved = Math.max(0, impact.removed - impact.added);
    const change = kinds + Math.log2(1 + saved) + 0.25 * Math.log2(1 + impact.added);
    return { ...impact, times, reach, score: share * (0.15 + reach) * change * (1 + 0.25 * Math.log2(times)) };
  });
}

/** Returns the difference of two sides: loads and stores count more; loops, constants and addresses do not count. */
function countDifference(index: TraceIndex, { before, after }: Step): Difference {
  const { trace } = index;
  const [a, b] = [new Set(index.reachable([before])), new Set(index.reachable([after]))];
  const weight = (id: number): number => {
    const { op, dtype } = trace.nodes[id];
    if (FREE.has(op)) return 0;
    if (op === "LOAD" || op === "STORE") return LOAD;
    return /^(u?int|index)/.test(dtype) ? 0.5 : 1;
  };
  const only = (reached: ReadonlySet<number>, other: ReadonlySet<number>): number[] =>
    [...reached].filter((id) => !other.has(id) && weight(id) > 0);
  const [left, right] = [only(a, b), only(b, a)];
  const ops = (ids: readonly number[]): Set<string> => new Set(ids.map((id) => trace.nodes[id].op));
  const [was, is] = [ops(left), ops(right)];
  const kinds = [...was].filter((op) => !is.has(op)).length + [...is].filter((op) => !was.has(op)).length;
  const sum = (ids: readonly number[]): number => ids.reduce((all, id) => all + weight(id), 0);
  return { removed: sum(left), added: sum(right), kinds, fresh: right };
}

/** Returns the UOps of the executed program. */
function findFinalNodes(index: TraceIndex, kernel: KernelInfo): Set<number> {
  const program = index.programsOf(kernel.id).find(({ language }) => language === "uops");
  return new Set(program?.lines.flatMap(({ nodes }) => nodes) ?? []);
}

function reachOf(index: TraceIndex, added: readonly number[], kernel: number, final: ReadonlySet<number>): number {
  if (final.size === 0) return 0;
  let reached = 0;
  for (const id of new Set([...added, ...index.descendants(added, kernel)])) if (final.has(id)) reached += 1;
  return Math.min(1, reached / final.size);
}

/** Returns a kernel's share of the program's time; equal shares without times. */
function shareOf(index: TraceIndex, kernel: KernelInfo): number {
  const us = (id: number): number => index.runOf(id)?.median_us ?? 0;
  const total = index.trace.kernels.reduce((sum, { id }) => sum + us(id), 0);
  return 0.2 + (total > 0 ? us(kernel.id) / total : 1 / index.trace.kernels.length);
}

/** Whether the law adds to the first sentence of the docstring, which is shown above it. */
export function isLawNeeded({ law, doc }: Pick<RuleInfo, "law" | "doc">): boolean {
  const first = doc
    .trim()
    .replace(/\s+/g, " ")
    .split(/\.(?:\s|$)/)[0];
  return law !== "" && (first === "" || !law.endsWith(first));
}

/** Returns the description of a rule: the first paragraph of its docstring, else its law. */
export function ruleWords({ doc, law, name }: RuleInfo): string {
  const first = doc
    .split(/\n\s*\n/)[0]
    .trim()
    .replace(/\s+/g, " ");
  return first || (law === "" ? name : "The left side means the same as the right side.");
}
