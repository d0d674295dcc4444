// The table of kernels, with reproducers.

import { KernelsView } from "../views/kernels";

export { default as css } from "../views/kernels.css";
export const views = { kernels: KernelsView };
