// The bundle of pages with engine: it puts an engine into the page, where the explorer's own bundle finds it. A
// playground has an editor above the explorer.

import { h } from "./dom";
import type { Handle } from "./explorer";
import { PageEngine } from "./live/engine";
import css from "./live/live.css";
import { Playground } from "./live/playground";
import playgroundCss from "./live/playground.css";
import { fromBase64 } from "./payload";

type Machines = [label: string, machine: string][];

const holder = document.getElementById("trace");
const engine = new PageEngine(holder === null ? null : fromBase64(holder.textContent ?? ""));
(globalThis as { tinyexploreEngine?: PageEngine }).tinyexploreEngine = engine;
const container = document.getElementById("playground");
document.head.append(h("style", {}, css + playgroundCss));
if (container !== null) openPlayground(container, JSON.parse(container.dataset.machines ?? "[]") as Machines);
else engine.playground = leaveExplorer;

function openPlayground(root: HTMLElement, machines: Machines): void {
  root.classList.add("pg");
  new Playground(root, engine, machines);
}

/** Replaces the explorer of this page's trace by the playground; reloading the page returns to it. */
function leaveExplorer(): void {
  const explorer = (globalThis as { tinyexplore?: { handle: Handle | null } }).tinyexplore;
  explorer?.handle?.destroy();
  const root = h("div", { id: "playground" });
  document.getElementById("explorer")!.replaceWith(root);
  history.replaceState(null, "", location.href.split("#")[0]); // a position in the trace does not belong to a program
  openPlayground(root, [["Interpreter · scalars", ""]]);
}
