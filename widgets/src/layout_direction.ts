// The direction in which a graph is laid out: sources above their users, or left of them. The second is the first with
// exchanged axes.

import type { Box, Point } from "./layers";
import type { Layout } from "./layout";

export type Flow = "down" | "right";

/** Returns boxes with exchanged axes, for the layout in the other direction. */
export function transposeBoxes(boxes: readonly Box[]): Box[] {
  return boxes.map(({ id, width, height }) => ({ id, width: height, height: width }));
}

export function transposePositions(places: ReadonlyMap<number, Point>): Map<number, Point> {
  return new Map([...places].map(([id, { x, y }]) => [id, { x: y, y: x }]));
}

/** Returns a layout with exchanged axes. */
export function transposeLayout({ positions, width, height, left, top, edges }: Layout): Layout {
  return {
    positions: transposePositions(positions),
    width: height,
    height: width,
    left: top,
    top: left,
    edges: edges.map((edge) => ({ ...edge, points: edge.points.map(([x, y]): [number, number] => [y, x]) })),
  };
}
