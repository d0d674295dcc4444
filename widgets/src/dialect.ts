// The words of a trace's compiler: its levels and languages, and the panels that can answer. As
// tinyexplore/explore/tracefile/dialect.py.

import { count, languageName as ownName } from "./format";
import type { Level, Trace } from "./model";

const OWN: readonly Level[] = [
  { kind: "lazybuffer", name: "LazyBuffer", plural: "LazyBuffers", role: "tensors" },
  { kind: "uop", name: "UOp", plural: "UOps", role: "program" },
];

type Kinded = { readonly kind: string };
type OfDialect = Pick<Trace, "dialect">;

/** Whether a node belongs to the graph of the whole program, and not to that of a stage. */
export function isTensor({ dialect }: OfDialect, { kind }: Kinded): boolean {
  return (dialect?.levels ?? OWN).some((level) => level.kind === kind && level.role === "tensors");
}

/** The level that a node is of. */
export function levelOf({ dialect }: OfDialect, { kind }: Kinded): Level {
  return (dialect?.levels ?? OWN).find((level) => level.kind === kind) ?? OWN[1];
}

/** The first level with a role; undefined where the compiler has none. */
export function levelFor({ dialect }: OfDialect, role: Level["role"]): Level | undefined {
  return (dialect?.levels ?? OWN).find((level) => level.role === role);
}

/** What a language is called. */
export function languageIn({ dialect }: OfDialect, key: string): string {
  return dialect?.languages.find((one) => one.key === key)?.name ?? ownName(key);
}

/** "1 LazyBuffer", "12 HLO instructions". */
export function counted(number: number, level: Level | undefined): string {
  return count(number, level?.name ?? "node", level?.plural ?? "nodes");
}

/** Where a node stands: "block loop in function f"; "" in no region. */
export function regionText({ regions }: Trace, id: number): string {
  const names: string[] = [];
  let at = regions.find(({ nodes }) => nodes.includes(id));
  while (at !== undefined) {
    names.push(`${at.kind} ${at.name}`);
    at = at.parent === null ? undefined : regions[at.parent];
  }
  return names.join(" in ");
}
