// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

export const PANEL_DESCRIPTIONS = {
  "rewrites": "the graph after each firing of a rule, pass by pass",
  "why": "why a rule fired or did not, why a kernel has its opts, why two operations share a kernel",
  "history": "every rewrite of the selected node",
  "kernels": "every kernel: opts, time, rates, reproducer",
  "modules": "time and memory of each part of a model",
  "rosetta": "one kernel in several languages, side by side",
  "llvm": "a kernel after each LLVM pass, and with another pipeline",
  "throughput": "the bottleneck of the inner loop of a kernel",
  "tuner": "other opts for a kernel, and their times",
  "rules": "write or disable a rule, and compare the results",
  "fusion": "cut or join kernels on the tensor graph",
  "debugger": "a kernel step by step, with its values",
  "caches": "which cache serves each load and store",
  "warps": "the memory accesses and the occupancy of a GPU kernel",
  "shape": "where the elements of a tensor lie in memory",
  "timing": "the time of each kernel, and its spread",
  "lines": "your lines of Python, by the time of their kernels",
  "roofline": "kernels under the ceilings of the machine",
  "timeline": "stages, runs and buffers over time",
  "memory": "buffers: sizes and lifetimes",
  "glossary": "every term of the explorer"
};
