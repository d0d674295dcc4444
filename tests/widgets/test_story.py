"""The story and the links of a page, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.pages import reload, wait_until
from tests.widgets.sample_traces import big_trace, sample_trace
from tests.widgets.test_browser import Open, open_page, stage, state  # noqa: F401

pytestmark = pytest.mark.browser

TRACE = sample_trace()
TITLES = ["Python", "Tensors", "Kernels", "Loops", "Rewrites", "Code", "Time"]


def place(tab: Any) -> tuple[str, str]:
    return tab.evaluate("tinyexplore.handle.mode"), tab.evaluate("location.hash")


def now(tab: Any) -> str:
    return tab.inner_text(".chapter[aria-current]")


def test_keys_step_through_the_story_to_the_workbench(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, mode="")
    tab.wait_for_selector(".story[data-step]")
    assert tab.locator(".chapter").all_inner_texts() == TITLES
    sentences, pictures = [], []
    for title in TITLES:
        assert now(tab) == title
        sentences.append(tab.inner_text(".sentence"))
        pictures.append(tab.inner_html(".picture"))
        tab.keyboard.press("Shift+ArrowRight")
    assert re.match(r"These 4 lines build \d+ operations[.,]", sentences[0])
    assert len(set(sentences)) == len(set(pictures)) == len(TITLES)
    assert tab.evaluate("tinyexplore.handle.mode") == "workbench"
    assert tab.locator(".pipeline").is_visible()


def test_the_story_goes_back_by_button_and_key(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, mode="story")
    tab.wait_for_selector(".story[data-step]")
    tab.click(".chapter >> nth=3")
    assert tab.locator(".nest-row .axis-tag").count() == len(TRACE.kernels[0].axes)  # the slowest
    tab.keyboard.press("Shift+ArrowLeft")
    assert now(tab) == "Kernels"
    tab.click(".turn button >> nth=0")  # a step back: the last one of the page before
    assert now(tab) == "Tensors"
    tab.click(".turn .next")
    assert now(tab) == "Kernels"


def test_the_mode_is_remembered(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, mode="")
    tab.click(".modes button >> text=Workbench")
    reload(tab, tab.url.split("#")[0])
    tab.wait_for_selector(".pipeline")
    tab.keyboard.press("w")
    tab.wait_for_selector(".story")
    reload(tab, tab.url.split("#")[0])
    tab.wait_for_selector(".story[data-step]")


def test_another_page_opens_as_a_story(open_page: Open) -> None:  # noqa: F811
    first = open_page(busy=False, mode="")
    first.click(".modes button >> text=Workbench")
    second = open_page(busy=False, mode="")
    second.wait_for_selector(".story[data-step]")


def test_leaving_the_story_opens_the_workbench_at_its_position(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, mode="story")
    tab.wait_for_selector(".story[data-step]")
    tab.click(".chapter >> text=Rewrites")
    rule = tab.inner_text(".rule-card h3")
    tab.keyboard.press("w")
    assert tab.inner_text(".detail.scroll h5") == rule


def test_a_link_opens_its_place_and_the_browser_history_works(open_page: Open) -> None:  # noqa: F811
    simplify, reduce = stage("simplify"), stage("reduce to loop")
    tab = open_page(busy=False, mode="story", link=f"#stage={reduce}&step=1&node=8")
    found = state(tab)
    assert (found["cursor"]["stage"], found["cursor"]["step"], found["selected"]) == (reduce, 1, [8])
    assert found["cursor"]["graph"] == "uops"
    tab.locator(".passes [role=treeitem]", has_text="simplify").first.click()
    wait_until(tab, f"location.hash.includes('stage={simplify}&')")
    step = state(tab)["cursor"]["step"]
    tab.keyboard.press("ArrowRight")  # a step is no place of its own
    wait_until(tab, f"!location.hash.includes('step={step}&')")
    assert state(tab)["cursor"]["stage"] == simplify
    tab.go_back()
    wait_until(tab, f"tinyexplore.handle.state.cursor.stage === {reduce}")
    assert state(tab)["selected"] == [8]
    tab.go_forward()
    wait_until(tab, f"tinyexplore.handle.state.cursor.stage === {simplify}")
    tab.evaluate("tinyexplore.handle.open('#story=code')")
    assert now(tab) == "Code"


def test_an_invalid_link_opens_existing_places(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False, link="#stage=999&step=-1&node=99999,x&place=nowhere")
    assert tab.evaluate("tinyexplore.handle.mode") == "workbench"
    assert state(tab)["selected"] == []


def test_a_trace_of_one_page_opens_in_the_workbench(open_page: Open) -> None:  # noqa: F811
    """It has no LazyBuffers and no kernels, so no story."""
    tab = open_page(big_trace(1000), busy=False, mode="story")
    tab.wait_for_selector(".panel-tabs")
    assert tab.locator(".story[data-step]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 1200])
def test_pictures_of_the_story(open_page: Open, screenshots: Any, scheme: str, width: int) -> None:  # noqa: F811
    tab = open_page(busy=False, mode="story", scheme=scheme, width=width)
    tab.wait_for_selector(".story[data-step]")
    for title in TITLES:
        tab.click(f".chapter >> text={title}")
        tab.screenshot(path=screenshots / f"story_{title.lower()}_{scheme}_{width}.png")
        box = tab.locator(".story").bounding_box()
        assert tab.locator(".next").bounding_box()["x"] + 60 < box["x"] + box["width"]


LATER = """async () => {
  const trace = await tinyexplore.readTrace(tinyexplore.fromBase64(document.getElementById('trace').textContent));
  const place = document.createElement('div');
  place.id = 'later';
  tinyexplore.mount(place, trace, { mode: 'story', height: '600px' });
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  document.body.append(place);
}"""


def test_a_story_is_drawn_when_the_notebook_attaches_it_later(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    tab.evaluate(LATER)
    tab.wait_for_selector("#later .story .picture > *")
    assert tab.inner_text("#later .sentence") != ""
