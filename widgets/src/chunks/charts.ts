// Kernels, stages and buffers as charts.

import marks from "../marks.css";
import charts from "../views/charts.css";
import { MemoryView } from "../views/memory";
import { RooflineView } from "../views/roofline";
import { TimelineView } from "../views/timeline";

export const css = marks + charts;
export const views = { roofline: RooflineView, timeline: TimelineView, memory: MemoryView };
