"""A capture: records the events inside a `with` block, and keeps the kernels so that they can run again."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import ref

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.engine import Sampling, further_listings, measuring_on, sampling, step_by_step
from tinyexplore.execute.sampling import seconds_waited
from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses, StoredResults
from tinyexplore.explore.notebook.options import check_count, check_text
from tinyexplore.explore.recording.capture_recorder import MAX_KERNELS, CaptureRecorder
from tinyexplore.explore.recording.inputs import limit_of
from tinyexplore.explore.recording.names import Names, names_in_callers, names_of_arguments, names_of_variables
from tinyexplore.explore.recording.other_threads import OtherThreads
from tinyexplore.explore.recording.scheduled_graph import ScheduledGraph
from tinyexplore.explore.recording.scopes import Scopes
from tinyexplore.explore.recording.sources import raised_in_compiler, source_text, user_code_here, user_frame_of
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.result_display import DisplayableResult, Table
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import Event, ExecItemRan, NativeFallback, SourceLine, UserFrame, active_recorder, recording
from tinyexplore.util import Config, Context, config
from tinyexplore.util.config import check_option

if TYPE_CHECKING:
    from tinyexplore.explore.recording.captured_kernel import CapturedKernel
    from tinyexplore.explore.recording.row_builders import KernelBuilder
    from tinyexplore.explore.tracefile.trace import Trace
    from tinyexplore.explore.whatif.branches import WhatIf

KEPT_BYTES = 1 << 24  # most bytes of tensors that a capture may keep alive until its trace is requested

_CONFIG_NAMES = {field.name.lower(): field.name for field in fields(Config)}


Note = tuple[str, str, UserFrame | None]  # level, text, the user's line


class CaptureError(RuntimeError):
    """The trace of a capture was requested before the capture ended."""


class CaptureSession(DisplayableResult):
    """The session behind a view: its options, the function's result and exception, and the kernels that can run again.

    Between `begin` and `end` it records what the engine emits. `trace` is built from that on first use.

    Attributes:
        title: the title of the view.
        result: the result of the captured function.
        error: the exception that ended the capture early, or None. The trace is then partial.
        repeat: the number of samples of each launch; 1: only the launch itself.
        most_kernels: the number of kernels that are recorded; more are counted.
        record_steps: the number of first steps of each kernel to store in the trace, for pages without Python.
        keep_bytes: most bytes of the kernels' inputs to store for the debugger.
        namespace: variables in addition to those of the calling frame; they name tensors.
        called: the captured function with its arguments; None for a `with` block and for tensors.
        options_given: the options as the user gave them.
        notes: called when the capture ends; returns further messages as (level, text, the user's line).
        before: for each language, a function that returns the text from which given LazyBuffers were created.
    """

    def __init__(self, trace: Trace | None = None, *, title: str = "", options: dict[str, Any] | None = None) -> None:
        settings = dict(options or {})
        self.options_given = dict(settings)
        self.repeat = check_count("repeat", settings.pop("repeat", 1))
        self.most_kernels = check_count("kernels", settings.pop("kernels", MAX_KERNELS))
        self.record_steps = check_count("record_iterations", settings.pop("record_iterations", 0), smallest=0)
        self.keep_bytes = limit_of(settings.pop("keep_inputs", self.record_steps > 0))
        self.title = check_text("title", title)
        self.result: Any = None
        self.error: BaseException | None = None
        self.namespace: Mapping[str, Any] | None = None
        self.called: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self.notes: Callable[[], Sequence[Note]] = tuple
        self.before: Mapping[str, Callable[[Sequence[LazyBuffer]], Sequence[SourceLine]]] = {}
        self._executor = _executor_of(settings.pop("executor", None))
        self._changes = _translate_options(settings)
        self._trace = trace
        self._raw_events: Callable[..., Trace] | None = (
            None  # builds the trace from the recorded events, on first request
        )
        self._recorder: CaptureRecorder | None = None
        self._stack = ExitStack()
        self._elsewhere = OtherThreads()
        self._options: tuple[tuple[str, str], ...] = ()
        self.widget: Any = None  # the widget that shows the trace
        self._packed: bytes | None = None  # the compressed trace of the widget; `_trace` may be None then
        self._is_over = False  # whether the capture's block has ended
        self._is_finished = False  # whether `_raw_events` was set
        self._is_closed = False
        self._names: Names = {}
        self._settings = config()
        self._whatif: WhatIf | None = None
        self._changeable: dict[str, Any] = {}  # the arguments of WhatIf
        self._captured_kernels: dict[int, CapturedKernel] = {}
        self._schedules: list[ScheduledGraph] = []  # until the trace is built
        self._contents: Mapping[Any, tuple[bytes | None, ...] | None] = {}  # of buffers, until the kernels are known
        self._stored = StoredResults()

    # *** recording ***

    def begin(self) -> None:
        """Starts recording.

        Raises:
            CaptureError: the session has a trace already.
        """
        if self._recorder is not None or self._trace is not None or self._is_closed:
            raise CaptureError("this Explorer has a capture already; call capture() again for a new one")
        self._recorder = CaptureRecorder(active_recorder(), self.most_kernels, self.keep_bytes)
        try:
            self._begin(self._recorder)
        except BaseException as error:
            self.end(error)
            raise

    def _begin(self, recorder: CaptureRecorder) -> None:
        self._names = {**names_in_callers(self.namespace), **self._names}
        self._stack.enter_context(Context(**self._changes))
        if self._executor is not None:
            self._stack.enter_context(measuring_on(self._executor))
        self._options, self._settings = _list_options_in_force(self.repeat), config()
        recorder.scopes = Scopes(user_code_here())
        self._elsewhere = self._stack.enter_context(OtherThreads())
        self._stack.enter_context(step_by_step(stand_in=True))
        self._stack.enter_context(recording(recorder))
        self._stack.enter_context(sampling(Sampling(self.repeat, self.most_kernels, waited=seconds_waited)))

    def end(self, error: BaseException | None = None) -> None:
        """Stops recording and keeps the recorded events. After an interrupt, `_finish_if_over` does the rest."""
        if self._is_finished:
            return
        self._is_over = True
        finished = isinstance(error, SystemExit) and not error.code  # a script that ended successfully
        if error is not None and not finished:
            self.error = error
        self._stack.close()
        # names at the end of the capture take precedence over earlier names
        self._names = {**self._names, **names_of_variables({"result": self.result}), **names_in_callers(self.namespace)}
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        """Finishes a capture whose end was interrupted; does nothing in every other state."""
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
            is_one = recorder.lazy_inputs == 1
            text = f"{count_text(recorder.lazy_inputs, 'input')} had no values yet when the capture began: "
            text += f"{'it is' if is_one else 'they are'} computed first. "
            text += "Call .realize() before the capture to leave that out."
            notes.append(("note", text, None))
        if recorder.left_out:
            first = (
                f"the first {count_text(recorder.ran, 'kernel')}; {recorder.left_out:,} more ran and were not recorded"
            )
            notes.append(("warning", first + ": capture one step of the program, or record more with kernels=…", None))
        if text := self._elsewhere.note:
            notes.append(("warning", text, None))
        if not events:
            text = "nothing was recorded: no tensor was built or realized inside the capture"
            notes.append(("warning", text, None))
        elif reasons := {event.reason for event in events if isinstance(event, NativeFallback)}:
            text = ". The values are computed by native code instead; no kernel has times"
            notes += [("note", reason + text, None) for reason in sorted(reasons)]
        elif not any(isinstance(event, ExecItemRan) for event in events) and self.error is None:
            text = "nothing was computed: the tensors are constants or views of memory, or no values were requested "
            text += "(.realize(), .numpy())"
            notes.append(("note", text, None))
        elif "DEVICE" in self._changes and (elsewhere := _devices_of(events) - {dict(self._options)["DEVICE"]}):
            text = f"kernels ran on {', '.join(sorted(elsewhere))}, the device of their inputs: DEVICE is for tensors "
            text += "made inside the capture; x.to(...) moves an existing one"
            notes.append(("note", text, None))
        notes += self.notes()
        inputs = recorder.inputs
        self._contents = inputs.contents
        if self.keep_bytes:
            notes.append(("note", inputs.note(), None))
        storage = recorder.storage()
        self._raw_events = partial(
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
            before=self.before,
        )
        self._schedules = recorder.schedules
        self._is_finished = True
        self._names = {}
        self._recorder = CaptureRecorder()  # a recorder for a capture that has ended
        sizes = {
            storage_buffer.buffer.id: storage_buffer.buffer.nbytes
            for storage_buffer in storage.values()
            if storage_buffer is not None
        }
        if self.error is not None or sum(sizes.values()) > KEPT_BYTES:
            self._build_from_events()

    def _build_from_events(self) -> Trace:
        """Builds the trace and drops the recorded events. After an interrupt, the next call starts again."""
        from tinyexplore.explore.recording.captured_graph import captured_graphs

        assert self._raw_events is not None
        kernels: dict[int, Kernel] = {}
        numbers: dict[LazyBuffer, int] = {}
        trace = self._raw_events(kernels=kernels, lazybuffers=numbers, see_kernels=self._store_kernels)
        if self.record_steps:
            trace = self.with_recordings(trace, self.record_steps)
        stages = [stage.id for stage in trace.stages if stage.name == "schedule"]
        graphs = captured_graphs(self._schedules, stages, numbers)
        self._changeable = {
            "kernels": kernels,
            "settings": self._settings,
            "captured": self._captured_kernels,
            "graphs": graphs,
        }
        self._trace = trace
        self._raw_events = None
        self._schedules, self._contents = [], {}
        return trace

    def _store_kernels(self, drafts: Sequence[KernelBuilder]) -> None:
        from tinyexplore.explore.recording.captured_kernel import captured_kernels

        self._captured_kernels = captured_kernels(drafts, self._contents)

    def with_recordings(self, trace: Trace, steps: int) -> Trace:
        """Returns `trace` with the first `steps` steps of each kernel, for the debugger of a page."""
        from tinyexplore.explore.analysis.models.recordings import with_recordings

        return with_recordings(trace, self._captured_kernels, check_count("record_iterations", steps, smallest=0))

    @property
    def captured_kernels(self) -> Mapping[int, CapturedKernel]:
        """Returns the kernels that can run again, by number; empty for a trace from a file."""
        self._finish_if_over()
        if self._raw_events is not None:
            self._build_from_events()
        return self._captured_kernels

    @property
    def has_trace(self) -> bool:
        """Whether the trace exists or can be built."""
        self._finish_if_over()
        return self._trace is not None or self._packed is not None or self._raw_events is not None

    @property
    def analyses(self) -> KernelAnalyses:
        """Returns the analyses of its kernels, by number; `view.kernels[i]` uses them."""
        return KernelAnalyses(
            trace=lambda: self.trace,
            captured=lambda: self.captured_kernels,
            settings=self._settings,
            stored=self._stored,
            measure_ceilings=self.measure_ceilings,
            whatif=lambda: self.whatif,
        )

    def restore(self, captured: Mapping[int, CapturedKernel], whatif: WhatIf) -> None:
        """Sets the kernels and branches that were rebuilt from the trace."""
        self._captured_kernels, self._whatif = dict(captured), whatif

    def replace_trace(self, trace: Trace) -> None:
        """Replaces the trace by `trace`: the same capture with more or fewer rows."""
        self._trace = trace

    def call(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Calls `f(*args)` and stores its result. Arguments without a name get the name of `f`'s parameter."""
        self.called = f, args
        self._names = {**names_of_arguments(f, args), **self._names}
        self.result = f(*args)

    def take_state_from(self, other: CaptureSession) -> None:
        """Takes over the state of another capture that has ended, except for its widget."""
        self.__dict__.update({**vars(other), "widget": self.widget})

    @property
    def trace(self) -> Trace:
        """The capture as plain data."""
        self._finish_if_over()
        trace = self._trace if self._raw_events is None else self._build_from_events()
        if trace is None and self._packed is not None:
            trace = self._trace = _unpack_trace(self._packed)
        if trace is None:
            if self._is_closed:
                raise CaptureError(
                    "this Explorer was closed and has no trace any more; save() writes a trace to a file"
                )
            raise CaptureError(
                "the capture has not ended: its trace is available after the `with` block. If an interrupt kept it "
                "from ending, `view.__exit__(None, None, None)` ends it now"
            )
        return trace if self._whatif is None else self._whatif.extend_trace(trace)

    @property
    def whatif(self) -> WhatIf:
        """The what-if session of this capture: its branches and the commands that create more."""
        trace = self.trace
        if self._whatif is None:
            from tinyexplore.explore.whatif.branches import WhatIf

            self._whatif = WhatIf(trace, **self._changeable)
        return self._whatif

    def measure_ceilings(self) -> None:
        """Adds this machine's ceilings and each kernel's roof to the trace, and to its widget.

        They are measured once per machine and target (less than 2 s) and stored on disk; see `explore.ceilings`. The
        trace of another machine keeps its own ceilings, or has none.
        """
        if self.trace.ceilings or not _is_of_this_machine(self.trace):
            return
        from tinyexplore.explore.analysis.machine.ceiling_table import ceilings, improve_ceilings
        from tinyexplore.explore.analysis.machine.roofs import with_ceilings

        with Context(TARGET=self._settings.TARGET):
            measured = ceilings(dict(self.trace.options)["DEVICE"])
        if not measured.rows:
            return
        self._take_ceilings(with_ceilings(self.trace, measured, improve_ceilings))

    def _take_ceilings(self, measured: Trace) -> None:
        assert self._trace is not None
        self._trace = replace(self._trace, ceilings=measured.ceilings, roofs=measured.roofs)
        if self.widget is not None:
            self.widget.payload = self.pack()

    # *** memory ***

    def pack(self) -> bytes:
        """Returns the compressed trace, which a widget holds. Afterwards `compress` may drop the objects."""
        from tinyexplore.explore.tracefile.codec import trace_to_bytes

        self._packed = trace_to_bytes(self.trace)
        return self._packed

    def compress(self) -> None:
        """Drops the trace as objects if `pack` compressed it; the next use unpacks it."""
        if self._packed is not None:
            self._trace = None

    def close(self) -> None:
        """Drops the trace, the result, the error and the kernels.

        Raises:
            CaptureError: the session is recording.
        """
        if self.is_recording:
            raise CaptureError("the capture has not ended: close the Explorer after the `with` block")
        self._trace = self._raw_events = self._packed = self.result = self.error = self.called = None
        self._recorder = self._whatif = self.widget = None
        self._captured_kernels, self._contents, self._changeable = {}, {}, {}
        self._stored = StoredResults()
        self._is_closed = True

    # *** display ***

    @property
    def is_recording(self) -> bool:
        """Whether the capture has begun and has no trace yet."""
        return self._recorder is not None and not self.has_trace

    @property
    def state(self) -> str:
        """Returns "closed", "capturing", "not started", or "" if there is a trace."""
        if self._is_closed:
            return "closed"
        return "" if self.has_trace else "capturing" if self.is_recording else "not started"

    def table(self) -> Table:
        """Returns the capture's options and how it ended, as a table."""
        state = self.state
        if state:
            return Table(f"capture: {state}", (), ())
        trace = self.trace
        rows = [*trace.options, ("kernels", str(len(trace.kernels))), ("nodes", f"{len(trace.nodes):,}")]
        if self.error is not None:
            rows.append(("error", f"{type(self.error).__name__}: {self.error}"))
        return Table(f"capture {trace.title}".rstrip(), ("option", "value"), tuple(rows))


class TraceOf:
    """Returns the trace of a capture without keeping it alive: a dropped trace is unpacked from the widget."""

    def __init__(self, capture: CaptureSession, widget: Any) -> None:
        self._capture = ref(capture)
        self._widget = widget

    def __call__(self) -> Trace:
        capture = self._capture()
        if capture is not None:
            return capture.trace
        return _unpack_trace(self._widget.payload)


def _unpack_trace(packed: bytes) -> Trace:
    """Unpacks a trace that this process packed, without limits."""
    from tinyexplore.explore.tracefile.codec import Limits
    from tinyexplore.explore.tracefile.trace import trace_from_bytes

    return trace_from_bytes(packed, Limits(nbytes=1 << 62, values=1 << 62, memory=1 << 62))


def _build_trace(recorder: CaptureRecorder, **facts: Any) -> Trace:
    from tinyexplore.explore.recording.trace_builder import build_trace

    return build_trace(recorder, **facts)


# *** options ***


def _executor_of(executor: Any) -> Any:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor={executor!r}: give an executor with submit(function, *arguments), such as ThreadPoolExecutor()"
        )
    return executor


