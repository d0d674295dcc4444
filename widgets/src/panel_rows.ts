// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

/** The panels by group, in the order of their tabs. */
export const GROUPS = {
  "passes": {
    "title": "Passes",
    "says": "How the program was rewritten, step by step, and why",
    "panels": [
      "rewrites",
      "why",
      "history"
    ]
  },
  "program": {
    "title": "Program",
    "says": "What the program consists of, what it is in other languages, and what bounds a loop",
    "panels": [
      "kernels",
      "modules",
      "rosetta",
      "throughput"
    ]
  },
  "whatif": {
    "title": "What if",
    "says": "Decide otherwise, and see what comes of it",
    "panels": [
      "tuner",
      "rules",
      "fusion"
    ]
  },
  "byhand": {
    "title": "By hand",
    "says": "A kernel a step at a time, which cache answers, what a GPU's warps do, where elements lie",
    "panels": [
      "debugger",
      "caches",
      "warps",
      "shape"
    ]
  },
  "measure": {
    "title": "Measure",
    "says": "Time, rates and memory",
    "panels": [
      "timing",
      "lines",
      "roofline",
      "timeline",
      "memory"
    ]
  },
  "glossary": {
    "title": "Glossary",
    "says": "Every word of the explorer",
    "panels": [
      "glossary"
    ]
  }
} as const;

export type Panel = (typeof GROUPS)[keyof typeof GROUPS]["panels"][number];

/** What a page keeps for panels. */
export type Need = "branches" | "caches" | "gpu" | "lines" | "recordings" | "rosetta" | "schedules" | "shape" | "throughput";

/** What is known of a panel before its code is there: see `Panel` in panels.py. */
export interface PanelRow {
  title: string;
  chunk?: string;
  roomy?: boolean;
  key?: string;
  needs?: Need[];
  asks?: boolean;
  instead?: [text: string, code: string];
}

export const PANEL_ROWS: Record<Panel, PanelRow> = {
  "rewrites": {
    "title": "Rewrites"
  },
  "why": {
    "title": "Why",
    "chunk": "why",
    "key": "y"
  },
  "history": {
    "title": "Rewrite history",
    "chunk": "why",
    "key": "b"
  },
  "kernels": {
    "title": "Kernels",
    "chunk": "kernels"
  },
  "modules": {
    "title": "Modules",
    "chunk": "modules"
  },
  "rosetta": {
    "title": "Rosetta",
    "chunk": "rosetta",
    "roomy": true,
    "needs": [
      "rosetta"
    ],
    "asks": true,
    "instead": [
      "In a notebook this panel has Python translate the kernel. For a page: ",
      "view.kernels[KERNEL].translate() before, or view.to_html(path, rosetta=True)"
    ]
  },
  "throughput": {
    "title": "Throughput",
    "chunk": "throughput",
    "roomy": true,
    "needs": [
      "throughput"
    ],
    "asks": true,
    "instead": [
      "In a notebook this panel runs llvm-mca. A page has the results of ",
      "view.kernels[KERNEL].throughput()"
    ]
  },
  "tuner": {
    "title": "Tuner",
    "chunk": "tuner",
    "roomy": true,
    "needs": [
      "branches"
    ],
    "instead": [
      "Nothing was tried on a kernel of this trace, and a page cannot compile: a notebook can ",
      "view.panels.tuner, view.kernels[KERNEL].apply(opts)"
    ]
  },
  "rules": {
    "title": "Rules",
    "chunk": "tuner",
    "roomy": true,
    "needs": [
      "branches"
    ],
    "instead": [
      "No rule was tried on this trace, and rules are Python: a notebook fires them ",
      "view.rules"
    ]
  },
  "fusion": {
    "title": "Fusion",
    "chunk": "fusion",
    "needs": [
      "schedules"
    ],
    "instead": [
      "Nothing was cut or joined in this trace. A notebook can: ",
      "view.fusion.cut, view.fusion.join"
    ]
  },
  "debugger": {
    "title": "Debugger",
    "chunk": "byhand",
    "roomy": true,
    "needs": [
      "recordings"
    ],
    "asks": true,
    "instead": [
      "Python steps kernels. A page steps what was recorded: ",
      "view.to_html(path, iterations=2000)"
    ]
  },
  "caches": {
    "title": "Caches",
    "chunk": "byhand",
    "roomy": true,
    "needs": [
      "caches"
    ],
    "asks": true,
    "instead": [
      "In a notebook this panel has Python model the caches. A page has the results of ",
      "view.kernels[KERNEL].caches()"
    ]
  },
  "warps": {
    "title": "Warps",
    "chunk": "warps",
    "roomy": true,
    "needs": [
      "gpu"
    ],
    "asks": true,
    "instead": [
      "No kernel of this trace is a GPU's. One that is, from any machine: ",
      "explore(f, target=\"sm_80\")"
    ]
  },
  "shape": {
    "title": "Shape",
    "chunk": "shape",
    "roomy": true,
    "needs": [
      "shape"
    ],
    "instead": [
      "No node of this trace shows memory otherwise than as it lies.",
      ""
    ]
  },
  "timing": {
    "title": "Timing"
  },
  "lines": {
    "title": "Lines",
    "chunk": "lines",
    "needs": [
      "lines"
    ],
    "asks": true,
    "instead": [
      "In a notebook Python computes this; so does ",
      "view.panels.result(\"lines\")"
    ]
  },
  "roofline": {
    "title": "Roofline",
    "chunk": "charts"
  },
  "timeline": {
    "title": "Timeline",
    "chunk": "charts"
  },
  "memory": {
    "title": "Memory",
    "chunk": "charts"
  },
  "glossary": {
    "title": "Glossary",
    "chunk": "glossary"
  }
};

/** The panel of each widget of its own. */
export const WIDGETS = {
  "stepper": "rewrites",
  "kernels": "kernels",
  "modules": "modules",
  "tuner": "tuner",
  "rules": "rules",
  "fusion": "fusion",
  "shape": "shape",
  "timing": "timing",
  "lines": "lines",
  "roofline": "roofline",
  "timeline": "timeline",
  "memory": "memory"
} as const;
