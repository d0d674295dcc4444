// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../language_comparison/language_comparison.css";
import { LanguageComparisonView } from "../language_comparison/view";

export const css = style0;
export const views = { rosetta: LanguageComparisonView };
