// The trace by module.

import { ModulesView } from "../views/modules";

export { default as css } from "../views/modules.css";
export const views = { modules: ModulesView };
