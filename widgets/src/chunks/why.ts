// Why, and why not; and how a node came to be.

import { BiographyView } from "../views/biography";
import { WhyView } from "../views/why";

export { default as css } from "../views/why.css";
export const views = { why: WhyView, biography: BiographyView };
