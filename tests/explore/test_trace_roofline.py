"""The roofline of a trace and the picture of its timeline: figures that add up, and measured ceilings."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore import Device, Tensor, explore
from tinyexplore.explore import Explorer, trace_from_json, trace_to_json
from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings, ceilings
from tinyexplore.explore.analysis.machine.probes import disturbed_rows, merge_better, slow_arithmetic_rows
from tinyexplore.explore.analysis.machine.roofs import exceeded_ceilings, with_ceilings
from tinyexplore.explore.tracefile.model import Ceiling, Run
from tinyexplore.explore.tracefile.pictures.timeline_picture import tick_step, timeline_picture
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline, roofline_picture
from tinyexplore.explore.tracefile.timeline import kernel_timeline, timeline
from tinyexplore.explore.tracefile.trace import Trace

CEILINGS = Ceilings(
    "CPU",
    "target",
    (
        Ceiling("float32 arithmetic", "arithmetic", 100.0, 0, "float32", 1),
        Ceiling("read L2", "memory", 50.0, 20_000, "read", 1),
        Ceiling("read memory", "memory", 1.0, 1 << 30, "read", 1),
    ),
)


def words_of(picture: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_a_point_has_the_figures_of_its_kernel() -> None:
    trace = with_ceilings(sample_trace(), CEILINGS)
    first, second = roofline(trace).points
    kernel, run = trace.kernels[0], trace.runs[0]
    assert first.flops_per_byte == kernel.flops / kernel.bytes_moved
    assert first.gflops == pytest.approx(kernel.flops / run.median_us / 1e3)
    # 26 752 bytes are too many for the cache, 16 384 are not
    assert (first.limit, first.attainable) == ("memory", pytest.approx(first.flops_per_byte))
    assert (second.limit, second.attainable) == ("memory", pytest.approx(50 * second.flops_per_byte))
    assert second.text == "kernel 1 · softmax_64_32: 2.31 GFLOP/s at 0.88 FLOP/B, 5.29 % of L2 bandwidth"


def test_without_ceilings_there_is_no_roof_and_no_share() -> None:
    """The best kernel of a trace is no ceiling: others of the machine are faster."""
    trace = sample_trace()
    found = roofline(trace)
    assert found.ceilings == () and found.note.startswith("no ceilings")
    assert {point.attainable for point in found.points} == {None} == {point.share for point in found.points}
    assert found.points[0].text.endswith("FLOP/B")
    still = replace(trace.kernels[1], flops=0)
    idle = roofline(replace(trace, kernels=(trace.kernels[0], still)))
    assert {point.kernel for point in idle.points} == {0} and idle.note.endswith("arithmetic: 1")
    assert ElementTree.fromstring(roofline_picture(trace)) is not None


def rates(**of: float) -> Ceilings:
    """Bandwidths through 1 MB and 8 MB, by access."""
    rows = [
        Ceiling(f"{access} {name}", "memory", rate / part, nbytes, access, 2)
        for access, rate in of.items()
        for name, nbytes, part in (("L2", 1 << 20, 1), ("8 MB", 8 << 20, 4))
    ]
    return Ceilings("CPU", "target", tuple(rows))


def test_the_next_larger_working_set_counts_and_writes_are_interpolated_in_time() -> None:
    known = rates(read=100.0, triad=60.0, copy=50.0, write=25.0)
    found = [known.bandwidth(nbytes, 0.0) for nbytes in (1000, 1 << 20, 1_160_000, 1_200_000, 1 << 30)]
    assert [one.rate for one in found if one] == [100.0, 100.0, 100.0, 25.0, 25.0]
    shares = [known.bandwidth(1000, share) for share in (1 / 3, 0.5, 0.75, 1.0)]
    assert [one.rate for one in shares if one] == pytest.approx([60.0, 50.0, 1 / (0.5 / 50 + 0.5 / 25), 25.0])


def test_a_kernel_that_beats_its_roof_has_its_own_working_set_measured() -> None:
    trace = sample_trace()
    kernel = replace(trace.kernels[0], flops=10, bytes_moved=1 << 20, bytes_written=0, arithmetic=("float32",))
    run = Run(0, 0, (10.0, 10.0), 10.0, 10.0, 10.0, warm=True)  # 105 GB/s
    trace = replace(trace, kernels=(kernel,), runs=(run,))
    assert exceeded_ceilings(trace, rates(read=96.0)) == []  # within 10 %
    asked: list[list[Ceiling]] = []

    def improve(known: Ceilings, wanted: list[Ceiling]) -> Ceilings:
        asked.append(wanted)
        return rates(read=110.0)

    found = with_ceilings(trace, rates(read=90.0), improve)
    assert [(one.what, one.holds, one.threads) for one in asked[0]] == [("read", 1 << 20, 2)]
    assert found.roofs[0].gb_per_s == 110.0
    assert (
        exceeded_ceilings(replace(trace, runs=(replace(run, warm=False),)), rates(read=1.0)) == []
    )  # a cold run proves nothing


def test_rates_of_several_threads_that_do_not_scale_were_disturbed() -> None:
    one = Ceiling("copy L1", "memory", 100.0, 1000, "copy", 1)
    two = Ceiling("copy L1", "memory", 190.0, 2000, "copy", 2)
    slow = replace(two, rate=110.0)
    shared = Ceiling("copy 17 MB", "memory", 110.0, 1 << 24, "copy", 2)  # a shared level need not scale
    assert disturbed_rows([one, two, shared]) == [] and disturbed_rows([one, slow, shared]) == [slow]


def test_a_rate_that_another_row_contradicts_is_corrected_and_measured_again() -> None:
    """A loaded machine once gave 0.07 G/s from 64 KB for two threads and 1.06 for one, and 10 GB/s from 64 MB."""
    alone = Ceiling("", "gather", 1.06, 1 << 16, "", 1)
    both = replace(alone, rate=0.07, threads=2)
    near = Ceiling("read 67 MB", "memory", 9.8, 1 << 26, "read", 2)
    far = replace(near, rate=15.6, holds=1 << 28)
    launch = Ceiling("smallest kernel", "launch", 2.0, 0, "", 1)
    rows = (alone, both, near, far, launch)
    assert disturbed_rows(rows, 1.0) == [both, near]
    known = Ceilings("CPU", "target", rows)
    assert known.gather(1 << 16, 2).rate == 1.06  # type: ignore[union-attr]
    assert known.bandwidth(1 << 26, 0.0, 2).rate == pytest.approx(15.6)  # type: ignore[union-attr]
    assert merge_better([launch], [replace(launch, rate=1.2)])[0].rate == 1.2
    assert merge_better([launch], [replace(launch, rate=3.2)])[0].rate == 2.0


def test_arithmetic_that_is_too_low_for_the_clock_was_measured_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 3 GHz, one FMA of 8 lanes a cycle is 48 G op/s."""
    clock = Ceiling("clock", "clock", 3.0, 0, "", 1)
    peak = Ceiling("float32 arithmetic", "arithmetic", 96.0, 0, "float32", 1)
    slow, double = replace(peak, rate=20.0), replace(peak, what="float64", rate=5.0)
    assert (
        slow_arithmetic_rows([clock, peak, double], 8)
        == slow_arithmetic_rows([slow], 8)
        == slow_arithmetic_rows([clock, slow], 0)
        == []
    )
    assert slow_arithmetic_rows([clock, slow, double], 8) == [slow]
    calm = Ceilings("CPU", "znver3, 256-bit vectors, 2 threads", (clock, peak))
    busy = replace(calm, rows=(clock, slow))
    assert calm.load_notes == () and "under load" not in str(calm) + calm._repr_html_()
    assert "measured under load" in str(busy) and "0.42 vectors" in busy._repr_html_()
    assert Ceilings("CPU", "", (clock, slow)).load_notes == ()


