// The warps of a GPU's kernel.

import { WarpsView } from "../views/warps";
import warps from "../views/warps.css";

export const css = warps;
export const views = { warps: WarpsView };
