// What a panel about a selected node shows while nothing is selected: what to do, and a button that selects an example.

import { button, h } from "../dom";
import { kernelTitle } from "../kernels";
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

/** The node that the last firing of a rule made in the kernel in view; where no rule fired in it, in any other. */
export function lastMade({ cursor, index }: Store): number | undefined {
  const { stages } = index.trace;
  const own = stages.filter(({ kernel }) => kernel === (cursor.kernel ?? 0));
  const made = (among: typeof stages): number | undefined =>
    among.flatMap(({ steps }) => steps.filter(({ rule }) => rule !== null)).at(-1)?.after;
  return made(own) ?? made(stages);
}

/** A button that goes to the kernel that took the most time; null at that kernel, and where no kernel has a time. */
export function longestKernel(store: Store): HTMLElement | null {
  const { index, cursor } = store;
  const timed = index.trace.kernels.filter(({ id }) => index.runOf(id) !== null);
  const time = (id: number): number => index.runOf(id)!.median_us;
  const longest = timed.reduce((a, b) => (b !== undefined && time(b.id) > time(a.id) ? b : a), timed[0]);
  if (longest === undefined || longest.id === cursor.kernel) return null;
  return button(`Show ${kernelTitle(index.trace, longest.id)}`, "The kernel that took the most time", () =>
    store.go({ kernel: longest.id }),
  );
}
