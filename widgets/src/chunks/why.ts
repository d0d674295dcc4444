// Why, and why not.

import { WhyView } from "../views/why";

export { default as css } from "../views/why.css";
export const views = { why: WhyView };
