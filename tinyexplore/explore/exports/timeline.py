"""A trace on a time axis: what the compiler did, when kernels ran, what memory held; in Chrome's trace-event format,
which Perfetto opens too (its own format is in `explore/exports/perfetto.py`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyexplore.explore.model import BufferInfo, Stage, Trace

_COMPILER, _DEVICE, _THREADS = 1, 2, 2  # the rows of the timeline; further threads come after the device


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time: a stage or a kernel's first run. Those of a row nest or follow one another.

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


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A buffer from when it was allocated until it was freed (`ended_us`: the end of the trace where it was not).

    Lives of one `lane` do not overlap.
    """

    buffer: int
    name: str
    bytes: int
    started_us: float
    ended_us: float
    lane: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """`rows`: row → its name. `memory`: (microsecond, bytes alive from then on), in order, from 0 on those that were
    there before. `end_us`: of the last span. The front end draws the same (widgets/src/timeline.ts)."""

    rows: dict[int, str]
    spans: tuple[Span, ...]
    memory: tuple[tuple[float, int], ...]
    lives: tuple[LiveRange, ...]
    end_us: float = 0.0


def timeline(trace: Trace) -> Timeline:
    """The stages as nested spans, each kernel's first run as a span, the allocated bytes as a curve, and the life of
    each buffer. Each further thread that compiled has a row."""
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
        about = {"kernel": kernel.id, "median_us": run.median_us, "runs": len(run.times_us), "opts": kernel.opts}
        spans.append(Span(_DEVICE, kernel.name, run.started_us, run.times_us[0], about, kernel=kernel.id))
    end_us = max((span.started_us + span.elapsed_us for span in spans), default=0.0)
    return Timeline(rows, tuple(spans), _memory(trace), _lives(trace, end_us), end_us)


def to_chrome_trace(trace: Trace) -> dict[str, Any]:
    """The timeline as Chrome's trace events: spans, the memory as a counter, the life of each buffer as an async
    event."""
    found = timeline(trace)
    events: list[dict[str, Any]] = [_name("process_name", 0, trace.title or "tinyexplore")]
    events.extend(_name("thread_name", row, name) for row, name in found.rows.items())
    events.extend(
        _event("X", span.name, span.started_us, tid=span.row, dur=span.elapsed_us, args=span.about)
        for span in found.spans
    )
    events.extend(_event("C", "memory", time_us, args={"bytes": total}) for time_us, total in found.memory)
    for life in found.lives:
        about = {"buffer": life.buffer, "bytes": life.bytes}
        events.append(_event("b", life.name, life.started_us, cat="buffers", id=life.buffer, args=about))
        events.append(_event("e", life.name, life.ended_us, cat="buffers", id=life.buffer))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": dict(trace.options)}


def save_chrome_trace(trace: Trace, path: str | Path) -> Path:
    """Writes the timeline as JSON: open it in ui.perfetto.dev or chrome://tracing."""
    path = Path(path)
    path.write_text(json.dumps(to_chrome_trace(trace)), encoding="utf-8")
    return path


def _name(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": row, "name": kind, "args": {"name": name}}


def _event(phase: str, name: str, time_us: float, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "pid": 1, "name": name, "ts": time_us, **more}


def _stage_span(trace: Trace, stage: Stage, own_us: float, depth: int) -> Span:
    about: dict[str, Any] = {"firings": sum(step.rule is not None for step in stage.steps)}
    if stage.kernel is not None:
        about["kernel"] = trace.kernels[stage.kernel].name
    row = _THREADS + stage.thread if stage.thread else _COMPILER
    return Span(row, stage.name, stage.started_us, own_us, about, depth, stage.kernel, stage.id)


def _memory(trace: Trace) -> tuple[tuple[float, int], ...]:
    changes = [(buffer.allocated_us or 0.0, buffer.bytes) for buffer in trace.buffers]
    changes += [(buffer.freed_us, -buffer.bytes) for buffer in trace.buffers if buffer.freed_us is not None]
    total = 0
    points = []
    for time_us, change in sorted(changes):
        total += change
        points.append((time_us, total))
    return tuple(points)


def _lives(trace: Trace, end_us: float) -> tuple[LiveRange, ...]:
    """The buffers allocated in the trace, each in the first lane that is free."""
    born = [buffer for buffer in trace.buffers if buffer.allocated_us is not None]
    free_from: list[float] = []
    found = []
    for buffer in sorted(born, key=lambda buffer: buffer.allocated_us or 0.0):
        started_us = buffer.allocated_us or 0.0
        ended_us = max(started_us, end_us) if buffer.freed_us is None else buffer.freed_us
        lane = next((lane for lane, free_us in enumerate(free_from) if free_us <= started_us), len(free_from))
        free_from[lane : lane + 1] = [ended_us]
        found.append(LiveRange(buffer.id, _buffer_name(buffer), buffer.bytes, started_us, ended_us, lane))
    return tuple(found)


def _buffer_name(buffer: BufferInfo) -> str:
    return f"{buffer.name or f'buffer {buffer.id}'}: {buffer.dtype}[{buffer.size}]"
