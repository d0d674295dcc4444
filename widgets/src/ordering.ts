// Orders the vertices of each rank: barycenter sweeps and swaps of neighbors reduce crossings. Mirrors
// tinyexplore/explore/tracefile/pictures/ordering.py.

import { itemAt, emptyLists, NODE_GAP, widthOf, type Layers } from "./layers";

const ORDER_SWEEPS = 8;
const SWAP_PASSES = 4;
const RELAX_ROUNDS = 4;
const SLOT_REACH = 12;
const PUSH_COST = 4;

/** Returns the rows in the order of a depth-first walk from the last users upwards. Trees then have no crossings. */
export function orderInitially(layers: Layers, vertices: readonly number[]): number[][] {
  let first = itemAt(layers.rank, itemAt(vertices, 0));
  let last = first;
  for (const v of vertices) {
    first = Math.min(first, itemAt(layers.rank, v));
    last = Math.max(last, itemAt(layers.rank, v));
  }
  const rows = emptyLists(last - first + 1);
  const visited = new Set<number>();
  for (const start of vertices) {
    if (itemAt(layers.down, start).length > 0) continue;
    const stack = [start];
    while (stack.length > 0) {
      const v = stack.pop() as number;
      if (visited.has(v)) continue;
      visited.add(v);
      itemAt(rows, itemAt(layers.rank, v) - first).push(v);
      const above = itemAt(layers.up, v);
      for (let i = above.length - 1; i >= 0; i--) stack.push(itemAt(above, i));
    }
  }
  return rows;
}

export function indexRows(rows: readonly number[][], position: number[]): void {
  for (const row of rows) row.forEach((v, i) => (position[v] = i));
}

/** Orders rows by the previous positions; new vertices are placed near their neighbors, if there is room. */
export function orderByPrevious(layers: Layers, rows: number[][], pinned: readonly (number | null)[]): void {
  const key = new Map<number, number>();
  let sum = 0;
  for (const row of rows) {
    for (const v of row) {
      const pinnedAt = pinned[v] ?? null;
      if (pinnedAt === null) continue;
      key.set(v, pinnedAt);
      sum += pinnedAt;
    }
  }
  const middle = sum / key.size;
  const count = rows.length;
  for (let round = 0; round < RELAX_ROUNDS; round++) {
    for (let i = 0; i < 2 * count; i++) {
      for (const v of itemAt(rows, i < count ? i : 2 * count - 1 - i)) {
        if ((pinned[v] ?? null) !== null) continue;
        let total = 0;
        let crossed = 0;
        for (const neighbors of [itemAt(layers.up, v), itemAt(layers.down, v)]) {
          for (const u of neighbors) {
            const neighborAt = key.get(u);
            if (neighborAt === undefined) continue;
            total += neighborAt;
            crossed++;
          }
        }
        if (crossed > 0) key.set(v, total / crossed);
      }
    }
  }
  rows.forEach((row, r) => (rows[r] = slotBetweenPinned(layers, row, pinned, key, middle)));
}

/** Returns the pinned vertices of a row from left to right, with the others in the gaps where they shift them least. */
function slotBetweenPinned(
  layers: Layers,
  row: readonly number[],
  pinned: readonly (number | null)[],
  key: ReadonlyMap<number, number>,
  middle: number,
): number[] {
  const keyOf = (v: number): number => key.get(v) ?? middle;
  const isPinned = (v: number): boolean => (pinned[v] ?? null) !== null;
  const order = row.slice().sort((a, b) => keyOf(a) - keyOf(b));
  const pins = order.filter(isPinned);
  const places = pins.map(keyOf);
  const gap = layers.dummyGap;
  const lows = [-Infinity, ...pins.map((v) => keyOf(v) + widthOf(layers, v) / 2)];
  const highs = [...pins.map((v) => keyOf(v) - widthOf(layers, v) / 2), Infinity];
  const room = lows.map((low, i) => itemAt(highs, i) - low - gap);
  const slots = emptyLists(lows.length);
  let nearest = 0; // the desired positions are in ascending order
  for (const v of order) {
    if (isPinned(v)) continue;
    const want = keyOf(v);
    const need = v < layers.boxes.length ? widthOf(layers, v) + NODE_GAP + NODE_GAP - gap : gap;
    while (nearest < places.length && itemAt(places, nearest) <= want) nearest++;
    let best = nearest;
    let fewest = Infinity;
    const last = Math.min(pins.length, nearest + SLOT_REACH);
    for (let slot = Math.max(0, nearest - SLOT_REACH); slot <= last; slot++) {
      const away = Math.max(itemAt(lows, slot) + need / 2 - want, want - (itemAt(highs, slot) - need / 2), 0);
      const cost = away + PUSH_COST * Math.max(0, need - itemAt(room, slot));
      if (cost < fewest) {
        fewest = cost;
        best = slot;
      }
    }
    itemAt(slots, best).push(v);
    room[best] = itemAt(room, best) - need;
  }
  const result = itemAt(slots, 0);
  pins.forEach((v, i) => result.push(v, ...itemAt(slots, i + 1)));
  return result;
}

