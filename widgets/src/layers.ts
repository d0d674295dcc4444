// The layered graph of a layout: ranks by longest path, dummies on long edges, connected components. Mirrors
// tinyexplore/explore/tracefile/pictures/layers.py.

export interface Box {
  readonly id: number;
  readonly width: number;
  readonly height: number;
}

export interface Edge {
  readonly src: number;
  readonly dst: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export const NODE_GAP = 22;
export const DUMMY_GAP = 12;
export const TIGHT_DUMMY_GAP = 5; // next to boxes that should keep their position
export const LONGEST_ROUTED_SPAN = 12; // ranks; longer edges get no dummy nodes and are drawn as faint curves

/** The layered graph. Vertices 0 … boxes.length - 1 are boxes, the others are dummies on long edges. */
export interface Layers {
  readonly boxes: readonly Box[];
  readonly pairs: readonly (readonly [number, number])[];
  readonly rank: number[];
  /** The neighbors of each vertex one rank above, and one below. */
  readonly up: number[][];
  readonly down: number[][];
  /** The first dummy of a box's chain, which all its long edges share; -1 if it has none. */
  readonly chain: number[];
  readonly spans: number[];
  readonly dummyGap: number;
}

export function itemAt<T>(list: readonly T[], index: number): T {
  return list[index] as T;
}

export function emptyLists(count: number): number[][] {
  return Array.from({ length: count }, () => []);
}

/** Returns each edge once, as indices, without self-loops and edges to missing boxes. */
export function listDistinctPairs(boxes: readonly Box[], edges: readonly Edge[]): [number, number][] {
  const index = new Map<number, number>();
  boxes.forEach((box, i) => index.set(box.id, i));
  const visited = new Set<number>();
  const pairs: [number, number][] = [];
  for (const edge of edges) {
    const a = index.get(edge.src);
    const b = index.get(edge.dst);
    if (a === undefined || b === undefined || a === b) continue;
    const key = a * boxes.length + b;
    if (visited.has(key)) continue;
    visited.add(key);
    pairs.push([a, b]);
  }
  return pairs;
}

/** Returns ranks by longest path. A vertex with at least as many users as sources is then moved down to its users. */
function computeRanks(count: number, pairs: readonly (readonly [number, number])[]): number[] {
  const sources = emptyLists(count);
  const users = emptyLists(count);
  const waiting = new Array<number>(count).fill(0);
  for (const [a, b] of pairs) {
    itemAt(users, a).push(b);
    itemAt(sources, b).push(a);
    waiting[b] = itemAt(waiting, b) + 1;
  }
  const order: number[] = [];
  const stackPosition = new Array<number>(count).fill(-1);
  let next = 0;
  for (let v = 0; v < count; v++) {
    if (itemAt(waiting, v) === 0) {
      stackPosition[v] = order.length;
      order.push(v);
    }
  }
  let head = 0;
  while (order.length < count || head < order.length) {
    if (head === order.length) {
      // only in a graph with cycles: continue with the first box that is left
      while (itemAt(stackPosition, next) >= 0) next++;
      stackPosition[next] = order.length;
      order.push(next);
    }
    const v = itemAt(order, head++);
    for (const user of itemAt(users, v)) {
      waiting[user] = itemAt(waiting, user) - 1;
      if (itemAt(waiting, user) === 0 && itemAt(stackPosition, user) < 0) {
        stackPosition[user] = order.length;
        order.push(user);
      }
    }
  }
  const rank = new Array<number>(count).fill(0);
  for (const v of order) {
    for (const user of itemAt(users, v)) {
      if (itemAt(stackPosition, user) > itemAt(stackPosition, v))
        rank[user] = Math.max(itemAt(rank, user), itemAt(rank, v) + 1);
    }
  }
  for (let i = count - 1; i >= 0; i--) {
    const v = itemAt(order, i);
    if (itemAt(users, v).length === 0 || itemAt(sources, v).length > itemAt(users, v).length) continue;
    let lowest = -1;
    for (const user of itemAt(users, v)) {
      if (itemAt(stackPosition, user) < i) continue;
      if (lowest < 0 || itemAt(rank, user) - 1 < lowest) lowest = itemAt(rank, user) - 1;
    }
    if (lowest > itemAt(rank, v)) rank[v] = lowest;
  }
  return rank;
}

export function assignLayers(
  boxes: readonly Box[],
  pairs: readonly (readonly [number, number])[],
  dummyGap: number,
): Layers {
  const count = boxes.length;
  const rank = computeRanks(count, pairs);
  const reach = new Array<number>(count).fill(0); // the longest routed span out of each box
  const spans: number[] = [];
  for (const [a, b] of pairs) {
    const span = itemAt(rank, b) - itemAt(rank, a);
    spans.push(span);
    if (span <= LONGEST_ROUTED_SPAN && span > itemAt(reach, a)) reach[a] = span;
  }
  const up = emptyLists(count);
  const down = emptyLists(count);
  const chain = new Array<number>(count).fill(-1);
  for (let a = 0; a < count; a++) {
    if (itemAt(reach, a) < 2) continue;
    chain[a] = rank.length;
    for (let step = 1; step < itemAt(reach, a); step++) {
      const dummy = rank.length;
      const above = step === 1 ? a : dummy - 1;
      rank.push(itemAt(rank, a) + step);
      up.push([above]);
      down.push([]);
      itemAt(down, above).push(dummy);
    }
  }
  pairs.forEach(([a, b], i) => {
    const span = itemAt(spans, i);
    if (span < 1 || span > LONGEST_ROUTED_SPAN) return;
    const above = span === 1 ? a : itemAt(chain, a) + span - 2;
    itemAt(down, above).push(b);
    itemAt(up, b).push(above);
  });
  return { boxes, pairs, rank, up, down, chain, spans, dummyGap };
}

/** Returns the vertices of each connected component, in ascending order. */
export function findComponents(layers: Layers): number[][] {
  const total = layers.rank.length;
  const parent = Array.from({ length: total }, (_, v) => v);
  const find = (start: number): number => {
    let v = start;
    while (itemAt(parent, v) !== v) {
      parent[v] = itemAt(parent, itemAt(parent, v));
      v = itemAt(parent, v);
    }
    return v;
  };
  const join = (a: number, b: number): void => {
    const first = find(a);
    const second = find(b);
    if (first < second) parent[second] = first;
    else parent[first] = second;
  };
  for (const [a, b] of layers.pairs) join(a, b);
  for (let v = layers.boxes.length; v < total; v++) join(itemAt(itemAt(layers.up, v), 0), v);
  const members = new Map<number, number[]>();
  for (let v = 0; v < total; v++) {
    const root = find(v);
    const list = members.get(root);
    if (list === undefined) members.set(root, [v]);
    else list.push(v);
  }
  return [...members.values()];
}

export function widthOf(layers: Layers, v: number): number {
  return v < layers.boxes.length ? itemAt(layers.boxes, v).width : 0;
}
