// Compares two texts line by line: lines that stay, are removed, or are new.

export type LineChange = { kind: "same" | "removed" | "new"; text: string; a: number | null; b: number | null };

/**
 * Returns the lines of `b` merged with the removed lines of `a`, by a longest common subsequence; numbers count from
 * 1.
 */
export function compareLines(a: readonly string[], b: readonly string[]): LineChange[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const changes: LineChange[] = [];
  const same = (i: number, j: number): void => void changes.push({ kind: "same", text: b[j], a: i + 1, b: j + 1 });
  for (let i = 0; i < start; i += 1) same(i, i);
  const rows = a.length - start - end;
  const columns = b.length - start - end;
  const width = columns + 1;
  // lengths[i * width + j]: the most common lines of a from i on and b from j on
  const lengths = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      const equal = a[start + i] === b[start + j];
      lengths[i * width + j] = equal
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  let i = 0;
  let j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[start + i] === b[start + j]) {
      same(start + i, start + j);
      i += 1;
      j += 1;
    } else if (i < rows && (j === columns || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      changes.push({ kind: "removed", text: a[start + i], a: start + i + 1, b: null });
      i += 1;
    } else {
      changes.push({ kind: "new", text: b[start + j], a: null, b: start + j + 1 });
      j += 1;
    }
  }
  for (let k = end; k > 0; k -= 1) same(a.length - k, b.length - k);
  return changes;
}
