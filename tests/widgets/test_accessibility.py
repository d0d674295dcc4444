"""axe-core on every panel of the explorer, light and dark, with and without a selection: no serious finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import axe
from tests.support.pages import settle
from tests.support.panels import open_panel, panels_with_tabs
from tests.widgets.sample_traces import big_trace, unrolled_trace
from tests.widgets.test_browser import TRACE, Open
from tests.widgets.test_browser import open_page as open_page  # the fixture
from tinyexplore.explore import Explorer

pytestmark = pytest.mark.browser


def findings(tab: Any) -> list[str]:
    """The grave ones in the whole explorer."""
    settle(tab, 450)  # flashes and what enters are over
    return axe.findings(tab)


@pytest.mark.parametrize(("scheme", "selected"), [("light", False), ("dark", True)])
def test_every_panel_and_both_graphs_are_without_grave_findings(open_page: Open, scheme: str, selected: bool) -> None:
    tab = open_page(busy=False, scheme=scheme)
    if selected:
        tab.click(".pane-a .line >> nth=4")
    told = {"tensors": findings(tab)}
    for panel in panels_with_tabs(tab)[1:]:
        open_panel(tab, panel)
        told[panel] = findings(tab)
    tab.click("[data-place=passes]")
    tab.keyboard.press("ArrowRight")
    told["passes"] = findings(tab)
    tab.click("[data-place=code]")
    told["code"] = findings(tab)
    assert {place: found for place, found in told.items() if found} == {}


@pytest.mark.parametrize("trace", [big_trace(200), unrolled_trace(30)], ids=["400 nodes", "copies"])
def test_large_graphs_are_without_grave_findings(open_page: Open, trace: Any) -> None:
    assert findings(open_page(trace)) == []


def test_a_narrow_explorer_is_without_grave_findings(open_page: Open) -> None:
    assert findings(open_page(TRACE, busy=False, width=600)) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chapter_of_the_story_is_without_grave_findings(open_page: Open, scheme: str) -> None:
    tab = open_page(busy=False, scheme=scheme, mode="story")
    tab.wait_for_selector(".story[data-step]")
    told = {}
    for chapter in tab.locator(".chapter").all_inner_texts():
        tab.click(f".chapter >> text={chapter}")
        told[chapter] = findings(tab)
    assert len(told) == 7
    assert {chapter: found for chapter, found in told.items() if found} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tour_and_its_questions_are_without_grave_findings(browser: Any, tmp_path: Path, scheme: str) -> None:
    view = Explorer(TRACE)
    view.tour([("This adds up.", view.trace.where(op="REDUCE_AXIS")[0]), view.question("kernels")]).to_html(
        tmp_path / "tour.html"
    )
    tab = browser.new_page(color_scheme=scheme, viewport={"width": 1200, "height": 860})
    tab.goto((tmp_path / "tour.html").as_uri())
    tab.wait_for_selector(".tour .note-text")
    told = {"a note": findings(tab)}
    tab.keyboard.press("]")
    told["a question"] = findings(tab)
    tab.click(".choice >> nth=0")
    told["its answer"] = findings(tab)
    tab.close()
    assert {place: found for place, found in told.items() if found} == {}
