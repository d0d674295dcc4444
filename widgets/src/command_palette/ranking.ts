// Ranks how well a name matches the typed text: whole, at the beginning, at the beginning of a word, anywhere, or its
// letters in order.

/** `score`: higher is better. `marked`: the positions of the matching characters. */
export interface Match {
  score: number;
  marked: number[];
}

const WHOLE = 100;
const BEGINNING = 80;
export const WORD = 60;
const INSIDE = 40;
const IN_ORDER = 20;
const BESIDE = 10;

/** Returns the match of a query if each word occurs in the name or in its description; else null. */
export function matchOf(query: string, name: string, beside = ""): Match | null {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const [low, others] = [name.toLowerCase(), beside.toLowerCase()];
  const marked = new Set<number>();
  let score = 0;
  for (const word of words) {
    const match = matchInName(word, low, name) ?? (others.includes(word) ? { score: BESIDE, marked: [] } : null);
    if (match === null) return null;
    score += match.score / words.length;
    for (const index of match.marked) marked.add(index);
  }
  return { score, marked: [...marked].sort((a, b) => a - b) };
}

function matchInName(word: string, low: string, name: string): Match | null {
  const run = (start: number): number[] => [...word].map((_, i) => start + i);
  if (low === word) return { score: WHOLE, marked: run(0) };
  if (low.startsWith(word)) return { score: BEGINNING, marked: run(0) };
  const starts = [...low].map((_, i) => i).filter((i) => low.startsWith(word, i));
  const begins = starts.find((start) => beginsWord(name, start));
  if (begins !== undefined) return { score: WORD, marked: run(begins) };
  if (starts.length > 0) return { score: INSIDE, marked: run(starts[0]) };
  return word.length < 2 ? null : matchInOrder(word, low, name);
}

/**
 * Matches letters in order, such as "sld" in "store_load": the first at the beginning of a word; close letters score
 * higher.
 */
function matchInOrder(word: string, low: string, name: string): Match | null {
  let best: Match | null = null;
  for (let start = low.indexOf(word[0]); start >= 0; start = low.indexOf(word[0], start + 1)) {
    if (!beginsWord(name, start)) continue;
    const marked = [start];
    for (const letter of word.slice(1)) marked.push(low.indexOf(letter, marked[marked.length - 1] + 1));
    if (marked.some((index, i) => i > 0 && index <= marked[i - 1])) return best; // a later start has fewer letters left
    const gaps = marked[marked.length - 1] - start + 1 - word.length;
    const score = IN_ORDER - Math.min(9, gaps);
    if (best === null || score > best.score) best = { score, marked };
  }
  return best;
}

function beginsWord(name: string, start: number): boolean {
  return (
    start === 0 ||
    !/[\p{L}\d]/u.test(name[start - 1]) ||
    (/\p{Lu}/u.test(name[start]) && /\p{Ll}/u.test(name[start - 1]))
  );
}
