"""The notebook of tours and questions in a real JupyterLab, and its pages played offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import LabPage
from tests.support.patience import milliseconds

NOTEBOOK = "03_guess_first.ipynb"

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.slow]


def test_every_cell_runs_and_the_tour_leads_through_the_view(lab: LabPage, screenshots: Path) -> None:
    assert lab.raised() == []
    tour = lab.page.locator(".tinyexplore:has(.tour)").first
    tour.wait_for(timeout=milliseconds(30))
    tour.scroll_into_view_if_needed()
    notes = [tour.locator(".note-text").inner_text()]
    lab.page.screenshot(path=screenshots / "guess_first_tour.png")
    tour.locator(".tour-turn .next").click()
    notes.append(tour.locator(".note-text").inner_text())
    assert lab.await_python("[node.id for node in view.selected] == [largest.id]", "True") == "True"
    assert len(set(notes)) == 2
    assert lab.foreign_requests == []


def test_the_views_come_once_the_question_is_answered(lab: LabPage, screenshots: Path) -> None:
    output = lab.page.locator(".jp-OutputArea-child:has(.asks)").first
    output.scroll_into_view_if_needed()
    explorers = output.locator(".tinyexplore:not(.asks)")
    assert explorers.count() == 0
    assert "It is" not in output.inner_text()
    right = lab.python("len(product.trace.kernels)")
    lab.page.screenshot(path=screenshots / "guess_first_question.png")
    output.locator(".choice", has_text=right).first.click()
    explorers.first.wait_for(timeout=milliseconds(10))
    assert output.locator(".reveal").inner_text().startswith(f"Right. It is {right}, for ")
    lab.use_theme("JupyterLab Dark")
    lab.page.screenshot(path=screenshots / "guess_first_answered_dark.png")
    lab.use_theme("JupyterLab Light")
    assert lab.errors == []


@pytest.mark.parametrize("name", ["softmax_tour.html", "product_questions.html"])
def test_the_pages_play_offline(lab: LabPage, browser: Any, name: str) -> None:
    path = lab.python(f"str(folder / '{name}')").strip("'")
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 860})
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(Path(path).as_uri())
    page.wait_for_selector(".tour .note-text")
    stops = page.locator(".dot").count()
    texts = set()
    graded = 0
    for stop in range(stops):
        if stop > 0:
            page.keyboard.press("]")
        texts.add(page.inner_text(".tour .note-text"))
        if page.locator(".choice").count() > 0:
            page.locator(".choice").first.click()
            assert page.inner_text(".verdict .reveal").startswith(("Right. ", "Not quite. "))
            assert page.locator(".choice.right").count() == 1
            graded += 1
    assert len(texts) == stops > 3 and graded == (1 if "tour" in name else 3)
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()
