"""The debugger and the memory microscope in a real browser, with the responses of the engine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.pages import wait_until
from tests.support.panels import open_panel
from tests.support.patience import milliseconds
from tests.widgets.test_accessibility import findings
from tests.widgets.test_why import MOUNT
from tinyexplore import Context, Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.analysis.models.panel_data import debugger_data, row_widths
from tinyexplore.explore.exports.html_export import chunk_scripts
from tinyexplore.explore.notebook.requests import RequestHandler

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    rows = np.arange(16 * 24, dtype=np.float32).reshape(16, 24) / 64
    rows[3, 5] = np.inf
    x, w = Tensor(rows).realize(), Tensor(np.zeros((24, 8), np.float32)).realize()
    return explore(lambda: x @ w, repeat=1, noopt=1, keep_inputs=True, title="product")


def opened(browser: Any, view: Explorer, folder: Path, panel: str) -> Any:
    code = chunk_scripts(["kernel_analysis"])  # the code that a page without a Python kernel leaves out
    (folder / "page.html").write_text(view.to_html().replace("</body>", f"{code}</body>"), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((folder / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    tab.expose_function("askPython", RequestHandler(lambda: view.trace, view.capture))
    tab.evaluate(MOUNT)
    tab.wait_for_selector(".drawing .box", state="attached")
    open_panel(tab, panel)
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


def response(view: Explorer, **request: Any) -> dict[str, Any]:
    """The response of a view's widget to a request."""
    responses: list[dict[str, Any]] = []
    view.widget._answer(request, responses.append)
    return responses[0]


def test_responses_of_the_widget_follow_the_protocol(view: Explorer) -> None:
    """An answer that has an error, even an empty one, is none."""
    responses = [response(view, ask="debug", kernel=0, do=action) for action in ("look", "step", "finish")]
    responses.append(response(view, ask="caches", kernel=0))
    assert all("error" not in one for one in responses) and json.loads(json.dumps(responses[:3])) == responses[:3]
    assert response(view, ask="debug", kernel=99)["error"].startswith("kernel 99: ")


def test_tensors_are_drawn_in_their_shape(view: Explorer) -> None:
    tensors = response(view, ask="debug", kernel=0, do="look")["tensors"]
    assert {tensor["name"]: tensor["width"] for tensor in tensors} == {"data0": 8, "data1": 24, "data2": 8}
    assert row_widths(explore(lambda: Tensor.ones(3, 100).contiguous(), repeat=1).trace, 0) == {}, "too long for a line"


def counters(tab: Any) -> dict[str, str]:
    """The values in the fields of the loops."""
    fields = tab.query_selector_all(".debugger .counter input")
    return {one.get_attribute("aria-label").removeprefix("Iteration of "): one.input_value() for one in fields}


# the values beside the listing, the counters of the open loops, the lit cells, and what stands in all cells
SHOWN = """() => [
  [...document.querySelectorAll('.debugger .uop')].flatMap((line, place) => {
    const value = line.querySelector('.value');
    return value === null ? [] : [[place, value.innerText]];
  }),
  [...document.querySelectorAll('.debugger .counter:not(.out)')].map((one) => [one.innerText.split(' ')[0], one.querySelector('input').value]),
  [...document.querySelectorAll('.debugger .loaded, .debugger .stored')].map((one) => one.title),
  Object.fromEntries([...document.querySelectorAll('.debugger .element')].map((one) => [one.title, one.innerText])),
]"""


def until(tab: Any, text: str) -> None:
    tab.wait_for_selector(f".debugger .where:has-text('{text}')")


def test_buffers_carry_the_names_of_python(debugger: Any) -> None:
    parameters = debugger.locator(".debugger .uop:has-text('DEFINE_GLOBAL')").all_inner_texts()
    assert [text.split("\n")[-1].strip() for text in parameters[1:]] == ["x", "w"]
    assert {"x · data1", "w · data2"} <= set(debugger.locator(".debugger figcaption b").all_inner_texts())


def test_a_nan_is_found_at_its_iteration(debugger: Any) -> None:
    debugger.fill(".debugger input", "nan")
    debugger.keyboard.press("Enter")
    until(debugger, "nan")
    assert counters(debugger) == {"g0": "3", "g1": "0", "r2": "5"}
    assert debugger.inner_text(".debugger .uop[aria-current] .value") == "nan"


