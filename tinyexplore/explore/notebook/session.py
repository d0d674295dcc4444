"""Capturing: `explore(f, *args)`, `with capture() as session:`, and the Explorer that both give.

What only a question or a picture needs is loaded when it is asked for: a first capture costs little more than a run.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import ref

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.engine import Sampling, further_listings, measuring_on, sampling, step_by_step
from tinyexplore.execute.sampling import seconds_waited
from tinyexplore.explore.analysis.byhand.asked import ByHand
from tinyexplore.explore.analysis.requests import Responses
from tinyexplore.explore.notebook.options import count_of, flag_of, node_ids, path_of, text_of
from tinyexplore.explore.notebook.shown import shown
from tinyexplore.explore.recording.elsewhere import Elsewhere
from tinyexplore.explore.recording.inputs import limit_of
from tinyexplore.explore.recording.listen import MOST_KERNELS, CaptureRecorder
from tinyexplore.explore.recording.names import Names, class_name, names_here, names_in, names_of_arguments
from tinyexplore.explore.recording.scheduled import Scheduled
from tinyexplore.explore.recording.scopes import Scopes
from tinyexplore.explore.recording.sources import raised_in_compiler, source_text, user_code_here, user_frame_of
from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.wellformed import for_terminal, write_text
from tinyexplore.explore.whatif.door import WhatIfDoor
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor
from tinyexplore.trace import Event, Ran, StoodIn, UserFrame, active_recorder, recording
from tinyexplore.util import Config, Context, config
from tinyexplore.util.config import check_option

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.predict import Stop
    from tinyexplore.explore.analysis.shapes.view import ShapeView
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.analysis.why.chosen import WhyOpts
    from tinyexplore.explore.analysis.why.fusions import WhyKernels
    from tinyexplore.explore.analysis.why.rules import WhyNot
    from tinyexplore.explore.notebook.kernels import Kernels
    from tinyexplore.explore.notebook.parts import Parts
    from tinyexplore.explore.recording.drafts import KernelDraft
    from tinyexplore.explore.recording.kept import Kept
    from tinyexplore.explore.tracefile.model import KernelInfo, Node, Search, Trace
    from tinyexplore.explore.whatif.board import FusionBoard
    from tinyexplore.explore.whatif.branches import WhatIf
    from tinyexplore.widgets import CodeWidget, GraphWidget, PartWidget, PredictWidget

EXPLORE_REPEAT = 10
KEPT_BYTES = 1 << 24  # of tensors that a capture may keep alive until somebody asks for its trace

_CONFIG_NAMES = {field.name.lower(): field.name for field in fields(Config)}


Note = tuple[str, str, UserFrame | None]  # level, text, the user's line


class CaptureError(RuntimeError):
    """The trace of a capture was asked for before the capture ended."""


class Explorer(WhatIfDoor, ByHand):
    """One capture and its views: `trace` is all of it as data, `result` what the captured function returned.

    In a notebook it shows itself; `selected` follows what is selected there, `show(nodes)` moves the views, `close()`
    takes them away and frees all that it holds. What its kernels would be otherwise: `apply`, `undo`, `branches`.
    As a context manager (made by `capture`) it records what happens inside the block.
    """

    def __init__(self, trace: Trace | None = None, *, title: str = "", options: dict[str, Any] | None = None) -> None:
        if trace is not None:
            from tinyexplore.explore.tracefile.model import Trace

            if not isinstance(trace, Trace):
                raise TypeError(f"Explorer({type(trace).__name__}): give a Trace, such as Trace.load(path)")
        given = dict(options or {})
        self.repeat = count_of("repeat", given.pop("repeat", 1))
        self.most_kernels = count_of("kernels", given.pop("kernels", MOST_KERNELS))
        self.record_steps = count_of("record_iterations", given.pop("record_iterations", 0), least=0)
        self.keep_bytes = limit_of(given.pop("keep_inputs", self.record_steps > 0))
        self.title = text_of("title", title)
        self.result: Any = None
        self.error: BaseException | None = None
        self._executor = _executor_of(given.pop("executor", None))
        self._changes = _config_changes(given)
        self._trace = trace
        self._untold: Callable[..., Trace] | None = None  # makes the trace of what was recorded, once it is asked for
        self._recorder: CaptureRecorder | None = None
        self._stack = ExitStack()
        self._elsewhere = Elsewhere()
        self._options: tuple[tuple[str, str], ...] = ()
        self._selected: tuple[int, ...] = ()
        self._widget: Any = None
        self._parts: Parts | None = None
        self._tour: tuple[Stop, ...] = ()
        self._packed: bytes | None = None  # the trace as the widget has it; `_trace` may be None then
        self._is_over = False  # the capture's block was left
        self._is_finished = False  # what it recorded is in `_untold`, or was
        self._is_closed = False
        self.namespace: Mapping[str, Any] | None = None  # variables beside those of the frame that captures
        self._names: Names = {}
        self._settings = config()
        self._whatif: WhatIf | None = None
        self._changeable: dict[str, Any] = {}  # what of the capture can be otherwise
        self._kept: dict[int, Kept] = {}
        self.responses = Responses()
        self.verdicts: dict[int, SpeedVerdict] = {}
        self._schedules: list[Scheduled] = []  # until the trace is made
        self._contents: Mapping[Any, tuple[bytes | None, ...] | None] = {}  # of buffers, until the kernels are known

    # *** capturing ***

    def __enter__(self) -> Explorer:
        if self._recorder is not None or self._trace is not None or self._is_closed:
            raise CaptureError("this Explorer holds a capture already: call capture() again for a new one")
        self._recorder = CaptureRecorder(active_recorder(), self.most_kernels, self.keep_bytes)
        try:
            self._begin(self._recorder)
        except BaseException as error:
            self._end(error)
            raise
        return self

    def _begin(self, recorder: CaptureRecorder) -> None:
        self._names = {**names_here(self.namespace), **self._names}
        self._stack.enter_context(Context(**self._changes))
        if self._executor is not None:
            self._stack.enter_context(measuring_on(self._executor))
        self._options, self._settings = _options_in_force(self.repeat), config()
        recorder.scopes = Scopes(user_code_here())
        self._elsewhere = self._stack.enter_context(Elsewhere())
        self._stack.enter_context(step_by_step(stand_in=True))
        self._stack.enter_context(recording(recorder))
        self._stack.enter_context(sampling(Sampling(self.repeat, self.most_kernels, waited=seconds_waited)))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Stops recording and keeps the recorded events. An interrupt in here leaves the rest to `_finish_if_over`."""
        if self._is_finished:
            return
        self._is_over = True
        finished = isinstance(error, SystemExit) and not error.code  # how a script says that all went well
        if error is not None and not finished:
            self.error = error
        self._stack.close()
        # first what a variable holds at the end, then what it held before, then what a function calls its arguments
        self._names = {**self._names, **names_in({"result": self.result}), **names_here(self.namespace)}
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        """Finishes a capture that an interrupt stopped while it ended; does nothing in every other state."""
        if self._is_over and not (self._is_finished or self._is_closed):
            self._stack.close()
            self._finish()

    def _finish(self) -> None:
        recorder = self._recorder
        assert recorder is not None
        events = recorder.events
        notes: list[Note] = []
        if self.error is not None:
            tb = self.error.__traceback__
            notes.append(("error", _error_text(self.error, tb), user_frame_of(tb)))
        if recorder.earlier:
            text = "some of this was asked for before the capture began, and computed in it: its lines are those that "
            text += "first used it; .realize() such tensors before, to leave them out"
            notes.append(("note", text, None))
        if recorder.left_out:
            first = f"the first {count_text(recorder.ran, 'kernel')}; {recorder.left_out:,} more ran that are not here"
            notes.append(("warning", first + ": capture one step of the program, or keep more with kernels=…", None))
        if text := self._elsewhere.note:
            notes.append(("warning", text, None))
        if not events:
            text = "nothing was recorded: no tensor was built or realised inside the capture"
            notes.append(("warning", text, None))
        elif reasons := {event.reason for event in events if isinstance(event, StoodIn)}:
            text = ". The values are computed by native code instead; no kernel has times"
            notes += [("note", reason + text, None) for reason in sorted(reasons)]
        elif not any(isinstance(event, Ran) for event in events) and self.error is None:
            text = (
                "nothing was computed: the tensors are constants or views of memory, or none was asked for its values "
            )
            text += "(.realize(), .numpy())"
            notes.append(("note", text, None))
        elif "DEVICE" in self._changes and (elsewhere := _devices_of(events) - {dict(self._options)["DEVICE"]}):
            text = f"kernels ran on {', '.join(sorted(elsewhere))}, where their inputs are: DEVICE is for tensors "
            text += "made inside the capture; x.to(...) moves one that was there before"
            notes.append(("note", text, None))
        inputs = recorder.inputs
        self._contents = inputs.contents
        if self.keep_bytes:
            notes.append(("note", inputs.note(), None))
        storage = recorder.storage()
        self._untold = partial(
            _build_trace,
            recorder,
            title=self.title,
            options=self._options,
            messages=notes,
            listings=further_listings,
            names=self._names,
            scopes=recorder.scopes,
            storage=storage,
            texts={file: source_text(file) for file in recorder.files()},
        )
        self._schedules = recorder.schedules
        self._is_finished = True
        self._names = {}
        self._recorder = CaptureRecorder()  # of a capture that has ended
        kept = {held.buffer.id: held.buffer.nbytes for held in storage.values() if held is not None}
        if self.error is not None or sum(kept.values()) > KEPT_BYTES:
            self._tell()

    def _tell(self) -> Trace:
        """Makes the trace, and lets go of all that was recorded. After an interrupt the next call begins anew."""
        from tinyexplore.explore.recording.rows import kept_graphs

        assert self._untold is not None
        kernels: dict[int, Kernel] = {}
        numbers: dict[LazyBuffer, int] = {}
        trace = self._untold(kernels=kernels, lazybuffers=numbers, see_kernels=self._keep)
        if self.record_steps:
            trace = self._recorded(trace, self.record_steps)
        stages = [stage.id for stage in trace.stages if stage.name == "schedule"]
        graphs = kept_graphs(self._schedules, stages, numbers)
        self._changeable = {"kernels": kernels, "settings": self._settings, "kept": self._kept, "graphs": graphs}
        self._trace = trace
        self._untold = None
        self._schedules, self._contents = [], {}
        return trace

    def _keep(self, drafts: Sequence[KernelDraft]) -> None:
        from tinyexplore.explore.recording.kept import kept_kernels

        self._kept = kept_kernels(drafts, self._contents)

    def _recorded(self, trace: Trace, steps: int) -> Trace:
        from tinyexplore.explore.analysis.byhand.recorded import with_recordings

        return with_recordings(trace, self._kept, count_of("record_iterations", steps, least=0))

    def _know_kernels(self) -> None:
        self._finish_if_over()
        if self._untold is not None:
            self._tell()

    @property
    def has_trace(self) -> bool:
        """Whether there is one, or what it can be made of."""
        self._finish_if_over()
        return self._trace is not None or self._packed is not None or self._untold is not None

    def revive(self, kept: Mapping[int, Kept], whatif: WhatIf) -> None:
        """Takes the kernels of its trace, made again where that came from a file."""
        self._kept, self._whatif = dict(kept), whatif

    def revise(self, trace: Trace) -> None:
        """Takes `trace` for what was captured: the same with more, or less, told of it."""
        self._trace = trace

    def call(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Keeps what `f(*args)` returns as the result. Arguments without another name have that of `f`'s parameter."""
        self._names = {**names_of_arguments(f, args), **self._names}
        self.result = f(*args)

    # *** asking ***

    @property
    def trace(self) -> Trace:
        """All that was captured, as plain data."""
        self._finish_if_over()
        trace = self._trace if self._untold is None else self._tell()
        if trace is None and self._packed is not None:
            trace = self._trace = _unpacked(self._packed)
        if trace is None:
            if self._is_closed:
                raise CaptureError("this Explorer was closed: its trace is gone; save() keeps one in a file")
            raise CaptureError(
                "the capture has not ended: its trace is there after the `with` block. If an interrupt kept that block "
                "from ending it, `view.__exit__(None, None, None)` ends it now"
            )
        return trace if self._whatif is None else self._whatif.extended(trace)

    @property
    def whatif(self) -> WhatIf:
        """The branches of this capture, and what makes more of them."""
        trace = self.trace
        if self._whatif is None:
            from tinyexplore.explore.whatif.branches import WhatIf

            self._whatif = WhatIf(trace, **self._changeable)
        return self._whatif

    def where(self, **conditions: Any) -> tuple[Node, ...]:
        """The nodes that answer to every condition: see `Trace.where`."""
        return self.trace.where(**conditions)

    @property
    def selected(self) -> tuple[Node, ...]:
        """The nodes selected in the views; assigning nodes (or ids) selects them there."""
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

    def why_not(
        self,
        node: Node | int | None = None,
        rule: str | None = None,
        *,
        stage: int | None = None,
        step: int | None = None,
    ) -> WhyNot:
        """Which rules could fire on `node` after `step` steps of `stage`, which did, and what stops every other one.

        What is not given is as in the views: the node selected, the reader's stage and step. `rule`: only those of that
        name; `view.why_not(node)["mul_one"]` is one answer. See `explore.why_not` for a UOp without a trace.
        """
        from tinyexplore.explore.analysis.why.rules import explainer

        chosen = self.selected[0] if node is None and self.selected else node
        if chosen is None:
            raise ValueError("no node was given, and none is selected in the views")
        number = chosen if isinstance(chosen, int) else chosen.id
        cursor = {} if self._widget is None else self._widget.cursor
        asked = explainer(self.trace)
        if stage is None:
            stage, at = asked.place_of(number, cursor.get("stage"), cursor.get("step"))
            step = at if step is None else step
        return asked.why_not(number, stage, step, rule)

    def verdict(self, kernel: int | KernelInfo | None = None) -> SpeedVerdict:
        """Is a kernel fast, and if not, why; None: the whole program. See `explore.SpeedVerdict`.

        It compares the samples with this machine's ceilings, which are measured if they are not. ValueError where no
        kernel has samples.
        """
        from tinyexplore.explore.analysis.verdict.judging import kernel_verdict, whole_verdict

        if kernel is None:
            return whole_verdict(self)
        return kernel_verdict(self, kernel if isinstance(kernel, int) else kernel.id)

    def why_opts(self, kernel: int | KernelInfo = 0) -> WhyOpts:
        """Why a kernel has its opts: see `explore.why_opts`."""
        from tinyexplore.explore.analysis.why.chosen import why_opts

        return why_opts(self.trace, kernel if isinstance(kernel, int) else kernel.id)

    def why_kernels(self, a: Node | int, b: Node | int) -> WhyKernels:
        """Why two LazyBuffers are computed by one kernel, or by two: see `explore.why_kernels`."""
        from tinyexplore.explore.analysis.why.fusions import why_kernels

        return why_kernels(self.trace, a, b)

    def show(self, nodes: Iterable[Node | int] | Node | int) -> Explorer:
        """Selects `nodes` in the views: `view.show(view.where(op="REDUCE"))`."""
        self.selected = nodes
        return self

    def link(self, page: str | Path = "") -> str:
        """The link to where the reader is: `#stage=4&step=2&node=17`, for `open` and, after its name, for a page that
        `to_html` wrote."""
        from tinyexplore.explore.tracefile.links import link_of

        cursor = {} if self._widget is None else self._widget.cursor
        return f"{page}{link_of(cursor, [node.id for node in self.selected])}"

    def open(self, link: str) -> Explorer:
        """Goes where a link points: `view.open("#stage=4&step=2")`, `view.open("#story=kernels")`."""
        self.widget.link = "#" + text_of("link", link).rpartition("#")[2]
        return self

    def tour(self, stops: Iterable[Stop | tuple[str, Any]]) -> Explorer:
        """Pins notes to places; the views and the pages of `to_html` lead from one to the next.

        A stop is a text with a place (a link, nodes, or None for where one is), or a `question`.
        """
        self._tour = tuple(self._stop(stop) for stop in stops)
        if self._widget is not None:
            self._widget.tour = [stop.as_data() for stop in self._tour]
        return self

    def _stop(self, stop: Stop | tuple[str, Any]) -> Stop:
        from tinyexplore.explore.analysis.predict import Stop

        if isinstance(stop, Stop):
            return stop
        if not isinstance(stop, tuple):
            raise TypeError(f"{stop!r} ({type(stop).__name__}) is no stop: give (text, place), or a question")
        return self._note(*stop)

    def _note(self, text: str, place: str | Iterable[Node | int] | Node | int | None = None) -> Stop:
        from tinyexplore.explore.analysis.predict import Stop

        text_of("text", text)
        if place is None or isinstance(place, str):
            return Stop(text, place or "")
        ids = node_ids(place)
        if not ids:
            raise ValueError(f"the note {text!r} has no place: no nodes were given")
        kind = "lazy" if self.trace.nodes[ids[0]].kind == "lazybuffer" else "uops"
        return Stop(text, f"#graph={kind}&node={','.join(map(str, ids))}")

    def question(self, about: str, *args: Any, **options: Any) -> Stop:
        """A question that the trace answers, for a `tour`: "kernels" (how many?), "next rule" (stage=, step=),
        "slowest" (which kernel?), "faster" (and another Explorer)."""
        from tinyexplore.explore.analysis.predict import question

        others = [one.trace if isinstance(one, Explorer) else one for one in args]
        return question(self.trace, about, *others, **options)

    def predict(self, about: str, *args: Any, reveal: bool = False, **options: Any) -> PredictWidget:
        """A `question` as a widget: guess, then see. With `reveal` the views come once it is answered."""
        from tinyexplore.widgets import PredictWidget

        asked = self.question(about, *args, **options).as_data()
        return PredictWidget(self.widget, asked, reveals=reveal, static=self.svg() if reveal else "")

    @property
    def searches(self) -> dict[int, Search]:
        """What came of each search by BEAM, by the kernel's number in `trace.kernels`."""
        stages = self.trace.stages
        return {stage.kernel: stage.search for stage in stages if stage.kernel is not None and stage.search is not None}

    # *** showing and keeping ***

    @property
    def widget(self) -> Any:
        """The interactive views (needs anywidget)."""
        if self._widget is None:
            self._with_roofs()
            from tinyexplore.explore.notebook.requests import Answers
            from tinyexplore.explore.tracefile.codec import trace_to_bytes
            from tinyexplore.explore.whatif.channel import Channel
            from tinyexplore.widgets import ExplorerWidget

            packed = trace_to_bytes(self.trace)
            tour = [stop.as_data() for stop in self._tour]
            widget = ExplorerWidget(packed, selected=self._selected, tour=tour)
            later = _TraceOf(self, widget)
            channel = Channel(self.whatif, widget, self.trace.laws)
            widget.answer_with(Answers(later, self, commands=channel))
            self.whatif.ask_for_trace(later)
            shown.add(self, widget)
            self._packed = packed
            self._widget = widget  # last: an interrupt leaves no widget without answers
        return self._widget

    def _part(self) -> Parts:
        """The widgets of single views; they hold the compressed trace, not this Explorer."""
        if self._parts is None:
            from tinyexplore.explore.notebook.parts import Parts

            self._parts = Parts(self.widget, _TraceOf(self, self.widget))
        return self._parts

    @property
    def graph(self) -> GraphWidget:
        """The graph as a widget of its own; `.lazy`, `.schedule` and `.uops(stage)` stay at one stage."""
        return self._part().graph()

    @property
    def code(self) -> CodeWidget:
        """The listings as a widget of their own; `.only("asm")` is one of them."""
        return self._part().code()

    def panel(self, name: str) -> PartWidget:
        """A panel as a widget of its own, by its name: "kernels", "timing", … ValueError names all."""
        return self._part().plain(name)

    def panel_result(self, panel: str) -> Any:
        """What a panel shows, as a dataclass with a readable text. KeyError for an unknown panel, ValueError for one
        whose content does not follow from the trace alone."""
        from tinyexplore.explore.exports.panels import result_of
        from tinyexplore.widgets.panels import panel_named

        return result_of(self.trace, panel_named(panel))

    @property
    def stepper(self) -> PartWidget:
        """The passes and their firings, step by step, as a widget of their own."""
        return self._part().plain("stepper")

    @property
    def kernels(self) -> Kernels:
        """The kernels, as a sequence: `view.kernels[0].why_opts()`, `.apply("UPCAST(0, 4)")`, `.debug()`, …

        It displays as the table of kernels; `view.kernels.widget` is that table as a widget.
        """
        from tinyexplore.explore.notebook.kernels import Kernels

        return Kernels(self)

    def kernels_widget(self) -> PartWidget:
        """The table of kernels as a widget of its own."""
        return self._part().plain("kernels")

    @property
    def tuner(self) -> PartWidget:
        """A kernel's loops, the opts that are legal now, and all that was tried under this machine's ceilings (measured
        for it), as a widget of their own (`branches`, `available_opts`, `apply` and `undo` have it as data)."""
        self.measure_ceilings()
        if self.whatif.is_live and not any(branch.kernel is not None for branch in self.whatif.branches):
            self.whatif.begin(min(self.whatif.bench().subjects))
        return self._part().plain("tuner")

    @property
    def fusion(self) -> FusionBoard:
        """Where the scheduler cut and joined, and what comes of it if it is otherwise: `cut`, `join`, `leave`, `undo`,
        `edges`, `compare` as data; shown, a board to do it on."""
        from tinyexplore.explore.whatif.board import FusionBoard

        return FusionBoard(self)

    def fusion_widget(self) -> PartWidget:
        """The fusion board as a widget of its own; where it can be done, the first schedule is run as captured."""
        if self.whatif.schedules and not self.fusion.branches():
            self.fusion.branch()
        return self._part().plain("fusion")

    @property
    def rules(self) -> PartWidget:
        """The rules of the pipeline and one's own, where they would match, and what came of firing them, as a widget of
        their own (`playground` is it as data)."""
        return self._part().plain("rules")

    @property
    def timing(self) -> PartWidget:
        """The kernels' times as a widget of their own (`trace.runs` has them as data)."""
        return self._part().plain("timing")

    @property
    def modules(self) -> PartWidget:
        """Time and memory by module of yours, as a widget of its own (`trace.modules()` is it as data)."""
        return self._part().plain("modules")

    @property
    def roofline(self) -> PartWidget:
        """The kernels under this machine's ceilings, which are measured for it, as a widget of their own
        (`explore.rooflines.roofline(trace)` has the points as data)."""
        self.measure_ceilings()
        return self._part().plain("roofline")

    @property
    def timeline(self) -> PartWidget:
        """Stages, runs and memory over one axis of time, as a widget of its own (`trace.timeline()` is it as data)."""
        return self._part().plain("timeline")

    @property
    def shape(self) -> PartWidget:
        """What the selected node shows of memory, as grids, as a widget of its own (`shape_of` has it as data)."""
        return self._part().plain("shape")

    def shape_of(self, node: Node | int | None = None) -> ShapeView:
        """What a node shows of memory, movement by movement: of the one given, or selected, or of the first view. Of a
        UOp, of what it came from."""
        from tinyexplore.explore.analysis.shapes.of_trace import shape_of_node

        chosen = self.selected[0] if node is None and self.selected else node
        return shape_of_node(self.trace, chosen)

    def measure_ceilings(self) -> Explorer:
        """Puts this machine's ceilings and each kernel's roof into the trace, for the rooflines of views and pages.

        They are measured once for a machine and target (under 2 s) and kept on disk: see `explore.ceilings`. A trace of
        another machine keeps its own ceilings, or has none."""
        if self.trace.ceilings or not _is_of_this_machine(self.trace):
            return self
        from tinyexplore.explore.analysis.machine.roofs import with_ceilings
        from tinyexplore.explore.analysis.machine.table import ceilings, improve

        with Context(TARGET=self._settings.TARGET):
            found = ceilings(dict(self.trace.options)["DEVICE"])
            if found.rows:
                self._take_ceilings(with_ceilings(self.trace, found, improve))
        return self

    def _take_ceilings(self, trace: Trace) -> None:
        """Keeps the ceilings of `trace` with this one; views that are there show them."""
        _ = self.trace  # made now, if it was not
        assert self._trace is not None
        self._trace = replace(self._trace, ceilings=trace.ceilings, roofs=trace.roofs)
        if self._widget is not None:
            from tinyexplore.explore.tracefile.codec import trace_to_bytes

            self._packed = self._widget.payload = trace_to_bytes(self.trace)

    def _with_roofs(self) -> None:
        """Before its samples are shown, they get the roofs that they are compared with."""
        if self.repeat > 1:
            self.measure_ceilings()

    def _judge(self) -> None:
        """Pages store the verdicts on kernels that have samples."""
        if self._kept and any(run.warm for run in self.trace.runs):
            from tinyexplore.explore.analysis.requests import Verdicts
            from tinyexplore.explore.analysis.verdict.judging import verdict_list

            self.responses.store(Verdicts(), verdict_list(self))

    @property
    def memory(self) -> PartWidget:
        """The buffers and their lives as a widget of their own (`trace.buffers` has them as data)."""
        return self._part().plain("memory")

    def close(self) -> None:
        """Takes the views from the page and lets go of the trace, the result and the error. Nothing can be asked of it
        any more."""
        if self._recorder is not None and not self.has_trace:
            raise CaptureError("the capture has not ended: close the Explorer after the `with` block")
        if self._widget is not None:
            self._widget.close()
        self._widget = self._parts = self._trace = self._untold = self._packed = self.result = self.error = None
        self._recorder = self._whatif = None
        self._kept, self._contents, self._changeable = {}, {}, {}
        self.responses = Responses()
        self._selected, self._is_closed = (), True

    def compress(self) -> None:
        """Lets go of the trace as objects where it is there compressed: it is made anew when somebody asks for it."""
        if self._packed is not None:
            self._trace = None

    def svg(self) -> str:
        """The whole way as one static picture."""
        from tinyexplore.explore.tracefile.pictures.svg import pipeline_svg

        return pipeline_svg(self.trace)

    def save(self, path: str | Path) -> Path:
        """Writes the trace, as JSON, compressed where the name ends in ".gz"; `Trace.load` reads it.

        Where the name ends in ".html" it is the page of `to_html`.
        """
        path_of("path", path)
        if Path(path).suffix.lower() in (".html", ".htm"):
            self.to_html(path)
            return Path(path)
        self._with_roofs()
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
        """One HTML page that works offline, from a file; written to `path` if one is given. `iterations`: so many
        first steps of each kernel go with it, for its debugger (on made-up numbers without `keep_inputs`).
        `run_here`: its readers can run and time its kernels, as WebAssembly; those of the WASM device they always can.
        `rosetta`: every kernel goes with it in every language, and not only those that were asked for.

        `live`: it carries the engine, and answers what a notebook would (9 MB more). `pyodide`: where the Python for
        that is, a folder or a package file; else it is fetched, once (`PyodideMissing` where it cannot).
        """
        path_of("path", path)
        path_of("pyodide", pyodide)
        count_of("iterations", iterations, least=0)
        for option, flag in {"live": live, "run_here": run_here, "rosetta": rosetta}.items():
            flag_of(option, flag)
        self._with_roofs()
        trace, tour = self.trace, [stop.as_data() for stop in self._tour]
        if iterations or live or run_here or rosetta:
            self._know_kernels()
        if rosetta:
            self._translate_all()
        self._look_at_warps()
        self._judge()
        responses = self.responses.as_data(self)
        if iterations:
            trace = self._recorded(trace, iterations)
        if live:
            from tinyexplore.explore.exports.live_pages.page import live_html

            page = live_html(
                trace,
                self._kept,
                graphs=self.whatif.graphs,
                tour=tour,
                responses=responses,
                pyodide=pyodide,
            )
        else:
            from tinyexplore.explore.exports.export import export_html
            from tinyexplore.explore.exports.runnable import runnable

            modules = runnable(trace, self._kept, all_devices=run_here)
            page = export_html(trace, tour, responses=responses, runnable=modules)
        if path is not None:
            write_text(path, page)
        return page

    def reproducer(self, kernel: int | KernelInfo = 0, path: str | Path | None = None) -> str:
        """A script that runs and times one kernel without this package: see `explore.reproducer`."""
        from tinyexplore.explore.exports.scripts import reproducer

        return reproducer(self.trace, kernel, path)

    def __repr__(self) -> str:
        if self._is_closed:
            return "Explorer(closed)"
        if not self.has_trace:
            return "Explorer(capturing)" if self._recorder is not None else "Explorer(not started)"
        from tinyexplore.explore.exports.export import summary_text

        return for_terminal(summary_text(self.trace))

    def _ipython_display_(self) -> None:
        """Two outputs: a picture that stays wherever the notebook is read, and the views, which take its place."""
        from IPython.display import display

        if line := self._line_instead():
            display({"text/plain": line}, raw=True)
            return
        try:
            widget = self.widget if self.has_trace else None
        except ImportError:
            widget = None
        if widget is None:
            display(self._repr_mimebundle_()[0], raw=True)
            return
        from tinyexplore.widgets.pictured import show

        show(widget, self.svg(), repr(self))

    def _line_instead(self) -> str:
        """What to show in place of views that would be empty: one line, or "" where there is something to view."""
        if not self.has_trace:
            return ""
        from tinyexplore.explore.exports.export import line_instead

        return line_instead(self.trace)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if not self.has_trace:
            return {"text/plain": repr(self)}, {}
        if line := self._line_instead():
            return {"text/plain": line}, {}
        data: dict[str, Any] = {"text/plain": repr(self), "image/svg+xml": self.svg()}
        metadata: dict[str, Any] = {}
        try:
            widget = self.widget
        except ImportError:
            from tinyexplore.explore.exports.export import static_html

            data["text/html"] = static_html(self.trace)
            return data, metadata
        bundle = widget._repr_mimebundle_(include=include, exclude=exclude)
        if isinstance(bundle, tuple):
            bundle, metadata = bundle
        view = {name: value for name, value in (bundle or {}).items() if name != "text/plain"}
        return {**view, **data}, metadata


def capture(*, title: str = "", **options: Any) -> Explorer:
    """`with capture() as session:` records everything inside; afterwards `session.trace` has it.

    Options: `repeat` (samples of each launch with warm caches; 1: only the launch itself, which is cold), `kernels`
    (how many are kept before the rest is only counted, 1000), `keep_inputs` (what kernels read is kept, for `debug`:
    True is up to 64 MiB, else so many bytes),
    `record_iterations` (so many first steps of each kernel are kept in the trace, for pages without Python; implies
    `keep_inputs`),
    and any setting of the engine by its name, which holds inside the block: `device="CLANG"`, `beam=2`, `noopt=1`;
    `executor` is what a search measures on (see `measuring_on`). With a `target` that this machine cannot execute,
    kernels are compiled for it and shown without times; native code computes the values. An exception goes on its
    way; the partial trace is kept and says so. Captures nest: an outer one also sees what an inner does.
    """
    return Explorer(title=title, options=options)


def explore(f: Callable[..., Any] | Any, *args: Any, title: str = "", **options: Any) -> Explorer:
    """What becomes of `f(*args)`: called and realised inside a capture, each launch with `repeat` samples (10).

    `f` may also be a Tensor (or Tensors in lists, tuples, dicts): then realising it is captured. Options as for
    `capture`. If `f` raises, the exception has the partial capture as its attribute `explorer`.
    """
    options.setdefault("repeat", EXPLORE_REPEAT)
    is_data = issubclass(type(f), (Tensor, list, tuple, dict))
    if not is_data and not callable(f):
        raise TypeError(
            f"explore({type(f).__name__}): expected a function, a Tensor, or Tensors in a list, tuple or dict"
        )
    if is_data and args:
        raise TypeError(f"explore of a {type(f).__name__} takes no further arguments; {len(args)} were given")
    session = capture(title=text_of("title", title) or _title_of(f), **options)
    try:
        with session:
            if not is_data:
                session.call(f, args)
            else:
                session.result = f
            realize_all(session.result)
    except BaseException as error:
        session._end(error)  # where the interrupt came before the block's own end
        with suppress(Exception):  # an exception's class may refuse attributes
            error.explorer = session  # type: ignore[attr-defined]
        raise
    return session


def realize_all(value: Any) -> int:
    """Realises every Tensor in `value`, nested in tuples, lists and dicts; how many there were."""
    tensors = list(_tensors_in(value))
    if tensors:
        tensors[0].realize(*tensors[1:])
    return len(tensors)


def _tensors_in(value: Any) -> Iterator[Tensor]:
    """The Tensors in nested containers, in order; each container once. No code of the user's classes runs."""
    left, seen = [value], set[int]()
    while left:
        value = left.pop()
        kind = type(value)
        if issubclass(kind, Tensor):
            yield value
        elif id(value) in seen:
            continue
        elif issubclass(kind, dict):
            seen.add(id(value))
            left += reversed(list(dict.values(value)))
        elif issubclass(kind, (list, tuple)):
            seen.add(id(value))
            left += reversed(list(list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)))


