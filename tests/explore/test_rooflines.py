"""The roofline of a trace and the picture of its timeline: figures that add up, ceilings that were measured."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer, trace_from_json, trace_to_json
from tinyexplore.explore.ceilings import is_of_this_machine, measure_ceilings
from tinyexplore.explore.exports.timeline import timeline
from tinyexplore.explore.model import Ceiling, Trace
from tinyexplore.explore.pictures.rooflines import note_words, point_words, roofline, roofline_picture
from tinyexplore.explore.pictures.timeline_picture import tick_step, timeline_picture

CEILINGS = (
    Ceiling("product", "arithmetic", 100.0),
    Ceiling("in the cache", "memory", 50.0, 20_000),
    Ceiling("memory", "memory", 1.0),
)


def words_of(picture: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_a_point_stands_where_the_figures_of_its_kernel_say() -> None:
    trace = replace(sample_trace(), ceilings=CEILINGS)
    first, second = roofline(trace).points
    kernel, run = trace.kernels[0], trace.runs[0]
    assert first.flops_per_byte == kernel.flops / kernel.bytes_moved
    assert first.gflops == pytest.approx(kernel.flops / run.median_us / 1e3)
    # 26 752 bytes are too many for the cache, 16 384 are not
    assert (first.limit, first.attainable) == ("memory", pytest.approx(first.flops_per_byte))
    assert (second.limit, second.attainable) == ("memory", pytest.approx(50 * second.flops_per_byte))
    assert (
        point_words(trace, second)
        == "kernel 1 · softmax_64_32: 0.53 GFLOP/s at 0.88 FLOP/B, 1.22 % of what memory allows"
    )


def test_without_measured_ceilings_the_best_kernels_are_the_ceilings() -> None:
    trace = sample_trace()
    found = roofline(trace)
    assert not found.measured and note_words(found) == "ceilings: the best of these kernels"
    assert max(point.share for point in found.points) == pytest.approx(1.0)
    assert point_words(trace, found.points[0]).endswith("100 % of the best here, by arithmetic")
    still = replace(trace.kernels[1], flops=0)
    idle = roofline(replace(trace, kernels=(trace.kernels[0], still)))
    assert idle.idle == (1,) and note_words(idle).endswith("1 kernel without floating-point arithmetic: 1")


def test_pictures_name_every_kernel_and_say_where_there_is_nothing_to_show() -> None:
    trace = replace(sample_trace(), ceilings=CEILINGS)
    shown = words_of(roofline_picture(trace))
    assert {"kernel 0 · r_64_32_48", "kernel 1 · softmax_64_32", "product: 100 GFLOP/s"} <= set(shown)
    assert "ceilings measured on this machine" in shown
    nothing = replace(trace, runs=(), stages=())
    assert any("was timed" in text for text in words_of(roofline_picture(nothing)))
    assert "nothing of this trace took time" in words_of(timeline_picture(nothing))


def test_ceilings_travel_with_the_trace_and_older_files_have_none() -> None:
    trace = replace(sample_trace(), ceilings=CEILINGS)
    assert trace_from_json(trace_to_json(trace)).ceilings == CEILINGS
    older = trace_to_json(replace(trace, ceilings=())).replace(',"ceilings":[]', "")
    assert "ceilings" not in older and trace_from_json(older).ceilings == ()


def test_ceilings_are_measured_for_the_roofline_of_this_machine_only() -> None:
    x = Tensor.rand(32, 32).realize()
    view = explore(lambda: (x @ x).relu())
    assert is_of_this_machine(view.trace)
    assert view.measure_ceilings() is view
    kinds = [(one.name, one.kind) for one in view.trace.ceilings]
    assert kinds[1:] == [("in the cache", "memory"), ("memory", "memory")] and kinds[0][1] == "arithmetic"
    assert all(one.rate > 0 for one in view.trace.ceilings)
    assert measure_ceilings() == view.trace.ceilings  # the second time from memory
    elsewhere = Explorer(replace(sample_trace(), options=(("DEVICE", "LLVM"), ("target", "another machine"))))
    assert elsewhere.measure_ceilings().trace.ceilings == ()
    assert measure_ceilings("PYTHON") == ()


@pytest.fixture(scope="module")
def two() -> Trace:
    x = Tensor.rand(64, 64).realize()
    return explore(lambda: (x @ x).softmax().sum(), repeat=3).trace


def test_spans_know_how_deep_they_lie_and_of_which_kernel_they_are(two: Trace) -> None:
    found = timeline(two)
    for span in found.spans:
        if span.stage is None:
            assert span.kernel is not None and span.depth == 0
            continue
        stage = two.stages[span.stage]
        outer = None if stage.parent is None else two.stages[stage.parent]
        inside = outer is not None and outer.thread == stage.thread
        assert span.depth == (next(one for one in found.spans if one.stage == outer.id).depth + 1 if inside else 0)
    assert found.end_us == max(span.started_us + span.elapsed_us for span in found.spans)


def test_short_runs_have_an_axis_of_their_own_in_the_picture(two: Trace) -> None:
    shown = words_of(timeline_picture(two))
    assert shown.count("device") == shown.count("memory") == 2 and "compiler" in shown
    assert any(text.startswith("kernel ") for text in shown)
    assert [tick_step(length) for length in (1.0, 6.0, 700.0)] == pytest.approx([0.2, 1.0, 200.0])