/** Reduces crossings by barycenter sweeps, alternately down and up; keeps the best order. */
export function reduceCrossings(layers: Layers, rows: number[][], cancelled: () => boolean): void {
  const position: number[] = [];
  indexRows(rows, position);
  let fewest = countCrossings(layers, rows, position);
  let best = rows.map((row) => row.slice());
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest > 0 && !cancelled(); sweep++) {
    const downwards = sweep % 2 === 0;
    for (let i = 1; i < rows.length; i++) {
      const r = downwards ? i : rows.length - 1 - i;
      sortByBarycenter(itemAt(rows, r), downwards ? layers.up : layers.down, position);
    }
    const count = countCrossings(layers, rows, position);
    if (count < fewest) {
      fewest = count;
      best = rows.map((row) => row.slice());
    }
  }
  best.forEach((row, r) => (rows[r] = row));
}

/** Sorts one row by the mean position of each vertex's neighbors. A vertex without neighbors keeps its position. */
function sortByBarycenter(row: number[], neighbors: readonly number[][], position: number[]): void {
  const keyed: [number, number][] = [];
  const places: number[] = [];
  row.forEach((v, i) => {
    const list = itemAt(neighbors, v);
    if (list.length === 0) return;
    let sum = 0;
    for (const u of list) sum += itemAt(position, u);
    keyed.push([sum / list.length, v]);
    places.push(i);
  });
  keyed.sort((a, b) => a[0] - b[0]);
  keyed.forEach(([, v], i) => (row[itemAt(places, i)] = v));
  row.forEach((v, i) => (position[v] = i));
}

function sortPositions(vertices: readonly number[], position: readonly number[]): number[] {
  return vertices.map((u) => itemAt(position, u)).sort((a, b) => a - b);
}

/** Counts the pairs of edges that cross between neighboring rows (a Fenwick tree counts the inversions). */
function countCrossings(layers: Layers, rows: readonly number[][], position: readonly number[]): number {
  let total = 0;
  for (let r = 0; r + 1 < rows.length; r++) {
    const size = itemAt(rows, r + 1).length;
    const tree = new Int32Array(size + 1);
    let inserted = 0;
    for (const v of itemAt(rows, r)) {
      for (const p of sortPositions(itemAt(layers.down, v), position)) {
        let before = 0;
        for (let i = p + 1; i > 0; i -= i & -i) before += tree[i] as number;
        total += inserted - before;
        for (let i = p + 1; i <= size; i += i & -i) tree[i] = (tree[i] as number) + 1;
        inserted++;
      }
    }
  }
  return total;
}

/** Counts the crossings of the edges to `right` and `left` (sorted positions) if `left`'s vertex is on the left. */
function countPairCrossings(left: readonly number[], right: readonly number[]): number {
  let count = 0;
  let smaller = 0;
  for (const p of left) {
    while (smaller < right.length && itemAt(right, smaller) < p) smaller++;
    count += smaller;
  }
  return count;
}

/** Swaps neighbors in a row where a swap removes crossings, except for boxes with a previous position. */
export function swapNeighbors(
  layers: Layers,
  rows: readonly number[][],
  position: number[],
  pinned: readonly (number | null)[],
): void {
  const isPinned = (v: number): boolean => v < pinned.length && itemAt(pinned, v) !== null;
  for (let pass = 0; pass < SWAP_PASSES; pass++) {
    let improved = false;
    for (const row of rows) {
      if (row.length < 2) continue;
      const above = row.map((v) => sortPositions(itemAt(layers.up, v), position));
      const below = row.map((v) => sortPositions(itemAt(layers.down, v), position));
      for (let i = 0; i + 1 < row.length; i++) {
        const v = itemAt(row, i);
        const w = itemAt(row, i + 1);
        if (isPinned(v) || isPinned(w)) continue;
        const now =
          countPairCrossings(itemAt(above, i), itemAt(above, i + 1)) +
          countPairCrossings(itemAt(below, i), itemAt(below, i + 1));
        if (now === 0) continue;
        const then =
          countPairCrossings(itemAt(above, i + 1), itemAt(above, i)) +
          countPairCrossings(itemAt(below, i + 1), itemAt(below, i));
        if (then >= now) continue;
        improved = true;
        [row[i], row[i + 1]] = [w, v];
        [above[i], above[i + 1]] = [itemAt(above, i + 1), itemAt(above, i)];
        [below[i], below[i + 1]] = [itemAt(below, i + 1), itemAt(below, i)];
        position[w] = i;
        position[v] = i + 1;
      }
    }
    if (!improved) return;
  }
}
