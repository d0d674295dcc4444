"""The timeline in Chrome's trace-event format, which Perfetto opens too; `perfetto.py` writes Perfetto's own format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tinyexplore.explore.tracefile.encodable_text import write_text
from tinyexplore.explore.tracefile.timeline import span_facts, timeline
from tinyexplore.explore.tracefile.trace import Trace


def to_chrome_trace(trace: Trace) -> dict[str, Any]:
    """Returns the timeline as Chrome trace events.

    Stages and launches become spans, allocated memory a counter, and each buffer's lifetime an async event.
    """
    drawn = timeline(trace)
    events: list[dict[str, Any]] = [_name("process_name", 0, trace.title or "tinyexplore")]
    events.extend(_name("thread_name", row, name) for row, name in drawn.rows)
    events.extend(
        _make_event("X", span.name, span.started_us, tid=span.row, dur=span.elapsed_us, args=span_facts(trace, span))
        for span in drawn.spans
    )
    events.extend(_make_event("C", "memory", time_us, args={"bytes": total}) for time_us, total in drawn.memory)
    for lifetime in drawn.lives:
        if lifetime.lane is None:
            continue  # the buffer is older than the trace
        about = {"buffer": lifetime.buffer, "bytes": lifetime.bytes}
        events.append(
            _make_event("b", lifetime.name, lifetime.started_us, cat="buffers", id=lifetime.buffer, args=about)
        )
        events.append(_make_event("e", lifetime.name, lifetime.ended_us, cat="buffers", id=lifetime.buffer))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": dict(trace.options)}


def save_chrome_trace(trace: Trace, path: str | Path) -> Path:
    """Writes the timeline as JSON for ui.perfetto.dev or chrome://tracing."""
    return write_text(path, json.dumps(to_chrome_trace(trace), ensure_ascii=False))


def _name(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": row, "name": kind, "args": {"name": name}}


def _make_event(phase: str, name: str, time_us: float, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "pid": 1, "name": name, "ts": time_us, **more}
