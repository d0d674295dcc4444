// Lays out a graph whose nodes belong to groups (kernels or products): first the boxes of each group in a frame, then
// the frames and the remaining boxes as one graph. A frame may contain frames.

import type { Flow } from "./layout_direction";
import type { Box, Layout, RoutedEdge } from "./layout";
import { arrangeGraph } from "./layout_unit";

/** The frame of a kernel, or inside of it the frame of a product (with the node of its sum). */
export interface GraphFrame {
  kernel: number;
  product: number | null;
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface FramedLayout extends Layout {
  frames: GraphFrame[];
}

interface Edge {
  readonly src: number;
  readonly dst: number;
}

export interface FrameOptions {
  flow?: Flow;
  /** Height of a frame's heading. */
  header?: number;
  /** Lays out a group's own boxes; by default without inner frames. */
  inside?: (boxes: readonly Box[], edges: readonly Edge[]) => Layout & { frames?: GraphFrame[] };
}

export const FRAME_PADDING = 14;
export const FRAME_HEADER = 40;

/**
 * Returns the layout with a frame for each kernel; null if the frames depend on one another cyclically.
 *
 * `kernelOf`: the kernel of a box, null for none. `titleWidth`: the width of a kernel's heading.
 */
export function layOutInFrames(
  boxes: readonly Box[],
  edges: readonly Edge[],
  kernelOf: (id: number) => number | null,
  titleWidth: (kernel: number) => number,
  { flow = "down", header = FRAME_HEADER, inside }: FrameOptions = {},
): FramedLayout | null {
  const laid: NonNullable<FrameOptions["inside"]> =
    inside ?? ((nodes, lines) => arrangeGraph({ nodes, edges: lines, flow }));
  const groups = new Map<number, Box[]>();
  const owner = new Map<number, number | null>();
  for (const box of boxes) {
    const kernel = kernelOf(box.id);
    owner.set(box.id, kernel);
    if (kernel !== null) groups.set(kernel, [...(groups.get(kernel) ?? []), box]);
  }
  const outerOf = (id: number): number => {
    const kernel = owner.get(id) ?? null;
    return kernel === null ? id : numberFrame(kernel);
  };
  const isInner = ({ src, dst }: Edge): boolean =>
    (owner.get(src) ?? null) !== null && owner.get(src) === owner.get(dst);
  const crossing = edges.filter((edge) => !isInner(edge));
  const inner = new Map(
    [...groups].map(([kernel, boxesInFrame]) => {
      const lines = edges.filter((edge) => isInner(edge) && owner.get(edge.src) === kernel);
      return [kernel, laid(boxesInFrame, lines)] as const;
    }),
  );
  const outerBoxes = boxes
    .filter((box) => owner.get(box.id) === null)
    .map(({ id, width, height }): Box => ({ id, width, height }));
  for (const [kernel, { width, height }] of inner) {
    const wide = Math.max(width, titleWidth(kernel)) + 2 * FRAME_PADDING;
    outerBoxes.push({ id: numberFrame(kernel), width: wide, height: height + header + 2 * FRAME_PADDING });
  }
  const outerEdges = [
    ...new Map(
      crossing.map(({ src, dst }) => [`${outerOf(src)} ${outerOf(dst)}`, { src: outerOf(src), dst: outerOf(dst) }]),
    ).values(),
  ];
  if (
    isCyclic(
      outerBoxes.map(({ id }) => id),
      outerEdges,
    )
  )
    return null;
  const outer = arrangeGraph({ nodes: outerBoxes, edges: outerEdges, flow });
  const sizes = new Map(outerBoxes.map((box) => [box.id, box]));
  const positions = new Map<number, { x: number; y: number }>();
  const frames: GraphFrame[] = [];
  const drawnEdges: RoutedEdge[] = [];
  for (const [kernel, frameLayout] of inner) {
    const { x, y } = outer.positions.get(numberFrame(kernel))!;
    const { width, height } = sizes.get(numberFrame(kernel))!;
    const frame = { kernel, product: null, left: x - width / 2, top: y - height / 2, width, height };
    frames.push(frame);
    const dx = x - frameLayout.width / 2 - frameLayout.left;
    const dy = frame.top + header + FRAME_PADDING - frameLayout.top;
    for (const innerFrame of frameLayout.frames ?? [])
      frames.push({
        ...innerFrame,
        kernel,
        product: innerFrame.kernel,
        left: innerFrame.left + dx,
        top: innerFrame.top + dy,
      });
    for (const [id, point] of frameLayout.positions) positions.set(id, { x: point.x + dx, y: point.y + dy });
    for (const edge of frameLayout.edges)
      drawnEdges.push({ ...edge, points: edge.points.map(([px, py]) => [px + dx, py + dy]) });
  }
  for (const box of boxes) if (owner.get(box.id) === null) positions.set(box.id, outer.positions.get(box.id)!);
  const routes = new Map(outer.edges.map((edge) => [`${edge.src} ${edge.dst}`, edge]));
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const routeOf = ({ src, dst }: Edge): RoutedEdge => routes.get(`${outerOf(src)} ${outerOf(dst)}`)!;
  const entries = new Map<number, Edge[]>(); // edges into each box from outside, from left to right
  for (const edge of crossing) entries.set(edge.dst, [...(entries.get(edge.dst) ?? []), edge]);
  const isDown = flow === "down";
  const across = (id: number): number => positions.get(id)![isDown ? "x" : "y"];
  for (const list of entries.values()) list.sort((a, b) => across(a.src) - across(b.src));
  for (const [dst, list] of entries) {
    list.forEach((edge, i) => {
      const route = routeOf(edge);
      const [source, box] = [byId.get(edge.src)!, byId.get(dst)!];
      const [long, broad] = isDown ? [source.height, box.width] : [source.width, box.height];
      const port = across(dst) + ((i + 1) / (list.length + 1) - 0.5) * 0.8 * broad;
      const start = positions.get(edge.src)![isDown ? "y" : "x"] + long / 2;
      const end = positions.get(dst)![isDown ? "y" : "x"] - (isDown ? box.height : box.width) / 2;
      const points = isDown
        ? routeAround(route.points, across(edge.src), start, port, end)
        : routeAround(route.points.map(exchangeAxes), across(edge.src), start, port, end).map(exchangeAxes);
      drawnEdges.push({ src: edge.src, dst, long: route.long, points });
    });
  }
  frames.sort((a, b) => Number(a.product !== null) - Number(b.product !== null) || a.kernel - b.kernel);
  return { ...outer, positions, edges: drawnEdges, frames };
}

function exchangeAxes([x, y]: readonly [number, number]): [number, number] {
  return [y, x];
}

function numberFrame(kernel: number): number {
  return -1 - kernel;
}

/** Routes an edge between two frames, from a box inside one to a box inside the other. */
function routeAround(
  points: readonly [number, number][],
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): [number, number][] {
  const moved = points.map(([x, y]): [number, number] => [x, y]);
  const [startX, endX] = [moved[0][0], moved[moved.length - 1][0]];
  for (let i = 0; i < moved.length && moved[i][0] === startX; i += 1) if (i < moved.length - 1) moved[i][0] = x0;
  for (let i = moved.length - 1; i > 0 && moved[i][0] === endX; i -= 1) moved[i][0] = x1;
  return [[x0, y0], ...moved, [x1, y1]].filter(
    ([x, y], i, all) => i === 0 || x !== all[i - 1][0] || y !== all[i - 1][1],
  ) as [number, number][];
}

function isCyclic(ids: readonly number[], edges: readonly Edge[]): boolean {
  const waiting = new Map(ids.map((id) => [id, 0]));
  const users = new Map<number, number[]>();
  for (const { src, dst } of edges) {
    waiting.set(dst, (waiting.get(dst) ?? 0) + 1);
    users.set(src, [...(users.get(src) ?? []), dst]);
  }
  const ready = [...waiting].filter(([, count]) => count === 0).map(([id]) => id);
  for (let head = 0; head < ready.length; head += 1) {
    for (const user of users.get(ready[head]) ?? []) {
      waiting.set(user, waiting.get(user)! - 1);
      if (waiting.get(user) === 0) ready.push(user);
    }
  }
  return ready.length < waiting.size;
}
