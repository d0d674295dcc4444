// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../views/why.css";
import { WhyView } from "../views/why";
import { RewriteHistoryView } from "../views/rewrite_history";

export const css = style0;
export const views = { why: WhyView, history: RewriteHistoryView };
