// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../views/why.css";
import { WhyView } from "../views/why";
import { BiographyView } from "../views/biography";

export const css = style0;
export const views = { why: WhyView, biography: BiographyView };
