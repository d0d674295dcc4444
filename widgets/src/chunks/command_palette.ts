// The box "Go to": finds places by name.

export { default as css } from "../command_palette/command_palette.css";
export { openBox } from "../command_palette/box";
export const views = {};
