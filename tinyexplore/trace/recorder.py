"""The attached recorder: at most one per context, found through one ContextVar."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, get_ident
from time import perf_counter
from typing import Any, NamedTuple, TypeVar
from weakref import ref

from tinyexplore.trace.events import Event, StageBegan, StageEnded

R = TypeVar("R")


class _FinalizedRef(ref[Any]):
    """A weak reference with the event to record when its object is freed."""

    __slots__ = ("event",)
    event: Event


class RecordedEvent(NamedTuple):
    """One recorded event.

    event: the event of the engine.
    time: when it was recorded, in seconds of `perf_counter`.
    thread: the identifier of the thread that emitted it.
    """

    event: Event
    time: float
    thread: int


class Recorder:
    """Collects events in the order of their arrival. The explorer builds a Trace from them afterwards.

    `log` has one entry per event, so an interrupt loses an event completely or not at all.
    """

    def __init__(self) -> None:
        self.log: list[RecordedEvent] = []
        self._watched: set[_FinalizedRef] = set()
        self._gone: deque[_FinalizedRef] = deque()
        self._turn = Lock()  # threads that compile record events, too

    def record(self, event: Event) -> None:
        with self._turn:
            self.log.append(RecordedEvent(event, perf_counter(), get_ident()))

    @property
    def events(self) -> list[Event]:
        """Returns the recorded events, in order, as a new list."""
        return [entry.event for entry in self.log]

    def about_to_run(self, exec_item: Any) -> None:
        """Called before `exec_item` runs, so that a recorder can read its inputs; records nothing."""

    def record_when_gone(self, watched: Any, event: Event) -> None:
        """Records `event` after `watched` is freed: at the next `record_gone`, or at the end of the recording.

        No Python code runs when `watched` is freed, because an interrupt that arrived then would be lost.
        """
        watch = _FinalizedRef(watched, self._gone.append)
        watch.event = event
        self._watched.add(watch)

    def record_gone(self) -> None:
        """Records the events of `record_when_gone` whose objects are freed."""
        while self._gone:
            watch = self._gone.popleft()
            self._watched.discard(watch)
            self.record(watch.event)


_active: ContextVar[Recorder | None] = ContextVar("tinyexplore_recorder", default=None)


def recorder_variable() -> ContextVar[Recorder | None]:
    """Returns the context variable that `active_recorder` reads."""
    return _active


def active_recorder() -> Recorder | None:
    """Returns the recorder attached in this context, or None. Read it once per stage, not once per event."""
    return _active.get()


_console_makers: list[Callable[[], Recorder]] = []
_consoles: list[Recorder] = []


def register_console(make: Callable[[], Recorder]) -> None:
    """Registers the function that makes the console's recorder. It is called once, at the first use."""
    _console_makers[:] = [make]


def console_recorder() -> Recorder | None:
    """Returns the recorder that writes to the console, or None if none is registered."""
    if not _consoles and _console_makers:
        _consoles.append(_console_makers[0]())
    return _consoles[0] if _consoles else None


_progress_makers: list[Callable[[], Recorder | None]] = []


def register_progress(make: Callable[[], Recorder | None]) -> None:
    """Registers the function that makes a recorder of progress. It may return None: no display exists."""
    _progress_makers[:] = [make]


_progress: ContextVar[Recorder | None] = ContextVar("tinyexplore_progress", default=None)


@contextmanager
def showing_progress(recorder: Recorder | None) -> Iterator[None]:
    """Sends the progress of long work to `recorder` inside the block. None: to the default display."""
    token = _progress.set(recorder)
    try:
        yield
    finally:
        _progress.reset(token)


def progress_recorder() -> Recorder | None:
    """Returns a recorder for the progress of one piece of long work, or None if progress is not displayed."""
    recorder = _progress.get()
    if recorder is not None:
        return recorder
    return _progress_makers[0]() if _progress_makers else None


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[Recorder | None]:
    """Attaches `recorder` inside the block. None detaches an outer recorder."""
    outer_recorder = _active.get()
    try:
        _active.set(recorder)
        yield recorder
    finally:
        _active.set(outer_recorder)
        if recorder is not None:
            recorder.record_gone()


@contextmanager
def recording_if_no_recorder(recorder: Recorder | None) -> Iterator[None]:
    """Attaches `recorder` inside the block if no recorder is attached."""
    if active_recorder() is not None:
        yield
        return
    with recording(recorder):
        yield


@contextmanager
def stage(name: str, root: object, kernel: int | None, result: object) -> Iterator[None]:
    """Records the block as a stage of kernel number `kernel`, which takes `root` and returns `result`."""
    recorder = active_recorder()
    if recorder is None:
        yield
        return
    recorder.record(StageBegan(name, root, kernel))
    start = perf_counter()
    try:
        yield
    finally:
        recorder.record(StageEnded(name, result, perf_counter() - start))


def record_stage(stage: str, root: object, work: Callable[[], R], *, kernel: int | None = None) -> R:
    """Calls `work`, records it as a stage, and returns its result. The stage begins with `root` and ends with the
    result."""
    recorder = active_recorder()
    if recorder is None:
        return work()
    recorder.record(StageBegan(stage, root, kernel))
    start = perf_counter()
    result: R | None = None
    try:
        result = work()
        return result
    finally:
        recorder.record(StageEnded(stage, result, perf_counter() - start))
