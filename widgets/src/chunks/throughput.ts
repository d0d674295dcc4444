// What bounds the inner loop of a kernel.

import controls from "../controls.css";
import { ThroughputView } from "../views/throughput";
import throughput from "../views/throughput.css";

export const css = controls + throughput;
export const views = { throughput: ThroughputView };
