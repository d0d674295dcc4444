// What the words of the explorer mean, for tooltips: all from the glossary.

import type { Chunks } from "./chunks";
import { GLOSSARY } from "./glossary";

/** The meaning of a word of a group, "" for a word that has none. */
export function meaning(group: string, word: string): string {
  return GLOSSARY[group]?.terms[word] ?? "";
}

/** "VECTOR(1, 8)" as text: what the opt does, to which axis, by how much. */
export function optMeaning(opt: string): string {
  const [, name, axis, amount] = /^(\w+)(?:\((\d+)(?:, (\d+))?\))?/.exec(opt) ?? [];
  const does = meaning("opt", name ?? "");
  if (does === "") return "";
  if (axis === undefined) return `${opt}: ${does}`;
  const by =
    amount === undefined ? "" : `, ${["SWAP", "COLLAPSE", "MERGE"].includes(name) ? "and axis" : "by"} ${amount}`;
  return `${opt}: ${does} Here axis ${axis}${by}; axes count from 0 as the kernel was scheduled.`;
}

/** What a kernel's name says: its kind and, for each size in it, the kind of axis it is of. */
export function nameMeaning(name: string): string {
  if (name.startsWith("r_")) return "r: it reduces";
  if (name.startsWith("E_")) return "E: element by element";
  return "";
}

/** Says what the operations of a listing do, in those lines of it: before the pointer comes, for a title that is given
 * under the pointer shows at its next move only. */
export async function explainWords(chunks: Chunks, language: string, lines: HTMLElement): Promise<void> {
  const chunk = await chunks.load("opcodes").catch(() => null); // a page that lacks them goes without
  for (const word of lines.querySelectorAll<HTMLElement>(".t-call:not([title])")) {
    const text = word.textContent!.trim();
    const says = chunk?.explain?.(language, text) ?? null;
    if (says !== null) word.title = `${text}: ${says}`;
  }
}
