// A layout for the next step of a pass: existing boxes keep their position, new ones go to free space. If the result
// would be unreadable, there is none, and the graph must be laid out again.

import type { Box, Edge, Point } from "./layers";
import type { Layout, RoutedEdge } from "./layout";

const BETWEEN = 38; // distance between rows of boxes, as in coordinates.ts
const GAP = 14;
const COLUMN = 40; // step of the search for free space to the left and right
const REACH = 16; // columns
const MOST_NEW = 0.6; // share of the boxes; with more new boxes, few would keep their position
const MOST_UPWARDS = 0.12; // share of the edges; two are always permitted

interface Placed extends Point {
  readonly width: number;
  readonly height: number;
}

/** Returns null if too many boxes are new, or too many edges would run upwards. */
export function layOutIncrementally(
  { nodes, edges }: { readonly nodes: readonly Box[]; readonly edges: readonly Edge[] },
  previous: ReadonlyMap<number, Point>,
): Layout | null {
  const fresh = nodes.filter(({ id }) => !previous.has(id));
  if (nodes.length === 0 || fresh.length > MOST_NEW * nodes.length) return null;
  const placed = new Map<number, Placed>();
  for (const { id, width, height } of nodes) {
    const was = previous.get(id);
    if (was !== undefined) placed.set(id, { x: was.x, y: was.y, width, height });
  }
  const sources = new Map<number, number[]>();
  const users = new Map<number, number[]>();
  for (const { src, dst } of edges) {
    sources.set(dst, [...(sources.get(dst) ?? []), src]);
    users.set(src, [...(users.get(src) ?? []), dst]);
  }
  const row = rowOf(nodes);
  const room = new OccupiedRows(placed.values(), row);
  for (const box of sortBySources(fresh, sources)) {
    const above = (sources.get(box.id) ?? []).flatMap((id) => placed.get(id) ?? []);
    const below = (users.get(box.id) ?? []).flatMap((id) => placed.get(id) ?? []);
    const position = placeFor(box, above, below, room);
    placed.set(box.id, position);
    room.add(position);
  }
  const upwards = edges.filter(({ src, dst }) => placed.get(src)!.y >= placed.get(dst)!.y).length;
  if (upwards > Math.max(2, MOST_UPWARDS * edges.length)) return null;
  return makeLayout(placed, edges, row);
}

/** Returns the distance between the middles of two rows. */
function rowOf(boxes: readonly Box[]): number {
  return Math.max(...boxes.map(({ height }) => height)) + BETWEEN;
}

/** Returns the boxes with sources first, as far as there are no cycles. */
function sortBySources(boxes: readonly Box[], sources: ReadonlyMap<number, number[]>): Box[] {
  const waiting = new Map(boxes.map((box) => [box.id, box]));
  const order: Box[] = [];
  const visit = (box: Box): void => {
    if (!waiting.delete(box.id)) return;
    for (const id of sources.get(box.id) ?? []) {
      const source = waiting.get(id);
      if (source !== undefined) visit(source);
    }
    order.push(box);
  };
  boxes.forEach(visit);
  return order;
}

/** Returns the free position nearest to a box's neighbors, below its sources and above its users. */
function placeFor(
  { width, height }: Box,
  above: readonly Point[],
  below: readonly Point[],
  room: OccupiedRows,
): Placed {
  const near = [...above, ...below];
  const middle = near.length > 0 ? near.reduce((sum, { x }) => sum + x, 0) / near.length : room.middle;
  const lowest = Math.max(...above.map(({ y }) => y)); // -Infinity for none
  const highest = Math.min(...below.map(({ y }) => y));
  const start = above.length > 0 ? lowest + room.row : below.length > 0 ? highest - room.row : room.bottom + room.row;
  let best: Placed | null = null;
  let nearest = Infinity;
  for (const rows of [0, -0.5, -0.25, 0.5, 1, -1, 2, -2]) {
    const y = start + rows * room.row;
    const violations = (y <= lowest ? 1 : 0) + (y >= highest ? 1 : 0);
    for (let column = 0; column <= 2 * REACH; column += 1) {
      const x = middle + (column % 2 === 0 ? column / 2 : -(column + 1) / 2) * COLUMN;
      const cost = Math.abs(x - middle) + 1.5 * Math.abs(y - start) + violations * 2000;
      if (cost >= nearest) break; // further columns cost more
      const rectangle = { x, y, width, height };
      if (!room.isFree(rectangle)) continue;
      [best, nearest] = [rectangle, cost];
    }
  }
  return best ?? { x: room.right + width / 2 + GAP, y: start, width, height };
}

