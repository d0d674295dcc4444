"""The fusion board's notebook in a real JupyterLab: a reader cuts by clicking, and Python responds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lab import LabPage
from tests.support.patience import milliseconds

NOTEBOOK = "04_what_is_fused.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_clicks_cut_an_attention_and_return(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    board = lab.page.locator(".tinyexplore:has(.fusion)").first
    board.wait_for(timeout=milliseconds(30))
    board.scroll_into_view_if_needed()
    exp = lab.python('next(node.id for node in nodes if node.op == "EXP")')
    board.locator(f'.fusion-edge[data-edge^="{exp}-"]').first.click()
    board.locator(".fusion-tools button", has_text="Cut").click()
    cut = f"{exp} in view.fusion.branch().schedule.cut"
    assert lab.await_python(cut, "True", timeout_s=30) == "True"
    board.locator(".tuner-row[aria-selected=true]", has_text=f"cut EXP #{exp}").wait_for(timeout=milliseconds(30))
    lab.page.screenshot(path=screenshots / "fusion_board.png")
    board.locator(".tuner-bar button", has_text="Undo").click()
    assert lab.await_python(cut, "False") == "False"
    lab.use_theme("JupyterLab Dark")
    lab.page.screenshot(path=screenshots / "fusion_board_dark.png")
    assert lab.foreign_requests == []
