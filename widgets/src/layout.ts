// Layered layout of directed acyclic graphs: sources above their users. The same algorithm, operation for operation,
// as tinyexplore/explore/layout.py; both are checked on the vectors in tests/fixtures/layout.

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

/** `points` run from the bottom of `src` to the top of `dst`; `long` edges go over other boxes: draw them faint. */
export interface RoutedEdge {
  src: number;
  dst: number;
  points: [number, number][];
  long: boolean;
}

/** Centres of the boxes; the drawing covers left … left + width, top … top + height (left = top = 0 without `previous`). */
export interface Layout {
  positions: Map<number, { x: number; y: number }>;
  width: number;
  height: number;
  left: number;
  top: number;
  edges: RoutedEdge[];
}

export interface LayoutOptions {
  /** Where boxes were before: they stay there where the graph allows. */
  readonly previous?: ReadonlyMap<number, Point>;
  /** Asked between sweeps; once true, improving stops and what there is by then is returned. */
  readonly cancelled?: () => boolean;
}

const RANK_GAP = 38;
const NODE_GAP = 22;
const DUMMY_GAP = 12;
const TIGHT_DUMMY_GAP = 5; // beside boxes that are to stay where they were
const COMPONENT_GAP = 44;
const LONGEST_ROUTED_SPAN = 12; // longer edges get no dummy nodes: they are drawn as faint curves
const ORDER_SWEEPS = 8;
const SWAP_PASSES = 4;
const PLACE_SWEEPS = 8;
const PINNED_WEIGHT = 1024;
const RELAX_ROUNDS = 4;
const SLOT_REACH = 12;
const PUSH_COST = 4;
const FREE_WEIGHT = 0.01;

/** The layered graph: vertices 0 … boxes.length - 1 are boxes, those after are dummies on long edges. */
interface Layers {
  readonly boxes: readonly Box[];
  readonly pairs: readonly (readonly [number, number])[];
  readonly rank: number[];
  /** For each vertex its neighbours one rank above, and one below. */
  readonly up: number[][];
  readonly down: number[][];
  /** The first dummy of a box's chain, which all its long edges share; -1 where it has none. */
  readonly chain: number[];
  readonly spans: number[];
  readonly dummyGap: number;
}

export function layout(
  graph: { readonly nodes: readonly Box[]; readonly edges: readonly Edge[] },
  options: LayoutOptions = {},
): Layout {
  const boxes = graph.nodes;
  const previous = options.previous ?? new Map<number, Point>();
  const cancelled = options.cancelled ?? (() => false);
  const pairs = distinctPairs(boxes, graph.edges);
  const layers = layered(boxes, pairs, previous.size > 0 ? TIGHT_DUMMY_GAP : DUMMY_GAP);
  const total = layers.rank.length;
  const x = new Array<number>(total).fill(0);
  const y = new Array<number>(total).fill(0);
  const top = new Array<number>(total).fill(0); // of the vertex's rank
  const bottom = new Array<number>(total).fill(0);
  const frames: Frame[] = [];
  for (const vertices of components(layers)) {
    const pinned = new Array<number | null>(boxes.length).fill(null);
    let pinnedCount = 0;
    for (const v of vertices) {
      const box = boxes[v];
      const place = box === undefined ? undefined : previous.get(box.id);
      if (place !== undefined) {
        pinned[v] = place.x;
        pinnedCount++;
      }
    }
    const rows = initialRows(layers, vertices);
    const position: number[] = [];
    if (pinnedCount > 0) {
      orderByPrevious(layers, rows, pinned);
    } else {
      reduceCrossings(layers, rows, cancelled);
    }
    indexRows(rows, position);
    if (!cancelled()) swapNeighbours(layers, rows, position, pinned);
    placeX(layers, rows, pinned, x, cancelled);
    placeY(layers, rows, y, top, bottom);
    frames.push(frameOf(layers, rows, x, y, bottom, previous));
  }
  arrange(frames, x, y, top, bottom);
  return finish(layers, x, y, top, bottom);
}

