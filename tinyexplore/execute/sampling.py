"""Timing: inside `sampling(...)` every launch runs again, to take samples of all launches in the same rounds.

The launches of a block wait for its end. Their samples are then taken in rounds: each round takes one sample of each
launch, in alternating direction. So a change of the machine's speed affects all launches equally.

A sample is one run on the same threads. A short launch runs once more before each sample, to warm the caches. A kernel
that overwrites its input finds the same values before each sample. Afterwards all memory is as the program left it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from tinyexplore.device import Buffer
from tinyexplore.runtime.pool import thread_count
from tinyexplore.target import core_count
from tinyexplore.trace import ExecItemRetimed, active_recorder
from tinyexplore.uop import Ops
from tinyexplore.util import Context

MIN_SAMPLES = 2  # fewest samples of a launch
LAUNCH_S = 0.25  # seconds for the samples of one launch: a long kernel gets fewer
TOTAL_S = 5.0  # seconds for the samples of all launches; later ones get the least
LONGEST_S = 3.0  # seconds; a launch that takes longer is not run again
LIMIT_S = 30.0  # seconds after which launches get no samples
WARM_S = 0.01  # seconds; a launch that takes longer gains nothing from warm caches
MAX_WAIT_SHARE = 0.1  # largest fraction of a sample's time spent waiting for a core
PAUSE_S = 0.005  # seconds to wait after disturbed samples
REPLACEMENT_S = 0.6  # seconds to replace disturbed samples by undisturbed ones
MIN_USED_CORE_SHARE = 0.6  # least fraction used of the cores that a threaded kernel can use
MIN_UNDISTURBED_SAMPLES = 3  # this many undisturbed samples, or all, are enough
SINGLE_THREAD_SAMPLES = 3  # number of samples on one thread
MAX_PENDING_BYTES = 1 << 28  # in buffers of waiting launches; with more, their samples are taken immediately


class TimedItem(Protocol):
    """The attributes of an ExecItem that timing uses."""

    runner: Any
    buffers: tuple[Buffer, ...]

    def measure(self, repeat: int) -> list[float]: ...


@dataclass(eq=False)
class _PendingLaunch:
    """A launch that waits for its samples.

    launch: the launch.
    first_s: seconds that it took in the program.
    overwritten: the inputs that it overwrites.
    each_s: seconds of one further run.
    count: how many samples it gets.
    seconds: its samples so far.
    took_s: seconds of all its further runs.
    reason: why it gets no samples; empty if it gets some.
    single: its samples on one thread.
    waited: see `ExecItemRetimed`.
    """

    launch: TimedItem
    first_s: float
    overwritten: list[Buffer] = field(default_factory=list)
    each_s: float = 0.0
    count: int = 0
    seconds: list[float] = field(default_factory=list)
    took_s: float = 0.0
    reason: str = ""
    single: list[float] = field(default_factory=list)
    waited: float | None = None

    @property
    def is_short(self) -> bool:
        return self.each_s < WARM_S


@dataclass(eq=False)
class Sampling:
    """A request for samples of launches, and its state.

    count: how many samples each launch gets; fewer if they take longer than LAUNCH_S. 1: only the launch itself.
    most_launches: how many launches get samples.
    clock: returns seconds.
    waited: returns how many seconds the threads of this process have waited for a core (None if unknown). If given,
    disturbed samples are taken again, and threaded kernels also get SINGLE_THREAD_SAMPLES samples on one thread.
    spent_s: seconds taken so far.
    counts: how many samples the launches of each program get.
    waiting: launches whose samples are not taken yet.
    held: the buffers of these launches, and the bytes of each.
    """

    count: int
    most_launches: int = 1000
    clock: Callable[[], float] = time.perf_counter
    waited: Callable[[], float | None] | None = None
    spent_s: float = 0.0
    counts: dict[object, int] = field(default_factory=dict)
    waiting: list[_PendingLaunch] = field(default_factory=list)
    held: dict[Buffer, int] = field(default_factory=dict)

    def add(self, launch: TimedItem, first_s: float) -> None:
        """Adds a launch, which took `first_s` in the program, to the launches that wait for samples."""
        self.waiting.append(_PendingLaunch(launch, first_s))
        self.held |= {buffer: buffer.nbytes for buffer in launch.buffers}

    @property
    def is_full(self) -> bool:
        """Whether the waiting launches hold too much memory, or no further launch gets samples."""
        return self.most_launches <= 0 or sum(self.held.values()) > MAX_PENDING_BYTES

    def take(self, just_ran: bool = False) -> list[ExecItemRetimed]:
        """Takes the samples of the waiting launches, in their order. Memory is unchanged afterwards.

        just_ran: whether the last launch ran immediately before, so that its outputs are unchanged.
        """
        waiting, self.waiting = self.waiting, []
        self.held.clear()
        began = self.clock()
        saved = _save_overwritten(waiting, just_ran)
        try:
            rounds = self._run_once_each(waiting, saved)
            self._sample_undisturbed(rounds, saved)
            if self.waited is not None:
                self._sample_single(rounds, saved)
        finally:
            for buffer, content in saved.items():
                buffer.copyin(content)
        runs_s = sum(entry.took_s for entry in waiting)
        took_s = self.clock() - began
        self.spent_s += took_s
        aside_s = max(0.0, took_s - runs_s) / max(1, len(waiting))  # the time to save and restore memory counts, too
        return [
            ExecItemRetimed(
                entry.launch,
                tuple(entry.seconds),
                entry.took_s + aside_s,
                entry.reason,
                tuple(entry.single),
                entry.waited,
            )
            for entry in waiting
        ]

    def _run_once_each(self, waiting: list[_PendingLaunch], saved: dict[Buffer, bytes]) -> list[_PendingLaunch]:
        """Runs each launch once without counting it, to find how many samples fit. Launches without samples get a
        reason."""
        samples = []
        planned_s = self.spent_s
        for entry in waiting:
            entry.reason = _why_not_sampled(entry, planned_s)
            if entry.reason:
                continue
            entry.overwritten = overwritten_inputs(entry.launch)
            self._run(entry, saved)
            entry.each_s = max(entry.took_s, 1e-9)
            sample_s = entry.each_s * (1 + entry.is_short)
            entry.count = self.counts.setdefault(entry.launch.runner or entry.launch, self._count(sample_s, planned_s))
            planned_s += entry.each_s + entry.count * sample_s
            samples.append(entry)
        return samples

    def _count(self, sample_s: float, planned_s: float) -> int:
        """Returns the number of samples that fit in the time limits. The first launch of a program sets it for all."""
        allowed_s = min(LAUNCH_S, max(0.0, TOTAL_S - planned_s))
        return min(self.count, max(MIN_SAMPLES, int(allowed_s / sample_s)))

    def _sample_undisturbed(self, rounds: list[_PendingLaunch], saved: dict[Buffer, bytes]) -> None:
        """Takes the samples. If threads waited for a core, replaces disturbed samples by undisturbed ones.

        A launch that gets none within REPLACEMENT_S keeps the disturbed ones.
        """
        began, waited_before = self.clock(), self.waited() if self.waited is not None else None
        for turn in range(max((entry.count for entry in rounds), default=0)):
            for entry in reversed(rounds) if turn % 2 else rounds:
                if turn < entry.count:
                    self._sample_entry(entry, saved)
        waited_after = self.waited() if self.waited is not None else None
        if waited_before is None or waited_after is None:
            return
        took_s = self.clock() - began
        share = (waited_after - waited_before) / took_s if took_s > 0 else 0.0
        for entry in rounds:
            entry.waited = share
        if share > MAX_WAIT_SHARE:
            self._sample_clean(rounds, saved)

    def _sample_clean(self, rounds: list[_PendingLaunch], saved: dict[Buffer, bytes]) -> None:
        """Takes samples and reads the waiting time of each. Drops samples with more than MAX_WAIT_SHARE.

        Also drops samples of a threaded kernel in which a thread got no core, because the others did its part.
        """
        clean: dict[_PendingLaunch, list[tuple[float, float]]] = {entry: [] for entry in rounds}
        began, dropped = self.clock(), 0
        while self.clock() - began < REPLACEMENT_S:
            open_ones = [entry for entry in rounds if len(clean[entry]) < entry.count]
            if not open_ones:
                break
            for entry in open_ones:
                if entry.is_short:
                    self._run(entry, saved)
                waited_before, used_s, started = self._waited_s(), time.process_time(), self.clock()
                (seconds,) = self._run(entry, saved)
                took_s, used_s = max(self.clock() - started, 1e-9), time.process_time() - used_s
                share = (self._waited_s() - waited_before) / took_s
                if share <= MAX_WAIT_SHARE and used_s >= MIN_USED_CORE_SHARE * _count_cores_of(entry.launch) * took_s:
                    clean[entry].append((seconds, share))
                else:
                    dropped += 1
            if dropped > len(rounds):  # a pause lets the other process end its work or its time slice
                time.sleep(PAUSE_S)
                dropped = 0
        for entry, waits in clean.items():
            if len(waits) >= min(entry.count, MIN_UNDISTURBED_SAMPLES):
                entry.seconds = [seconds for seconds, _ in waits]
                entry.waited = sum(share for _, share in waits) / len(waits)

    def _waited_s(self) -> float:
        return (self.waited() if self.waited is not None else None) or 0.0

    def _sample_single(self, rounds: list[_PendingLaunch], saved: dict[Buffer, bytes]) -> None:
        """Takes the samples on one thread.

        They are in a separate block, because a change of the number of threads moves the data between the cores'
        caches.
        """
        threaded = [entry for entry in rounds if _is_threaded(entry.launch)]
        with Context(THREADS=1):
            for entry in threaded:
                if entry.count > MIN_SAMPLES and entry.is_short:
                    self._run(entry, saved)
                for _ in range(SINGLE_THREAD_SAMPLES if entry.count > MIN_SAMPLES else 1):
                    entry.single += self._run(entry, saved)

    def _sample_entry(self, entry: _PendingLaunch, saved: dict[Buffer, bytes]) -> None:
        if entry.is_short:
            self._run(entry, saved)
        entry.seconds += self._run(entry, saved)

    def _run(self, entry: _PendingLaunch, saved: dict[Buffer, bytes]) -> list[float]:
        """Runs a launch once and restores its inputs. Returns the seconds."""
        began = self.clock()
        seconds = entry.launch.measure(1)
        for buffer in entry.overwritten:
            buffer.copyin(saved[buffer])
        entry.took_s += self.clock() - began
        return seconds


def _why_not_sampled(entry: _PendingLaunch, planned_s: float) -> str:
    """Returns the reason why a launch gets no samples, or "" if it can be sampled."""
    if entry.first_s > LONGEST_S:
        return f"No samples: one run takes {entry.first_s:.3g} s, more than {LONGEST_S:.0f} s."
    if planned_s > LIMIT_S:
        return f"No samples: {LIMIT_S:.0f} s went into those of earlier kernels."
    try:
        for buffer in entry.launch.buffers:
            buffer.memory.check_backed()
    except OSError as error:
        return f"No samples: {error}"
    return ""


def _is_threaded(launch: TimedItem) -> bool:
    """Whether the kernel has a THREAD axis."""
    return launch.runner is not None and launch.runner.spec.thread_extent is not None


def _count_cores_of(launch: TimedItem) -> int:
    """Returns how many cores a threaded kernel can use; 0 for other kernels."""
    return min(launch.runner.spec.thread_extent, thread_count(), core_count()) if _is_threaded(launch) else 0


def seconds_waited() -> float | None:
    """Returns the seconds that this process's threads waited for a core, or None if the system does not report it."""
    total = 0
    try:
        for thread in os.listdir("/proc/self/task"):
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9


