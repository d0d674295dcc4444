// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../controls.css";
import style1 from "../resource_bars.css";
import style2 from "../views/throughput.css";
import { ThroughputView } from "../views/throughput";

export const css = style0 + style1 + style2;
export const views = { throughput: ThroughputView };
