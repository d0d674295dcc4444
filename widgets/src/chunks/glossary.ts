// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../views/glossary.css";
import { GlossaryView } from "../views/glossary";

export const css = style0;
export const views = { glossary: GlossaryView };
