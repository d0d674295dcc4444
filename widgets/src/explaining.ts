// What the words of the explorer mean, for tooltips: all from the glossary.

import type { Chunks } from "./chunks";
import { GLOSSARY } from "./glossary";

/** The meaning of a word of a group, "" for a word that has none. */
export function meaning(group: string, word: string): string {
  return GLOSSARY[group]?.terms[word] ?? "";
}

/** "VECTOR(1, 8)" in words: what the opt does, to which axis, by how much. */
export function optMeaning(opt: string): string {
  const [, name, axis, amount] = /^(\w+)(?:\((\d+)(?:, (\d+))?\))?/.exec(opt) ?? [];
  const does = meaning("opt", name ?? "");
  if (does === "") return "";
  if (axis === undefined) return `${opt}: ${does}`;
  const by = amount === undefined ? "" : `, ${["SWAP", "MERGE"].includes(name) ? "and axis" : "by"} ${amount}`;
  return `${opt}: ${does} Here axis ${axis}${by}; axes count from 0 as the kernel was scheduled.`;
}

/** What a kernel's name says: its kind and, for each size in it, the kind of axis it is of. */
export function nameMeaning(name: string): string {
  if (name.startsWith("r_")) return "r: it reduces";
  if (name.startsWith("E_")) return "E: element by element";
  return "";
}

/** Says what the operation of a listing under the pointer does; the words for that come with the first one. */
export async function explainWord(chunks: Chunks, language: string, event: Event): Promise<void> {
  const word = (event.target as Element).closest<HTMLElement>(".t-call:not([title])");
  if (word === null || language === "source") return;
  const chunk = await chunks.load("opcodes").catch(() => null); // a page that lacks them goes without
  const text = word.textContent!.trim();
  const says = chunk?.explain?.(language, text) ?? null;
  if (says !== null) word.title = `${text}: ${says}`;
}
