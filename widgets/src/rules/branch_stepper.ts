// Steps through a branch about a rule: its kernel as a trace of its own replaces the explorer until the user goes back.
// Each firing shows its check.

import { h } from "../dom";
import { mountOn, openStore } from "../explorer";
import type { Branch, FiringCheck, RuleFiring, Trace } from "../model";
import { fromBase64, readTrace } from "../payload";
import type { Store } from "../store";

/**
 * Opens the kernel of a branch at `firing`, by default at the first wrong one. Throws an Error with the reason if it
 * cannot.
 */
export async function openBranchAtFiring(
  store: Store,
  root: HTMLElement,
  branch: Branch,
  firing: RuleFiring | null,
): Promise<void> {
  if (store.sendRequest === null)
    throw new Error(`Python computes the steps: Explorer(view.whatif.trace_of(${branch.id}))`);
  const { trace: packed } = await store.sendRequest({
    ask: "branch",
    branch: branch.id,
    kernel: firing?.kernel ?? null,
  });
  const trace = await readTrace(fromBase64(packed));
  const position = placeOf(trace, firing);
  const inner = openStore(
    trace,
    position === null
      ? {}
      : {
          cursor: {
            stage: position.stage,
            step: position.step,
            graph: "uops",
            place: "passes",
            panel: "rewrites",
            kernel: 0,
          },
        },
  );
  inner.chunks = store.chunks;
  if (position !== null) inner.select([trace.stages[position.stage].steps[position.step - 1].after]);
  const holder = h("div");
  const focused = document.activeElement as HTMLElement | null;
  const height = root.style.getPropertyValue("--height");
  const back = (): void => {
    handle.destroy();
    holder.remove();
    root.style.removeProperty("display");
    (focused?.isConnected ? focused : root).focus();
  };
  root.style.display = "none";
  root.after(holder);
  const handle = mountOn(holder, inner, { height, mode: "workbench", back });
  holder.querySelector<HTMLElement>(".tinyexplore")?.focus({ preventScroll: true });
}

function placeOf({ checks, stages }: Trace, firing: RuleFiring | null): FiringCheck | null {
  if (firing !== null)
    return checks.find(({ stage, step }) => stages[stage].name === firing.stage && step === firing.step) ?? null;
  return checks.find(({ verdict }) => verdict === "differs") ?? checks[0] ?? null;
}
