"""The panels of the explorer, one row each: group, text, view, code and widget. Other lists derive from these rows.

`python -m tinyexplore.explore.schema` writes what the front end needs of them (`panel_rows.ts`, the entries in
`chunks/`, the texts of *Go to*). `parts.py` makes the widget classes; `explore/exports/html_export.py` chooses the code
that a page carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Need = Literal[
    "recordings", "branches", "schedules", "throughput", "rosetta", "gpu", "caches", "shape", "lines", "passes"
]
"""Data of the trace (the first three), or the name of a request whose responses a page stores."""


@dataclass(frozen=True, slots=True)
class PanelTab:
    """A tab of the first row."""

    name: str
    """Its name in links and tests."""
    title: str
    """The text of the tab."""
    description: str
    """The tooltip: the common subject of its panels."""


@dataclass(frozen=True, slots=True)
class PanelWidget:
    """The widget of a panel: the class `NAMEWidget`."""

    name: str
    """`view.NAME`."""
    doc: str
    """The docstring of its class."""
    picture: str
    """The function from a Trace to an SVG, for readers without widgets: "module:function"."""
    height: str = "auto"
    """The first height, in CSS."""
    standalone_view: str = ""
    """The view to use in place of the panel's: "module:class" under `widgets/src`; "" for the same."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the workbench."""

    name: str
    """The key in links, in the cursor and of its tab."""
    group: str
    """The name of its group."""
    description: str
    """A description of its content, for *Go to* and the documentation."""
    view: str
    """Its view: "module:class" under `widgets/src`."""
    chunk: str = ""
    """The chunk with its code, loaded when it is first opened; "" for code in the bundle."""
    styles: tuple[str, ...] = ()
    """The style sheets of a chunk, under `widgets/src`."""
    other_exports: tuple[str, ...] = ()
    """Exports of its chunk other than views: "module:name" under `widgets/src`."""
    title: str = ""
    """The text of its tab; "" for its name."""
    opens_tall: bool = False
    """Whether it opens at a greater height, because the reader works in it."""
    key: str = ""
    """The key that opens it, and leads back to the first panel."""
    needs: tuple[Need, ...] = ()
    """The data that a page must store for it, one of these; () if the trace is enough."""
    needs_python: bool = False
    """Whether its view sends requests to Python, so that it is empty in a page without stored responses or Python."""
    empty_text: tuple[str, str] = ("", "")
    """The text of the empty view: a sentence, and the call that helps (`KERNEL` stands for the kernel's number)."""
    answer: str = ""
    """The function from a Trace to the dataclass that it shows, "module:function". It responds to the request of the
    panel's name, and pages store its result."""
    response: str = ""
    """The name of that dataclass, in the same module."""
    widget: PanelWidget | None = None
    """Its widget, if it has one."""

    @property
    def heading(self) -> str:
        """The text of its tab."""
        return self.title or f"{self.name[0].upper()}{self.name[1:]}"


PANEL_GROUPS = (
    PanelTab("passes", "Passes", "How the program was rewritten, step by step, and why"),
    PanelTab(
        "program",
        "Program",
        "The parts of the program, the program in other languages, and the bottleneck of a loop",
    ),
    PanelTab("whatif", "What if", "Change decisions and compare the results"),
    PanelTab(
        "models",
        "Kernel analysis",
        "A kernel step by step, its caches, a GPU's warps, and the layout of tensors",
    ),
    PanelTab("measure", "Measure", "Time, rates and memory"),
    PanelTab("glossary", "Glossary", "Every term of the explorer"),
)

_SHEETS = "tinyexplore.explore.tracefile.pictures.table_pictures"
_WHATIF = "tinyexplore.explore.whatif.branch_picture"
_TUNER_STYLES = ("marks.css", "tuner/tuner.css", "rules/rules.css")
_CHART_STYLES = ("marks.css", "views/charts.css")

