"""A trace on a time axis, in Chrome's trace-event format, which Perfetto opens too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tinyexplore.explore.model import Stage, Trace

_COMPILER, _DEVICE, _THREADS = 1, 2, 2  # the rows of the timeline; further threads come after the device


def to_chrome_trace(trace: Trace) -> dict[str, Any]:
    """The stages as nested spans, each kernel's first run as a span, the allocated bytes as a curve. Each
    further thread that compiled has a row."""
    threads = sorted({stage.thread for stage in trace.stages})
    events: list[dict[str, Any]] = [
        _name("process_name", 0, trace.title or "tinyexplore"),
        _name("thread_name", _COMPILER, "compiler"),
        _name("thread_name", _DEVICE, "device"),
        *[_name("thread_name", _THREADS + thread, f"compiler, thread {thread}") for thread in threads if thread],
    ]
    own_us = {stage.id: stage.elapsed_us for stage in trace.stages}
    for stage in trace.stages:
        if stage.parent is not None and stage.thread != trace.stages[stage.parent].thread:
            own_us[stage.parent] -= stage.elapsed_us
    events.extend(_stage_event(trace, stage, own_us[stage.id]) for stage in trace.stages)
    kernels = {kernel.id: kernel for kernel in trace.kernels}
    for run in trace.runs:
        kernel = kernels[run.kernel]
        about = {"kernel": kernel.id, "median_us": run.median_us, "runs": len(run.times_us), "opts": kernel.opts}
        events.append(_span(kernel.name, _DEVICE, run.started_us, run.times_us[0], about))
    events.extend(_memory_events(trace))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": dict(trace.options)}


def save_chrome_trace(trace: Trace, path: str | Path) -> Path:
    """Writes the timeline as JSON: open it in ui.perfetto.dev or chrome://tracing."""
    path = Path(path)
    path.write_text(json.dumps(to_chrome_trace(trace)), encoding="utf-8")
    return path


def _name(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": row, "name": kind, "args": {"name": name}}


def _span(name: str, row: int, started_us: float, elapsed_us: float, about: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": row, "name": name, "ts": started_us, "dur": elapsed_us, "args": about}


def _stage_event(trace: Trace, stage: Stage, own_us: float) -> dict[str, Any]:
    about: dict[str, Any] = {"firings": sum(step.rule is not None for step in stage.steps)}
    if stage.kernel is not None:
        about["kernel"] = trace.kernels[stage.kernel].name
    row = _THREADS + stage.thread if stage.thread else _COMPILER
    return _span(stage.name, row, stage.started_us, own_us, about)


def _memory_events(trace: Trace) -> list[dict[str, Any]]:
    changes = [(buffer.allocated_us, buffer.bytes) for buffer in trace.buffers if buffer.allocated_us is not None]
    changes += [(buffer.freed_us, -buffer.bytes) for buffer in trace.buffers if buffer.freed_us is not None]
    total = 0
    events = []
    for time_us, change in sorted(changes):
        total += change
        about = {"bytes": max(total, 0)}  # what was there before the trace began may be freed in it
        events.append({"ph": "C", "pid": 1, "name": "memory", "ts": time_us, "args": about})
    return events
