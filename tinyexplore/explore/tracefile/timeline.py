"""The timeline of a trace: the compiler's stages, the runs of kernels, and the allocated memory."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from typing import Any

from tinyexplore.explore.tracefile.model import (
    BufferInfo,
    BufferLifetime,
    Stage,
    Timeline,
    TimelineSpan,
    TraceTables,
)

_COMPILER, _DEVICE, _THREADS = 1, 2, 2  # the rows of the timeline; further compiler threads follow the device


def timeline(trace: TraceTables) -> Timeline:
    """Returns the timeline of a trace over elapsed time.

    Stages are nested spans. A launch is a span as long as the median of its samples. Allocated bytes are a curve, and
    each buffer has a lifetime. Each further compiler thread has a row.
    """
    threads = sorted({stage.thread for stage in trace.stages})
    rows = {_COMPILER: "compiler", _DEVICE: "device"}
    rows.update({_THREADS + thread: f"compiler, thread {thread}" for thread in threads if thread})
    own_us = {stage.id: stage.elapsed_us for stage in trace.stages}
    for stage in trace.stages:
        if stage.parent is not None and stage.thread != trace.stages[stage.parent].thread:
            own_us[stage.parent] -= stage.elapsed_us
    depths: list[int] = []
    for stage in trace.stages:  # parents come before their children
        outer = None if stage.parent is None else trace.stages[stage.parent]
        depths.append(0 if outer is None or outer.thread != stage.thread else depths[outer.id] + 1)
    spans = [_make_stage_span(stage, own_us[stage.id], depths[stage.id]) for stage in trace.stages]
    for run in trace.runs:
        name = trace.kernels[run.kernel].name
        spans.append(TimelineSpan(_DEVICE, name, run.started_us, run.median_us, kernel=run.kernel))
    end_us = max((span.started_us + span.elapsed_us for span in spans), default=0.0)
    return Timeline(tuple(rows.items()), tuple(spans), _sum_memory(trace), _list_lifetimes(trace, end_us), end_us)


def kernel_timeline(trace: TraceTables) -> Timeline:
    """Returns the timeline in kernel time: the runs in execution order, each as long as its median, without gaps.

    Compile time has length 0. A change of memory during compilation is drawn between the runs around it. Without a
    timed run, the result is `timeline(trace)`.
    """
    trace_timeline = timeline(trace)
    runs = sorted((run for run in trace.runs if run.median_us > 0), key=lambda run: run.started_us)
    if not runs:
        return trace_timeline
    began = [run.started_us for run in runs]
    totals = [0.0, *accumulate(run.median_us for run in runs)]

    def clock(time_us: float) -> float:
        """Converts a time of the trace to kernel time: the sum of all runs that began before, the last one in part."""
        number = bisect_right(began, time_us) - 1
        if number < 0:
            return 0.0
        share = (time_us - began[number]) / (runs[number].first_us or runs[number].median_us)
        return totals[number] + min(share, 1.0) * runs[number].median_us

    spans = tuple(
        TimelineSpan(_DEVICE, trace.kernels[run.kernel].name, started_us, run.median_us, kernel=run.kernel)
        for run, started_us in zip(runs, totals, strict=False)
    )
    memory = tuple((clock(time_us), total) for time_us, total in trace_timeline.memory)
    lives = tuple(
        replace(lifetime, started_us=clock(lifetime.started_us), ended_us=clock(lifetime.ended_us))
        for lifetime in trace_timeline.lives
    )
    return Timeline(((_DEVICE, "device"),), spans, memory, lives, totals[-1])


def span_facts(trace: TraceTables, span: TimelineSpan) -> dict[str, Any]:
    """Returns the facts about a span that an export adds to its name and time."""
    if span.stage is not None:
        firings = sum(step.rule is not None for step in trace.stages[span.stage].steps)
        return {"firings": firings} | ({} if span.kernel is None else {"kernel": trace.kernels[span.kernel].name})
    if span.kernel is None:
        return {}
    run = next(run for run in trace.runs if run.kernel == span.kernel and run.started_us == span.started_us)
    facts = {"median_us": run.median_us, "samples": len(run.times_us), "warm": run.warm}
    return {"kernel": span.kernel, **facts, "opts": trace.kernels[span.kernel].opts}


def _make_stage_span(stage: Stage, own_us: float, depth: int) -> TimelineSpan:
    row = _THREADS + stage.thread if stage.thread else _COMPILER
    return TimelineSpan(row, stage.name, stage.started_us, max(own_us, 0.0), depth, stage.kernel, stage.id)


def _sum_memory(trace: TraceTables) -> tuple[tuple[float, int], ...]:
    changes = [(buffer.allocated_us or 0.0, buffer.bytes) for buffer in trace.buffers]
    changes += [(buffer.freed_us, -buffer.bytes) for buffer in trace.buffers if buffer.freed_us is not None]
    total = 0
    points = []
    for time_us, change in sorted(changes):
        total += change
        points.append((time_us, total))
    return tuple(points)


def _list_lifetimes(trace: TraceTables, end_us: float) -> tuple[BufferLifetime, ...]:
    """Returns the buffers by time of allocation. A buffer allocated during the trace gets the first free lane."""
    free_from: list[float] = []
    lives = []
    for buffer in sorted(trace.buffers, key=lambda buffer: buffer.allocated_us or 0.0):
        started_us = buffer.allocated_us or 0.0
        ended_us = max(started_us, end_us) if buffer.freed_us is None else buffer.freed_us
        lane = None
        if buffer.allocated_us is not None:
            lane = next((lane for lane, free_us in enumerate(free_from) if free_us <= started_us), len(free_from))
            free_from[lane : lane + 1] = [ended_us]
        lives.append(BufferLifetime(buffer.id, _name_buffer(buffer), buffer.bytes, started_us, ended_us, lane))
    return tuple(lives)


def _name_buffer(buffer: BufferInfo) -> str:
    return f"{buffer.name or f'buffer {buffer.id}'}: {buffer.dtype}[{buffer.size}]"
