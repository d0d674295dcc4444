// The kernel tuner.

import { TunerView } from "../tuner";

export { default as css } from "../tuner/tuner.css";
export const views = { tuner: TunerView };
