"""A tour with a question, exported as one page and played without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tour_plays_offline(browser: Any, tmp_path: Path, screenshots: Path, scheme: str) -> None:
    view = Explorer(sample_trace())
    reduce = view.trace.where(op="REDUCE_AXIS")[0]
    stage = next(stage.id for stage in view.trace.stages if stage.name == "simplify")
    stops = [
        ("This adds up.", reduce),
        view.question("kernels"),
        view.question("next rule", stage=stage),
        ("And this is the code.", "#story=code"),
    ]
    view.tour(stops).to_html(tmp_path / "tour.html")
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1200, "height": 860})
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((tmp_path / "tour.html").as_uri())
    page.wait_for_selector(".tour .note-text")
    assert page.inner_text(".tour .note-text") == "This adds up."
    assert page.evaluate("tinyexplore.handle.state.selected") == [reduce.id]
    page.locator(".graph .box.sel").first.wait_for()
    page.screenshot(path=screenshots / f"tour_note_{scheme}.png")

    page.keyboard.press("]")
    assert page.inner_text(".chapter[aria-current]") == "Python"  # what shows no answer yet
    assert "Right" not in page.inner_text(".verdict")
    page.click(".choice >> text=/^3$/")
    assert page.inner_text(".verdict .reveal").startswith("Not correct. It is 2, for ")
    assert page.inner_text(".choice.right") == "✓ 2" and page.inner_text(".choice.wrong") == "✗ 3"
    page.click(".verdict button")
    assert page.inner_text(".chapter[aria-current]") == "Kernels"
    page.screenshot(path=screenshots / f"tour_graded_{scheme}.png")

    page.keyboard.press("]")
    asked = view.question("next rule", stage=stage)
    assert asked.answer is not None
    page.click(f".choice >> nth={asked.answer}")
    assert page.inner_text(".verdict .reveal").startswith(f"Right. It is {asked.choices[asked.answer]}")
    page.click(".verdict button")
    assert page.inner_text(".detail.scroll h5") == asked.choices[asked.answer]

    page.click(".tour-turn .next")
    assert page.inner_text(".chapter[aria-current]") == "Code"
    page.keyboard.press("[")
    assert page.inner_text(".verdict .reveal").startswith("Right.")  # a guess stays
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()
