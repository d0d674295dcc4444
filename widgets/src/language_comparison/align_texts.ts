// Aligns the lines of several texts in rows, without reordering.

import type { TranslationData } from "../requests";

/** A line of a text: its alignment origin and all origins, as positions in the list of origins. */
export type LanguageLine = TranslationData["lines"][number];
export type Span = [first: number, end: number];

export interface Row {
  origin: number | null;
  spans: Span[];
  /** For a text without lines here: whether other lines of it derive from the origin. */
  elsewhere: boolean[];
}

type Run = [row: number | null, first: number, end: number];

export function alignTexts(texts: readonly (readonly LanguageLine[])[]): Row[] {
  let rows: { origin: number | null; spans: Span[] }[] = [];
  texts.forEach((text, count) => {
    const runs = groupRuns(text);
    const pairs = matchNodes(
      rows.map(({ origin }) => origin),
      runs.map(([row]) => row),
    );
    rows = pairs.map(([row, run]) => {
      const spans = row === null ? Array.from({ length: count }, (): Span => [0, 0]) : rows[row].spans;
      const span: Span = run === null ? [0, 0] : [runs[run][1], runs[run][2]];
      return { origin: row === null ? runs[run!][0] : rows[row].origin, spans: [...spans, span] };
    });
  });
  const everywhere = texts.map((text) => new Set(text.flatMap(([, , origins]) => origins)));
  return rows.map(({ origin, spans }) => ({
    origin,
    spans,
    elsewhere: spans.map(([first, end], i) => first === end && origin !== null && everywhere[i].has(origin)),
  }));
}

/** Groups adjacent lines of one row. */
function groupRuns(lines: readonly LanguageLine[]): Run[] {
  const groups: Run[] = [];
  lines.forEach(([, row], i) => {
    const last = groups.at(-1);
    if (last !== undefined && last[0] === row) last[2] = i + 1;
    else groups.push([row, i, i + 1]);
  });
  return groups;
}

/**
 * Aligns `a` and `b` by a common subsequence; null for a line without a partner. It has the most nodes of the AST, and
 * among these the most lines without a UOp.
 */
function matchNodes(a: readonly (number | null)[], b: readonly (number | null)[]): [number | null, number | null][] {
  const width = b.length + 1;
  const best = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const worth = a[i] === null ? 1 : a.length + b.length;
      best[i * width + j] =
        a[i] === b[j]
          ? best[(i + 1) * width + j + 1] + worth
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const pairs: [number | null, number | null][] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) pairs.push([i++, j++]);
    else if (j === b.length || (i < a.length && best[(i + 1) * width + j] >= best[i * width + j + 1]))
      pairs.push([i++, null]);
    else pairs.push([null, j++]);
  }
  return pairs;
}