/** An SVG path through the points: vertical where they stand above one another, else an S-curve. */
export function edgePath(points: readonly (readonly [number, number])[]): string {
  let path = "";
  let lastX = 0;
  let lastY = 0;
  points.forEach(([px, py], i) => {
    if (i === 0) path = `M${short(px)} ${short(py)}`;
    else if (px === lastX) path += `V${short(py)}`;
    else {
      const middle = short((lastY + py) / 2);
      path += `C${short(lastX)} ${middle} ${short(px)} ${middle} ${short(px)} ${short(py)}`;
    }
    lastX = px;
    lastY = py;
  });
  return path;
}

function short(value: number): string {
  return String(Math.floor(value * 10 + 0.5) / 10);
}

function at<T>(list: readonly T[], index: number): T {
  return list[index] as T;
}

/** Each edge once, as indices, without loops and without edges to boxes that are not there. */
function distinctPairs(boxes: readonly Box[], edges: readonly Edge[]): [number, number][] {
  const index = new Map<number, number>();
  boxes.forEach((box, i) => index.set(box.id, i));
  const seen = new Set<number>();
  const pairs: [number, number][] = [];
  for (const edge of edges) {
    const a = index.get(edge.src);
    const b = index.get(edge.dst);
    if (a === undefined || b === undefined || a === b) continue;
    const key = a * boxes.length + b;
    if (seen.has(key)) continue;
    seen.add(key);
    pairs.push([a, b]);
  }
  return pairs;
}

function emptyLists(count: number): number[][] {
  return Array.from({ length: count }, () => []);
}

/** Ranks by longest path; who has as many users as sources or more is then pulled down to its users. */
function ranks(count: number, pairs: readonly (readonly [number, number])[]): number[] {
  const sources = emptyLists(count);
  const users = emptyLists(count);
  const waiting = new Array<number>(count).fill(0);
  for (const [a, b] of pairs) {
    at(users, a).push(b);
    at(sources, b).push(a);
    waiting[b] = at(waiting, b) + 1;
  }
  const order: number[] = [];
  const place = new Array<number>(count).fill(-1);
  let next = 0;
  for (let v = 0; v < count; v++) {
    if (at(waiting, v) === 0) {
      place[v] = order.length;
      order.push(v);
    }
  }
  let head = 0;
  while (order.length < count || head < order.length) {
    if (head === order.length) {
      // only in a graph with cycles: go on with the first box that is left
      while (at(place, next) >= 0) next++;
      place[next] = order.length;
      order.push(next);
    }
    const v = at(order, head++);
    for (const user of at(users, v)) {
      waiting[user] = at(waiting, user) - 1;
      if (at(waiting, user) === 0 && at(place, user) < 0) {
        place[user] = order.length;
        order.push(user);
      }
    }
  }
  const rank = new Array<number>(count).fill(0);
  for (const v of order) {
    for (const user of at(users, v)) {
      if (at(place, user) > at(place, v)) rank[user] = Math.max(at(rank, user), at(rank, v) + 1);
    }
  }
  for (let i = count - 1; i >= 0; i--) {
    const v = at(order, i);
    if (at(users, v).length === 0 || at(sources, v).length > at(users, v).length) continue;
    let lowest = -1;
    for (const user of at(users, v)) {
      if (at(place, user) < i) continue;
      if (lowest < 0 || at(rank, user) - 1 < lowest) lowest = at(rank, user) - 1;
    }
    if (lowest > at(rank, v)) rank[v] = lowest;
  }
  return rank;
}

function layered(
  boxes: readonly Box[],
  pairs: readonly (readonly [number, number])[],
  dummyGap: number,
): Layers {
  const count = boxes.length;
  const rank = ranks(count, pairs);
  const reach = new Array<number>(count).fill(0); // the longest routed span out of each box
  const spans: number[] = [];
  for (const [a, b] of pairs) {
    const span = at(rank, b) - at(rank, a);
    spans.push(span);
    if (span <= LONGEST_ROUTED_SPAN && span > at(reach, a)) reach[a] = span;
  }
  const up = emptyLists(count);
  const down = emptyLists(count);
  const chain = new Array<number>(count).fill(-1);
  for (let a = 0; a < count; a++) {
    if (at(reach, a) < 2) continue;
    chain[a] = rank.length;
    for (let step = 1; step < at(reach, a); step++) {
      const dummy = rank.length;
      const above = step === 1 ? a : dummy - 1;
      rank.push(at(rank, a) + step);
      up.push([above]);
      down.push([]);
      at(down, above).push(dummy);
    }
  }
  pairs.forEach(([a, b], i) => {
    const span = at(spans, i);
    if (span < 1 || span > LONGEST_ROUTED_SPAN) return;
    const above = span === 1 ? a : at(chain, a) + span - 2;
    at(down, above).push(b);
    at(up, b).push(above);
  });
  return { boxes, pairs, rank, up, down, chain, spans, dummyGap };
}

