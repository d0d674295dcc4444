// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../resource_bars.css";
import style1 from "../views/warps.css";
import { WarpsView } from "../views/warps";

export const css = style0 + style1;
export const views = { warps: WarpsView };
