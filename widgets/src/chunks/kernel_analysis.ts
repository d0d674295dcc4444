// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../controls.css";
import style1 from "../kernel_analysis.css";
import { DebuggerView } from "../views/debugger";
import { CachesView } from "../views/caches";

export const css = style0 + style1;
export const views = { debugger: DebuggerView, caches: CachesView };
