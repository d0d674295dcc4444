// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

export const PANEL_SAYS = {
  "rewrites": "pass by pass, what each firing of a rule made of the graph",
  "why": "which rules could fire here, and what blocked the others",
  "history": "all that happened to what is selected",
  "kernels": "every kernel: opts, time, rates, reproducer",
  "modules": "what each part of a model took",
  "rosetta": "one kernel in several languages, side by side",
  "throughput": "what bounds the inner loop of a kernel",
  "tuner": "other opts for a kernel, and what they bring",
  "rules": "write a rule, disable one, see what comes of it",
  "fusion": "cut or join kernels on the tensor graph",
  "debugger": "a kernel step by step, with its values",
  "caches": "which cache answers each load and store",
  "warps": "what the work-items of a GPU touch together",
  "shape": "where the elements of a tensor lie in memory",
  "timing": "how long each kernel took, and how much that varies",
  "lines": "your lines of Python, by the time of the kernels that each caused",
  "roofline": "kernels under the ceilings of the machine",
  "timeline": "stages, runs and buffers over time",
  "memory": "buffers: how large, and how long they live",
  "glossary": "every word of the explorer"
};