def test_a_stored_rate_that_is_too_low_for_the_clock_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from tinyexplore.explore.analysis.machine import ceiling_table

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ceiling_table, "_ceilings_cache", {})
    rows = (
        Ceiling("clock", "clock", 100.0, 0, "", 1, (100.0,)),
        Ceiling("float32 arithmetic", "arithmetic", 0.5, 0, "float32", 1, (0.5,)),
    )
    described = Device["LLVM"].target
    target = f"{described.cpu}, {described.vector_bytes * 8}-bit vectors, {described.threads} threads"
    ceiling_table._store_ceilings(
        ceiling_table.key_of(ceiling_table.cpu_name(), target, described.features), Ceilings("", target, rows)
    )
    found = ceilings()
    (peak,) = (one for one in found.rows if one.kind == "arithmetic")
    assert peak.rate > 0.5
    assert found.load_notes  # at 100 GHz it would be far more


def test_the_roofline_names_kernels_above_their_ceiling() -> None:
    trace = with_ceilings(sample_trace(), CEILINGS)
    trace = replace(trace, roofs=tuple(replace(one, gflops=1e9, gb_per_s=1e9) for one in trace.roofs))
    assert "under load" not in roofline(trace).note
    (point, *_) = roofline(trace).points
    low = replace(trace.roofs[0], gflops=point.gflops / 2, gb_per_s=1e6)
    above = roofline(replace(trace, roofs=(low, *trace.roofs[1:])))
    assert f"kernel {low.kernel} above" in above.note and "under load" in above.note


def test_a_kernel_is_compared_with_the_fastest_of_its_dtypes() -> None:
    rows = [Ceiling(what, "arithmetic", rate, 0, what, 1) for what, rate in (("float32", 9.0), ("float64", 4.0))]
    known = Ceilings("CPU", "target", tuple(rows))
    trace = sample_trace()
    for types, expected in ((("float64",), 4.0), (("float64", "float32"), 9.0), ((), 9.0)):
        one = replace(trace, kernels=(replace(trace.kernels[0], arithmetic=types),), runs=())
        assert with_ceilings(one, known).roofs[0].gflops == expected