def _save_overwritten(waiting: list[_PendingLaunch], just_ran: bool) -> dict[Buffer, bytes]:
    """Returns the content of the buffers that further runs overwrite."""
    written_buffers: set[Buffer] = set()
    for entry in waiting:
        is_fresh = just_ran and entry is waiting[-1]
        written_buffers.update(overwritten_inputs(entry.launch) if is_fresh else _written_buffers(entry.launch))
    return {buffer: buffer.copyout() for buffer in written_buffers}


def _written_buffers(launch: TimedItem) -> list[Buffer]:
    written_slots = {0} if launch.runner is None else launch.runner.spec.writes
    return [buffer for number, buffer in enumerate(launch.buffers) if number in written_slots]


def overwritten_inputs(launch: TimedItem) -> list[Buffer]:
    """Returns the buffers that a kernel both reads and writes. A buffer that it only writes gets the same values in
    each run."""
    if launch.runner is None:
        return []  # a copy reads one buffer and writes another
    spec = launch.runner.spec
    slot_of = {node: node.src[0].arg for node in spec.uops if node.op is Ops.INDEX and _is_buffer(node.src[0])}
    read_slots: set[int] = set()
    for node in spec.uops:
        if node.op is Ops.INDEX:
            read_slots |= {slot_of[source] for source in node.src[1:] if source in slot_of}
            continue
        for number, source in enumerate(node.src):
            if source in slot_of and not (node.op is Ops.STORE and number == 0):
                read_slots.add(slot_of[source])
            elif _is_buffer(source):
                read_slots.add(source.arg)
    return [launch.buffers[number] for number in sorted(read_slots & spec.writes)]


