"""Roofline and timeline in a real browser: the figures of Python, hover, selection, zoom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import wait_until
from tests.support.panels import open_panel
from tests.widgets.sample_traces import sample_trace
from tests.widgets.test_browser import Open, open_page, state  # noqa: F401
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings
from tinyexplore.explore.analysis.machine.roofs import with_ceilings
from tinyexplore.explore.tracefile.model import Ceiling
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.tracefile.timeline import kernel_timeline, timeline
from tinyexplore.explore.tracefile.trace import Trace

pytestmark = pytest.mark.browser

CEILINGS = Ceilings(
    "CPU",
    "target",
    (
        Ceiling("float32 arithmetic", "arithmetic", 100.0, 0, "float32", 1),
        Ceiling("read L2", "memory", 50.0, 20_000, "read", 1),
        Ceiling("read memory", "memory", 1.0, 1 << 30, "read", 1),
    ),
)


@pytest.fixture(scope="module")
def trace() -> Trace:
    x, w = Tensor.rand(64, 48).realize(), Tensor.rand(48, 32).realize()
    return explore(lambda: ((x @ w).softmax().sum(), (x + 1).contiguous()), repeat=3).trace


def panel(tab: Any, name: str) -> None:
    open_panel(tab, name)
    tab.wait_for_selector(f".{name} svg")


def members(trace: Trace, kernel: int) -> set[int]:
    return {*trace.kernels[kernel].nodes, *trace.kernels[kernel].roots}


@pytest.mark.parametrize("ceilings", [CEILINGS, None], ids=["measured", "not measured"])
def test_the_roofline_has_the_figures_of_python(open_page: Open, trace: Trace, ceilings: Any) -> None:  # noqa: F811
    known = trace if ceilings is None else with_ceilings(trace, ceilings)
    tab = open_page(known, busy=False)
    panel(tab, "roofline")
    drawn = tab.evaluate(
        "[...document.querySelectorAll('.roofline .dot')].map((dot) => dot.getAttribute('aria-label'))"
    )
    found = roofline(known)
    assert set(drawn) == {point.text for point in found.points} and len(drawn) > 1
    assert found.note in tab.inner_text(".roofline")


def test_a_point_selects_its_kernel_everywhere_by_mouse_and_by_key(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    panel(tab, "roofline")
    tab.hover(".roofline .dot[data-kernel='1']")
    assert tab.query_selector(".boxes .box.hov") is not None
    tab.click(".roofline .dot[data-kernel='1']")
    assert state(tab)["cursor"]["kernel"] == 1 and set(state(tab)["selected"]) == members(trace, 1)
    assert tab.get_attribute(".roofline .dot.on", "data-kernel") == "1"
    tab.focus(".roofline .dot[data-kernel='0']")
    tab.keyboard.press("Enter")
    assert set(state(tab)["selected"]) == members(trace, 0)
    tab.evaluate(f"tinyexplore.handle.select([{trace.kernels[1].roots[0]}])")
    assert tab.query_selector(".roofline .dot.lit[data-kernel='1']") is not None


def named(trace: Trace, kernel: int) -> str:
    """A kernel's title from the user's Python, with the program's name behind it."""
    info = trace.kernels[kernel]
    return f"{info.title} ({info.name})" if info.title else info.name


