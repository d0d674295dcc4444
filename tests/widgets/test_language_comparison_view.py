"""The panel *Languages* in a real browser: in a page that stores the texts, and with responses of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import wait_until
from tests.support.panels import open_panel
from tests.widgets.test_accessibility import findings
from tests.widgets.test_throughput_view import opened
from tests.widgets.test_why import MOUNT
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.exports.html_export import chunk_scripts
from tinyexplore.explore.notebook.requests import RequestHandler

pytestmark = pytest.mark.browser
ROWS = """() => [...document.querySelectorAll('.languages tbody tr')].map((row) => [...row.cells].map((cell) =>
  cell.querySelector('.line')?.textContent.trim() ?? cell.firstChild?.textContent ?? ''))"""


@pytest.fixture(scope="module")
def view() -> Explorer:
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    found = explore(lambda: a + b * 2, repeat=1, title="one kernel", target="x86-64-v3,threads=2,l1=32K,l2=512K")
    found.kernels[0].translate(["cuda", "metal", "wasm"])
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 480)])
def test_a_page_shows_its_stored_texts_side_by_side(
    browser: Any, view: Explorer, tmp_path: Path, scheme: str, width: int, screenshots: Path
) -> None:
    tab = opened(browser, view.to_html(), tmp_path, color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 1000})
    open_panel(tab, "rosetta")
    tab.wait_for_selector(".languages table")
    tab.select_option(".languages select >> nth=0", "cuda")
    tab.select_option(".languages select >> nth=1", "metal")
    if tab.locator(".languages select").count() == 3:
        tab.select_option(".languages select >> nth=2", "")
    rows = tab.evaluate(ROWS)
    assert ["LOAD", "float v1 = data1[v0];", "float v1 = data1[v0];"] in rows
    assert ["g1", "int gidx0 = blockIdx.x; /* 16 */", "int gidx0 = group.x; /* 16 */"] in rows
    load = tab.locator(".languages tr:has(th:text-is('MUL'))")
    load.scroll_into_view_if_needed()
    load.locator(".line").first.hover()
    assert (
        tab.eval_on_selector_all(".languages .line.hov", "found => found.map((one) => one.textContent.trim())")
        == ["float v3 = v2 * 2.0f;"] * 2
    )
    load.locator(".line").first.click()
    (selected,) = tab.evaluate("tinyexplore.handle.state.selected")
    assert view.trace.nodes[selected].op == "MUL" and view.trace.nodes[selected].kind == "uop"
    assert tab.locator(".codes .line.rel").count() > 0  # the lines of the captured listings
    assert findings(tab) == []
    stacked = load.locator("td").nth(1).bounding_box()["y"] > load.locator("td").nth(0).bounding_box()["y"]
    assert stacked == (width == 480)
    tab.screenshot(path=screenshots / f"rosetta_{scheme}.png")
    tab.close()


def test_the_view_requests_texts_and_gaps_lead_to_counterparts(browser: Any, view: Explorer, tmp_path: Path) -> None:
    asked: list[Any] = []
    answers = RequestHandler(lambda: view.trace, view.capture)

    def answer(question: Any) -> Any:
        asked.append(question)
        return {"error": "not now"} if len(asked) == 1 else answers(question)

    page = view.to_html().replace("</body>", f"{chunk_scripts(['language_comparison'])}</body>")
    tab = opened(browser, page, tmp_path)
    tab.expose_function("askPython", answer)
    tab.evaluate(MOUNT)
    open_panel(tab, "rosetta")
    tab.wait_for_selector(".languages [role=alert]:has-text('not now')")
    open_panel(tab, "timing")
    open_panel(tab, "rosetta")
    tab.wait_for_selector(".languages table")
    assert asked == [{"ask": "rosetta", "kernel": 0}] * 2
    assert tab.eval_on_selector_all(".languages select", "found => found.map((one) => one.value)") == [
        "c",
        "cuda",
        "llvm",
    ]
    assert tab.locator(".languages .fold button").first.inner_text().endswith("lines before the function")
    tab.click(".languages .fold button >> nth=0")
    assert tab.locator(".languages .line:has-text('#include <math.h>')").count() == 1
    gap = tab.locator(".languages tr:has(th:text-is('STORE')) td.gap:text-is('on another row')").last
    gap.scroll_into_view_if_needed()
    gap.click()
    wait_until(tab, "tinyexplore.handle.state.selected.length === 1")
    counterpart = tab.locator(".languages .line.sel:has-text('data0[v0] = v4;')")
    box, panel = counterpart.bounding_box(), tab.locator(".languages").bounding_box()
    assert panel["y"] <= box["y"] and box["y"] + box["height"] <= panel["y"] + panel["height"]
    tab.focus(".languages")
    tab.keyboard.press("ArrowDown")
    assert tab.locator(".languages tr.caret th").inner_text().startswith("kernel")
    tab.close()
