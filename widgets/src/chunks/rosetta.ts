// A kernel in several languages.

import { RosettaView } from "../rosetta/view";

export { default as css } from "../rosetta/rosetta.css";
export const views = { rosetta: RosettaView };