def _is_buffer(node: Any) -> bool:
    return node.op is Ops.DEFINE_GLOBAL


_active: ContextVar[Sampling | None] = ContextVar("tinyexplore_sampling", default=None)


@contextmanager
def sampling(request: Sampling) -> Iterator[None]:
    """Samples every launch that runs separately inside the block as `request` says.

    Records the samples as `ExecItemRetimed`.

    An enclosing request for more samples takes precedence.
    """
    outer = _active.get()
    active = outer if outer is not None and outer.count > request.count else request
    token = _active.set(active)
    try:
        yield
    finally:
        _active.reset(token)
        _record_samples(active)


def sample_launch(launch: TimedItem, first_s: float) -> None:
    """Requests the samples of a launch that just ran, if it is inside a `sampling` block."""
    request = _active.get()
    if request is None or request.count < MIN_SAMPLES or request.most_launches <= 0:
        return
    request.most_launches -= 1
    request.add(launch, first_s)
    if request.is_full:
        _record_samples(request, just_ran=True)


def _record_samples(request: Sampling, just_ran: bool = False) -> None:
    samples = request.take(just_ran)
    if recorder := active_recorder():
        for sample in samples:
            recorder.record(sample)


__all__ = [
    "MIN_SAMPLES",
    "MAX_WAIT_SHARE",
    "Sampling",
    "overwritten_inputs",
    "sample_launch",
    "sampling",
    "seconds_waited",
]
