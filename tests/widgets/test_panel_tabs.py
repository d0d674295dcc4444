"""The tabs of the panels: groups at fixed positions, and the panels of the open group, on one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.pages import reload, wait_until
from tests.support.panels import open_panel, panels_with_tabs
from tests.widgets.test_browser import TRACE, Open, open_page, state

pytestmark = pytest.mark.browser

__all__ = ["open_page"]

WORDS = """() => [...document.querySelectorAll('.panel-tabs .tab')].filter((tab) => tab.checkVisibility()).map((tab) => {
  const { left, right, top, bottom } = tab.getBoundingClientRect();
  return [tab.textContent, left, right, (top + bottom) / 2, parseFloat(getComputedStyle(tab).fontSize), tab.scrollWidth > tab.clientWidth];
})"""


@pytest.mark.parametrize("width", [600, 900, 1280])
def test_all_tabs_of_a_group_are_complete_and_legible_on_one_line(open_page: Open, width: int) -> None:  # noqa: F811
    tab = open_page(busy=False, width=width, height=980)
    lefts = {}
    groups = tab.locator(".panel-tabs .groups .tab").count()
    for panel in panels_with_tabs(tab):
        open_panel(tab, panel)
        assert state(tab)["cursor"]["panel"] == panel
        words = tab.evaluate(WORDS)
        middles = [middle for _, _, _, middle, _, _ in words]
        assert max(middles) - min(middles) < 6, words
        for text, left, right, _, size, is_cut in words:
            assert size >= 11 and not is_cut and 0 <= left and right <= width, text
        for text, left, *_ in words[:groups]:
            assert lefts.setdefault(text, left) == left, f"{text} moved when {panel} was opened"


def test_arrow_keys_move_through_the_groups_and_their_panels(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    tab.focus(".panel-tabs .groups [aria-selected=true]")
    tab.keyboard.press("ArrowRight")
    assert state(tab)["cursor"]["panel"] == "kernels"
    assert tab.evaluate("document.activeElement.dataset.key") == "program"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.key") == "kernels"
    open_panel(tab, "timing")
    tab.focus(".panel-tabs [data-group=measure] [aria-selected=true]")
    tab.keyboard.press("ArrowRight")
    after = panels_with_tabs(tab)[panels_with_tabs(tab).index("timing") + 1]
    assert state(tab)["cursor"]["panel"] == after
    assert tab.evaluate("document.activeElement.dataset.key") == after


def test_a_page_has_no_tab_of_an_empty_panel(open_page: Open) -> None:  # noqa: F811
    """The page has no engine, no modules and no branches; a link still leads to the reason."""
    tab = open_page(replace(TRACE, scopes=(), branches=(), recordings=()), busy=False)
    names = panels_with_tabs(tab)
    assert {"rewrites", "kernels", "timing", "glossary"} <= set(names)
    assert not {"modules", "rosetta", "throughput", "tuner", "rules", "fusion", "debugger", "caches", "warps"} & set(
        names
    )
    tab.evaluate("tinyexplore.handle.go({panel: 'debugger'})")
    wait_until(tab, "document.querySelector('.low > .lazy-view:not([hidden])')?.innerText.includes('iterations=2000')")
    open_panel(tab, "timing")


def test_a_group_opens_at_the_last_opened_panel(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    open_panel(tab, "memory")
    tab.click(".panel-tabs [data-key=passes]")
    assert state(tab)["cursor"]["panel"] == "rewrites"
    tab.click(".panel-tabs [data-key=measure]")
    assert state(tab)["cursor"]["panel"] == "memory"
    wait_until(
        tab, "location.hash.includes('panel=memory')"
    )  # a page opens at its address, which is written a moment later
    reload(tab)
    tab.click(".panel-tabs [data-key=program]")
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


def test_the_button_and_its_key_maximize_and_restore_a_panel(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, height=900)
    open_panel(tab, "timing")
    filler = tab.locator(".panel-tabs .filler")

    def height() -> float:
        return tab.locator(".low").bounding_box()["height"]

    above = ".graph", ".codes", ".divider"
    low = height()
    for act in (filler.click, lambda: tab.keyboard.press("p")):
        act()
        assert filler.get_attribute("aria-pressed") == "true"
        assert not any(tab.locator(part).first.is_visible() for part in above)
        assert height() > 1.5 * low
        open_panel(tab, "memory")  # another panel has the same place
        assert filler.get_attribute("aria-pressed") == "true" and tab.locator(".memory").is_visible()
        open_panel(tab, "timing")
        act()
        assert filler.get_attribute("aria-pressed") == "false"
        assert all(tab.locator(part).first.is_visible() for part in above) and height() == low
    tab.keyboard.press("p")
    tab.click("[data-place=uops]")  # what is above is to be seen
    assert filler.get_attribute("aria-pressed") == "false" and tab.locator(".graph").is_visible()
    tab.keyboard.press("w")
    tab.keyboard.press("p")  # the story has no panels
    assert tab.locator(".story").is_visible() and tab.locator(".tinyexplore.is-filled").count() == 0


def test_a_long_name_of_a_pass_wraps_to_two_lines(open_page: Open) -> None:  # noqa: F811
    long = "reassociate and narrow"
    stages = [replace(one, name=long) if one.name == "simplify" else one for one in TRACE.stages]
    tab = open_page(replace(TRACE, stages=tuple(stages)), width=620)
    name = tab.locator(f".passes .name:has-text('{long}')").first
    lines, cut = name.evaluate(
        """(element) => {
          const range = document.createRange();
          range.selectNodeContents(element);
          const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
          return [tops.size, element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth];
        }"""
    )
    assert (lines, cut) == (2, False)


def test_presets_and_dragged_sizes_of_panes_are_restored(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, height=900)
    open_panel(tab, "timing")
    tab.focus(".divider.y")
    for _ in range(4):
        tab.keyboard.press("ArrowUp")
    height = tab.locator(".low").bounding_box()["height"]
    reload(tab)
    assert tab.locator(".low").bounding_box()["height"] == pytest.approx(height, abs=2)
    tab.click(".presets button:has-text('default layout')")
    assert state(tab)["cursor"]["panel"] == "rewrites"
    assert tab.locator(".low").bounding_box()["height"] < height
    assert tab.locator(".presets button").count() == 1  # nothing was tried or recorded in this page


def test_a_key_toggles_full_screen(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    full = "document.fullscreenElement !== null || document.querySelector('.tinyexplore.is-full') !== null"
    tab.focus(".tinyexplore")
    tab.keyboard.press("z")
    wait_until(tab, full)
    tab.keyboard.press("z")
    wait_until(tab, f"!({full})")
