// Searches lines of the texts of stages: those that match a query, and the history of a line.

import type { StageText } from "./model";

/** A line of a text; both numbers count from 0. */
export interface TextPosition {
  text: number;
  line: number;
}

/**
 * Returns a matcher of lines: all words, or /regular expressions/, must match, ignoring case. Null for an empty query;
 * an error for an invalid one.
 */
export function parseLineQuery(query: string): ((line: string) => boolean) | null | { error: string } {
  const terms = query.trim().match(/\/(?:[^/\\]|\\.)+\/|\S+/g);
  if (terms === null) return null;
  try {
    const tests = terms.map((term) => {
      const expression = /^\/(.+)\/$/.exec(term);
      const pattern = new RegExp(expression?.[1] ?? term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
      return (line: string): boolean => pattern.test(line);
    });
    return (line) => tests.every((test) => test(line));
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Returns the matching lines of all texts, in order. */
export function findPlaces(
  texts: readonly (readonly { text: string }[])[],
  matcher: (line: string) => boolean,
): TextPosition[] {
  return texts.flatMap((lines, text) =>
    lines.flatMap((lineData, line): TextPosition[] => (matcher(lineData.text) ? [{ text, line }] : [])),
  );
}

/** Returns the first position after (1) or before (-1) a position, cyclically; undefined if there is none. */
export function findNextPlace(
  places: readonly TextPosition[],
  from: TextPosition,
  direction: 1 | -1,
): TextPosition | undefined {
  const isAfter = (place: TextPosition): boolean =>
    place.text > from.text || (place.text === from.text && place.line > from.line);
  const isBefore = (other: TextPosition): boolean =>
    other.text < from.text || (other.text === from.text && other.line < from.line);
  return direction === 1 ? (places.find(isAfter) ?? places[0]) : (places.findLast(isBefore) ?? places.at(-1));
}

type Text = Pick<StageText, "id" | "language" | "before" | "lines">;

/** Returns the history of a line, oldest first, and the line itself last. Mirrors `line_history` of stage_texts.py. */
export function findLineHistory(
  { stage_texts: texts }: { stage_texts: readonly Text[] },
  place: TextPosition,
): TextPosition[] {
  const history: TextPosition[] = [];
  for (let position: TextPosition | null = place; position !== null; position = originOf(texts, position)) {
    const last = history.at(-1);
    const isSame =
      last !== undefined &&
      texts[last.text].language === texts[position.text].language &&
      lineAt(texts, last).text === lineAt(texts, position).text;
    if (isSame) history.pop(); // the text of the line is older
    history.push(position);
  }
  return history.reverse();
}

const lineAt = (texts: readonly Text[], { text, line }: TextPosition): StageText["lines"][number] =>
  texts[text].lines[line];

function originOf(texts: readonly Text[], place: TextPosition): TextPosition | null {
  const { before, language } = texts[place.text];
  const { origin, nodes } = lineAt(texts, place);
  if (before !== null && origin !== null) return { text: before, line: origin };
  const others = texts.slice(0, place.text).reverse();
  const earlier = others.filter((text) => text.language !== language);
  for (const earlierText of before === null ? earlier : [texts[before], ...earlier]) {
    const line = earlierText.lines.findIndex((other) => other.nodes.some((node) => nodes.includes(node)));
    if (line >= 0) return { text: earlierText.id, line };
  }
  return null;
}
