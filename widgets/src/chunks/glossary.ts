// Every word of the explorer, to be looked up.

import { GlossaryView } from "../views/glossary";

export { default as css } from "../views/glossary.css";
export const views = { glossary: GlossaryView };
