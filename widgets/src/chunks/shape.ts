// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../shape.css";
import { ShapeView } from "../views/shape";
import { LoneShapeView } from "../views/shape";

export const css = style0;
export const views = { shape: ShapeView };
export const standaloneViews = { shape: LoneShapeView };
