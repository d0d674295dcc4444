"""Capturing: `explore(f, *args)`, `with capture() as session:`, and the Explorer that both return.

Modules that only a question or a picture needs are imported on first use. A first capture therefore takes little longer
than a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.notebook.attribute_hints import suggest_replacement
from tinyexplore.explore.notebook.capture_session import CaptureError, CaptureSession
from tinyexplore.explore.notebook.displayed_views import displayed_views
from tinyexplore.explore.notebook.options import check_count, check_flag, check_path, check_text, node_ids
from tinyexplore.explore.notebook.realization import realize_all
from tinyexplore.explore.tracefile.encodable_text import PageText, for_terminal, write_text
from tinyexplore.explore.tracefile.hints import AttributeHints

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.explanations.rules import WhyNot
    from tinyexplore.explore.analysis.questions import Stop
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.notebook.kernels import Kernels
    from tinyexplore.explore.notebook.panels import Panels
    from tinyexplore.explore.notebook.questions import Question
    from tinyexplore.explore.tracefile.fusions import WhyKernels
    from tinyexplore.explore.tracefile.model import Node
    from tinyexplore.explore.tracefile.trace import Trace
    from tinyexplore.explore.whatif.branches import WhatIf
    from tinyexplore.explore.whatif.fusion_board import FusionBoard
    from tinyexplore.explore.whatif.playground.playground import Playground
    from tinyexplore.widgets import GraphWidget

EXPLORE_REPEAT = 10


class Explorer(AttributeHints):
    """One capture as interactive views and as data. A notebook displays it.

    Start with `view.kernels[0]` (one kernel, its explanations and its alternatives), `view.graph`, `view.panels` and
    `view.trace` (everything as plain data). `view.<Tab>` lists the rest. As a context manager (from `capture`) it
    records what happens inside the block.
    """

    def __init__(self, trace: Trace | None = None, *, title: str = "", options: dict[str, Any] | None = None) -> None:
        if trace is not None:
            from tinyexplore.explore.tracefile.trace import Trace

            if not isinstance(trace, Trace):
                raise TypeError(f"Explorer({type(trace).__name__}): give a Trace, such as Trace.load(path)")
        self._capture = CaptureSession(trace, title=title, options=options)
        self._selected: tuple[int, ...] = ()
        self._widget: Any = None
        self._panels: Panels | None = None
        self._tour: tuple[Stop, ...] = ()

    def __enter__(self) -> Explorer:
        self._capture.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._capture.end(error)

    def _suggest_instead(self, name: str) -> str:
        return suggest_replacement(name)

    # *** data ***

    @property
    def trace(self) -> Trace:
        """The capture as plain data. It raises CaptureError before the capture ends and after `close`."""
        return self._capture.trace

    @property
    def result(self) -> Any:
        """The result of the captured function."""
        return self._capture.result

    @property
    def capture(self) -> CaptureSession:
        """The capture session: options, title, and the error that ended it early."""
        return self._capture

    @property
    def kernels(self) -> Kernels:
        """The kernels, as a sequence: `view.kernels[0].why_opts()`, `.apply("UPCAST(0, 4)")`, `.debug()`, …

        It displays as the table of kernels; `view.kernels.widget` is that table as a widget.
        """
        from tinyexplore.explore.notebook.kernels import Kernels

        return Kernels(self)

    # *** what-if ***

    @property
    def whatif(self) -> WhatIf:
        """The branches of all changes to kernels, schedules and rules. It compares branches and runs commands."""
        return self._capture.whatif

    @property
    def fusion(self) -> FusionBoard:
        """The scheduler's decisions, with commands that change them: `cut`, `join`, `leave`, `undo`, `edges`,
        `compare`.

        It displays as a board.
        """
        from tinyexplore.explore.whatif.fusion_board import FusionBoard

        return FusionBoard(self)

    @property
    def rules(self) -> Playground:
        """The rewrite rules of the pipeline and the user's rules, on these kernels.

        Methods: `of`, `matches`, `fire`, `insert`, `disable`, `check`. It displays as the panel of rules.
        """
        from tinyexplore.explore.whatif.playground.playground import Playground

        return Playground(self)

    # *** why ***

    def why_not(
        self,
        node: Node | int | None = None,
        rule: str | None = None,
        *,
        stage: int | None = None,
        step: int | None = None,
    ) -> WhyNot:
        """Explains which rules could fire on `node` after `step` steps of `stage`, which fired, and what prevented the
        others.

        The views supply omitted arguments: the selected node, the current stage and step. See `explore.why_not` for a
        UOp without a trace.

        rule: only the rules with this name; `view.why_not(node)["mul_one"]` is the attempt of one rule.
        """
        from tinyexplore.explore.analysis.explanations.rules import explainer

        chosen = self.selected[0] if node is None and self.selected else node
        if chosen is None:
            raise ValueError(
                "no node was given, and none is selected in the views; pass a node or its id, or select one"
            )
        number = chosen if isinstance(chosen, int) else chosen.id
        cursor = {} if self._widget is None else self._widget.cursor
        explanations = explainer(self.trace)
        if stage is None:
            stage, at = explanations.find_step(number, cursor.get("stage"), cursor.get("step"))
            step = at if step is None else step
        return explanations.why_not(number, stage, step, rule)

    def verdict(self) -> SpeedVerdict:
        """Returns the verdict on the program's speed and its bottleneck. `view.kernels[i].verdict()` is about one
        kernel.

        It compares the samples with this machine's ceilings, which are measured on first use.

        Raises:
            ValueError: no kernel has samples.
        """
        from tinyexplore.explore.analysis.verdict.kernel_verdicts import judge_program

        return judge_program(self._capture.analyses)

    def why_kernels(self, a: Node | int, b: Node | int) -> WhyKernels:
        """Explains why one kernel computes two LazyBuffers, or why two kernels do; see `explore.why_kernels`."""
        from tinyexplore.explore.tracefile.fusions import why_kernels

        return why_kernels(self.trace, a, b)

    # *** views ***

    @property
    def widget(self) -> Any:
        """The interactive views (anywidget must be installed)."""
        if self._widget is None:
            self._add_ceilings()
            from tinyexplore.explore.notebook.rerun import connect
            from tinyexplore.widgets import ExplorerWidget

            capture = self._capture
            tour = [stop.as_data() for stop in self._tour]
            widget = ExplorerWidget(capture.pack(), selected=self._selected, tour=tour)
            connect(capture, widget)
            displayed_views.add(capture, widget)
            # assigned last, so that an interrupt leaves no widget without responses
            capture.widget = self._widget = widget
        return self._widget

    @property
    def panels(self) -> Panels:
        """The single views as widgets: `view.panels.roofline`, `.tuner`, `.code`, `.timeline`, `.memory`, …"""
        if self._panels is None:
            from tinyexplore.explore.notebook.panels import Panels

            self._panels = Panels(self)
        return self._panels

    @property
    def graph(self) -> GraphWidget:
        """The graph as a widget of its own; `.lazy`, `.schedule` and `.uops(stage)` stay at one stage."""
        return self.panels.graph

    @property
    def selected(self) -> tuple[Node, ...]:
        """The nodes selected in the views. Assign nodes or ids to select them in the views."""
        ids = self._widget.selected if self._widget is not None else self._selected
        return tuple(self.trace.nodes[node] for node in ids)

    @selected.setter
    def selected(self, nodes: Iterable[Node | int] | Node | int) -> None:
        ids = node_ids(nodes)
        count = len(self.trace.nodes)
        if bad := [node for node in ids if not 0 <= node < count]:
            raise ValueError(f"no such nodes: {bad}; this trace has nodes 0 … {count - 1}")
        self._selected = tuple(ids)
        if self._widget is not None:
            self._widget.selected = ids

    def show(self, place: str | Iterable[Node | int] | Node | int) -> Explorer:
        """Moves the views to a position: nodes, which are then selected, or a link.

        `view.show(view.trace.where(op="REDUCE"))`, `view.show("#stage=4&step=2")`, `view.show("#story=kernels")`
        """
        if isinstance(place, str):
            if "=" not in place:
                raise ValueError(f"show({place!r}): give nodes, or a link such as '#stage=4&step=2'")
            self.widget.link = "#" + check_text("link", place).rpartition("#")[2]
        else:
            self.selected = place
        return self

    def tour(self, stops: Iterable[Stop | tuple[str, Any]]) -> Explorer:
        """Pins notes to positions; the views and the pages of `to_html` lead from one to the next.

        A stop is a text with a position (a link, nodes, or None for the current one), or a `question`.
        """
        self._tour = tuple(self._make_stop(stop) for stop in stops)
        if self._widget is not None:
            self._widget.tour = [stop.as_data() for stop in self._tour]
        return self

    def _make_stop(self, stop: Stop | tuple[str, Any]) -> Stop:
        from tinyexplore.explore.analysis.questions import Stop

        if isinstance(stop, Stop):
            return stop
        if not isinstance(stop, tuple):
            raise TypeError(
                f"{stop!r} ({type(stop).__name__}) is not a tour stop: give (text, link or nodes), or a question"
            )
        return self._make_note_stop(*stop)

    def _make_note_stop(self, text: str, target: str | Iterable[Node | int] | Node | int | None = None) -> Stop:
        from tinyexplore.explore.analysis.questions import Stop
        from tinyexplore.explore.tracefile.dialect import is_tensor

        check_text("text", text)
        if target is None or isinstance(target, str):
            return Stop(text, target or "")
        ids = node_ids(target)
        if not ids:
            raise ValueError(f"the note {text!r} has no place: no nodes were given; give a node, an id or a link")
        kind = "lazy" if is_tensor(self.trace, self.trace.nodes[ids[0]]) else "uops"
        return Stop(text, f"#graph={kind}&node={','.join(map(str, ids))}")

    def question(self, about: str, *args: Any, reveal: bool = False, **options: Any) -> Question:
        """Returns a question that the trace answers. Its widget shows the answer after a guess. It may be a stop of a
        `tour`.

        Args:
            about: "kernels" (how many?), "next rule" (`stage=`, `step=`), "slowest" (which kernel?), or "faster" (and
                another Explorer or Trace).
            reveal: whether to show the views below the answered question.
        """
        from tinyexplore.explore.notebook.questions import Question, question

        others = [arg.trace if isinstance(arg, Explorer) else arg for arg in args]
        return Question(question(self.trace, about, *others, **options), self, reveal)

    # *** files ***

    def save(self, path: str | Path) -> Path:
        """Writes a file in the format of its suffix, and returns the path.

        ".json", ".json.gz": the trace; `Trace.load` reads it. ".html": the page of `to_html`. ".svg": the pipeline as a
        picture.
        """
        check_path("path", path)
        kind = Path(path).suffix.lower()
        if kind in (".html", ".htm"):
            self.to_html(path)
            return Path(path)
        self._add_ceilings()
        if kind == ".svg":
            write_text(path, self.trace.svg())
            return Path(path)
        return self.trace.save(path)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        iterations: int = 0,
        live: bool = False,
        pyodide: str | Path | None = None,
        run_here: bool = False,
        rosetta: bool = False,
    ) -> str:
        """Returns one HTML page that works offline, as a file; also write it to `path` if given.

        Args:
            path: the file to write.
            iterations: the number of first steps of each kernel to include for the debugger (on generated inputs
                without `keep_inputs`).
            live: whether the page includes the engine and responds like a notebook (10 MB more).
            pyodide: a folder or a package file with the Python for `live`; by default it is downloaded once.
            run_here: whether readers can run and time its kernels as WebAssembly. For kernels of the WASM device they
                always can.
            rosetta: whether the page has every kernel in every language, not only those that were requested.

        Raises:
            PyodideMissing: the Python for `live` cannot be downloaded.
        """
        from tinyexplore.explore.analysis.opts import WhatIfError
        from tinyexplore.explore.analysis.requests import stored_responses

        check_path("path", path)
        check_path("pyodide", pyodide)
        check_count("iterations", iterations, smallest=0)
        for option, flag in {"live": live, "run_here": run_here, "rosetta": rosetta}.items():
            check_flag(option, flag)
        self._add_ceilings()
        trace, tour = self.trace, [stop.as_data() for stop in self._tour]
        analyses, captured = self._capture.analyses, self._capture.captured_kernels
        if rosetta:
            analyses.translate_all()
        analyses.gpu_all()
        analyses.passes_of_slowest()
        if (number := analyses.slowest()) is not None:
            with suppress(WhatIfError):  # a kernel that cannot be compiled again: the page shows the loops that ran
                self.kernels[number].opt_steps(timed=False)
        if captured and any(run.warm for run in trace.runs):
            from tinyexplore.explore.analysis.verdict.kernel_verdicts import verdict_list

            analyses.responses.store("verdicts", verdict_list(analyses))
        responses = stored_responses(analyses)
        if iterations:
            trace = self._capture.with_recordings(trace, iterations)
        if live:
            from tinyexplore.explore.exports.engine_pages.page import live_html

            page = live_html(
                trace,
                captured,
                graphs=self.whatif.graphs,
                tour=tour,
                responses=responses,
                pyodide=pyodide,
            )
        else:
            from tinyexplore.explore.exports.html_export import export_html
            from tinyexplore.explore.exports.runnable_kernels import runnable

            modules = runnable(trace, captured, all_devices=run_here)
            page = export_html(trace, tour, responses=responses, runnable=modules)
        if path is not None:
            write_text(path, page)
        return PageText(page)

    def close(self) -> None:
        """Removes the views from the page, and drops the trace, the result and the error. The Explorer becomes
        unusable.
        """
        if self._capture.is_recording:
            raise CaptureError("the capture has not ended: close the Explorer after the `with` block")
        if self._widget is not None:
            self._widget.close()
        self._widget = self._panels = None
        self._selected = ()
        self._capture.close()

    # *** display ***

    def _add_ceilings(self) -> None:
        """Adds the ceilings if there are samples to compare with them."""
        if self._capture.repeat > 1:
            self._capture.measure_ceilings()

    def __repr__(self) -> str:
        if state := self._capture.state:
            return f"Explorer({state})"
        from tinyexplore.explore.exports.html_export import summary_text

        return for_terminal(summary_text(self.trace))

    def _ipython_display_(self) -> None:
        """Displays two outputs: a static picture for readers without widgets, and the views, which hide the picture."""
        from IPython.display import display

        if line := self._empty_view_text():
            display({"text/plain": line}, raw=True)
            return
        try:
            widget = self.widget if self._capture.has_trace else None
        except ImportError:
            widget = None
        if widget is None:
            display(self._repr_mimebundle_()[0], raw=True)
            return
        from tinyexplore.widgets.base_widget import show

        show(widget, self.trace.svg(), repr(self))

    def _empty_view_text(self) -> str:
        """Returns the line to show instead of empty views; "" if there is something to view."""
        if not self._capture.has_trace:
            return ""
        from tinyexplore.explore.exports.html_export import empty_view_text

        return empty_view_text(self.trace)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if not self._capture.has_trace:
            return {"text/plain": repr(self)}, {}
        if line := self._empty_view_text():
            return {"text/plain": line}, {}
        data: dict[str, Any] = {"text/plain": repr(self), "image/svg+xml": self.trace.svg()}
        metadata: dict[str, Any] = {}
        try:
            widget = self.widget
        except ImportError:
            from tinyexplore.explore.exports.html_export import static_html

            data["text/html"] = static_html(self.trace)
            return data, metadata
        bundle = widget._repr_mimebundle_(include=include, exclude=exclude)
        if isinstance(bundle, tuple):
            bundle, metadata = bundle
        view = {name: value for name, value in (bundle or {}).items() if name != "text/plain"}
        return {**view, **data}, metadata


def capture(*, title: str = "", **options: Any) -> Explorer:
    """Records everything inside a block: `with capture() as session:`; afterwards `session.trace` has it.

    An exception propagates; the trace is then partial and states this. Captures nest: an outer capture also records the
    events of an inner one.

    Options:
        repeat: the number of samples of each launch with warm caches; 1: only the launch itself, which is cold.
        kernels: the number of kernels to record, by default 1000; more are only counted.
        keep_inputs: whether to store the inputs of kernels for `debug`: True for up to 64 MiB, or a number of bytes.
        record_iterations: the number of first steps of each kernel to store in the trace, for pages without Python. It
            implies `keep_inputs`.
        executor: the machine on which a search measures (see `measuring_on`).
        target: a machine. If this machine cannot execute its code, kernels are compiled for it and shown without times;
            native code computes the values.
        others: any setting of the engine, by name, for the time of the block: `device="CLANG"`, `beam=2`, `noopt=1`.
    """
    return Explorer(title=title, options=options)


def run_captured(session: Explorer, f: Callable[..., Any] | None, args: tuple[Any, ...] = ()) -> Explorer:
    """Calls `f(*args)` inside the capture, and realizes the Tensors in its result (without `f`: in the current result).

    An exception has the partial capture as its attribute `explorer`.
    """
    try:
        with session:
            if f is not None:
                session.capture.call(f, args)
            realize_all(session.result)
    except BaseException as error:
        session.capture.end(error)  # the interrupt came before the block ended
        with suppress(Exception):  # an exception's class may reject attributes
            error.explorer = session  # type: ignore[attr-defined]
        raise
    return session


__all__ = ["CaptureError", "Explorer", "capture"]