def test_keys_step_forwards_and_backwards(debugger: Any) -> None:
    debugger.focus(".debugger")
    for _ in range(3):
        debugger.keyboard.press("ArrowRight")
        wait_until(debugger, "document.querySelector('.tinyexplore .debugger').ariaBusy === null")
    until(debugger, "step 3")
    debugger.keyboard.press("ArrowLeft")
    until(debugger, "step 2 · back")
    debugger.keyboard.press("End")
    until(debugger, "at the end")
    debugger.keyboard.press("Home")
    until(debugger, "step 0")


def test_the_arrow_keys_step_after_an_input_field(debugger: Any) -> None:
    """A condition, a counter: once the debugger is there, ← goes a step back and moves no caret."""
    debugger.fill(".debugger .until input", "nan")
    debugger.keyboard.press("Enter")
    until(debugger, "nan")
    debugger.keyboard.press("ArrowLeft")
    until(debugger, "· back")
    debugger.fill(".debugger [aria-label='Iteration of g0']", "2")
    debugger.keyboard.press("Enter")
    until(debugger, "g0=2")
    debugger.keyboard.press("ArrowLeft")
    until(debugger, "· back")
    debugger.keyboard.press("Enter")  # on, until the condition that was typed holds
    until(debugger, "nan")
    debugger.fill(".debugger .until input", "when it breaks")
    debugger.keyboard.press("Enter")
    debugger.wait_for_selector(".debugger [role=alert]")
    assert debugger.evaluate("document.activeElement.dataset.focus") == "condition", "it is to be mended"


def test_the_arrow_keys_step_after_a_click_on_a_line(debugger: Any) -> None:
    debugger.click(".debugger .uop:has-text('STORE')")
    debugger.wait_for_selector(".debugger .element.stored")
    debugger.keyboard.press("ArrowLeft")
    until(debugger, "· back")


def test_a_click_on_a_line_runs_to_it_and_highlights_the_cell(debugger: Any, view: Explorer) -> None:
    debugger.click(".debugger .uop:has-text('= LOAD') >> nth=1")
    until(debugger, "at line")
    cell = debugger.wait_for_selector(".debugger .element.loaded")
    assert cell.get_attribute("title").startswith("data")
    debugger.click(".debugger .uop:has-text('STORE')")
    debugger.wait_for_selector(".debugger .element.stored")


def test_a_work_item_number_selects_the_followed_work_item(browser: Any, tmp_path: Path) -> None:
    with Context(DEVICE="PYTHON"):  # which runs it, as the emulator does
        x = Tensor(np.arange(1024, dtype=np.float32).reshape(2, 512) / 8).realize()
        view = explore(lambda: x.sum(1), target="sm_80", keep_inputs=True)
    tab = opened(browser, view, tmp_path, "debugger")
    tab.wait_for_selector(".debugger .program")
    assert counters(tab)["gidx0"] == counters(tab)["lidx0"] == "0"
    tab.fill(".debugger [aria-label='Iteration of lidx0']", "2")
    tab.keyboard.press("Enter")
    wait_until(tab, "document.querySelector('.debugger').innerText.includes('work-item gidx0 = 0, lidx0 = 2;')")
    tab.click(".debugger .uop:has-text('BARRIER') >> nth=0")
    until(tab, "at line")
    others = tab.wait_for_selector(".debugger .element.stored")
    assert others.get_attribute("title").startswith("shared0")
    assert counters(tab)["lidx0"] == "2"
    if folder := os.environ.get("SHOTS"):
        tab.screenshot(path=f"{folder}/followed.png")
    tab.close()


def test_a_number_in_a_loop_jumps_to_its_iteration(debugger: Any) -> None:
    for loop, count in (("g0", "2"), ("g1", "3"), ("r2", "4")):
        debugger.fill(f".debugger [aria-label='Iteration of {loop}']", count)
    debugger.keyboard.press("Enter")
    until(debugger, "g0=2, g1=3, r2=4")
    assert counters(debugger) == {"g0": "2", "g1": "3", "r2": "4"}
    debugger.fill(".debugger [aria-label='Iteration of g0']", "99")
    debugger.keyboard.press("Enter")
    until(debugger, "at the end")


