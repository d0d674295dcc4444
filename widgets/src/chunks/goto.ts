// Going to a place by its name.

export { default as css } from "../goto/goto.css";
export { openBox } from "../goto/box";
export const views = {};
