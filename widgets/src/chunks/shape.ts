// Where the elements of a node lie in memory.

import { LoneShapeView, ShapeView } from "../views/shape";

export { default as css } from "../shape.css";
export const views = { shape: ShapeView };
export const lone = { shape: LoneShapeView };
