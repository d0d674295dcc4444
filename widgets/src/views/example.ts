// What a panel about a selected node shows while nothing is selected: what to do, and a button that selects an example.

import { button, h } from "../dom";
import type { Store } from "../store";

export function selectNote(store: Store, text: string, example: number | undefined): HTMLElement {
  const choose = (): void => store.select([example!]);
  const show = example === undefined ? null : button("Show an example", "Selects a node of this kernel", choose);
  return h("p", { class: "empty" }, `${text} `, show);
}

/** A result of the kernel in view. */
export function resultOf({ cursor, index }: Store): number | undefined {
  return index.trace.kernels[cursor.kernel ?? 0]?.roots[0];
}

/** The node that the last firing of a rule made in the kernel in view. */
export function lastMade({ cursor, index }: Store): number | undefined {
  const kernel = cursor.kernel ?? 0;
  const own = index.trace.stages.filter((stage) => stage.kernel === kernel);
  return own.flatMap(({ steps }) => steps.filter(({ rule }) => rule !== null)).at(-1)?.after;
}
