"""The first lesson in a real JupyterLab: all cells run, the explorer appears, one selection links its panels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage
from tests.support.patience import milliseconds

NOTEBOOK = "01_first_look.ipynb"

BEFORE = "localStorage.setItem('tinyexplore.mode', 'workbench')"  # as the reader chose before

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


@pytest.fixture
def explorer(lab: LabPage) -> Any:
    """The first explorer of the notebook, drawn, in sight and with nothing selected."""
    first = lab.page.locator(".jp-OutputArea-output .tinyexplore:not(.asks)").first
    first.wait_for(timeout=milliseconds(30))
    first.scroll_into_view_if_needed()
    lab.page.keyboard.press("Escape")
    return first


def test_every_cell_runs(lab: LabPage) -> None:
    assert lab.raised() == []


def test_no_request_leaves_the_server(lab: LabPage) -> None:
    assert lab.foreign_requests == []


def test_a_line_of_python_highlights_its_nodes_and_instructions(lab: LabPage, explorer: Any) -> None:
    explorer.locator("[data-pane=a] .line.linked", has_text="softmax").first.click()
    for lit in ("[data-pane=a] .line.sel", "[data-pane=bc] .line.rel", ".graph .box.sel"):
        explorer.locator(lit).first.wait_for(timeout=milliseconds(5))


def test_an_instruction_leads_back_to_its_line(lab: LabPage, explorer: Any) -> None:
    explorer.locator("[data-pane=bc] .line.linked").last.click()
    lit = explorer.locator("[data-pane=a] .line.rel")
    lit.first.wait_for(timeout=milliseconds(5))
    assert "softmax" in lit.first.inner_text()


def test_selections_are_synchronized_with_python(lab: LabPage, explorer: Any) -> None:
    explorer.locator("[data-pane=a] .line.linked", has_text="softmax").first.click()
    selected, kinds = "len(view.selected) > 0 and {node.kind for node in view.selected}", "{'lazybuffer'}"
    assert lab.await_python(selected, kinds) == kinds
    lab.python("view.show(view.trace.where(op='REDUCE_AXIS'))")
    explorer.get_by_role("button", name=re.compile("LazyBuffers")).first.click()
    explorer.locator(".graph .box.sel").nth(2).wait_for(timeout=milliseconds(5))
    assert explorer.locator(".graph .box.sel").count() == 3


def test_the_stepper_steps(lab: LabPage, explorer: Any) -> None:
    explorer.locator(".passes [role=treeitem]", has_text="simplify").first.click()
    position = explorer.locator(".scrub .at")
    assert position.inner_text().startswith("0 /")  # a pass opens before its first firing
    explorer.focus()
    lab.page.keyboard.press("ArrowRight")
    assert position.inner_text().startswith("1 /")
    explorer.get_by_role("button", name=re.compile("Previous firing")).click()
    assert not position.inner_text().startswith("1 /")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_text_is_legible_in_both_themes(lab: LabPage, explorer: Any, screenshots: Path, theme: str) -> None:
    """A picture for a person to look at; and what is written stands out from what it is written on."""
    lab.use_theme(f"JupyterLab {theme}")
    explorer.locator("[data-pane=a] .line.linked", has_text="softmax").first.click()
    explorer.scroll_into_view_if_needed()
    lab.page.screenshot(path=screenshots / f"quickstart_{theme.lower()}.png")
    assert explorer.evaluate(CONTRAST) >= 4.5


def test_no_script_failed(lab: LabPage) -> None:
    assert lab.errors == []


# The contrast ratio (WCAG) of the explorer's text with the first opaque background behind it.
CONTRAST = """element => {
    const channels = color => color.match(/[0-9.]+/g).map(Number);
    const luminance = ([r, g, b]) => [r, g, b]
        .map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    let behind = element;
    const isClear = at => (channels(getComputedStyle(at).backgroundColor)[3] ?? 1) === 0;
    while (behind.parentElement && isClear(behind)) behind = behind.parentElement;
    const text = luminance(channels(getComputedStyle(element).color));
    const ground = luminance(channels(getComputedStyle(behind).backgroundColor));
    return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
}"""