def _translate_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options under the engine's names. A wrong device raises here, before anything runs."""
    changes = {}
    for name, value in options.items():
        name_of_option = _CONFIG_NAMES.get(name.lower())
        if name_of_option is None:
            names = ("repeat", "title", "executor", "keep_inputs", "record_iterations", *_CONFIG_NAMES)
            close = get_close_matches(name.lower(), names, 1)
            hint = f"did you mean {close[0]}? All options: " if close else "supported: "
            raise ValueError(f"unknown option {name!r}; {hint}{', '.join(names)}")
        if name_of_option == "DEVICE" and value is None:
            value = ""
        check_option(name_of_option, value)
        changes[name_of_option] = Device.canonicalize(value) if name_of_option == "DEVICE" and value else value
    return changes


def _is_of_this_machine(trace: Trace) -> bool:
    """Whether the kernels of the trace were compiled for this machine's target."""
    options = dict(trace.options)
    device = options.get("DEVICE", "")
    try:
        return bool(device) and options.get("target") == Device[device].target.describe()
    except (DeviceUnavailable, ValueError):
        return False


def _list_options_in_force(repeat: int) -> tuple[tuple[str, str], ...]:
    """Returns the settings that reproduce a capture: the device, its target, and every non-default setting."""
    settings, default = config(), Config()
    options = [("DEVICE", Device.DEFAULT), ("NOOPT", str(settings.NOOPT)), ("BEAM", str(settings.BEAM))]
    names = [name for name, _ in options]
    for field in fields(Config):
        value = getattr(settings, field.name)
        if field.name not in names and value != getattr(default, field.name):
            options.append((field.name, str(value)))
    options.append(("repeat", str(repeat)))
    options.append(("tinyexplore", sys.modules[__name__.partition(".")[0]].__version__))
    try:
        options.append(("target", Device[Device.DEFAULT].target.describe()))
    except DeviceUnavailable as error:
        options.append(("target", f"not available: {error}"))
    return tuple(options)


def _devices_of(events: Iterable[Event]) -> set[str]:
    """Returns the devices on which kernels ran, or would have run natively."""
    ran = [event.exec_item for event in events if isinstance(event, (ExecItemRan, NativeFallback))]
    return {item.item.device for item in ran if item.runner is not None}


def _error_text(error: BaseException, tb: TracebackType | None) -> str:
    """Returns the message for an exception: its text, where it was raised, and that the trace ends there."""
    message = "".join(traceback.format_exception_only(type(error), error)).strip()
    origin = "inside the compiler" if raised_in_compiler(tb) else "in the program, not in the compiler"
    return f"{message}\nThe capture stopped here, {origin}; the trace has all earlier events."


__all__ = ["CaptureSession", "CaptureError", "TraceOf"]
