// Kernels and stages as charts.

import { RooflineView } from "../views/roofline";
import { TimelineView } from "../views/timeline";

export { default as css } from "../views/charts.css";
export const views = { roofline: RooflineView, timeline: TimelineView };
