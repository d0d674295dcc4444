"""A trace on a time axis: what the compiler did, when kernels ran, what memory held."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from tinyexplore.explore.tracefile.model import BufferInfo, Stage, TraceTables
from tinyexplore.explore.tracefile.readable import ReadableRow

_COMPILER, _DEVICE, _THREADS = 1, 2, 2  # the rows of the timeline; further threads come after the device


@dataclass(frozen=True, slots=True, repr=False)
class Span(ReadableRow):
    """Something that took time: a stage, or a launch with the median of its samples.

    Those of a row nest or follow one another.

    `depth`: how many spans of its row it lies in; `kernel`, `stage`: which one it is of.
    """

    row: int
    name: str
    started_us: float
    elapsed_us: float
    about: dict[str, Any]
    depth: int = 0
    kernel: int | None = None
    stage: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class BufferLifetime(ReadableRow):
    """A buffer from when it was allocated until it was freed (`ended_us`: the end of the trace where it was not).

    Lives of one `lane` do not overlap.
    """

    buffer: int
    name: str
    bytes: int
    started_us: float
    ended_us: float
    lane: int


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(ReadableRow):
    """`rows`: row → its name. `memory`: (microsecond, bytes alive from then on), in order, from 0 on those that were
    there before. `end_us`: of the last span. The front end draws the same (widgets/src/timeline.ts)."""

    rows: dict[int, str]
    spans: tuple[Span, ...]
    memory: tuple[tuple[float, int], ...]
    lives: tuple[BufferLifetime, ...]
    end_us: float = 0.0


def timeline(trace: TraceTables) -> Timeline:
    """The stages as nested spans, each launch as a span as long as the median of its samples, the allocated bytes as a
    curve, and the life of each buffer. Each further thread that compiled has a row."""
    threads = sorted({stage.thread for stage in trace.stages})
    rows = {_COMPILER: "compiler", _DEVICE: "device"}
    rows.update({_THREADS + thread: f"compiler, thread {thread}" for thread in threads if thread})
    own_us = {stage.id: stage.elapsed_us for stage in trace.stages}
    for stage in trace.stages:
        if stage.parent is not None and stage.thread != trace.stages[stage.parent].thread:
            own_us[stage.parent] -= stage.elapsed_us
    depths: list[int] = []
    for stage in trace.stages:  # parents come first
        outer = None if stage.parent is None else trace.stages[stage.parent]
        depths.append(0 if outer is None or outer.thread != stage.thread else depths[outer.id] + 1)
    spans = [_stage_span(trace, stage, own_us[stage.id], depths[stage.id]) for stage in trace.stages]
    for run in trace.runs:
        kernel = trace.kernels[run.kernel]
        about = {
            "kernel": kernel.id,
            "median_us": run.median_us,
            "samples": len(run.times_us),
            "warm": run.warm,
            "opts": kernel.opts,
        }
        spans.append(Span(_DEVICE, kernel.name, run.started_us, run.median_us, about, kernel=kernel.id))
    end_us = max((span.started_us + span.elapsed_us for span in spans), default=0.0)
    return Timeline(rows, tuple(spans), _memory(trace), _lives(trace, end_us), end_us)


def kernel_timeline(trace: TraceTables) -> Timeline:
    """The timeline in kernel time: the runs in execution order, each as long as its median, with nothing in between.

    Compile time takes no room: memory and lives of buffers lie between the runs where they changed. Without a timed
    run it is `timeline(trace)`. The front end draws the same (widgets/src/timeline.ts).
    """
    whole = timeline(trace)
    runs = sorted((run for run in trace.runs if run.median_us > 0), key=lambda run: run.started_us)
    if not runs:
        return whole
    began = [run.started_us for run in runs]
    totals = [0.0, *accumulate(run.median_us for run in runs)]

    def clock(time_us: float) -> float:
        """Kernel time at a time of the trace: of all runs that began before, the last in part."""
        place = bisect_right(began, time_us) - 1
        if place < 0:
            return 0.0
        share = (time_us - began[place]) / (runs[place].first_us or runs[place].median_us)
        return totals[place] + min(share, 1.0) * runs[place].median_us

    spans = []
    for run, started_us in zip(runs, totals, strict=False):
        span = next(one for one in whole.spans if one.stage is None and one.kernel == run.kernel)
        spans.append(replace(span, started_us=started_us, elapsed_us=run.median_us))
    memory = tuple((clock(time_us), total) for time_us, total in whole.memory)
    lives = tuple(
        replace(life, started_us=clock(life.started_us), ended_us=clock(life.ended_us)) for life in whole.lives
    )
    return Timeline({_DEVICE: whole.rows[_DEVICE]}, tuple(spans), memory, lives, totals[-1])


def _stage_span(trace: TraceTables, stage: Stage, own_us: float, depth: int) -> Span:
    about: dict[str, Any] = {"firings": sum(step.rule is not None for step in stage.steps)}
    if stage.kernel is not None:
        about["kernel"] = trace.kernels[stage.kernel].name
    row = _THREADS + stage.thread if stage.thread else _COMPILER
    return Span(row, stage.name, stage.started_us, own_us, about, depth, stage.kernel, stage.id)


def _memory(trace: TraceTables) -> tuple[tuple[float, int], ...]:
    changes = [(buffer.allocated_us or 0.0, buffer.bytes) for buffer in trace.buffers]
    changes += [(buffer.freed_us, -buffer.bytes) for buffer in trace.buffers if buffer.freed_us is not None]
    total = 0
    points = []
    for time_us, change in sorted(changes):
        total += change
        points.append((time_us, total))
    return tuple(points)


def _lives(trace: TraceTables, end_us: float) -> tuple[BufferLifetime, ...]:
    """The buffers allocated in the trace, each in the first lane that is free."""
    born = [buffer for buffer in trace.buffers if buffer.allocated_us is not None]
    free_from: list[float] = []
    found = []
    for buffer in sorted(born, key=lambda buffer: buffer.allocated_us or 0.0):
        started_us = buffer.allocated_us or 0.0
        ended_us = max(started_us, end_us) if buffer.freed_us is None else buffer.freed_us
        lane = next((lane for lane, free_us in enumerate(free_from) if free_us <= started_us), len(free_from))
        free_from[lane : lane + 1] = [ended_us]
        found.append(BufferLifetime(buffer.id, _buffer_name(buffer), buffer.bytes, started_us, ended_us, lane))
    return tuple(found)


def _buffer_name(buffer: BufferInfo) -> str:
    return f"{buffer.name or f'buffer {buffer.id}'}: {buffer.dtype}[{buffer.size}]"
