// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../controls.css";
import style1 from "../views/textdiff.css";
import style2 from "../views/llvm.css";
import { LLVMPassesView } from "../views/llvm";

export const css = style0 + style1 + style2;
export { findInTexts } from "../views/stagetext";
export { listHistory } from "../views/stagetext";
export { makeTexts } from "../views/stagetext";
export const views = { llvm: LLVMPassesView };
