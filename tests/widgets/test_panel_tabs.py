"""The tabs of the panels: groups that stay where they are, and the panels of the open one, on one line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pages import wait_until
from tests.support.panels import open_panel
from tests.widgets.test_browser import Open, open_page, state

pytestmark = pytest.mark.browser

__all__ = ["open_page"]

WORDS = """() => [...document.querySelectorAll('.panel-tabs .tab')].filter((tab) => tab.checkVisibility()).map((tab) => {
  const { left, right, top, bottom } = tab.getBoundingClientRect();
  return [tab.textContent, left, right, (top + bottom) / 2, parseFloat(getComputedStyle(tab).fontSize), tab.scrollWidth > tab.clientWidth];
})"""
PANELS = [
    "rewrites",
    "biography",
    "why",
    "kernels",
    "modules",
    "rosetta",
    "tuner",
    "fusion",
    "debugger",
    "caches",
    "warps",
    "shape",
    "timing",
    "roofline",
    "timeline",
    "memory",
    "throughput",
    "glossary",
]


@pytest.mark.parametrize("width", [600, 900, 1280])
def test_all_tabs_of_a_group_stand_on_one_line_whole_and_legible(open_page: Open, width: int) -> None:  # noqa: F811
    tab = open_page(busy=False, width=width, height=980)
    lefts = {}
    for panel in PANELS:
        open_panel(tab, panel)
        assert state(tab)["cursor"]["panel"] == panel
        words = tab.evaluate(WORDS)
        middles = [middle for _, _, _, middle, _, _ in words]
        assert max(middles) - min(middles) < 6, words
        for text, left, right, _, size, is_cut in words:
            assert size >= 11 and not is_cut and 0 <= left and right <= width, text
        for text, left, *_ in words[:6]:
            assert lefts.setdefault(text, left) == left, f"{text} moved when {panel} was opened"


def test_arrows_walk_the_groups_and_their_panels(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    tab.focus(".panel-tabs .groups [aria-selected=true]")
    tab.keyboard.press("ArrowRight")
    assert state(tab)["cursor"]["panel"] == "kernels"
    assert tab.evaluate("document.activeElement.dataset.key") == "program"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.key") == "kernels"
    tab.keyboard.press("ArrowRight")
    assert state(tab)["cursor"]["panel"] == "modules"
    assert tab.evaluate("document.activeElement.dataset.key") == "modules"


def test_a_group_opens_at_the_panel_that_was_looked_at_last(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    open_panel(tab, "memory")
    tab.click(".panel-tabs [data-key=passes]")
    assert state(tab)["cursor"]["panel"] == "rewrites"
    tab.click(".panel-tabs [data-key=measure]")
    assert state(tab)["cursor"]["panel"] == "memory"
    wait_until(
        tab, "location.hash.includes('panel=memory')"
    )  # a page opens where its address says, told a moment later
    tab.reload()
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached")
    tab.click(".panel-tabs [data-key=byhand]")
    tab.click(".panel-tabs [data-key=measure]")
    assert state(tab)["cursor"]["panel"] == "memory"


def test_a_link_opens_the_group_of_its_panel(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, link="#panel=timeline&kernel=0")
    selected = "[...document.querySelectorAll('.panel-tabs [aria-selected=true]')].map((tab) => tab.dataset.key)"
    assert tab.evaluate(selected) == ["measure", "timeline"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 900, 1280])
def test_pictures_of_the_tabs(open_page: Open, screenshots: Any, scheme: str, width: int) -> None:  # noqa: F811
    tab = open_page(busy=False, width=width, scheme=scheme, height=900)
    open_panel(tab, "timing")
    tab.screenshot(path=screenshots / f"panel_tabs_{width}_{scheme}.png")