def test_one_lane_of_a_vector_is_shown(browser: Any, tmp_path: Path) -> None:
    x = Tensor(np.arange(64, dtype=np.float32)).realize()
    vectors = explore(lambda: x * 2, repeat=1, keep_inputs=True)
    kept = vectors.kernels[0].debug()
    lanes = kept.lanes
    assert lanes > 1
    tab = opened(browser, vectors, tmp_path, "debugger")
    tab.wait_for_selector(".debugger .program")
    tab.click(".debugger .uop:has-text('= LOAD') >> nth=0")
    until(tab, "at line")
    assert tab.inner_text(".debugger .uop[aria-current] .value").startswith("[0, 1")
    assert tab.locator(".debugger .element.loaded").count() == lanes
    tab.select_option(".debugger .which-lane select", "3")
    wait_until(tab, "document.querySelector('.debugger .uop[aria-current] .value').innerText === '3'")
    assert tab.locator(".debugger .element.loaded").count() == 1
    assert findings(tab) == []
    tab.close()


def test_a_page_steps_the_recorded_iterations_without_python(browser: Any, view: Explorer, tmp_path: Path) -> None:
    """The page shows the same state as the debugger in Python."""
    view.to_html(tmp_path / "page.html", iterations=400)
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    open_panel(tab, "debugger")
    tab.wait_for_selector(".debugger .program")
    assert "the first 400 steps" in tab.inner_text(".banner")
    debugger = view.kernels[0].debug()
    widths = row_widths(view.trace, 0)
    tab.focus(".debugger")
    for key, forwards in (
        ("Right", 1),
        ("Right", 1),
        ("Down", 10),
        ("Down", 10),
        ("Left", -1),
        ("Down", 10),
        ("Up", -10),
    ):
        tab.keyboard.press(f"Arrow{key}")
        debugger.step(forwards) if forwards > 0 else debugger.back(-forwards)
        wanted = debugger_data(debugger, widths)
        until(tab, f"step {debugger.position:,} ")
        lines, open_loops, lit, cells = tab.evaluate(SHOWN)
        assert lines == [[place, text] for place, text in wanted.values], debugger.position
        assert open_loops == [[name, str(count)] for name, count in wanted.loops]
        assert lit == [f"{one.name}[{place}]" for one in wanted.tensors for place in one.lit]
        known = {f"{one.name}[{k}]": text for one in wanted.tensors for k, text in enumerate(one.cells, one.first)}
        assert cells == known
    tab.fill(".debugger [aria-label='Iteration of g1']", "1")
    tab.keyboard.press("Enter")
    until(tab, "g0=0, g1=1")
    tab.fill(".debugger .until input", "nan")
    tab.keyboard.press("Enter")
    until(tab, "the recording ends here, after 400 steps")
    tab.keyboard.press("Escape")
    tab.click(".debugger button[title='To the start (Home)']")
    tab.fill(".debugger .until input", "data1[2]")
    tab.keyboard.press("Enter")
    until(tab, "data1[2]")
    assert tab.locator(".element.loaded").get_attribute("title") == "data1[2]"
    assert findings(tab) == []
    tab.close()


def test_a_wrong_condition_shows_an_error_next_to_the_controls(debugger: Any) -> None:
    debugger.fill(".debugger input", "when it breaks")
    debugger.click(".debugger button:has-text('Run')")
    assert "a condition is" in debugger.wait_for_selector(".debugger [role=alert]").inner_text()
    assert debugger.is_visible(".debugger .program")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 600)])
def test_both_panels_are_without_grave_findings(debugger: Any, scheme: str, width: int) -> None:
    debugger.emulate_media(color_scheme=scheme)
    debugger.set_viewport_size({"width": width, "height": 1000})
    debugger.click(".debugger .uop:has-text('= LOAD') >> nth=0")
    debugger.wait_for_selector(".debugger .element.loaded")
    assert findings(debugger) == []
    open_panel(debugger, "caches")
    debugger.wait_for_selector(".caches .traffic")
    assert findings(debugger) == []


