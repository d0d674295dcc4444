"""The lesson of views in a real JupyterLab: a pupil points at elements and applies movements to a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lab import LabPage
from tests.support.patience import milliseconds

NOTEBOOK = "03_views_and_strides.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_pointing_and_buttons_move_the_tensor(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    shape = lab.page.locator(".tinyexplore.part-shape .shape").first
    shape.locator(".grid .place").first.wait_for(timeout=milliseconds(30))
    shape.scroll_into_view_if_needed()
    shape.locator(".way", has_text="72×64").wait_for(timeout=milliseconds(20))
    elements = shape.locator("figure").first
    elements.locator(".place").nth(1).hover()
    shape.locator(".said", has_text="[0, 1] is at offset 72").wait_for(timeout=milliseconds(10))
    shape.locator(".moves button", has_text="flip").click()
    shape.locator(".moves input").fill("0")
    shape.locator(".moves button", has_text="Apply").click()
    shape.locator(".way .own", has_text="flip 0").wait_for(timeout=milliseconds(20))
    assert elements.locator(".place").first.inner_text() == "71"
    lab.page.screenshot(path=screenshots / "views_and_strides.png")
    lab.use_theme("JupyterLab Dark")
    lab.page.screenshot(path=screenshots / "views_and_strides_dark.png")
    lab.use_theme("JupyterLab Light")
    shape.locator(".way button", has_text="undo").click()
    lab.page.wait_for_function("() => document.querySelector('.part-shape .shape .own') === null")
    assert elements.locator(".place").first.inner_text() == "0"
    assert lab.errors == [] and lab.foreign_requests == []
