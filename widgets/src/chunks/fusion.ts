// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../tuner/tuner.css";
import style1 from "../fusion/fusion.css";
import { FusionView } from "../fusion/index";

export const css = style0 + style1;
export const views = { fusion: FusionView };
