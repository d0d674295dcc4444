// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../views/kernels.css";
import { KernelsView } from "../views/kernels";

export const css = style0;
export const views = { kernels: KernelsView };
