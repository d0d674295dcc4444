// The vocabulary of a trace's compiler: its levels and languages, and the panels that it supports. Mirrors
// tinyexplore/explore/tracefile/dialect.py.

import { count, languageName as ownName } from "./format";
import type { Level, Trace } from "./model";

const OWN: readonly Level[] = [
  { kind: "lazybuffer", name: "LazyBuffer", plural: "LazyBuffers", role: "tensors" },
  { kind: "uop", name: "UOp", plural: "UOps", role: "program" },
];

type Kinded = { readonly kind: string };
type OfDialect = Pick<Trace, "dialect">;

/** Whether a node belongs to the graph of the whole program, not to the graph of a stage. */
export function isTensor({ dialect }: OfDialect, { kind }: Kinded): boolean {
  return (dialect?.levels ?? OWN).some((level) => level.kind === kind && level.role === "tensors");
}

/** Returns the level of a node. */
export function levelOf({ dialect }: OfDialect, { kind }: Kinded): Level {
  return (dialect?.levels ?? OWN).find((level) => level.kind === kind) ?? OWN[1];
}

/** Returns the first level with a role; undefined if the compiler has none. */
export function findLevel({ dialect }: OfDialect, role: Level["role"]): Level | undefined {
  return (dialect?.levels ?? OWN).find((level) => level.role === role);
}

/** Returns the display name of a language. */
export function languageIn({ dialect }: OfDialect, key: string): string {
  return dialect?.languages.find((language) => language.key === key)?.name ?? ownName(key);
}

/** Returns a count with its noun: "1 LazyBuffer", "12 HLO instructions". */
export function countText(number: number, level: Level | undefined): string {
  return count(number, level?.name ?? "node", level?.plural ?? "nodes");
}

/** Returns the region of a node: "block loop in function f"; "" for none. */
export function regionText({ regions }: Trace, id: number): string {
  const names: string[] = [];
  let region = regions.find(({ nodes }) => nodes.includes(id));
  while (region !== undefined) {
    names.push(`${region.kind} ${region.name}`);
    region = region.parent === null ? undefined : regions[region.parent];
  }
  return names.join(" in ");
}