class _TraceOf:
    """The trace of an Explorer, without keeping it alive: made of the compressed one where it is gone."""

    def __init__(self, explorer: Explorer, widget: Any) -> None:
        self._explorer = ref(explorer)
        self._widget = widget

    def __call__(self) -> Trace:
        explorer = self._explorer()
        if explorer is not None:
            return explorer.trace
        return _unpacked(self._widget.payload)


def _unpacked(packed: bytes) -> Trace:
    """The trace that this process packed, however large it is."""
    from tinyexplore.explore.tracefile.codec import Limits, trace_from_bytes

    return trace_from_bytes(packed, Limits(nbytes=1 << 62, values=1 << 62, memory=1 << 62))


def _build_trace(recorder: CaptureRecorder, **told: Any) -> Trace:
    from tinyexplore.explore.recording.build import build_trace

    return build_trace(recorder, **told)


# *** options ***


def _executor_of(executor: Any) -> Any:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor={executor!r}: give something with a method submit, as concurrent.futures has")
    return executor


def _config_changes(options: dict[str, Any]) -> dict[str, Any]:
    """Options under the engine's names; the device checked, so that a wrong name fails before anything runs."""
    changes = {}
    for name, value in options.items():
        known = _CONFIG_NAMES.get(name.lower())
        if known is None:
            names = ", ".join(("repeat", "title", "executor", "keep_inputs", "record_iterations", *_CONFIG_NAMES))
            raise ValueError(f"unknown option {name!r}; known: {names}")
        if known == "DEVICE" and value is None:
            value = ""
        check_option(known, value)
        changes[known] = Device.canonicalize(value) if known == "DEVICE" and value else value
    return changes


