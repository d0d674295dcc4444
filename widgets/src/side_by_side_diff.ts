// Compares two texts side by side: equal lines in one row, a replaced block beside its replacement.

/** A row: line positions in the two texts, null if one has no line. */
export interface TextDiffRow {
  before: number | null;
  after: number | null;
  same: boolean;
}

const MOST_CELLS = 4_000_000; // cells of the table; a larger part counts as replaced

/** Returns the rows of two texts. Equal lines are matched by a longest common subsequence. */
export function diffRows(before: readonly string[], after: readonly string[]): TextDiffRow[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let commonEnd = 0;
  while (commonEnd < shorter - start && before[before.length - 1 - commonEnd] === after[after.length - 1 - commonEnd])
    commonEnd += 1;
  const [low, high] = [before.length - commonEnd, after.length - commonEnd];
  const rows: TextDiffRow[] = [];
  for (let i = 0; i < start; i += 1) rows.push({ before: i, after: i, same: true });
  rows.push(...diffMiddle(before, after, start, low, high));
  for (let i = 0; i < commonEnd; i += 1) rows.push({ before: low + i, after: high + i, same: true });
  return rows;
}

/** Returns the rows between the common begin and the common end of both texts. */
function diffMiddle(
  before: readonly string[],
  after: readonly string[],
  start: number,
  low: number,
  high: number,
): TextDiffRow[] {
  const [m, n] = [low - start, high - start];
  const rows: TextDiffRow[] = [];
  let [i, j] = [0, 0];
  let [removed, added]: [number[], number[]] = [[], []];
  const flush = (): void => {
    for (let k = 0; k < Math.max(removed.length, added.length); k += 1)
      rows.push({ before: removed[k] ?? null, after: added[k] ?? null, same: false });
    [removed, added] = [[], []];
  };
  const width = n + 1;
  const best = m * n > MOST_CELLS ? null : countCommonLines(before, after, start, m, n);
  while (i < m || j < n) {
    const isEqual = best !== null && i < m && j < n && before[start + i] === after[start + j];
    if (isEqual) {
      flush();
      rows.push({ before: start + i++, after: start + j++, same: true });
    } else if (j >= n || (i < m && (best === null || best[(i + 1) * width + j] >= best[i * width + j + 1])))
      removed.push(start + i++);
    else added.push(start + j++);
  }
  flush();
  return rows;
}

/** Returns, for every pair of positions, the number of common lines from there on. */
function countCommonLines(
  before: readonly string[],
  after: readonly string[],
  start: number,
  m: number,
  n: number,
): Uint16Array {
  const width = n + 1;
  const best = new Uint16Array((m + 1) * width);
  for (let i = m - 1; i >= 0; i -= 1)
    for (let j = n - 1; j >= 0; j -= 1)
      best[i * width + j] =
        before[start + i] === after[start + j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  return best;
}

/** Returns the rows near a change, and the number of hidden rows in between. */
export function foldEqual(rows: readonly TextDiffRow[], context: number): (TextDiffRow | { hidden: TextDiffRow[] })[] {
  const near = new Uint8Array(rows.length);
  rows.forEach(({ same }, i) => {
    if (!same) near.fill(1, Math.max(0, i - context), i + context + 1);
  });
  const visibleRows: (TextDiffRow | { hidden: TextDiffRow[] })[] = [];
  let hidden: TextDiffRow[] = [];
  const flush = (): void => {
    if (hidden.length > 2) visibleRows.push({ hidden });
    else visibleRows.push(...hidden);
    hidden = [];
  };
  rows.forEach((row, i) => {
    if (near[i] === 0) hidden.push(row);
    else {
      flush();
      visibleRows.push(row);
    }
  });
  flush();
  return visibleRows;
}
