// The meanings of the explorer's terms, for tooltips, from the glossary.

import type { Chunks } from "./chunks";
import { GLOSSARY } from "./glossary";

/** Returns the meaning of a word in a group, "" if it has none. */
export function findMeaning(group: string, word: string): string {
  return GLOSSARY[group]?.terms[word] ?? "";
}

/** Returns an opt such as "VECTOR(1, 8)" as text: its effect, axis and amount. */
export function describeOpt(opt: string): string {
  const [, name, axis, amount] = /^(\w+)(?:\((\d+)(?:, (\d+))?\))?/.exec(opt) ?? [];
  const does = findMeaning("opt", name ?? "");
  if (does === "") return "";
  if (axis === undefined) return `${opt}: ${does}`;
  const by =
    amount === undefined ? "" : `, ${["SWAP", "COLLAPSE", "MERGE"].includes(name) ? "and axis" : "by"} ${amount}`;
  return `${opt}: ${does} Here axis ${axis}${by}. Axes count from 0, as scheduled.`;
}

/** Returns the meaning of a kernel's name: its kind, and the kind of axis of each size in it. */
export function describeName(name: string): string {
  if (name.startsWith("r_")) return "r: reduces";
  if (name.startsWith("E_")) return "E: element by element";
  return "";
}

/**
 * Adds descriptions of operations to the lines of a listing. They are set before the pointer enters, since a title that
 * is added under the pointer appears only at the next move.
 */
export async function addOpcodeTooltips(chunks: Chunks, language: string, lines: HTMLElement): Promise<void> {
  const chunk = await chunks.load("opcodes").catch(() => null); // a page without this chunk shows no descriptions
  for (const word of lines.querySelectorAll<HTMLElement>(".t-call:not([title])")) {
    const text = word.textContent!.trim();
    const says = chunk?.explain?.(language, text) ?? null;
    if (says !== null) word.title = `${text}: ${says}`;
  }
}
