// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../views/modules.css";
import { LinesView } from "../views/lines";

export const css = style0;
export const views = { lines: LinesView };