def test_caches_are_compared_row_by_row(browser: Any, tmp_path: Path) -> None:
    x, w = (Tensor(np.ones((64, 64), np.float32)).realize() for _ in range(2))
    product = explore(lambda: x @ w, repeat=1)
    tab = opened(browser, product, tmp_path, "caches")
    tab.wait_for_selector(".caches .pairs")
    before, after = product.kernels[0].caches(opts=()), product.kernels[0].caches()
    rows = [one.inner_text() for one in tab.query_selector_all(".caches .pairs .traffic")]
    assert f"{before.total.accesses:,}" in rows[0] and f"{after.total.accesses:,}" in rows[1]
    assert f"÷ {before.total.accesses / after.total.accesses:.1f}" in rows[1]
    heads = tab.locator(".caches .pairs h6").all_inner_texts()
    assert heads == ["by buffer", "by loop", "by line of the source"]
    told = [(row.name, row.before, row.after) for row in before.compare(after).rows()]
    assert len(rows) == 2 + 2 * len(told)
    for (name, one, other), left, right in zip(told, rows[2::2], rows[3::2], strict=True):
        for traffic, text in ((one, left), (other, right)):
            assert name in text and ("not here" if traffic is None else f"{traffic.accesses:,}") in text
    assert "64 of 256 lines" in tab.inner_text(".caches"), "a column of the second factor"
    bars = tab.locator(".caches .reuse rect.now title").all_text_contents()
    assert any(f"{after.total.reuse[-1]:,} accesses" in text for text in bars)
    assert tab.locator(".caches .reuse .holds").count() == len(after.caches)
    tab.fill(".caches [aria-label='Other opts to compare with']", "VECTOR(1, 4), UPCAST(0, 2)")
    tab.keyboard.press("Enter")
    wait_until(tab, "document.querySelectorAll('.caches h5')[1].innerText.includes('UPCAST(0, 2)')")
    wanted = product.kernels[0].caches(opts=["VECTOR(1, 4)", "UPCAST(0, 2)"]).total.accesses
    assert f"{wanted:,}" in tab.query_selector_all(".caches .pairs .traffic")[1].inner_text()
    tab.select_option(".caches [aria-label='Opts before']", label="as captured")
    wait_until(tab, "document.querySelectorAll('.caches h5')[0].innerText.includes('THREAD')")
    assert findings(tab) == []
    tab.fill(".caches [aria-label='Other opts to compare with']", "VECTOR(9, 4)")
    tab.keyboard.press("Enter")
    assert "no axis 9" in tab.wait_for_selector(".caches [role=alert]").inner_text()
    tab.close()


def test_inputs_that_were_not_saved_are_generated(browser: Any, tmp_path: Path) -> None:
    x = Tensor(np.ones(8, np.float32)).realize()
    tab = opened(browser, explore(lambda: x + 1, repeat=1), tmp_path, "debugger")
    tab.wait_for_selector(".debugger .program")
    assert "keep_inputs=True" in tab.inner_text(".debugger .note")


def test_a_page_without_an_engine_shows_a_remedy(browser: Any, tmp_path: Path) -> None:
    x = Tensor.rand(8, 12).realize()
    explore(lambda: x + 1, repeat=1).to_html(tmp_path / "page.html")  # of which nothing was asked before
    tab = browser.new_page()
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    tab.evaluate("tinyexplore.handle.go({panel: 'debugger'})")  # no tab leads there, a link may
    assert "iterations=2000" in tab.inner_text(".low > .lazy-view:not([hidden])")
    tab.evaluate("tinyexplore.handle.go({panel: 'caches'})")
    assert "view.kernels[0].caches()" in tab.inner_text(".low > .lazy-view:not([hidden])")
    tab.close()


def test_a_page_shows_the_requested_caches(browser: Any, tmp_path: Path) -> None:
    x, w = (Tensor.rand(*shape).realize() for shape in ((8, 12), (12, 16)))
    view = explore(lambda: x @ w, repeat=1)
    view.kernels[0].caches()
    view.to_html(tmp_path / "page.html")
    tab = browser.new_page()
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    open_panel(tab, "caches")
    names = [one.inner_text() for one in tab.wait_for_selector(".caches .pairs").query_selector_all(".name")]
    assert {"all", "x · data1", "w · data2"} <= set(names)
    tab.close()
