// The layouts as one unit: build.mjs bundles these exports into one function. Views call it, and a worker runs its
// text.

import { type Flow, transposeLayout, transposeBoxes, transposePositions } from "./layout_direction";
import { type Layout, layout } from "./layout";
import type { Box, Edge, Point } from "./layers";
import { layOutIncrementally } from "./incremental_layout";

export { layout } from "./layout";

/** The text of the unit; "" if it was not bundled this way. */
export const source: string = "";

export interface LayoutRequest {
  readonly nodes: readonly Box[];
  readonly edges: readonly Edge[];
  /** The previous positions of boxes, which are kept as far as the graph permits; */
  readonly previous?: ReadonlyMap<number, Point>;
  /** in the next step of the same pass all of them, if the result is readable. */
  readonly isStep?: boolean;
  /** The direction from sources to users; down by default. */
  readonly flow?: Flow;
  /** Seconds after which the search for fewer crossings ends. */
  readonly patience?: number;
}

/** Returns the layout of one graph. */
export function arrangeGraph(request: LayoutRequest): Layout {
  const { nodes, previous, flow = "down" } = request;
  if (flow === "down") return layOutDownwards(request);
  const places = previous === undefined ? undefined : transposePositions(previous);
  return transposeLayout(layOutDownwards({ ...request, nodes: transposeBoxes(nodes), previous: places }));
}

function layOutDownwards({ nodes, edges, previous, isStep = false, patience = Infinity }: LayoutRequest): Layout {
  const steady = isStep && previous !== undefined ? layOutIncrementally({ nodes, edges }, previous) : null;
  const end = performance.now() + patience * 1000;
  return steady ?? layout({ nodes, edges }, { previous, cancelled: () => performance.now() > end });
}
