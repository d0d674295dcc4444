"""Panels in a narrow or low window: nothing visible is cut off or too small, or in two nested scroll areas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.pages import settle
from tests.support.panels import open_panel, panels_with_tabs
from tests.support.patience import milliseconds
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore

pytestmark = pytest.mark.browser

# elements whose right edge is outside of the page, where no box around them scrolls or cuts a text with an ellipsis
OUTSIDE = """() => [...document.querySelectorAll('.low *')].filter((one) => {
  const { right, width, height } = one.getBoundingClientRect();
  if (width === 0 || height === 0 || right <= innerWidth + 1 || !one.checkVisibility()) return false;
  for (let box = one; box !== null && !box.classList.contains('low'); box = box.parentElement) {
    const { overflowX, textOverflow } = getComputedStyle(box);
    const isCut = box !== one && overflowX !== 'visible' && box.getBoundingClientRect().right <= innerWidth + 1;
    if (isCut && (overflowX === 'auto' || overflowX === 'scroll' || textOverflow === 'ellipsis' || box instanceof SVGElement)) {
      if (!box.matches('.caches')) return false;
    }
  }
  return true;
}).map((one) => `${one.tagName}.${one.getAttribute('class')}: ${one.textContent.slice(0, 40)}`)"""

# words below 11 pixels, and boxes that scroll inside of one that scrolls the same way
FAULTS = """() => [...document.querySelectorAll('.tinyexplore *')].flatMap((one) => {
  if (!one.checkVisibility() || one.closest('svg')) return [];
  const style = getComputedStyle(one);
  const name = one.getAttribute('class');
  const hasWords = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
  const scrolls = (box) =>
    ['auto', 'scroll'].includes(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight + 1;
  const faults = hasWords && parseFloat(style.fontSize) < 11 ? [`${style.fontSize}: ${name}`] : [];
  for (let box = one.parentElement; scrolls(one) && box !== null; box = box.parentElement)
    if (scrolls(box)) faults.push(`${name} scrolls in ${box.getAttribute('class')}`);
  return faults;
})"""
FILLED = ("tuner", "rules", "debugger", "caches", "llvm")


@pytest.fixture(scope="module")
def filled() -> Explorer:
    """A trace with something in every panel of `FILLED`."""
    x, w = (Tensor(np.ones(shape, np.float32)).realize() for shape in ((64, 64), (64, 64)))
    found = explore(lambda: (x @ w).softmax(), repeat=3, title="filled")
    kernel = found.kernels[0]
    kernel.caches()
    kernel.passes()
    kernel.apply(str(kernel.available_opts()[0]))
    found.rules.disable("add_zero")
    return found


def workbench(browser: Any, view: Explorer, folder: Path, width: int, height: int, scheme: str = "light") -> Any:
    view.to_html(folder / "page.html", iterations=200)
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((folder / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    return tab


@pytest.mark.parametrize(("width", "height"), [(700, 900), (1000, 640)])
def test_filled_panels_have_legible_words_and_one_scrolling_box(
    browser: Any, filled: Explorer, tmp_path: Path, width: int, height: int
) -> None:
    tab = workbench(browser, filled, tmp_path, width, height)
    assert set(FILLED) <= set(panels_with_tabs(tab))
    faults = {}
    for panel in FILLED:
        open_panel(tab, panel)
        settle(tab, 200)
        if found := [*tab.evaluate(FAULTS), *tab.evaluate(OUTSIDE)]:
            faults[panel] = found[:4]
    tab.close()
    assert faults == {}


@pytest.mark.parametrize(("width", "height"), [(700, 900), (1000, 640)])
def test_the_card_of_a_node_leaves_the_graph_visible_next_to_a_wide_panel(
    browser: Any, filled: Explorer, tmp_path: Path, width: int, height: int
) -> None:
    tab = workbench(browser, filled, tmp_path, width, height)
    open_panel(tab, "tuner")
    tab.evaluate("tinyexplore.handle.select([tinyexplore.handle.state.selected[0] ?? 3])")
    tab.wait_for_selector(".graph .card:not([hidden])")
    canvas, card = (tab.locator(f".graph .{one}").bounding_box() for one in ("canvas", "card"))
    tab.close()
    assert canvas["x"] + canvas["width"] <= card["x"] + 1
    assert canvas["width"] >= 250 and canvas["height"] >= 90


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = (Tensor(np.ones(shape, np.float32)).realize() for shape in ((64, 64), (64, 64)))
    found = explore(lambda: ((x @ w).T.exp().sum(1), x.T.reshape(32, 128).contiguous()), repeat=3, title="narrow")
    found.kernels[0].caches()
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_panel_is_cut_off_at_430_pixels(browser: Any, view: Explorer, tmp_path: Path, scheme: str) -> None:
    view.to_html(tmp_path / "page.html")
    tab = browser.new_page(viewport={"width": 430, "height": 1000}, color_scheme=scheme)
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    panels = panels_with_tabs(tab)
    assert len(panels) >= 11
    outside = {}
    for panel in panels:
        open_panel(tab, panel)
        if found := tab.evaluate(OUTSIDE):
            outside[panel] = found[:4]
        tab.screenshot(path=str(tmp_path / f"{panel}.png"))
    tab.close()
    assert outside == {}
