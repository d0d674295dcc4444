// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../marks.css";
import style1 from "../views/charts.css";
import { RooflineView } from "../views/roofline";
import { TimelineView } from "../views/timeline";
import { MemoryView } from "../views/memory";

export const css = style0 + style1;
export const views = { roofline: RooflineView, timeline: TimelineView, memory: MemoryView };
