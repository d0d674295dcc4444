// Creates the pages of the story.

import { CodePage } from "./code";
import { KernelsPage } from "./kernels";
import { LoopsPage } from "./loops";
import type { MakePage } from "./page";
import { PythonPage } from "./python";
import { RewritesPage } from "./rewrites";
import { TensorsPage } from "./tensors";
import { TimePage } from "./time";

export const makePage: MakePage = ({ key, kernel }, store, open, changed) => {
  const { kernels } = store.index.trace;
  switch (key) {
    case "python":
      return new PythonPage(store);
    case "tensors":
      return new TensorsPage(store);
    case "kernels":
      return new KernelsPage(store);
    case "loops":
      return new LoopsPage(store, kernels[kernel!], changed);
    case "rewrites":
      return new RewritesPage(store, open);
    case "code":
      return new CodePage(store, kernels[kernel!], open);
    case "time":
      return new TimePage(store, changed);
  }
};