def _is_of_this_machine(trace: Trace) -> bool:
    """Whether its kernels were compiled for a target that this machine has."""
    options = dict(trace.options)
    device = options.get("DEVICE", "")
    try:
        return bool(device) and options.get("target") == Device[device].target.describe()
    except (DeviceUnavailable, ValueError):
        return False


def _options_in_force(repeat: int) -> tuple[tuple[str, str], ...]:
    """What a reader must know to repeat this: the device, its target, and every setting that is not the default."""
    settings, default = config(), Config()
    found = [("DEVICE", Device.DEFAULT), ("NOOPT", str(settings.NOOPT)), ("BEAM", str(settings.BEAM))]
    names = [name for name, _ in found]
    for field in fields(Config):
        value = getattr(settings, field.name)
        if field.name not in names and value != getattr(default, field.name):
            found.append((field.name, str(value)))
    found.append(("repeat", str(repeat)))
    found.append(("tinyexplore", sys.modules[__name__.partition(".")[0]].__version__))
    try:
        found.append(("target", Device[Device.DEFAULT].target.describe()))
    except DeviceUnavailable as error:
        found.append(("target", f"not available: {error}"))
    return tuple(found)


def _devices_of(events: Iterable[Event]) -> set[str]:
    """The devices on which kernels ran, or would have."""
    ran = [event.exec_item for event in events if isinstance(event, (Ran, StoodIn))]
    return {item.item.device for item in ran if item.runner is not None}


def _title_of(f: Any) -> str:
    if issubclass(type(f), Tensor):
        return f"Tensor {'×'.join(map(str, f.shape)) or 'scalar'}"
    try:
        name = getattr(f, "__name__", None)
    except Exception:
        name = None
    name = name if type(name) is str and name else class_name(f)
    return "explore" if name == "<lambda>" else name


def _error_text(error: BaseException, tb: TracebackType | None) -> str:
    """What went wrong, in the exception's words, who raised it, and that the trace ends there."""
    what = "".join(traceback.format_exception_only(type(error), error)).strip()
    where = "inside the compiler" if raised_in_compiler(tb) else "in the program, not in the compiler"
    return f"{what}\nThe capture stopped here, {where}; what was recorded until then is kept."


__all__ = ["CaptureError", "Explorer", "capture", "explore", "realize_all"]
