// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

import { StepperView } from "./views/stepper";
import { TimingView } from "./views/timing";

export const BUNDLED = {
  rewrites: StepperView,
  timing: TimingView,
};
