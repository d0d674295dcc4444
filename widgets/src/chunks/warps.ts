// The warps of a GPU's kernel.

import bounds from "../bounds.css";
import { WarpsView } from "../views/warps";
import warps from "../views/warps.css";

export const css = bounds + warps;
export const views = { warps: WarpsView };
