// What Python does by hand: the debugger and the memory microscope.

import byhand from "../byhand.css";
import controls from "../controls.css";
import { CachesView } from "../views/caches";
import { DebuggerView } from "../views/debugger";

export const css = controls + byhand;
export const views = { debugger: DebuggerView, caches: CachesView };
