// What Python does by hand: the debugger and the memory microscope.

import { CachesView } from "../views/caches";
import { DebuggerView } from "../views/debugger";

export { default as css } from "../byhand.css";
export const views = { debugger: DebuggerView, caches: CachesView };
