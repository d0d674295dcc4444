// Which box the arrow keys lead to.

import type { Layout } from "../layout";
import type { DrawnGraph } from "../shown";

export type Direction = "up" | "down" | "left" | "right";

const LAYER = 12; // pixels by which boxes of one layer may differ in height

/** The box that is next to `from`: the nearest source (up), user (down), or the nearest on its layer. */
export function neighbourOf(
  from: number,
  direction: Direction,
  drawn: DrawnGraph,
  { positions }: Layout,
): number | undefined {
  const place = positions.get(from)!;
  const distance = (id: number): number => Math.abs(positions.get(id)!.x - place.x);
  const sign = direction === "left" ? -1 : 1;
  const isBeside = (id: number): boolean => {
    const { x, y } = positions.get(id)!;
    return Math.abs(y - place.y) < LAYER && (x - place.x) * sign > 0;
  };
  let candidates: number[];
  if (direction === "up") candidates = drawn.edges.filter((edge) => edge.dst === from).map((edge) => edge.src);
  else if (direction === "down") candidates = drawn.edges.filter((edge) => edge.src === from).map((edge) => edge.dst);
  else candidates = drawn.boxes.map((box) => box.id).filter(isBeside);
  return candidates.sort((a, b) => distance(a) - distance(b))[0];
}
