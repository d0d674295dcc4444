// Descriptions of the operations in listings.

export { explain } from "../opcodes";
export const views = {};
