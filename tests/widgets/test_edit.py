"""Editing a stage in a real browser: in a widget with Python, and in a page without Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import findings
from tests.widgets.test_tuner import at_hand, live
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer

__all__ = ["live"]  # a fixture

pytestmark = pytest.mark.browser


def product() -> Explorer:
    a, b = (Tensor.randint(16, 16, high=9).float().realize() for _ in range(2))  # sums of whole numbers are exact
    view = explore(lambda: a @ b, title="product", repeat=2, keep_inputs=True)
    view.kernels[0].set_opts(view.kernels[0].opts)
    return view


def open_editor(tab: Any, language: str) -> str:
    tab.wait_for_selector(".tuner-nest")
    tab.click(f'.tuner-code [role="tab"] >> text="{language}"')
    if tab.locator(".edit-area").count() == 0:
        tab.click('.tuner-code button:has-text("edit")')
    text: str = tab.input_value(".edit-area")
    return text


def run(tab: Any, text: str) -> None:
    tab.fill(".edit-area", text)
    tab.keyboard.press("Control+Enter")


def test_edited_c_shows_errors_and_can_be_corrected(live: Callable[..., Any]) -> None:
    view = product()
    tab = live(view)
    text = open_editor(tab, "C")
    assert text == view.kernels[0].edit_text("c")
    name = view.trace.kernels[0].name
    run(tab, text.replace(f"void {name}_entry(void** buffers", f"void {name}_entry(int** buffers"))
    tab.wait_for_selector('.edit-message:has-text("the signature of the kernel must not change")')
    lines = text.splitlines()
    number = next(number for number, line in enumerate(lines, 1) if line.startswith(f"void {name}("))
    lines.insert(number, "  floaty wrong;")
    run(tab, "\n".join(lines) + "\n")
    message = tab.wait_for_selector('.edit-message:has-text("floaty")')
    assert message.inner_text().startswith(f"line {number + 1}:3 · ")
    assert tab.inner_text(".edit-gutter .bad") == str(number + 1)
    assert tab.get_attribute(".edit-area", "aria-invalid") == "true"
    tab.click(".edit-message")
    start = tab.evaluate("() => document.querySelector('.edit-area').selectionStart")
    assert tab.input_value(".edit-area")[start:].startswith("floaty")
    lines[number] = "  data0[5000] = 1;"
    run(tab, "\n".join(lines) + "\n")
    tab.wait_for_selector('.edit-bad:has-text("wrote past the end of")')
    assert at_hand(tab) == "as captured"
    lines[number] = "  // nothing"
    run(tab, "\n".join(lines) + "\n")
    tab.wait_for_selector('.edit-good:has-text("the same bits as the PYTHON device, 256 elements")')
    assert at_hand(tab) == "edited C" and tab.inner_text(".edit-says").count(" → ") == 1
    tab.click('.tuner-code button:has-text("edit")')
    assert tab.locator(".tuner-code-line.new").count() == 1 and "// nothing" in tab.inner_text(".tuner-code-line.new")
    tab.click('.tuner-bar button:has-text("Undo")')
    assert at_hand(tab) == "as captured"
    assert [branch.status for branch in view.kernels[0].branches][-4:] == ["failed", "failed", "failed", "done"]


def test_the_keyboard_enters_and_leaves_the_editor_and_text_is_preserved(live: Callable[..., Any]) -> None:
    tab = live(product())
    text = open_editor(tab, "UOps")
    assert text.startswith("DEFINE_GLOBAL data0 : float32[256]")
    assert tab.evaluate("() => document.activeElement.className") == "edit-area"
    tab.keyboard.press("Tab")
    tab.keyboard.type("# n")
    assert tab.input_value(".edit-area") == f"  # n{text}"  # letters are no commands of the explorer
    tab.keyboard.press("Escape")
    assert "edit-run" in tab.evaluate("() => document.activeElement.className")
    tab.click('.tuner-bar button:has-text("No opts")')
    tab.wait_for_selector('.tuner-row[aria-selected="true"] >> text="no opts"')
    assert tab.input_value(".edit-area") == f"  # n{text}"
    tab.click('.edit button:has-text("Reset")')
    assert tab.input_value(".edit-area") not in (text, f"  # n{text}")


def test_the_colored_text_is_aligned_with_the_typed_text(live: Callable[..., Any]) -> None:
    tab = live(product())
    open_editor(tab, "C")
    paint, area = (tab.locator(one).bounding_box() for one in (".edit-paint", ".edit-area"))
    assert paint["x"] == area["x"] and paint["y"] == area["y"]
    assert abs(area["height"] - paint["height"]) < 40 and area["width"] >= paint["width"] - 1
    scroll = (
        "() => { const area = document.querySelector('.edit-area'); return area.scrollHeight - area.clientHeight; }"
    )
    assert tab.evaluate(scroll) <= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_editor_is_accessible(live: Callable[..., Any], scheme: str) -> None:
    view = product()
    tab = live(view, scheme=scheme)
    text = open_editor(tab, "C")
    run(tab, text + "floaty x;\n")
    tab.wait_for_selector(".edit-message")
    assert findings(tab, ".tuner-code", impacts=None) == []


def test_a_page_shows_recorded_edits_and_reports_that_it_cannot_edit(browser: Any, tmp_path: Path) -> None:
    view = product()
    branch = view.kernels[0].edit("c", view.kernels[0].edit_text("c") + "// nothing else\n")
    assert branch.status == "done"
    page = tmp_path / "page.html"
    view.to_html(page)
    tab = browser.new_page(viewport={"width": 1300, "height": 860})
    tab.goto(f"file://{page}#panel=tuner")
    tab.wait_for_selector(".tuner-nest")
    assert at_hand(tab) == "edited C"
    assert "the same bits as" in tab.inner_text(".tuner-status")
    edit = tab.locator('.tuner-code button:has-text("edit")')
    assert edit.is_disabled() and "A notebook compiles" in edit.get_attribute("title")
    tab.click('.tuner-code button:has-text("all lines")')
    assert "// nothing else" in tab.inner_text(".tuner-code")
    tab.close()
