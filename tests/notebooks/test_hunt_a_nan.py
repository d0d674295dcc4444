"""The debugger's notebook in a real JupyterLab: a reader finds a NaN by clicking, and Python executes the steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage
from tests.support.panels import open_panel
from tests.support.patience import milliseconds

NOTEBOOK = "18_dtypes_and_numerics.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_the_debugger_finds_the_infinity_and_steps_back(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    panel = lab.page.locator(".tinyexplore .debugger").first
    panel.locator(".program").wait_for(timeout=milliseconds(60))
    panel.scroll_into_view_if_needed()
    condition = panel.get_by_label("Condition to run until")
    condition.fill("load data1[93]")
    condition.press("Enter")
    panel.locator(".element.loaded[title='data1[93]']").wait_for(timeout=milliseconds(30))
    assert panel.locator(".uop[aria-current] .value").inner_text() == "95"
    condition.fill("inf")
    condition.press("Enter")
    panel.locator(".uop[aria-current] .value", has_text="inf").wait_for(timeout=milliseconds(30))
    counters = panel.locator(".counter:not(.out) input")
    assert [one.input_value() for one in counters.all()] == ["11", "5"]
    lab.page.screenshot(path=screenshots / "hunt_a_nan.png")
    panel.locator("button[title^='One step back']").click()
    panel.locator(".where", has_text="back").wait_for(timeout=milliseconds(30))
    counters.first.fill("2")
    counters.first.press("Enter")
    panel.locator(".where", has_text="=2").wait_for(timeout=milliseconds(30))
    condition.fill("nan")
    condition.press("Enter")
    panel.locator(".uop[aria-current] .value", has_text="nan").wait_for(timeout=milliseconds(30))
    lab.use_theme("JupyterLab Dark")
    lab.page.screenshot(path=screenshots / "hunt_a_nan_dark.png")
    lab.use_theme("JupyterLab Light")
    assert lab.errors == [] and lab.foreign_requests == []


def test_a_page_without_python_steps_to_the_infinity(lab: LabPage, browser: Any) -> None:
    path = lab.python("str(page)").strip("'")
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 1000})
    tab = context.new_page()
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto(Path(path).as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    open_panel(tab, "debugger")
    tab.wait_for_selector(".debugger .program")
    tab.fill(".debugger .until input", "inf")
    tab.keyboard.press("Enter")
    tab.locator(".debugger .uop[aria-current] .value", has_text="inf").wait_for(timeout=milliseconds(10))
    fields = tab.locator(".debugger .counter:not(.out) input").all()
    assert [one.input_value() for one in fields] == ["11", "5"]
    context.close()
