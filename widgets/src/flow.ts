// The direction in which a graph is laid out: sources above their users, or to the left of them. The second is the first
// with its axes exchanged.

import type { Box, Point } from "./layers";
import type { Layout } from "./layout";

export type Flow = "down" | "right";

/** A list of boxes as the layout of the other direction needs it. */
export function turnedBoxes(boxes: readonly Box[]): Box[] {
  return boxes.map(({ id, width, height }) => ({ id, width: height, height: width }));
}

export function turnedPlaces(places: ReadonlyMap<number, Point>): Map<number, Point> {
  return new Map([...places].map(([id, { x, y }]) => [id, { x: y, y: x }]));
}

/** A layout with its axes exchanged. */
export function turned({ positions, width, height, left, top, edges }: Layout): Layout {
  return {
    positions: turnedPlaces(positions),
    width: height,
    height: width,
    left: top,
    top: left,
    edges: edges.map((edge) => ({ ...edge, points: edge.points.map(([x, y]): [number, number] => [y, x]) })),
  };
}
