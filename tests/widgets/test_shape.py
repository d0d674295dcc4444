"""The shape view in a real browser: with responses of the engine, and with responses stored in a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.pages import responses_in, wait_until
from tests.support.panels import open_panel
from tests.support.patience import milliseconds
from tests.widgets.test_accessibility import findings
from tests.widgets.test_why import MOUNT
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.notebook.requests import respond_from_trace

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    x = Tensor(np.zeros((4, 6), np.float32)).realize()
    large = Tensor(np.zeros((300, 500), np.float32)).realize()
    return explore(lambda: ((x.T.reshape(4, 6) + x.flip(0)).sum(1), large.T.contiguous()), repeat=1, title="shapes")


@pytest.fixture
def page(browser: Any, view: Explorer, tmp_path: Path) -> Iterator[Callable[[bool], Any]]:
    """The page with the panel open, with Python or without; no error may be left in it."""
    errors: list[str] = []
    tabs = []

    def opened(live: bool) -> Any:
        view.to_html(tmp_path / "page.html")
        tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        tabs.append(tab)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
        tab.goto((tmp_path / "page.html").as_uri())
        tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
        if live:
            tab.expose_function("askPython", lambda question: respond_from_trace(view.trace, question))
            tab.evaluate(MOUNT)
        tab.wait_for_selector(".drawing .box", state="attached")
        open_panel(tab, "shape")
        tab.wait_for_selector(".shape .grids .place")
        return tab

    yield opened
    for tab in tabs:
        tab.close()
    assert errors == []


def places(tab: Any) -> list[str]:
    return tab.locator(".shape figure").first.locator(".place").all_inner_texts()


def test_hovering_an_element_highlights_its_memory_and_the_reverse(page: Callable[[bool], Any]) -> None:
    tab = page(False)
    tab.evaluate(f"tinyexplore.handle.select([{_flip(tab)}])")
    elements, memory = tab.locator(".shape figure").nth(0), tab.locator(".shape figure").nth(1)
    assert places(tab)[:7] == ["18", "19", "20", "21", "22", "23", "12"]
    elements.locator(".place").nth(1).hover()
    assert tab.inner_text(".shape .said") == "[0, 1] is at offset 19"
    assert memory.locator(".place.lit").all_inner_texts() == ["19"]
    memory.locator(".place").nth(6).hover()
    assert tab.inner_text(".shape .said") == "offset 6 is read by [2, 0]"
    tab.mouse.move(0, 0)
    elements.locator(".grid").focus()
    for key in ("ArrowRight", "ArrowDown"):
        tab.keyboard.press(key)
    assert "is at offset" in tab.inner_text(".shape .said") and elements.locator(".place.lit").count() == 1
    assert tab.locator(".shape .facts").inner_text().count("18") >= 1
    assert tab.locator(".shape .moves code").inner_text().startswith("view.panels.shape_of(")
    assert findings(tab) == []


def _flip(tab: Any) -> int:
    shapes = responses_in(tab.content(), "shape").values()
    return next(one["node"] for one in shapes if one["steps"][-1]["op"] == "FLIP")


def test_movements_are_buttons_and_can_be_undone(page: Callable[[bool], Any], view: Explorer) -> None:
    tab = page(True)
    (flip,) = view.trace.where(op="FLIP")
    tab.evaluate(f"tinyexplore.handle.select([{flip.id}])")
    wait_until(tab, "document.querySelector('.shape .place').innerText === '18'")
    tab.click(".shape .moves >> text=pad")
    assert "zeros around" in tab.inner_text(".shape .moves")
    tab.fill(".shape .moves input", "(1, 0), (0, 2)")
    tab.click(".shape .moves >> text=Apply")
    wait_until(tab, "document.querySelectorAll('.shape .padding').length > 0")
    assert tab.locator(".shape .place.padding").count() == 5 * 8 - 24
    assert "y[i0, i1] = x[i0 - 1, i1] where 1 <= i0 and i1 < 6, else 0" in tab.inner_text(".shape .facts")
    assert "5×8" in tab.locator(".shape .way .own").inner_text()
    tab.locator(".shape .place.padding").first.hover()
    assert "is padding" in tab.inner_text(".shape .said")
    tab.fill(".shape .moves input", "7, 7")
    tab.click(".shape .moves >> text=reshape")
    tab.fill(".shape .moves input", "7, 7")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".shape [role=alert]")
    assert "40 elements, not 49" in tab.inner_text(".shape [role=alert]")
    tab.click(".shape .way >> text=undo")
    wait_until(tab, "document.querySelectorAll('.shape .padding').length === 0")
    assert places(tab)[0] == "18"
    assert findings(tab) == []


def test_other_views_of_the_same_memory_are_overlaid(page: Callable[[bool], Any], view: Explorer) -> None:
    tab = page(True)
    (flip,) = view.trace.where(op="FLIP")
    tab.evaluate(f"tinyexplore.handle.select([{flip.id}])")
    wait_until(tab, "document.querySelector('.shape .place').innerText === '18'")
    boxes = tab.locator(".shape .beside input")
    assert boxes.count() == 1 and boxes.first.is_checked()
    assert tab.locator(".shape .bars").count() == 24
    boxes.first.click()
    assert tab.locator(".shape .bars").count() == 0


def test_a_large_shape_is_windowed_and_scrolls(page: Callable[[bool], Any], view: Explorer) -> None:
    tab = page(False)
    (turned,) = [node for node in view.trace.where(op="PERMUTE") if node.shape == (500, 300)]
    tab.evaluate(f"tinyexplore.handle.select([{turned.id}])")
    wait_until(tab, "document.querySelector('.shape .way').innerText.includes('500×300')")
    elements = tab.locator(".shape figure").first
    assert elements.locator(".place").count() == 16 * 16
    assert "[0:16, 0:16] of 500×300" in elements.inner_text()
    slider = elements.locator("input[type=range]").first
    slider.focus()
    tab.keyboard.press("End")
    assert "[484:500, 0:16] of 500×300" in elements.inner_text()
    assert places(tab)[0] == "484"
    assert tab.locator(".shape figure").nth(1).locator(".grid .place").count() == 256
