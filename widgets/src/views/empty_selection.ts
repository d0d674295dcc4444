// The content of a panel about a selected node while nothing is selected: instructions, and a button that selects an
// example.

import { button, h } from "../dom";
import { kernelTitle } from "../kernel_labels";
import type { Store } from "../store";

export function makeSelectionHint(store: Store, text: string, example: number | undefined): HTMLElement {
  const choose = (): void => store.select([example!]);
  const show = example === undefined ? null : button("Show an example", "Selects a node of this kernel", choose);
  return h("p", { class: "empty" }, `${text} `, show);
}

/** Returns a result of the current kernel. */
export function findResult({ cursor, index }: Store): number | undefined {
  return index.trace.kernels[cursor.kernel ?? 0]?.roots[0];
}

/** Returns the node that the last firing in the current kernel created; without one, in any other kernel. */
export function findNewestNode({ cursor, index }: Store): number | undefined {
  const { stages } = index.trace;
  const kernelStages = stages.filter(({ kernel }) => kernel === (cursor.kernel ?? 0));
  const findMade = (among: typeof stages): number | undefined =>
    among.flatMap(({ steps }) => steps.filter(({ rule }) => rule !== null)).at(-1)?.after;
  return findMade(kernelStages) ?? findMade(stages);
}

/** Returns a button that goes to the slowest kernel; null at that kernel, and without times. */
export function makeSlowestButton(store: Store): HTMLElement | null {
  const { index, cursor } = store;
  const timed = index.trace.kernels.filter(({ id }) => index.runOf(id) !== null);
  const time = (id: number): number => index.runOf(id)!.median_us;
  const longest = timed.reduce((a, b) => (b !== undefined && time(b.id) > time(a.id) ? b : a), timed[0]);
  if (longest === undefined || longest.id === cursor.kernel) return null;
  return button(`Show ${kernelTitle(index.trace, longest.id)}`, "The kernel that took the most time", () =>
    store.go({ kernel: longest.id }),
  );
}