/** The vertices of each connected part, in ascending order. */
function components(layers: Layers): number[][] {
  const total = layers.rank.length;
  const parent = Array.from({ length: total }, (_, v) => v);
  const find = (start: number): number => {
    let v = start;
    while (at(parent, v) !== v) {
      parent[v] = at(parent, at(parent, v));
      v = at(parent, v);
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
  for (let v = layers.boxes.length; v < total; v++) join(at(at(layers.up, v), 0), v);
  const members = new Map<number, number[]>();
  for (let v = 0; v < total; v++) {
    const root = find(v);
    const list = members.get(root);
    if (list === undefined) members.set(root, [v]);
    else list.push(v);
  }
  return [...members.values()];
}

/** Rows as a depth-first walk from the last users upwards meets them: trees come out without crossings. */
function initialRows(layers: Layers, vertices: readonly number[]): number[][] {
  let first = at(layers.rank, at(vertices, 0));
  let last = first;
  for (const v of vertices) {
    first = Math.min(first, at(layers.rank, v));
    last = Math.max(last, at(layers.rank, v));
  }
  const rows = emptyLists(last - first + 1);
  const seen = new Set<number>();
  for (const start of vertices) {
    if (at(layers.down, start).length > 0) continue;
    const stack = [start];
    while (stack.length > 0) {
      const v = stack.pop() as number;
      if (seen.has(v)) continue;
      seen.add(v);
      at(rows, at(layers.rank, v) - first).push(v);
      const above = at(layers.up, v);
      for (let i = above.length - 1; i >= 0; i--) stack.push(at(above, i));
    }
  }
  return rows;
}

function indexRows(rows: readonly number[][], position: number[]): void {
  for (const row of rows) row.forEach((v, i) => (position[v] = i));
}

/** Rows in the order of the previous positions; new vertices stand near their neighbours, where there is room. */
function orderByPrevious(layers: Layers, rows: number[][], pinned: readonly (number | null)[]): void {
  const key = new Map<number, number>();
  let sum = 0;
  for (const row of rows) {
    for (const v of row) {
      const place = pinned[v] ?? null;
      if (place === null) continue;
      key.set(v, place);
      sum += place;
    }
  }
  const middle = sum / key.size;
  const count = rows.length;
  for (let round = 0; round < RELAX_ROUNDS; round++) {
    for (let i = 0; i < 2 * count; i++) {
      for (const v of at(rows, i < count ? i : 2 * count - 1 - i)) {
        if ((pinned[v] ?? null) !== null) continue;
        let total = 0;
        let found = 0;
        for (const neighbours of [at(layers.up, v), at(layers.down, v)]) {
          for (const u of neighbours) {
            const place = key.get(u);
            if (place === undefined) continue;
            total += place;
            found++;
          }
        }
        if (found > 0) key.set(v, total / found);
      }
    }
  }
  rows.forEach((row, r) => (rows[r] = slotted(layers, row, pinned, key, middle)));
}

/** The pinned vertices of a row from left to right, the others in the gaps where they push them the least. */
function slotted(
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
  const room = lows.map((low, i) => at(highs, i) - low - gap);
  const slots = emptyLists(lows.length);
  let nearest = 0; // wishes come in ascending order
  for (const v of order) {
    if (isPinned(v)) continue;
    const want = keyOf(v);
    const need = v < layers.boxes.length ? widthOf(layers, v) + NODE_GAP + NODE_GAP - gap : gap;
    while (nearest < places.length && at(places, nearest) <= want) nearest++;
    let best = nearest;
    let least = Infinity;
    const last = Math.min(pins.length, nearest + SLOT_REACH);
    for (let slot = Math.max(0, nearest - SLOT_REACH); slot <= last; slot++) {
      const away = Math.max(at(lows, slot) + need / 2 - want, want - (at(highs, slot) - need / 2), 0);
      const cost = away + PUSH_COST * Math.max(0, need - at(room, slot));
      if (cost < least) {
        least = cost;
        best = slot;
      }
    }
    at(slots, best).push(v);
    room[best] = at(room, best) - need;
  }
  const result = at(slots, 0);
  pins.forEach((v, i) => result.push(v, ...at(slots, i + 1)));
  return result;
}

/** Barycentre sweeps, down and up in turn; the best order met is kept. */
function reduceCrossings(layers: Layers, rows: number[][], cancelled: () => boolean): void {
  const position: number[] = [];
  indexRows(rows, position);
  let fewest = crossings(layers, rows, position);
  let best = rows.map((row) => row.slice());
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest > 0 && !cancelled(); sweep++) {
    const downwards = sweep % 2 === 0;
    for (let i = 1; i < rows.length; i++) {
      const r = downwards ? i : rows.length - 1 - i;
      sortByBarycentre(at(rows, r), downwards ? layers.up : layers.down, position);
    }
    const count = crossings(layers, rows, position);
    if (count < fewest) {
      fewest = count;
      best = rows.map((row) => row.slice());
    }
  }
  best.forEach((row, r) => (rows[r] = row));
}

/** One row sorted by the mean position of its neighbours; who has none keeps its place. */
function sortByBarycentre(row: number[], neighbours: readonly number[][], position: number[]): void {
  const keyed: [number, number][] = [];
  const places: number[] = [];
  row.forEach((v, i) => {
    const list = at(neighbours, v);
    if (list.length === 0) return;
    let sum = 0;
    for (const u of list) sum += at(position, u);
    keyed.push([sum / list.length, v]);
    places.push(i);
  });
  keyed.sort((a, b) => a[0] - b[0]);
  keyed.forEach(([, v], i) => (row[at(places, i)] = v));
  row.forEach((v, i) => (position[v] = i));
}

function sortedPositions(vertices: readonly number[], position: readonly number[]): number[] {
  return vertices.map((u) => at(position, u)).sort((a, b) => a - b);
}

/** How many pairs of edges cross between neighbouring rows (a Fenwick tree counts the inversions). */
function crossings(layers: Layers, rows: readonly number[][], position: readonly number[]): number {
  let total = 0;
  for (let r = 0; r + 1 < rows.length; r++) {
    const size = at(rows, r + 1).length;
    const tree = new Int32Array(size + 1);
    let inserted = 0;
    for (const v of at(rows, r)) {
      for (const p of sortedPositions(at(layers.down, v), position)) {
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

/** How many crossings edges to `right` and `left` (sorted positions) have if `left`'s vertex stands on the left. */
function pairCrossings(left: readonly number[], right: readonly number[]): number {
  let count = 0;
  let smaller = 0;
  for (const p of left) {
    while (smaller < right.length && at(right, smaller) < p) smaller++;
    count += smaller;
  }
  return count;
}

/** Neighbours in a row change places where that saves crossings; boxes that stood before never do. */
function swapNeighbours(
  layers: Layers,
  rows: readonly number[][],
  position: number[],
  pinned: readonly (number | null)[],
): void {
  const isPinned = (v: number): boolean => v < pinned.length && at(pinned, v) !== null;
  for (let pass = 0; pass < SWAP_PASSES; pass++) {
    let improved = false;
    for (const row of rows) {
      if (row.length < 2) continue;
      const above = row.map((v) => sortedPositions(at(layers.up, v), position));
      const below = row.map((v) => sortedPositions(at(layers.down, v), position));
      for (let i = 0; i + 1 < row.length; i++) {
        const v = at(row, i);
        const w = at(row, i + 1);
        if (isPinned(v) || isPinned(w)) continue;
        const now = pairCrossings(at(above, i), at(above, i + 1)) + pairCrossings(at(below, i), at(below, i + 1));
        if (now === 0) continue;
        const then = pairCrossings(at(above, i + 1), at(above, i)) + pairCrossings(at(below, i + 1), at(below, i));
        if (then >= now) continue;
        improved = true;
        [row[i], row[i + 1]] = [w, v];
        [above[i], above[i + 1]] = [at(above, i + 1), at(above, i)];
        [below[i], below[i + 1]] = [at(below, i + 1), at(below, i)];
        position[w] = i;
        position[v] = i + 1;
      }
    }
    if (!improved) return;
  }
}

/** x by sweeps of isotonic regression: every vertex wants to stand at the mean of its neighbours. */
function placeX(
  layers: Layers,
  rows: readonly number[][],
  pinned: readonly (number | null)[],
  x: number[],
  cancelled: () => boolean,
): void {
  const count = layers.boxes.length;
  const hasPinned = rows.some((row) => row.some((v) => v < count && at(pinned, v) !== null));
  packRows(layers, rows, x);
  if (hasPinned) {
    for (const row of rows) for (const v of row) x[v] = (v < count ? at(pinned, v) : null) ?? at(x, v);
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS + 2 && !cancelled(); sweep++) {
    const downwards = sweep % 2 === 0;
    const both = sweep >= PLACE_SWEEPS;
    for (let i = 0; i < rows.length; i++) {
      const row = at(rows, downwards ? i : rows.length - 1 - i);
      const wanted: number[] = [];
      const weights: number[] = [];
      for (const v of row) {
        const place = v < count ? at(pinned, v) : null;
        if (place !== null) {
          wanted.push(place);
          weights.push(PINNED_WEIGHT);
          continue;
        }
        let sum = 0;
        let weight = 0;
        if (downwards || both) {
          const ends = at(layers.up, v).length === 1;
          for (const u of at(layers.up, v)) {
            const pull = pullOf(v >= count, u >= count, ends && at(layers.down, u).length === 1);
            sum += pull * at(x, u);
            weight += pull;
          }
        }
        if (!downwards || both) {
          const ends = at(layers.down, v).length === 1;
          for (const u of at(layers.down, v)) {
            const pull = pullOf(v >= count, u >= count, ends && at(layers.up, u).length === 1);
            sum += pull * at(x, u);
            weight += pull;
          }
        }
        wanted.push(weight > 0 ? sum / weight : at(x, v));
        weights.push(weight > 0 ? weight : FREE_WEIGHT);
      }
      placeRow(layers, row, wanted, weights, x);
    }
  }
}

/** The links of a chain and of a long edge pull hardest, which keeps them straight. */
function pullOf(isDummy: boolean, otherIsDummy: boolean, isChain: boolean): number {
  if (isChain || (isDummy && otherIsDummy)) return 8;
  return isDummy || otherIsDummy ? 2 : 1;
}

function widthOf(layers: Layers, v: number): number {
  return v < layers.boxes.length ? at(layers.boxes, v).width : 0;
}

/** The least distance of the centres of two neighbours in a row. */
function separation(layers: Layers, a: number, b: number): number {
  const count = layers.boxes.length;
  const gap = a < count && b < count ? NODE_GAP : layers.dummyGap;
  return (widthOf(layers, a) + widthOf(layers, b)) / 2 + gap;
}

/** Every row side by side, all rows centred on one axis: where the sweeps begin. */
function packRows(layers: Layers, rows: readonly number[][], x: number[]): void {
  for (const row of rows) {
    let place = 0;
    row.forEach((v, i) => {
      if (i > 0) place += separation(layers, at(row, i - 1), v);
      x[v] = place;
    });
    for (const v of row) x[v] = at(x, v) - place / 2;
  }
}

/** The x of one row that are nearest to `wanted` (weighted squares) with all separations kept. */
function placeRow(
  layers: Layers,
  row: readonly number[],
  wanted: readonly number[],
  weights: readonly number[],
  x: number[],
): void {
  const offsets: number[] = [];
  const blockWeight: number[] = [];
  const blockSum: number[] = [];
  const blockMean: number[] = [];
  const blockSize: number[] = [];
  let offset = 0;
  for (let i = 0; i < row.length; i++) {
    if (i > 0) offset += separation(layers, at(row, i - 1), at(row, i));
    offsets.push(offset);
    let weight = at(weights, i);
    let sum = weight * (at(wanted, i) - offset);
    let mean = at(wanted, i) - offset;
    let size = 1;
    while (blockMean.length > 0 && at(blockMean, blockMean.length - 1) > mean) {
      weight += blockWeight.pop() as number;
      sum += blockSum.pop() as number;
      size += blockSize.pop() as number;
      blockMean.pop();
      mean = sum / weight;
    }
    blockWeight.push(weight);
    blockSum.push(sum);
    blockMean.push(mean);
    blockSize.push(size);
  }
  let i = 0;
  for (let block = 0; block < blockMean.length; block++) {
    for (let k = 0; k < at(blockSize, block); k++) {
      x[at(row, i)] = at(blockMean, block) + at(offsets, i);
      i++;
    }
  }
}

function placeY(layers: Layers, rows: readonly number[][], y: number[], top: number[], bottom: number[]): void {
  let start = 0;
  for (const row of rows) {
    let tallest = 0;
    for (const v of row) if (v < layers.boxes.length) tallest = Math.max(tallest, at(layers.boxes, v).height);
    for (const v of row) {
      y[v] = start + tallest / 2;
      top[v] = start;
      bottom[v] = start + tallest;
    }
    start += tallest + RANK_GAP;
  }
}

/** What one connected part covers, and how far its boxes have left their previous height (null: all new). */
interface Frame {
  vertices: number[];
  left: number;
  right: number;
  top: number;
  bottom: number;
  shift: number | null;
}

function frameOf(
  layers: Layers,
  rows: readonly number[][],
  x: readonly number[],
  y: readonly number[],
  bottom: readonly number[],
  previous: ReadonlyMap<number, Point>,
): Frame {
  const vertices: number[] = [];
  const shifts: number[] = [];
  let left = Infinity;
  let right = -Infinity;
  let lowest = 0;
  for (const row of rows) {
    for (const v of row) {
      const half = widthOf(layers, v) / 2;
      vertices.push(v);
      left = Math.min(left, at(x, v) - half);
      right = Math.max(right, at(x, v) + half);
      lowest = Math.max(lowest, at(bottom, v));
      const box = layers.boxes[v];
      const place = box === undefined ? undefined : previous.get(box.id);
      if (place !== undefined) shifts.push(place.y - at(y, v));
    }
  }
  shifts.sort((a, b) => a - b);
  const shift = shifts.length > 0 ? at(shifts, Math.floor(shifts.length / 2)) : null;
  return { vertices, left, right, top: 0, bottom: lowest, shift };
}

/** Parts that stood before stay, moved right only where they would overlap; new parts go on shelves below them. */
function arrange(frames: readonly Frame[], x: number[], y: number[], top: number[], bottom: number[]): void {
  const move = (frame: Frame, dx: number, dy: number): void => {
    for (const v of frame.vertices) {
      x[v] = at(x, v) + dx;
      y[v] = at(y, v) + dy;
      top[v] = at(top, v) + dy;
      bottom[v] = at(bottom, v) + dy;
    }
    frame.left += dx;
    frame.right += dx;
    frame.top += dy;
    frame.bottom += dy;
  };
  const placed: Frame[] = [];
  const stood = frames.filter((frame) => frame.shift !== null).sort((a, b) => a.left - b.left);
  for (const frame of stood) {
    move(frame, 0, frame.shift as number);
    for (const other of placed) {
      if (frame.top >= other.bottom || other.top >= frame.bottom || frame.left >= other.right) continue;
      if (other.left < frame.right) move(frame, other.right + COMPONENT_GAP - frame.left, 0);
    }
    placed.push(frame);
    placed.sort((a, b) => a.left - b.left);
  }
  let shelfLeft = 0;
  let shelfTop = 0;
  placed.forEach((frame, i) => {
    shelfLeft = i === 0 ? frame.left : Math.min(shelfLeft, frame.left);
    shelfTop = i === 0 ? frame.bottom + COMPONENT_GAP : Math.max(shelfTop, frame.bottom + COMPONENT_GAP);
  });
  const fresh = frames.filter((frame) => frame.shift === null).sort((a, b) => b.bottom - a.bottom);
  let widest = 0;
  let area = 0;
  for (const frame of fresh) {
    const width = frame.right - frame.left;
    widest = Math.max(widest, width);
    area += (width + COMPONENT_GAP) * (frame.bottom + COMPONENT_GAP);
  }
  const shelfWidth = Math.max(widest, 1.4 * Math.sqrt(area));
  let place = shelfLeft;
  let shelfHeight = 0;
  for (const frame of fresh) {
    const width = frame.right - frame.left;
    if (place > shelfLeft && place + width > shelfLeft + shelfWidth) {
      place = shelfLeft;
      shelfTop += shelfHeight + COMPONENT_GAP;
      shelfHeight = 0;
    }
    shelfHeight = Math.max(shelfHeight, frame.bottom);
    move(frame, place - frame.left, shelfTop);
    place += width + COMPONENT_GAP;
  }
}

function finish(
  layers: Layers,
  x: readonly number[],
  y: readonly number[],
  top: readonly number[],
  bottom: readonly number[],
): Layout {
  const { boxes, pairs, spans, chain } = layers;
  const positions = new Map<number, { x: number; y: number }>();
  let left = 0;
  let right = 0;
  let highest = 0;
  let lowest = 0;
  for (let v = 0; v < x.length; v++) {
    const half = widthOf(layers, v) / 2;
    left = v === 0 ? at(x, v) - half : Math.min(left, at(x, v) - half);
    right = v === 0 ? at(x, v) + half : Math.max(right, at(x, v) + half);
    highest = v === 0 ? at(top, v) : Math.min(highest, at(top, v));
    lowest = v === 0 ? at(bottom, v) : Math.max(lowest, at(bottom, v));
  }
  boxes.forEach((box, v) => positions.set(box.id, { x: at(x, v), y: at(y, v) }));
  const isLong = (i: number): boolean => at(spans, i) < 1 || at(spans, i) > LONGEST_ROUTED_SPAN;
  const incoming = emptyLists(boxes.length);
  const entry: number[] = []; // the x from which an edge comes to its user
  pairs.forEach(([a, b], i) => {
    entry.push(isLong(i) || at(spans, i) === 1 ? at(x, a) : at(x, at(chain, a) + at(spans, i) - 2));
    at(incoming, b).push(i);
  });
  const port = new Array<number>(pairs.length).fill(0);
  incoming.forEach((list, b) => {
    list.sort((i, k) => at(entry, i) - at(entry, k));
    list.forEach((edge, i) => {
      const share = (i + 1) / (list.length + 1) - 0.5;
      port[edge] = at(x, b) + share * 0.8 * at(boxes, b).width;
    });
  });
  const edges = pairs.map(([a, b], i): RoutedEdge => {
    const points: [number, number][] = [[at(x, a), at(y, a) + at(boxes, a).height / 2]];
    if (!isLong(i)) {
      points.push([at(x, a), at(bottom, a)]);
      for (let step = 0; step < at(spans, i) - 1; step++) {
        const dummy = at(chain, a) + step;
        points.push([at(x, dummy), at(top, dummy)], [at(x, dummy), at(bottom, dummy)]);
      }
      points.push([at(port, i), at(top, b)]);
    }
    points.push([at(port, i), at(y, b) - at(boxes, b).height / 2]);
    return { src: at(boxes, a).id, dst: at(boxes, b).id, points: straightened(points), long: isLong(i) };
  });
  return { positions, width: right - left, height: lowest - highest, left, top: highest, edges };
}

/** Without repeated points and without those in the middle of a vertical line. */
function straightened(points: readonly [number, number][]): [number, number][] {
  const kept: [number, number][] = [];
  for (const point of points) {
    const last = kept[kept.length - 1];
    if (last !== undefined && last[0] === point[0] && last[1] === point[1]) continue;
    const beforeLast = kept[kept.length - 2];
    if (last !== undefined && beforeLast !== undefined && beforeLast[0] === last[0] && last[0] === point[0]) kept.pop();
    kept.push(point);
  }
  return kept;
}
