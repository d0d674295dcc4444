import style from "../story/pages.css";

export { makePage } from "../story/make";
export const css = style;
export const views = {};
