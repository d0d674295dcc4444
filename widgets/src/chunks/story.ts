import style from "../story/pages.css";

export { makePage } from "../story/make_page";
export const css = style;
export const views = {};
