"""The compiler writer's notebook in a real JupyterLab: a reader inserts and fires rules by clicking."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lab import LabPage
from tests.support.patience import milliseconds

NOTEBOOK = "21_write_a_rule.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_a_rule_of_the_notebook_is_inserted_and_fired_by_clicking(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    panel = lab.page.locator(".tinyexplore:has(.rules-row)").first
    panel.wait_for(timeout=milliseconds(30))
    panel.scroll_into_view_if_needed()
    panel.locator(".rules-row", has_text="mask_of_power").click()
    panel.locator(".rules-place").first.wait_for(timeout=milliseconds(60))
    tried = int(lab.python("len(view.whatif.branches)"))
    panel.locator(".rules-actions button", has_text="Insert at").click()
    assert lab.await_python("len(view.whatif.branches)", str(tried + 1), timeout_s=60) == str(tried + 1)
    assert lab.python("view.whatif.branches[-1].command.kind") == "'InsertRule'"
    panel.locator(".rules-body > .event[aria-current]", has_text="mask_of_power in simplify").wait_for(
        timeout=milliseconds(30)
    )
    lab.page.screenshot(path=screenshots / "write_a_rule.png")
    panel.locator(".rules-body > .event", has_text="mask_of_power in simplify the rest").first.click()
    panel.locator(".rules-branch .rules-values").first.wait_for(
        timeout=milliseconds(30)
    )  # the wrong one, with its counterexample
    assert "before" in panel.locator(".rules-branch .rules-values").first.inner_text()
    panel.locator(".rules-place button", has_text="fire").first.click()
    assert lab.await_python("view.whatif.branches[-1].command.kind", "'FireRule'", timeout_s=60) == "'FireRule'"
    lab.use_theme("JupyterLab Dark")
    lab.page.screenshot(path=screenshots / "write_a_rule_dark.png")
    lab.use_theme("JupyterLab Light")
    assert lab.foreign_requests == []
