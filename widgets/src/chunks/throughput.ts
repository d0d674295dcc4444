// What bounds the inner loop of a kernel.

import { ThroughputView } from "../views/throughput";

export { default as css } from "../views/throughput.css";
export const views = { throughput: ThroughputView };