/** The occupied space, by rows, so that few boxes are compared. */
class OccupiedRows {
  private readonly rows = new Map<number, Placed[]>();
  right = -Infinity;
  bottom = 0;
  middle = 0;

  constructor(
    boxes: Iterable<Placed>,
    readonly row: number,
  ) {
    const all = [...boxes];
    for (const box of all) this.add(box);
    this.middle = all.reduce((sum, { x }) => sum + x, 0) / Math.max(1, all.length);
  }

  add(box: Placed): void {
    for (const row of this.rowsOf(box, 0)) {
      const list = this.rows.get(row);
      if (list === undefined) this.rows.set(row, [box]);
      else list.push(box);
    }
    this.right = Math.max(this.right, box.x + box.width / 2);
    this.bottom = Math.max(this.bottom, box.y);
  }

  isFree(box: Placed): boolean {
    const meets = (other: Placed): boolean =>
      Math.abs(other.x - box.x) < (other.width + box.width) / 2 + GAP &&
      Math.abs(other.y - box.y) < (other.height + box.height) / 2 + GAP;
    return this.rowsOf(box, GAP).every((row) => !(this.rows.get(row) ?? []).some(meets));
  }

  /** Whether a line crosses a box other than those at its ends. */
  isCrossed([x0, y0]: readonly [number, number], [x1, y1]: readonly [number, number]): boolean {
    const first = Math.floor(Math.min(y0, y1) / this.row);
    const last = Math.floor(Math.max(y0, y1) / this.row);
    for (let row = first; row <= last; row += 1) {
      for (const { x, y, width, height } of this.rows.get(row) ?? []) {
        if (y - height / 2 <= Math.min(y0, y1) || y + height / 2 >= Math.max(y0, y1)) continue;
        const across = x0 + ((y - y0) / (y1 - y0)) * (x1 - x0);
        if (Math.abs(across - x) < width / 2) return true;
      }
    }
    return false;
  }

  private rowsOf({ y, height }: Placed, margin: number): number[] {
    const first = Math.floor((y - height / 2 - margin) / this.row);
    const last = Math.floor((y + height / 2 + margin) / this.row);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  }
}

function makeLayout(placed: ReadonlyMap<number, Placed>, edges: readonly Edge[], row: number): Layout {
  const room = new OccupiedRows(placed.values(), row);
  const incoming = new Map<number, Edge[]>();
  for (const edge of edges) incoming.set(edge.dst, [...(incoming.get(edge.dst) ?? []), edge]);
  const routed: RoutedEdge[] = [];
  for (const [dst, list] of incoming) {
    const to = placed.get(dst)!;
    list.sort((a, b) => placed.get(a.src)!.x - placed.get(b.src)!.x);
    list.forEach(({ src }, i) => {
      const from = placed.get(src)!;
      const start: [number, number] = [from.x, from.y + from.height / 2];
      const end: [number, number] = [to.x + ((i + 1) / (list.length + 1) - 0.5) * 0.8 * to.width, to.y - to.height / 2];
      routed.push({ src, dst, points: [start, end], long: start[1] >= end[1] || room.isCrossed(start, end) });
    });
  }
  const boxes = [...placed.values()];
  const left = Math.min(...boxes.map(({ x, width }) => x - width / 2));
  const right = Math.max(...boxes.map(({ x, width }) => x + width / 2));
  const top = Math.min(...boxes.map(({ y, height }) => y - height / 2));
  const bottom = Math.max(...boxes.map(({ y, height }) => y + height / 2));
  const positions = new Map([...placed].map(([id, { x, y }]) => [id, { x, y }]));
  return { positions, width: right - left, height: bottom - top, left, top, edges: routed };
}
