// Layered layout of directed acyclic graphs: sources above their users. The same algorithm, operation for operation, as
// tinyexplore/explore/tracefile/pictures/layout.py; both are tested on the vectors in tests/fixtures/layout.

import {
  itemAt,
  findComponents,
  listDistinctPairs,
  DUMMY_GAP,
  emptyLists,
  assignLayers,
  LONGEST_ROUTED_SPAN,
  TIGHT_DUMMY_GAP,
  widthOf,
  type Box,
  type Edge,
  type Layers,
  type Point,
} from "./layers";
import type { Flow } from "./layout_direction";
import { indexRows, orderInitially, orderByPrevious, reduceCrossings, swapNeighbors } from "./ordering";
import { arrangeComponents, findBounds, placeX, placeY, type ComponentBounds } from "./coordinates";

export type { Box, Edge, Point } from "./layers";

/**
 * The path of an edge: `points` from the bottom of `src` to the top of `dst`. `long` edges are drawn faint over boxes.
 */
export interface RoutedEdge {
  src: number;
  dst: number;
  points: [number, number][];
  long: boolean;
}

/**
 * The centers of the boxes; the drawing covers left … left + width, top … top + height (from 0, 0 without `previous`).
 */
export interface Layout {
  positions: Map<number, { x: number; y: number }>;
  width: number;
  height: number;
  left: number;
  top: number;
  edges: RoutedEdge[];
}

export interface LayoutOptions {
  /** The previous positions of boxes, which are kept as far as the graph permits. */
  readonly previous?: ReadonlyMap<number, Point>;
  /** Called between sweeps; if it returns true, the best result so far is returned. */
  readonly cancelled?: () => boolean;
}

export function layout(
  graph: { readonly nodes: readonly Box[]; readonly edges: readonly Edge[] },
  options: LayoutOptions = {},
): Layout {
  const boxes = graph.nodes;
  const previous = options.previous ?? new Map<number, Point>();
  const cancelled = options.cancelled ?? (() => false);
  const pairs = listDistinctPairs(boxes, graph.edges);
  const layers = assignLayers(boxes, pairs, previous.size > 0 ? TIGHT_DUMMY_GAP : DUMMY_GAP);
  const total = layers.rank.length;
  const x = new Array<number>(total).fill(0);
  const y = new Array<number>(total).fill(0);
  const top = new Array<number>(total).fill(0); // the upper end of the vertex's rank
  const bottom = new Array<number>(total).fill(0);
  const frames: ComponentBounds[] = [];
  for (const vertices of findComponents(layers)) {
    const pinned = new Array<number | null>(boxes.length).fill(null);
    let pinnedCount = 0;
    for (const v of vertices) {
      const box = boxes[v];
      const oldPosition = box === undefined ? undefined : previous.get(box.id);
      if (oldPosition !== undefined) {
        pinned[v] = oldPosition.x;
        pinnedCount++;
      }
    }
    const rows = orderInitially(layers, vertices);
    const position: number[] = [];
    if (pinnedCount > 0) {
      orderByPrevious(layers, rows, pinned);
    } else {
      reduceCrossings(layers, rows, cancelled);
    }
    indexRows(rows, position);
    if (!cancelled()) swapNeighbors(layers, rows, position, pinned);
    placeX(layers, rows, pinned, x, cancelled);
    placeY(layers, rows, y, top, bottom);
    frames.push(findBounds(layers, rows, x, y, bottom, previous));
  }
  arrangeComponents(frames, x, y, top, bottom);
  return finish(layers, x, y, top, bottom);
}

/** Returns an SVG path through the points: straight along the flow, else S-curves. */
export function edgePath(points: readonly (readonly [number, number])[], flow: Flow = "down"): string {
  const isDown = flow === "down";
  const text = (along: number | string, across: number): string =>
    isDown ? `${roundText(across)} ${along}` : `${along} ${roundText(across)}`;
  let path = "";
  let last: readonly [along: number, across: number] = [0, 0];
  points.forEach(([px, py], i) => {
    const [along, across] = isDown ? [py, px] : [px, py];
    if (i === 0) path = `M${text(roundText(along), across)}`;
    else if (across === last[1]) path += `${isDown ? "V" : "H"}${roundText(along)}`;
    else {
      const middle = roundText((last[0] + along) / 2);
      path += `C${text(middle, last[1])} ${text(middle, across)} ${text(roundText(along), across)}`;
    }
    last = [along, across];
  });
  return path;
}

function roundText(value: number): string {
  return String(Math.floor(value * 10 + 0.5) / 10);
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
    left = v === 0 ? itemAt(x, v) - half : Math.min(left, itemAt(x, v) - half);
    right = v === 0 ? itemAt(x, v) + half : Math.max(right, itemAt(x, v) + half);
    highest = v === 0 ? itemAt(top, v) : Math.min(highest, itemAt(top, v));
    lowest = v === 0 ? itemAt(bottom, v) : Math.max(lowest, itemAt(bottom, v));
  }
  boxes.forEach((box, v) => positions.set(box.id, { x: itemAt(x, v), y: itemAt(y, v) }));
  const isLong = (i: number): boolean => itemAt(spans, i) < 1 || itemAt(spans, i) > LONGEST_ROUTED_SPAN;
  const incoming = emptyLists(boxes.length);
  const entry: number[] = []; // the x at which an edge enters its user
  pairs.forEach(([a, b], i) => {
    entry.push(isLong(i) || itemAt(spans, i) === 1 ? itemAt(x, a) : itemAt(x, itemAt(chain, a) + itemAt(spans, i) - 2));
    itemAt(incoming, b).push(i);
  });
  const port = new Array<number>(pairs.length).fill(0);
  incoming.forEach((list, b) => {
    list.sort((i, k) => itemAt(entry, i) - itemAt(entry, k));
    list.forEach((edge, i) => {
      const share = (i + 1) / (list.length + 1) - 0.5;
      port[edge] = itemAt(x, b) + share * 0.8 * itemAt(boxes, b).width;
    });
  });
  const edges = pairs.map(([a, b], i): RoutedEdge => {
    const points: [number, number][] = [[itemAt(x, a), itemAt(y, a) + itemAt(boxes, a).height / 2]];
    if (!isLong(i)) {
      points.push([itemAt(x, a), itemAt(bottom, a)]);
      for (let step = 0; step < itemAt(spans, i) - 1; step++) {
        const dummy = itemAt(chain, a) + step;
        points.push([itemAt(x, dummy), itemAt(top, dummy)], [itemAt(x, dummy), itemAt(bottom, dummy)]);
      }
      points.push([itemAt(port, i), itemAt(top, b)]);
    }
    points.push([itemAt(port, i), itemAt(y, b) - itemAt(boxes, b).height / 2]);
    return { src: itemAt(boxes, a).id, dst: itemAt(boxes, b).id, points: straighten(points), long: isLong(i) };
  });
  return { positions, width: right - left, height: lowest - highest, left, top: highest, edges };
}

/** Removes repeated points, and points in the middle of a vertical line. */
function straighten(points: readonly [number, number][]): [number, number][] {
  const bends: [number, number][] = [];
  for (const point of points) {
    const last = bends[bends.length - 1];
    if (last !== undefined && last[0] === point[0] && last[1] === point[1]) continue;
    const beforeLast = bends[bends.length - 2];
    if (last !== undefined && beforeLast !== undefined && beforeLast[0] === last[0] && last[0] === point[0])
      bends.pop();
    bends.push(point);
  }
  return bends;
}