def test_the_timeline_has_the_spans_of_python(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    panel(tab, "timeline")
    quiet = [span for span in kernel_timeline(trace).spans]
    bars = "[...document.querySelectorAll('.timeline .span:not(.buffer-span)')].map((span) => span.dataset.kernel)"
    assert tab.evaluate(bars) == [str(span.kernel) for span in quiet], "kernel time, in execution order"
    assert tab.query_selector(".timeline .span[data-stage]") is None
    assert duration_text(kernel_timeline(trace).end_us) in tab.inner_text(".timeline-bar")
    tab.check(".timeline .compile-time input")
    tab.wait_for_selector(".timeline .span[data-stage]", state="attached")
    runs = [span for span in timeline(trace).spans if span.stage is None]
    told = {
        f"kernel {span.kernel} · {named(trace, span.kernel)}: median, {duration_text(span.elapsed_us)} "
        f"from {duration_text(span.started_us)} on"
        for span in runs
    }
    says = "[...document.querySelectorAll('.timeline .span')].map((span) => span.dataset.says)"
    assert told <= set(tab.evaluate(says))
    assert duration_text(timeline(trace).end_us) in tab.inner_text(".timeline-bar")
    most = max(nbytes for _, nbytes in timeline(trace).memory)
    assert most > 0 and tab.query_selector(".timeline .held") is not None
    stages = tab.evaluate(
        "[...document.querySelectorAll('.timeline .span[data-stage]')].map((span) => +span.dataset.stage)"
    )
    assert len(stages) > 3
    tab.click(".timeline-bar button:text-is('runs')")
    wait_until(tab, "document.querySelector('.timeline .span[data-stage=\"0\"]') === null")
    bars = tab.evaluate(
        "[...document.querySelectorAll('.timeline .span:not([data-stage]):not(.buffer-span) rect')]"
        ".map((bar) => ({left: +bar.getAttribute('x'), width: +bar.getAttribute('width')}))"
    )
    bars.sort(key=lambda bar: bar["left"])
    runs.sort(key=lambda span: span.started_us)
    assert len(bars) == len(runs)
    first, last = runs[0], runs[-1]
    shown_us = last.started_us + last.elapsed_us - first.started_us  # cold runs lie between: bars may be thin
    shown_px = bars[-1]["left"] + bars[-1]["width"] - bars[0]["left"]
    assert shown_px > 300, "the runs fill the panel"
    for bar, span in zip(bars, runs, strict=True):
        at_us, at_px = span.started_us - first.started_us, bar["left"] - bars[0]["left"]
        assert abs(at_px / shown_px - at_us / shown_us) < 0.05
        assert abs(bar["width"] - max(3, span.elapsed_us / shown_us * shown_px)) < 0.05 * shown_px


def test_a_sample_selects_its_kernel_and_a_stage_opens_it(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    panel(tab, "timeline")
    tab.check(".timeline .compile-time input")
    tab.click(".timeline-bar button:text-is('runs')")
    tab.click(".timeline .span[data-kernel='1']:not([data-stage]):not(.buffer-span)")
    assert state(tab)["cursor"]["kernel"] == 1 and set(state(tab)["selected"]) == members(trace, 1)
    assert tab.query_selector(".timeline .span.on[data-kernel='1']") is not None
    tab.click(".timeline-bar button:text-is('whole')")
    stage = next(one.id for one in trace.stages if one.name == "kernel" and one.kernel == 0)
    tab.click(f".timeline .span[data-stage='{stage}']")
    assert state(tab)["cursor"]["kernel"] == 0 and state(tab)["cursor"]["stage"] == stage


def test_the_pointer_shows_time_and_memory_and_ctrl_zooms_there(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    panel(tab, "timeline")
    box = tab.query_selector(".timeline svg").bounding_box()
    tab.mouse.move(box["x"] + box["width"] - 30, box["y"] + 30)
    assert "held" in tab.inner_text(".timeline-bar")
    before = tab.evaluate(
        "[...document.querySelectorAll('.timeline svg > text')].map((text) => text.textContent).join()"
    )
    tab.mouse.wheel(0, -300)  # a plain wheel only scrolls
    tab.wait_for_timeout(100)
    now = "[...document.querySelectorAll('.timeline svg > text')].map((text) => text.textContent).join()"
    assert tab.evaluate(now) == before
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -300)
    tab.keyboard.up("Control")
    wait_until(tab, f"{now} !== {before!r}")
    tab.focus(".timeline")
    tab.keyboard.press("0")
    wait_until(tab, f"{now} === {before!r}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 1280])
def test_pictures_of_roofline_and_timeline(
    open_page: Open,  # noqa: F811
    trace: Trace,
    screenshots: Path,
    scheme: str,
    width: int,
) -> None:
    tab = open_page(with_ceilings(trace, CEILINGS), busy=False, scheme=scheme, width=width, height=1000)
    for name in ("roofline", "timeline"):
        panel(tab, name)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.screenshot(path=screenshots / f"{name}_{scheme}_{width}.png")


def test_timing_views_are_separate_widgets_with_pictures() -> None:
    view = Explorer(with_ceilings(sample_trace(), CEILINGS))
    assert (
        view.panels.roofline is view.panels.roofline
        and view.panels.roofline.view == "roofline"
        and view.panels.timeline.view == "timeline"
    )
    view.panels.roofline.selected = [3]
    assert view.panels.timeline.selected == view.widget.selected == [3]
    assert (
        "float32 arithmetic: 100 GFLOP/s" in view.panels.roofline.svg() and "Timeline of" in view.panels.timeline.svg()
    )
    fresh = Explorer(sample_trace())
    payload = fresh.widget.payload
    fresh.capture._take_ceilings(with_ceilings(fresh.trace, CEILINGS))
    assert fresh.widget.payload != payload and fresh.trace.ceilings == CEILINGS.rows


def test_memory_is_drawn_in_kernel_time_by_default(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    panel(tab, "memory")
    total = duration_text(sum(run.median_us for run in trace.runs))
    assert f"over {total} of kernel time" in tab.inner_text(".memory .note")
    tab.check(".memory .compile-time input")
    assert "of kernel time" not in tab.inner_text(".memory .note")
    assert tab.evaluate("document.activeElement.type") == "checkbox"
