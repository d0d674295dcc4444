"""The lesson of rewriting in a real JupyterLab: the class guesses and looks; its page works offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage
from tests.support.pages import wait_until
from tests.support.patience import milliseconds

NOTEBOOK = "06_rewriting.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_the_views_appear_after_an_answer(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    output = lab.page.locator(".jp-OutputArea-child:has(.asks)").first
    output.scroll_into_view_if_needed()
    assert output.locator(".tinyexplore:not(.asks)").count() == 0
    right = int(lab.python("question.answer"))
    output.locator(".choice").nth(right).click()
    output.locator(".tinyexplore:not(.asks)").first.wait_for(timeout=milliseconds(20))
    assert output.locator(".reveal").inner_text().startswith("Right.")
    assert lab.await_python("asked.is_right", "True") == "True"
    lab.page.screenshot(path=screenshots / "teach_question.png")


def test_the_lesson_plays_offline(lab: LabPage, browser: Any) -> None:
    path = lab.python("str(page)").strip("'")
    context = browser.new_context(offline=True, viewport={"width": 1300, "height": 900})
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(Path(path).as_uri())
    tab.wait_for_selector(".tour .note-text")
    tab.wait_for_selector(".shape .grid .place")
    assert "shrink" in tab.inner_text(".shape .way")
    texts = {tab.inner_text(".tour .note-text")}
    for _ in range(4):
        before = tab.inner_text(".tour")
        tab.keyboard.press("]")
        wait_until(tab, "(before) => document.querySelector('.tour').innerText !== before", before)
        texts.add(tab.inner_text(".tour"))
    assert len(texts) == 5 and errors == []
    context.close()
