// What bounds the inner loop of a kernel.

import bounds from "../bounds.css";
import controls from "../controls.css";
import { ThroughputView } from "../views/throughput";
import throughput from "../views/throughput.css";

export const css = controls + bounds + throughput;
export const views = { throughput: ThroughputView };
