// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.

/** The panels by group, in the order of their tabs. */
export const GROUPS = {
  "passes": {
    "title": "Passes",
    "says": "How the program was rewritten, step by step, and why",
    "panels": [
      "rewrites",
      "why",
      "history",
      "llvm"
    ]
  },
  "program": {
    "title": "Program",
    "says": "The parts of the program, the program in other languages, and the bottleneck of a loop",
    "panels": [
      "kernels",
      "modules",
      "rosetta",
      "throughput"
    ]
  },
  "whatif": {
    "title": "What if",
    "says": "Change decisions and compare the results",
    "panels": [
      "tuner",
      "rules",
      "fusion"
    ]
  },
  "models": {
    "title": "Kernel analysis",
    "says": "A kernel step by step, its caches, a GPU's warps, and the layout of tensors",
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
    "says": "Every term of the explorer",
    "panels": [
      "glossary"
    ]
  }
} as const;

export type Panel = (typeof GROUPS)[keyof typeof GROUPS]["panels"][number];

/** What a page keeps for panels. */
export type Need = "branches" | "caches" | "gpu" | "lines" | "passes" | "recordings" | "rosetta" | "schedules" | "shape" | "throughput";

/** What is known of a panel before its code is there: see `Panel` in panels.py. */
export interface PanelRow {
  title: string;
  chunk?: string;
  opensTall?: boolean;
  key?: string;
  needs?: Need[];
  needsPython?: boolean;
  emptyText?: [text: string, code: string];
}

export const PANEL_ROWS: Record<Panel, PanelRow> = {
  "rewrites": {
    "title": "Rewrites"
  },
  "why": {
    "title": "Decisions",
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
    "title": "Languages",
    "chunk": "language_comparison",
    "opensTall": true,
    "needs": [
      "rosetta"
    ],
    "needsPython": true,
    "emptyText": [
      "This page has no translations. Before you save a page, call ",
      "view.kernels[KERNEL].translate(), or view.to_html(path, rosetta=True)"
    ]
  },
  "llvm": {
    "title": "LLVM passes",
    "chunk": "stage_texts",
    "opensTall": true,
    "needs": [
      "passes"
    ],
    "needsPython": true,
    "emptyText": [
      "This page has no LLVM passes. Before you save a page, call ",
      "view.kernels[KERNEL].passes()"
    ]
  },
  "throughput": {
    "title": "Throughput",
    "chunk": "throughput",
    "opensTall": true,
    "needs": [
      "throughput"
    ],
    "needsPython": true,
    "emptyText": [
      "This page has no llvm-mca results. Before you save a page, call ",
      "view.kernels[KERNEL].throughput()"
    ]
  },
  "tuner": {
    "title": "Tuner",
    "chunk": "tuner",
    "opensTall": true,
    "needs": [
      "branches"
    ],
    "emptyText": [
      "This page has no tried opts. To try some, call in a notebook: ",
      "view.kernels[KERNEL].apply(opts)"
    ]
  },
  "rules": {
    "title": "Rules",
    "chunk": "tuner",
    "opensTall": true,
    "needs": [
      "branches"
    ],
    "emptyText": [
      "This page has no tried rules. To try some, evaluate in a notebook: ",
      "view.rules"
    ]
  },
  "fusion": {
    "title": "Fusion",
    "chunk": "fusion",
    "opensTall": true,
    "needs": [
      "schedules"
    ],
    "emptyText": [
      "This page has no tried cuts and joins. To try some, call in a notebook: ",
      "view.fusion.cut, view.fusion.join"
    ]
  },
  "debugger": {
    "title": "Debugger",
    "chunk": "kernel_analysis",
    "opensTall": true,
    "needs": [
      "recordings"
    ],
    "needsPython": true,
    "emptyText": [
      "This page has no recorded steps. To store them, save the page with ",
      "view.to_html(path, iterations=2000)"
    ]
  },
  "caches": {
    "title": "Caches",
    "chunk": "kernel_analysis",
    "opensTall": true,
    "needs": [
      "caches"
    ],
    "needsPython": true,
    "emptyText": [
      "This page has no cache results. Before you save a page, call ",
      "view.kernels[KERNEL].caches()"
    ]
  },
  "warps": {
    "title": "Warps",
    "chunk": "warps",
    "opensTall": true,
    "needs": [
      "gpu"
    ],
    "needsPython": true,
    "emptyText": [
      "No kernel of this trace is for a GPU. To compile one on any machine, call ",
      "explore(f, target=\"sm_80\")"
    ]
  },
  "shape": {
    "title": "Shape",
    "chunk": "shape",
    "opensTall": true,
    "needs": [
      "shape"
    ],
    "emptyText": [
      "This trace has no views: every node reads memory in order.",
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
    "needsPython": true,
    "emptyText": [
      "This page has no times of lines. To compute them, call ",
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
