"""The figures of a trace: one clock, parts that add up, searches separate; texts equal to the front end's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore import Tensor, explore
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.figures import figures, summary
from tinyexplore.explore.tracefile.model import Candidate, Stage
from tinyexplore.explore.tracefile.texts import call_text, duration_text, figures_text
from tinyexplore.explore.tracefile.trace import Trace

FIXTURE = Path(__file__).parents[1] / "fixtures" / "figures" / "texts.json"


def test_numbers_read_as_in_the_front_end() -> None:
    told = json.loads(FIXTURE.read_text(encoding="utf-8"))
    for time_us, text in told["durations"]:
        assert duration_text(time_us) == text
    for value, text in told["figures"]:
        assert figures_text(value) == text
    for count, one, many, text in told["counts"]:
        assert count_text(count, one, many) == text


def staged(trace: Trace, *rows: tuple[str, int | None, int | None, float]) -> Trace:
    """`trace` with these stages: name, parent, kernel, elapsed."""
    stages = [
        Stage(i, name, parent, kernel, (), (), 0.0, elapsed, (), (), ())
        for i, (name, parent, kernel, elapsed) in enumerate(rows)
    ]
    return replace(trace, stages=tuple(stages))


def test_the_parts_sum_to_the_compile_time_without_the_search() -> None:
    trace = staged(
        sample_trace(),
        ("schedule", None, None, 100.0),
        ("kernel", None, 0, 1000.0),
        ("optimize", 1, 0, 700.0),
        ("compile", 2, 0, 650.0),
        ("simplify", 1, 0, 90.0),
        ("linearize", 1, 0, 30.0),
        ("render", 1, 0, 20.0),
        ("list", 1, 0, 60.0),
        ("compile", 1, 0, 80.0),
    )
    plain = figures(trace)
    assert {part.place: part.time_us for part in plain.parts if part.place != "run"} == {
        "python": 0.0,
        "lazy": 0.0,
        "kernels": 150.0,
        "passes": 110.0,
        "uops": 30.0,
        "code": 750.0,
    }
    assert plain.compile_us == 100 + 1000 - 60 and plain.search_us == 0
    search = replace(trace.stages[2], candidates=(Candidate(("UPCAST(0, 4)",), 3.0),))
    searched = figures(replace(trace, stages=(*trace.stages[:2], search, *trace.stages[3:])))
    assert searched.search_us == 700 and searched.compile_us == plain.compile_us - 700
    assert "searched for 700 µs" in summary(replace(trace, stages=(*trace.stages[:2], search, *trace.stages[3:])))


def test_the_times_of_kernels_sum_to_the_total() -> None:
    w = Tensor.rand(8, 4).realize()
    trace = explore(lambda: (Tensor.ones(16, 8).contiguous() @ w).softmax(), repeat=3).trace
    assert len(trace.kernels) > 1
    whole = figures(trace)
    each = [figures(trace, kernel.id) for kernel in trace.kernels]
    shared = sum(stage.elapsed_us for stage in trace.stages if stage.kernel is None and stage.parent is None)
    assert whole.compile_us == pytest.approx(sum(one.compile_us for one in each) + shared)
    assert whole.firings == sum(one.firings for one in each) > 0
    assert whole.run_us == pytest.approx(sum(one.run_us for one in each))
    listed = sum(stage.elapsed_us for stage in trace.stages if stage.name == "list")
    all_us = sum(stage.elapsed_us for stage in trace.stages if stage.parent is None)
    assert whole.compile_us == pytest.approx(all_us - listed, rel=0.02)


def test_a_call_is_shown_as_it_is_written():
    names = ("__matmul__", "__rmul__", "__iadd__", "__invert__", "__rshift__", "__getitem__", "softmax", "__call__")
    assert [call_text(name) for name in names] == ["@", "*", "+", "~", ">>", "[]", "softmax", "__call__"]
