"""The timeline in Chrome's trace-event format."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.widgets.sample_traces import sample_trace
from tinyexplore import Tensor, explore
from tinyexplore.explore.tracefile.chrome import save_chrome_trace, to_chrome_trace
from tinyexplore.explore.tracefile.timeline import timeline


def test_spans_nest_as_the_stages_do(tmp_path):
    trace = explore(lambda: Tensor.ones(4, 4).contiguous().sum(), title="sum").trace
    saved = json.loads(save_chrome_trace(trace, tmp_path / "sum.json").read_text())
    spans = [event for event in saved["traceEvents"] if event["ph"] == "X" and event["tid"] != 2]
    assert [span["name"] for span in spans] == [stage.name for stage in trace.stages]
    for stage, span in zip(trace.stages, spans, strict=True):
        assert (span["tid"] == 1) is (stage.thread == 0)
        if stage.parent is not None and stage.thread == trace.stages[stage.parent].thread:
            outer = spans[stage.parent]
            assert outer["ts"] <= span["ts"]
            assert span["ts"] + span["dur"] <= outer["ts"] + outer["dur"] + 0.1
    runs = [event["name"] for event in saved["traceEvents"] if event["ph"] == "X" and event["tid"] == 2]
    assert runs == [kernel.name for kernel in trace.kernels]


def test_memory_begins_with_the_existing_buffers():
    x = Tensor.ones(64).contiguous().realize()
    trace = explore(lambda: x + 1, repeat=1).trace
    (earlier,) = [buffer for buffer in trace.buffers if buffer.allocated_us is None]
    levels = [level for _, level in timeline(trace).memory]
    assert levels[0] == earlier.bytes
    assert max(levels) == sum(buffer.bytes for buffer in trace.buffers)  # as the panel Memory says


def test_memory_counts_each_buffer_from_its_allocation_until_it_is_freed():
    (buffer,) = [one for one in sample_trace().buffers if one.id == 0]
    lives = [(100, 1.0, 5.0), (30, 5.0, None), (7, None, None)]
    buffers = [
        replace(buffer, id=number, bytes=nbytes, allocated_us=allocated_us, freed_us=freed_us)
        for number, (nbytes, allocated_us, freed_us) in enumerate(lives)
    ]
    memory = timeline(replace(sample_trace(), buffers=tuple(buffers))).memory
    assert memory == ((0.0, 7), (1.0, 107), (5.0, 7), (5.0, 37))


def test_memory_is_never_negative():
    trace = explore(lambda: (Tensor.ones(64).contiguous() + 1).contiguous() * 2).trace
    levels = [event["args"]["bytes"] for event in to_chrome_trace(trace)["traceEvents"] if event["ph"] == "C"]
    assert levels
    assert min(levels) >= 0
