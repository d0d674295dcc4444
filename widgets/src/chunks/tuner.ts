// The kernel tuner, and the rule playground.

import marks from "../marks.css";
import { RulesView } from "../rules";
import rules from "../rules/rules.css";
import { TunerView } from "../tuner";
import tuner from "../tuner/tuner.css";

export const css = marks + tuner + rules;
export const views = { tuner: TunerView, rules: RulesView };
