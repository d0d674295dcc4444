// What the operations of listings do.

export { explain } from "../opcodes";
export const views = {};
