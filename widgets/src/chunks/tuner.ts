// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../marks.css";
import style1 from "../tuner/tuner.css";
import style2 from "../rules/rules.css";
import { TunerView } from "../tuner/index";
import { RulesView } from "../rules/index";

export const css = style0 + style1 + style2;
export const views = { tuner: TunerView, rules: RulesView };
