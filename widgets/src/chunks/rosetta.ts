// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import style0 from "../rosetta/rosetta.css";
import { RosettaView } from "../rosetta/view";

export const css = style0;
export const views = { rosetta: RosettaView };
