"""Texts of stages, and the panel of LLVM's passes, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.explore.test_stage_texts import toy_trace
from tests.support.pages import responses_in
from tests.support.panels import open_panel, panels_with_tabs
from tests.support.patience import milliseconds
from tests.widgets.test_accessibility import findings
from tests.widgets.test_why import MOUNT
from tinyexplore import Context, Device, Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore import open as open_trace
from tinyexplore.explore.notebook.requests import RequestHandler

pytestmark = pytest.mark.browser
RECORDED = Path(__file__).resolve().parents[2] / "notebooks" / "recorded"
needs_llvm = pytest.mark.skipif("LLVM" not in Device.available(), reason="needs llvmlite")


def opened(browser: Any, page: str, folder: Path, width: int = 1280, **options: Any) -> Any:
    (folder / "page.html").write_text(page, encoding="utf-8")
    tab = browser.new_page(viewport={"width": width, "height": 1000}, **options)
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((folder / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    return tab


def texts(tab: Any, selector: str) -> list[str]:
    found: list[str] = tab.eval_on_selector_all(selector, "all => all.map((one) => one.textContent)")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_foreign_trace_is_stepped_by_its_texts(browser: Any, tmp_path: Path, scheme: str, screenshots: Path) -> None:
    tab = opened(browser, Explorer(toy_trace()).to_html(), tmp_path, color_scheme=scheme)
    assert panels_with_tabs(tab) == ["rewrites", "history", "glossary"]
    assert "instructions" in tab.inner_text(".pipeline") and "LazyBuffer" not in tab.inner_text(".pipeline")
    tab.wait_for_selector(".textdiff .cell")  # the text after the first stage, whole
    assert texts(tab, ".textdiff code") == ["f:", "  %a = load x", "  %b = add %a, %a"]
    tab.keyboard.press("ArrowRight")
    tab.wait_for_selector(".textdiff .cell.add")
    assert texts(tab, ".textdiff .del code") == ["  %b = add %a, %a"]
    assert texts(tab, ".textdiff .add code") == ["  %b = shl %a, 1"]
    tab.click(".textdiff .cell.add")
    assert tab.evaluate("tinyexplore.handle.state.selected") == [1]
    assert texts(tab, ".codes .line.sel code") == ["y = x + x", "  %b = shl %a, 1"]
    assert "block loop in function f" in tab.inner_text(".card")
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"stage_text_{scheme}.png")
    tab.keyboard.press("ArrowRight")  # over the stage without a change
    tab.wait_for_selector(".textdiff[data-language=tasm]")
    assert tab.evaluate("tinyexplore.handle.state.cursor.stage") == 3
    assert texts(tab, ".textdiff .sel code") == ["  sll r1, 1"]
    tab.close()


@pytest.mark.parametrize(
    "name", ["jax_softmax_of_product", "numba_sum_of_squares", "triton_add", "inductor_training_step"]
)
def test_the_graphs_pane_is_absent_or_has_a_graph(browser: Any, tmp_path: Path, name: str) -> None:
    """At every text of another compiler: a kernel's text has its kernel's graph, and a text before all graphs none."""
    view = open_trace(RECORDED / f"{name}.json.gz")
    trace = view.trace
    tab = opened(browser, view.to_html(), tmp_path)
    firsts = {text.language: text.stage for text in reversed(trace.stage_texts)}
    absent = []
    for language, stage in firsts.items():
        tab.evaluate(f"tinyexplore.handle.go({{stage: {stage}, place: 'passes', panel: 'rewrites'}})")
        tab.wait_for_selector(".textdiff, .pair, .tree")
        if tab.is_visible(".graph"):
            assert tab.locator(".graph .boxes .box").count() > 0, language
        else:
            absent.append(language)
            assert tab.locator(".codes").bounding_box()["width"] > 1200
    assert absent == (["bytecode"] if name.startswith("numba") else [])
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_are_found_in_all_texts_and_lead_back(
    browser: Any, tmp_path: Path, scheme: str, screenshots: Path
) -> None:
    tab = opened(browser, Explorer(toy_trace()).to_html(), tmp_path, color_scheme=scheme)
    tab.wait_for_selector(".textdiff .cell")
    tab.focus(".textdiff")
    tab.keyboard.press("/")
    tab.keyboard.type("1")
    assert tab.inner_text(".stagetext .found") == "3 lines of 2 texts"
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".textdiff .cell.add.caret.hit")
    assert texts(tab, ".textdiff .caret code") == ["  %b = shl %a, 1"]
    assert tab.evaluate("tinyexplore.handle.state.cursor.stage") == 1
    tab.keyboard.press("Shift+Enter")  # around the end
    tab.wait_for_selector(".textdiff[data-language=tasm] .caret")
    assert texts(tab, ".textdiff .caret code") == ["  sll r1, 1"]
    assert texts(tab, ".textdiff .hit code") == ["  ld r1, x", "  sll r1, 1"]
    assert tab.evaluate("tinyexplore.handle.state.selected") == [1, 3]
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"text_search_{scheme}.png")
    tab.click("text=history of line 3")
    tab.wait_for_selector(".history .of-line")
    assert texts(tab, ".history .of-line code") == ["%b = add %a, %a", "%b = shl %a, 1", "sll r1, 1"]
    assert "2 earlier lines led here" in tab.inner_text(".history .note")
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"text_history_{scheme}.png")
    tab.click(".history .of-line >> nth=0")
    tab.wait_for_selector(".textdiff .caret")
    assert texts(tab, ".textdiff .caret code") == ["  %b = add %a, %a"]
    tab.keyboard.press("g")
    tab.wait_for_selector(".goto")
    tab.keyboard.type("shl")
    tab.click("text=in the texts of stages")
    tab.wait_for_selector(".textdiff .cell.add.caret.hit")
    assert tab.evaluate("tinyexplore.handle.state.cursor.stage") == 1
    tab.close()


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = (Tensor(np.ones(shape, np.float32)).realize() for shape in ((64, 64), (64, 64)))
    with Context(DEVICE="LLVM"):
        return explore(lambda: (x @ w).softmax(), repeat=3, title="matmul and softmax")


@needs_llvm
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 700)])
def test_a_page_has_the_passes_of_the_slowest_kernel(
    browser: Any, view: Explorer, tmp_path: Path, scheme: str, width: int, screenshots: Path
) -> None:
    page = view.to_html()
    (found,) = responses_in(page, "passes").values()
    tab = opened(browser, page, tmp_path, width, color_scheme=scheme)
    tab.evaluate(f"tinyexplore.handle.go({{kernel: {found['number']}}})")
    open_panel(tab, "llvm")
    tab.wait_for_selector(".llvm .pass")
    rows = tab.eval_on_selector_all(".llvm .pass", "all => all.map((one) => Number(one.dataset.pass))")
    assert rows == [one["number"] for one in found["passes"] if one["changed"]]
    tab.click(f".llvm .pass[data-pass='{rows[-1]}']")
    passes = view.kernels[found["number"]].passes()
    assert texts(tab, ".textdiff code") == [line.text for line in passes[-1].lines]
    lines = passes[-1].lines
    at = next(place for place, line in enumerate(lines) if place > len(lines) // 2 and line.nodes)
    tab.click(f".textdiff .texts:nth-child({at + 1}) .cell")
    selected = tab.evaluate("tinyexplore.handle.state.selected")
    assert tuple(selected) == passes[-1].lines[at].nodes
    assert tab.query_selector(".textdiff .sel") is not None
    lit = tab.query_selector_all(".codes .line.sel, .codes .line.rel, .codes .piece.from")
    assert lit, "neither the UOp nor the line of Python is marked"
    tab.click(f".llvm .pass[data-pass='{rows[len(rows) // 3]}']")
    tab.click(".textdiff .cell.linked:visible >> nth=0")
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"llvm_passes_{scheme}_{width}.png")
    tab.close()


@needs_llvm
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_runs_a_pipeline_searches_its_texts_and_leads_back(
    browser: Any, view: Explorer, tmp_path: Path, scheme: str, screenshots: Path
) -> None:
    answers = RequestHandler(lambda: view.trace, view.capture)
    tab = opened(browser, view.to_html(), tmp_path, color_scheme=scheme)
    tab.expose_function("askPython", answers)
    tab.evaluate(MOUNT)
    open_panel(tab, "llvm")
    tab.wait_for_selector(".llvm .pass")
    tab.select_option(".llvm select[aria-label=pipeline]", "O0")
    tab.wait_for_selector(".llvm:not([aria-busy])", timeout=milliseconds(30))
    tab.click(".llvm button:has-text('run and time')")
    tab.wait_for_selector(".llvm .run-time b", timeout=milliseconds(60))
    words = tab.inner_text(".llvm .run-time")
    assert words.startswith("runs in ") and "as compiled" in words
    results = tab.get_attribute(".llvm .run-time", "title")
    assert "the same bits" in results or "within the tolerance" in results  # the slowest kernel may be either
    tab.select_option(".llvm select[aria-label=pipeline]", "O3")
    tab.wait_for_selector(".llvm .is-timed .pass", timeout=milliseconds(30))
    assert tab.inner_text(".llvm .run-time") == ""  # it was of another pipeline
    tab.fill(".llvm .search", "load")
    passes = view.kernels[tab.evaluate("tinyexplore.handle.state.cursor.kernel")].passes("O3")
    found = [one.number for one in passes.changed for line in one.lines if "load" in line.text.lower()]
    assert tab.inner_text(".llvm .found").startswith(f"{len(found):,} lines of ")
    tab.press(".llvm .search", "Enter")
    tab.wait_for_selector(".llvm .textdiff .caret.hit")
    tab.press(".llvm .search", "Shift+Enter")
    tab.wait_for_selector(".llvm .textdiff .caret.hit")
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"llvm_search_{scheme}.png")
    tab.click(f".llvm .pass[data-pass='{passes.changed[-1].number}']")
    tab.click(".textdiff .cell.linked >> nth=9")
    tab.click(".llvm button:has-text('history of line')")
    tab.wait_for_selector(".llvm .of-line")
    stages = [one.split(",")[0] for one in texts(tab, ".llvm .of-line .faint")]
    assert stages[0] == "IR" and stages[-1] == "assembly"
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"llvm_history_{scheme}.png")
    tab.click(".llvm .of-line >> nth=0")
    tab.wait_for_selector(".llvm .textdiff .caret")
    tab.close()


@needs_llvm
def test_another_pipeline_is_requested_and_shown_side_by_side(
    browser: Any, view: Explorer, tmp_path: Path, screenshots: Path
) -> None:
    answers = RequestHandler(lambda: view.trace, view.capture)
    tab = opened(browser, view.to_html(), tmp_path)
    tab.expose_function("askPython", answers)
    tab.evaluate(MOUNT)
    open_panel(tab, "llvm")
    tab.wait_for_selector(".llvm .pass")
    kernel = tab.evaluate("tinyexplore.handle.state.cursor.kernel")
    tab.select_option(".llvm select[aria-label=pipeline]", "O3")
    tab.wait_for_selector(".llvm .is-timed .pass", timeout=milliseconds(30))
    whole = view.kernels[kernel].passes("O3")
    assert len(tab.query_selector_all(".llvm .pass")) == len(whole.changed)
    number = whole["instcombine"].number
    tab.click(f".llvm .pass[data-pass='{number}']")
    tab.click(".llvm .bar >> text=skip")
    tab.wait_for_selector(".llvm .chip-off", timeout=milliseconds(30))
    assert "instcombine" in tab.inner_text(".llvm .chip-off")
    tab.click(".llvm .chip-off")
    tab.wait_for_selector(".llvm .chip-off", state="detached", timeout=milliseconds(30))
    tab.select_option(".llvm select[aria-label=beside]", "O0")
    tab.wait_for_selector(".llvm [role=tablist]", timeout=milliseconds(30))
    plain = view.kernels[kernel].passes("O0")
    right = texts(tab, ".textdiff .texts > .cell:last-child:not(.none) code")
    assert right and set(right) <= {line.text for line in plain[-1].lines}
    assert findings(tab) == []
    tab.screenshot(path=screenshots / "llvm_passes_beside.png")
    tab.close()
