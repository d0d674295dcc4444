// The fusion board, which has its rows and bars in common with the tuner.

import { FusionView } from "../fusion";
import fusion from "../fusion/fusion.css";
import tuner from "../tuner/tuner.css";

export const css = tuner + fusion;
export const views = { fusion: FusionView };
