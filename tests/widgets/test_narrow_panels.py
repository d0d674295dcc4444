"""Every panel in a narrow window: nothing that is seen is cut off at the right edge of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
