"""The debugger and the memory microscope in a real browser, asked of the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.widgets.test_accessibility import findings
from tests.widgets.test_why import MOUNT
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.byhand.answers import ByHandAnswers, row_widths

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    rows = np.arange(16 * 24, dtype=np.float32).reshape(16, 24) / 64
    rows[3, 5] = np.inf
    x, w = Tensor(rows).realize(), Tensor(np.zeros((24, 8), np.float32)).realize()
    return explore(lambda: x @ w, repeat=1, noopt=1, keep_inputs=True, title="product")


def opened(browser: Any, view: Explorer, folder: Path, panel: str) -> Any:
    view.to_html(folder / "page.html")
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((folder / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=15_000)
    tab.expose_function("askPython", ByHandAnswers(view).answer)
    tab.evaluate(MOUNT)
    tab.wait_for_selector(".drawing .box", state="attached")
    tab.click(f"[data-key={panel}]")
    return tab


@pytest.fixture
def debugger(browser: Any, view: Explorer, tmp_path: Path) -> Iterator[Any]:
    """The page with the debugger's panel open; no error may be left in it."""
    errors: list[str] = []
    tab = opened(browser, view, tmp_path, "debugger")
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.wait_for_selector(".debugger .program")
    yield tab
    tab.close()
    assert errors == []


def test_the_widget_answers_as_its_channel_wants_it(view: Explorer) -> None:
    """An answer that has an error, even an empty one, is none."""
    told = [view.widget._answer({"ask": "debug", "kernel": 0, "do": action}) for action in ("look", "step", "finish")]
    told.append(view.widget._answer({"ask": "caches", "kernel": 0}))
    assert all("error" not in answer for answer in told) and json.loads(json.dumps(told[:3])) == told[:3]
    assert view.widget._answer({"ask": "debug", "kernel": 99})["error"].startswith("kernel 99: those of this capture")


def test_tensors_are_drawn_in_the_rows_that_their_users_know(view: Explorer) -> None:
    tensors = view.widget._answer({"ask": "debug", "kernel": 0, "do": "look"})["tensors"]
    assert {tensor["name"]: tensor["width"] for tensor in tensors} == {"data0": 8, "data1": 24, "data2": 8}
    assert row_widths(explore(lambda: Tensor.ones(3, 100).contiguous(), repeat=1).trace, 0) == {}, "too long for a line"


def until(tab: Any, text: str) -> None:
    tab.wait_for_selector(f".debugger .where:has-text('{text}')")


def test_a_nan_is_hunted_to_its_iteration(debugger: Any) -> None:
    debugger.fill(".debugger input", "nan")
    debugger.keyboard.press("Enter")
    until(debugger, "nan")
    assert debugger.inner_text(".debugger .steps").count("g0 = 3") == 1
    assert "r2 = 5" in debugger.inner_text(".debugger .steps")
    assert debugger.inner_text(".debugger .uop[aria-current] .value") == "nan"


def test_keys_step_forwards_and_backwards(debugger: Any) -> None:
    debugger.focus(".debugger")
    for _ in range(3):
        debugger.keyboard.press("ArrowRight")
        debugger.wait_for_function("document.querySelector('.tinyexplore .debugger').ariaBusy === null")
    until(debugger, "step 3")
    debugger.keyboard.press("ArrowLeft")
    until(debugger, "step 2 · back")
    debugger.keyboard.press("End")
    until(debugger, "at the end")
    debugger.keyboard.press("Home")
    until(debugger, "step 0")


def test_a_click_on_a_line_runs_there_and_lights_the_cell(debugger: Any, view: Explorer) -> None:
    debugger.click(".debugger .uop:has-text('= LOAD') >> nth=1")
    until(debugger, "at line")
    cell = debugger.wait_for_selector(".debugger .element.loaded")
    assert cell.get_attribute("title").startswith("data")
    debugger.click(".debugger .uop:has-text('STORE')")
    debugger.wait_for_selector(".debugger .element.stored")


def test_a_wrong_condition_is_answered_beside_the_controls(debugger: Any) -> None:
    debugger.fill(".debugger input", "when it breaks")
    debugger.click(".debugger button:has-text('Run')")
    assert "a condition is" in debugger.wait_for_selector(".debugger [role=alert]").inner_text()
    assert debugger.is_visible(".debugger .program")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 600])
def test_both_panels_are_without_grave_findings(debugger: Any, scheme: str, width: int) -> None:
    debugger.emulate_media(color_scheme=scheme)
    debugger.set_viewport_size({"width": width, "height": 1000})
    debugger.click(".debugger .uop:has-text('= LOAD') >> nth=0")
    debugger.wait_for_selector(".debugger .element.loaded")
    assert findings(debugger) == []
    debugger.click("[data-key=caches]")
    debugger.wait_for_selector(".caches .traffic")
    assert findings(debugger) == []


def test_caches_stand_before_and_after_with_the_lines_of_a_tile(browser: Any, tmp_path: Path) -> None:
    x, w = (Tensor(np.ones((64, 64), np.float32)).realize() for _ in range(2))
    product = explore(lambda: x @ w, repeat=1)
    tab = opened(browser, product, tmp_path, "caches")
    tab.wait_for_selector(".caches .traffic")
    before, after = (one.inner_text() for one in tab.query_selector_all(".caches section"))
    assert "Without opts" in before and f"{product.caches(0, opts=()).total.touches:,}" in before
    assert "As it is" in after and f"{product.caches(0).total.touches:,}" in after
    assert "64 of 256 lines" in before, "a column of the second factor"
    tab.close()


def test_inputs_that_were_not_kept_are_made_up_on_request(browser: Any, tmp_path: Path) -> None:
    x = Tensor(np.ones(8, np.float32)).realize()
    tab = opened(browser, explore(lambda: x + 1, repeat=1), tmp_path, "debugger")
    assert "keep_inputs=True" in tab.wait_for_selector(".debugger [role=alert]").inner_text()


def test_a_page_without_an_engine_says_what_would_do(browser: Any, view: Explorer, tmp_path: Path) -> None:
    view.to_html(tmp_path / "page.html")
    tab = browser.new_page()
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=15_000)
    tab.click("[data-key=debugger]")
    assert "keep_inputs=True" in tab.inner_text(".debugger")
    tab.click("[data-key=caches]")
    assert "view.caches(0)" in tab.inner_text(".caches")
    tab.close()