def test_pictures_name_every_kernel_and_report_missing_data() -> None:
    trace = with_ceilings(sample_trace(), CEILINGS)
    shown = words_of(roofline_picture(trace))
    assert {"kernel 0 · r_64_32_48", "kernel 1 · softmax_64_32", "float32 arithmetic: 100 GFLOP/s"} <= set(shown)
    assert any(text.startswith("ceilings measured on") for text in shown)
    nothing = replace(trace, runs=(), stages=())
    assert any("was timed" in text for text in words_of(roofline_picture(nothing)))
    assert any("has a time" in text for text in words_of(timeline_picture(nothing)))


def test_ceilings_are_saved_with_the_trace_and_older_files_have_none() -> None:
    trace = with_ceilings(sample_trace(), CEILINGS)
    again = trace_from_json(trace_to_json(trace))
    assert (again.ceilings, again.roofs) == (trace.ceilings, trace.roofs)
    older = json.loads(trace_to_json(replace(trace, ceilings=(), roofs=())))
    del older["ceilings"], older["roofs"], older["roofline"]
    assert trace_from_json(json.dumps(older)).ceilings == ()


def test_ceilings_are_measured_once_and_cached_for_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    from tinyexplore.explore.analysis.machine import ceiling_table

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ceiling_table, "_ceilings_cache", {})
    assert ceilings(measure=False).rows == () and ceilings(measure=False).reason
    measured = ceilings()
    kinds = {one.kind for one in measured.rows}
    assert (
        kinds == {"arithmetic", "memory", "clock", "launch", "gather", "runs"}
        and measured.peak()
        and measured.peak("float64")
    )
    assert all(one.rate > 0 and one.samples for one in measured.rows)
    monkeypatch.setattr(ceiling_table, "_ceilings_cache", {})
    monkeypatch.setattr(ceiling_table, "Prober", None)  # measuring again would fail
    monkeypatch.setattr(ceiling_table, "disturbed_rows", lambda *_: [])
    assert ceilings() == measured
    assert "clock" in str(measured) and "<table>" in measured._repr_html_()
    x = Tensor.rand(32, 32).realize()
    view = explore(lambda: (x @ x).relu())
    monkeypatch.setattr("tinyexplore.explore.analysis.machine.roofs.MIN_EXCESS", float("inf"))
    view.capture.measure_ceilings()
    assert view.trace.ceilings == measured.rows
    assert [roof.kernel for roof in view.trace.roofs] == [kernel.id for kernel in view.trace.kernels]
    elsewhere = Explorer(replace(sample_trace(), options=(("DEVICE", "LLVM"), ("target", "another machine"))))
    elsewhere.capture.measure_ceilings()
    assert elsewhere.trace.ceilings == ()
    assert ceilings("PYTHON").rows == () and "interprets" in ceilings("PYTHON").reason


def test_a_stored_rate_of_two_threads_below_that_of_one_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyexplore.explore.analysis.machine import ceiling_table

    one, two = (Ceiling("float32", "arithmetic", 9.0 / count, 0, "float32", count) for count in (1, 2))
    wanted: list[Ceiling] = []

    def improved(known: Ceilings, again: Any) -> Ceilings:
        wanted.extend(again)
        return known

    monkeypatch.setattr(ceiling_table, "_ceilings_cache", {})
    monkeypatch.setattr(ceiling_table, "_load_ceilings", lambda *_: Ceilings("CPU", "target", (one, two)))
    monkeypatch.setattr(ceiling_table, "improve_ceilings", improved)
    assert ceilings().rows == (one, two) == ceilings().rows
    assert wanted == [two], "once in a process"


@pytest.fixture(scope="module")
def two() -> Trace:
    x = Tensor.rand(64, 64).realize()
    return explore(lambda: (x @ x).softmax().sum(), repeat=3).trace


def test_spans_have_a_depth_and_a_kernel(two: Trace) -> None:
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


def test_the_picture_shows_kernel_time_and_compile_time_on_request(two: Trace) -> None:
    shown = words_of(timeline_picture(two))
    assert "device" in shown and "memory" in shown and "compiler" not in shown
    assert any(text.startswith("kernel ") for text in shown)
    assert "compiler" in words_of(timeline_picture(two, compile_time=True))
    assert [tick_step(length) for length in (1.0, 6.0, 700.0)] == pytest.approx([0.2, 1.0, 200.0])


def test_kernel_time_has_the_runs_one_after_another_and_nothing_between(two: Trace) -> None:
    found = kernel_timeline(two)
    runs = sorted(two.runs, key=lambda run: run.started_us)
    assert [span.kernel for span in found.spans] == [run.kernel for run in runs]
    at = 0.0
    for span, run in zip(found.spans, runs, strict=True):
        assert (span.started_us, span.elapsed_us) == (pytest.approx(at), run.median_us)
        at += run.median_us
    assert found.end_us == pytest.approx(at) == pytest.approx(sum(run.median_us for run in runs))
    assert [total for _, total in found.memory] == [total for _, total in timeline(two).memory]
    times = [time_us for time_us, _ in found.memory]
    assert times == sorted(times) and 0 <= times[0] and times[-1] <= found.end_us * (1 + 1e-9)
    assert all(0 <= life.started_us <= life.ended_us <= found.end_us * (1 + 1e-9) for life in found.lives)
    assert kernel_timeline(replace(two, runs=())) == timeline(replace(two, runs=()))
