// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../controls.css";
import style1 from "../views/text_diff.css";
import style2 from "../views/llvm.css";
import { LLVMPassesView } from "../views/llvm";

export const css = style0 + style1 + style2;
export { findInTexts } from "../views/stage_texts";
export { listHistory } from "../views/stage_texts";
export { makeTexts } from "../views/stage_texts";
export const views = { llvm: LLVMPassesView };
