// Decides which panels have data for this trace. The others have no tab and are not listed in Go to.

import { PANEL_ROWS } from "./panel_rows";
import type { Panel, Store } from "./store";

/** Whether a panel has data to show, or can request it from the engine's side. */
export function canShow(store: Store, panel: Panel): boolean {
  const { trace } = store.index;
  if (trace.dialect !== null && !trace.dialect.panels.includes(panel)) return false;
  if (panel === "modules") return trace.scopes.length > 0;
  if (panel === "roofline") return trace.runs.length > 0;
  const { needs = [] } = PANEL_ROWS[panel];
  if (needs.length === 0 || needs.some((need) => store.hasData(need))) return true;
  return store.sendRequest !== null;
}