PANELS = (
    Panel(
        "rewrites",
        "passes",
        "the graph after each firing of a rule, pass by pass",
        "views/stepper:StepperView",
        widget=PanelWidget(
            "stepper",
            "The passes, and each firing as before | after with its rule.",
            f"{_SHEETS}:passes_svg",
            "320px",
        ),
    ),
    Panel(
        "why",
        "passes",
        "why a rule fired or did not, why a kernel has its opts, why two operations share a kernel",
        "views/why:WhyView",
        chunk="why",
        styles=("views/why.css",),
        title="Decisions",
        key="y",
    ),
    Panel(
        "history",
        "passes",
        "every rewrite of the selected node",
        "views/rewrite_history:RewriteHistoryView",
        chunk="why",
        styles=("views/why.css",),
        title="Rewrite history",
        key="b",
    ),
    Panel(
        "kernels",
        "program",
        "every kernel: opts, time, rates, reproducer",
        "views/kernels:KernelsView",
        chunk="kernels",
        styles=("views/kernels.css",),
        widget=PanelWidget("kernels", "The kernels as a table.", f"{_SHEETS}:kernels_svg"),
    ),
    Panel(
        "modules",
        "program",
        "time and memory of each part of a model",
        "views/modules:ModulesView",
        chunk="modules",
        styles=("views/modules.css",),
        widget=PanelWidget(
            "modules",
            "The modules as a tree, with time and memory. A click selects the nodes of a module, a double click shows "
            "only these in the graph.",
            f"{_SHEETS}:modules_svg",
        ),
    ),
    Panel(
        "rosetta",
        "program",
        "one kernel in several languages, side by side",
        "language_comparison/view:LanguageComparisonView",
        chunk="language_comparison",
        styles=("language_comparison/language_comparison.css",),
        title="Languages",
        opens_tall=True,
        needs=("rosetta",),
        needs_python=True,
        empty_text=(
            "This page has no translations. Before you save a page, call ",
            "view.kernels[KERNEL].translate(), or view.to_html(path, rosetta=True)",
        ),
    ),
    Panel(
        "llvm",
        "passes",
        "a kernel after each LLVM pass, and with another pipeline",
        "views/llvm:LLVMPassesView",
        chunk="stage_texts",
        styles=("controls.css", "views/text_diff.css", "views/llvm.css"),
        other_exports=("views/stage_texts:findInTexts", "views/stage_texts:listHistory", "views/stage_texts:makeTexts"),
        title="LLVM passes",
        opens_tall=True,
        needs=("passes",),
        needs_python=True,
        empty_text=(
            "This page has no LLVM passes. Before you save a page, call ",
            "view.kernels[KERNEL].passes()",
        ),
    ),
    Panel(
        "throughput",
        "program",
        "the bottleneck of the inner loop of a kernel",
        "views/throughput:ThroughputView",
        chunk="throughput",
        styles=("controls.css", "resource_bars.css", "views/throughput.css"),
        opens_tall=True,
        needs=("throughput",),
        needs_python=True,
        empty_text=(
            "This page has no llvm-mca results. Before you save a page, call ",
            "view.kernels[KERNEL].throughput()",
        ),
    ),
    Panel(
        "tuner",
        "whatif",
        "other opts for a kernel, and their times",
        "tuner/index:TunerView",
        chunk="tuner",
        styles=_TUNER_STYLES,
        opens_tall=True,
        needs=("branches",),
        empty_text=(
            "This page has no tried opts. To try some, call in a notebook: ",
            "view.kernels[KERNEL].apply(opts)",
        ),
        widget=PanelWidget(
            "tuner",
            "The loops of a kernel, the opts that are legal now, and everything that was tried.",
            f"{_WHATIF}:branches_svg",
            "720px",
        ),
    ),
    Panel(
        "rules",
        "whatif",
        "write or disable a rule, and compare the results",
        "rules/index:RulesView",
        chunk="tuner",
        styles=_TUNER_STYLES,
        opens_tall=True,
        needs=("branches",),
        empty_text=(
            "This page has no tried rules. To try some, evaluate in a notebook: ",
            "view.rules",
        ),
        widget=PanelWidget(
            "rules",
            "The rules of the pipeline and your own, the nodes that they match, and the results of firing them.",
            f"{_WHATIF}:branches_svg",
            "640px",
        ),
    ),
    Panel(
        "fusion",
        "whatif",
        "cut or join kernels on the tensor graph",
        "fusion/index:FusionView",
        chunk="fusion",
        styles=("tuner/tuner.css", "fusion/fusion.css"),
        opens_tall=True,
        needs=("schedules",),
        empty_text=(
            "This page has no tried cuts and joins. To try some, call in a notebook: ",
            "view.fusion.cut, view.fusion.join",
        ),
        widget=PanelWidget(
            "fusion",
            "The LazyBuffers in the frames of their kernels, the edges that can be cut or joined, and the results.",
            f"{_WHATIF}:schedules_svg",
            "760px",
        ),
    ),
    Panel(
        "debugger",
        "models",
        "a kernel step by step, with its values",
        "views/debugger:DebuggerView",
        chunk="kernel_analysis",
        styles=("controls.css", "kernel_analysis.css"),
        opens_tall=True,
        needs=("recordings",),
        needs_python=True,
        empty_text=(
            "This page has no recorded steps. To store them, save the page with ",
            "view.to_html(path, iterations=2000)",
        ),
    ),
    Panel(
        "caches",
        "models",
        "which cache serves each load and store",
        "views/caches:CachesView",
        chunk="kernel_analysis",
        styles=("controls.css", "kernel_analysis.css"),
        opens_tall=True,
        needs=("caches",),
        needs_python=True,
        empty_text=(
            "This page has no cache results. Before you save a page, call ",
            "view.kernels[KERNEL].caches()",
        ),
    ),
    Panel(
        "warps",
        "models",
        "the memory accesses and the occupancy of a GPU kernel",
        "views/warps:WarpsView",
        chunk="warps",
        styles=("resource_bars.css", "views/warps.css"),
        opens_tall=True,
        needs=("gpu",),
        needs_python=True,
        empty_text=(
            "No kernel of this trace is for a GPU. To compile one on any machine, call ",
            'explore(f, target="sm_80")',
        ),
    ),
    Panel(
        "shape",
        "models",
        "where the elements of a tensor lie in memory",
        "views/shape:ShapeView",
        chunk="shape",
        styles=("shape.css",),
        opens_tall=True,
        needs=("shape",),
        empty_text=("This trace has no views: every node reads memory in order.", ""),
        widget=PanelWidget(
            "shape",
            "The memory offsets of the selected view: each element with its offset, movement by movement.",
            "",
            "520px",
            standalone_view="views/shape:LoneShapeView",
        ),
    ),
    Panel(
        "timing",
        "measure",
        "the time of each kernel, and its spread",
        "views/timing:TimingView",
        widget=PanelWidget("timing", "The kernels' times with their spread.", f"{_SHEETS}:timing_svg"),
    ),
    Panel(
        "lines",
        "measure",
        "your lines of Python, by the time of their kernels",
        "views/lines:LinesView",
        chunk="lines",
        styles=("views/modules.css",),
        needs=("lines",),
        needs_python=True,
        empty_text=("This page has no times of lines. To compute them, call ", 'view.panels.result("lines")'),
        answer="tinyexplore.explore.analysis.line_times:lines_by_time",
        response="LinesByTime",
        widget=PanelWidget(
            "lines",
            "Your lines of Python by the time of their kernels. A click selects the nodes of a line.",
            "tinyexplore.explore.analysis.line_times:lines_picture",
        ),
    ),
    Panel(
        "roofline",
        "measure",
        "kernels under the ceilings of the machine",
        "views/roofline:RooflineView",
        chunk="charts",
        styles=_CHART_STYLES,
        widget=PanelWidget(
            "roofline",
            "The kernels under the machine's ceilings: operations per byte and rate. A click selects a kernel.",
            "tinyexplore.explore.tracefile.pictures.trace_roofline:roofline_picture",
            "400px",
        ),
    ),
    Panel(
        "timeline",
        "measure",
        "stages, runs and buffers over time",
        "views/timeline:TimelineView",
        chunk="charts",
        styles=_CHART_STYLES,
        widget=PanelWidget(
            "timeline",
            "Stages, runs, memory and buffers over one axis of time. A click selects a stage or a kernel.",
            "tinyexplore.explore.tracefile.pictures.timeline_picture:timeline_picture",
            "340px",
        ),
    ),
    Panel(
        "memory",
        "measure",
        "buffers: sizes and lifetimes",
        "views/memory:MemoryView",
        chunk="charts",
        styles=_CHART_STYLES,
        widget=PanelWidget("memory", "The buffers and their lifetimes.", f"{_SHEETS}:memory_svg"),
    ),
    Panel(
        "glossary",
        "glossary",
        "every term of the explorer",
        "views/glossary:GlossaryView",
        chunk="glossary",
        styles=("views/glossary.css",),
    ),
)

PANEL_OF_WIDGET = {panel.widget.name: panel for panel in PANELS if panel.widget is not None}


def panel_named(name: str) -> Panel:
    """Returns the panel of that name. The message of KeyError lists the known panels."""
    match = next((panel for panel in PANELS if panel.name == name), None)
    if match is None:
        raise KeyError(f"no panel {name!r}; supported: {', '.join(panel.name for panel in PANELS)}")
    return match


__all__ = ["PANEL_GROUPS", "PANELS", "PANEL_OF_WIDGET", "PanelTab", "Panel", "PanelWidget", "panel_named"]
