"""Who listens: at most one recorder per context, found through one ContextVar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

from tinyexplore.trace.events import Event, StageBegan, StageEnded

R = TypeVar("R")


class Recorder:
    """Collects events in order, each with its time; the explorer turns them into a Trace afterwards."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times: list[float] = []
        self.kernel_count = 0
        self.kernels: dict[Any, Any] = {}  # what the engine compiled in this recording, by its own key
        self.outer: Recorder | None = None  # who hears all that this one hears
        self.pause_s = 0.0  # time that is taken out of all times told
        self.retold_at: float | None = None  # while something is told that happened earlier

    def record(self, event: Event) -> None:
        self.events.append(event)
        self.times.append(perf_counter() - self.pause_s if self.retold_at is None else self.retold_at)  # as `now`

    def now(self) -> float:
        """The time that an event of this moment has, in seconds."""
        return perf_counter() - self.pause_s if self.retold_at is None else self.retold_at

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """What happens in the block takes no time, for this recorder and those outside it."""
        begun = self._clocks()
        try:
            yield
        finally:
            for recorder, time in begun:
                recorder.pause_s = perf_counter() - time

    def retell(self, earlier: Recorder) -> None:
        """Records what `earlier` heard, as if it happened now, and took as long as it took then."""
        if not earlier.events:
            return
        begun = self._clocks()
        first = earlier.times[0]
        if type(self) is Recorder:  # it only keeps, so it can keep all at once
            later = begun[0][1] - first
            self.events += earlier.events
            self.times += [time + later for time in earlier.times]
        else:
            for event, time in zip(earlier.events, earlier.times):
                for recorder, begin in begun:
                    recorder.retold_at = begin + (time - first)
                self.record(event)
        for recorder, begin in begun:
            recorder.retold_at = None
            recorder.pause_s = perf_counter() - (begin + earlier.times[-1] - first)

    def _clocks(self) -> list[tuple[Recorder, float]]:
        """This recorder and all outside it, with the time that it is for each."""
        found: list[tuple[Recorder, float]] = []
        recorder: Recorder | None = self
        while recorder is not None:
            found.append((recorder, recorder.now()))
            recorder = recorder.outer
        return found

    def next_kernel(self) -> int:
        """The running number of the kernel that is about to be compiled."""
        self.kernel_count += 1
        return self.kernel_count - 1


_active: ContextVar[Recorder | None] = ContextVar("tinyexplore_recorder", default=None)


def recorder_variable() -> ContextVar[Recorder | None]:
    """Where `active_recorder` looks."""
    return _active


def active_recorder() -> Recorder | None:
    """The recorder listening here, or None; read once per stage, not once per event."""
    return _active.get()


_console_makers: list[Callable[[], Recorder]] = []
_consoles: list[Recorder] = []


def register_console(make: Callable[[], Recorder]) -> None:
    """`make` gives the recorder that writes to the console where DEBUG asks for it; made once, when first needed."""
    _console_makers[:] = [make]


def console_recorder() -> Recorder | None:
    """The recorder that writes to the console; None where nobody registered one."""
    if not _consoles and _console_makers:
        _consoles.append(_console_makers[0]())
    return _consoles[0] if _consoles else None


_progress_makers: list[Callable[[], Recorder | None]] = []


def register_progress(make: Callable[[], Recorder | None]) -> None:
    """`make` gives the recorder that shows how far long work is, or None where there is nowhere to show it."""
    _progress_makers[:] = [make]


def progress_recorder() -> Recorder | None:
    """A recorder for the progress of one piece of long work; None where nobody shows any."""
    return _progress_makers[0]() if _progress_makers else None


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[Recorder | None]:
    """Events go to `recorder` inside the block (None silences an outer one)."""
    token = _active.set(recorder)
    try:
        yield recorder
    finally:
        _active.reset(token)


def staged(stage: str, root: object, work: Callable[[], R], *, kernel: int | None = None) -> R:
    """`work()`, told as a stage: began with `root`, ended with what it returned."""
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
