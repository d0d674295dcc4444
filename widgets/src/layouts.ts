// The layouts as a unit: build.mjs bundles what is exported here into one function, which the views call, and whose text
// a worker is made of.

import { type Flow, turned, turnedBoxes, turnedPlaces } from "./flow";
import { type Layout, layout } from "./layout";
import type { Box, Edge, Point } from "./layers";
import { steadyLayout } from "./steady";

export { layout } from "./layout";

/** The unit's own text; empty where it was not bundled so. */
export const source: string = "";

export interface LayoutRequest {
  readonly nodes: readonly Box[];
  readonly edges: readonly Edge[];
  /** Where boxes stood: they stay there as far as the graph allows, */
  readonly previous?: ReadonlyMap<number, Point>;
  /** in the next step of the same pass all of them, if that can still be read. */
  readonly isStep?: boolean;
  /** The direction from sources to users; down where nothing is said. */
  readonly flow?: Flow;
  /** Seconds after which crossings are no longer looked for. */
  readonly patience?: number;
}

/** The layout of one graph. */
export function arranged(request: LayoutRequest): Layout {
  const { nodes, previous, flow = "down" } = request;
  if (flow === "down") return downwards(request);
  const places = previous === undefined ? undefined : turnedPlaces(previous);
  return turned(downwards({ ...request, nodes: turnedBoxes(nodes), previous: places }));
}

function downwards({ nodes, edges, previous, isStep = false, patience = Infinity }: LayoutRequest): Layout {
  const steady = isStep && previous !== undefined ? steadyLayout({ nodes, edges }, previous) : null;
  const end = performance.now() + patience * 1000;
  return steady ?? layout({ nodes, edges }, { previous, cancelled: () => performance.now() > end });
}
