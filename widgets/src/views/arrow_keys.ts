// Finds the box to which the arrow keys lead.

import type { Flow } from "../layout_direction";
import type { Layout } from "../layout";
import type { DrawnGraph } from "../visible_graph";

export type Direction = "up" | "down" | "left" | "right";

const LAYER = 12; // height difference in pixels up to which boxes are on one layer

/**
 * Returns the box next to `from`: the nearest source (against the flow), user (along it), or the nearest on its layer.
 */
export function findNeighbor(
  from: number,
  direction: Direction,
  drawn: DrawnGraph,
  { positions }: Layout,
  flow: Flow,
): number | undefined {
  const across = flow === "down" ? "x" : "y";
  const along = flow === "down" ? "y" : "x";
  const place = positions.get(from)!;
  const distance = (id: number): number => Math.abs(positions.get(id)![across] - place[across]);
  const sign = direction === "left" || direction === "up" ? -1 : 1;
  const isBeside = (id: number): boolean => {
    const position = positions.get(id)!;
    return Math.abs(position[along] - place[along]) < LAYER && (position[across] - place[across]) * sign > 0;
  };
  const isAlong = (flow === "down") === (direction === "up" || direction === "down");
  const { edges, boxes } = drawn;
  const candidates = !isAlong
    ? boxes.map(({ id }) => id).filter(isBeside)
    : sign < 0
      ? edges.filter(({ dst }) => dst === from).map(({ src }) => src)
      : edges.filter(({ src }) => src === from).map(({ dst }) => dst);
  return candidates.sort((a, b) => distance(a) - distance(b))[0];
}
