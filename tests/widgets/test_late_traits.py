"""A widget in a real browser whose traits change after drawing: in a notebook, updates may come late."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.widget_model import MODEL, traits_of
from tests.widgets.test_tuner import BUNDLE, until
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.widgets.panels import PANELS

# "warps" asks under another name, and only of a GPU's kernel
ASKING = ["why", "shape", *(panel.name for panel in PANELS if panel.needs_python and panel.name != "warps")]
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = Tensor.rand(16, 32).realize(), Tensor.rand(32, 24).realize()
    return explore(lambda: (x @ w).softmax(), repeat=1)


class Late:
    """A tab whose widget has the traits of `view`, but for some that come later (`tell`). `asked`: its questions."""

    def __init__(self, tab: Any, view: Explorer, **first: Any) -> None:
        self.tab = tab
        self.told: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []
        tab.expose_function("answer", self.answer)
        tab.evaluate(MODEL, [BUNDLE.read_text(encoding="utf-8"), {**traits_of(view.widget), **first}])
        tab.wait_for_selector(".panel-tabs")

    def answer(self, text: str) -> dict[str, Any]:
        if text != "null" and "question" in json.loads(text):
            self.asked.append(json.loads(text)["question"])
        return {"state": self.told}

    def tell(self, **traits: Any) -> None:
        self.told = traits
        self.tab.evaluate("poll()")


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    errors: list[str] = []
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.on("pageerror", lambda error: errors.append(str(error)))
    yield tab
    tab.close()
    assert errors == []


@pytest.mark.parametrize("panel", ASKING)
def test_a_panel_requests_data_once_python_responds(tab: Any, view: Explorer, panel: str) -> None:
    stage = next(one for one in view.trace.stages if one.name == "simplify")
    node = stage.steps[0].before
    cursor = {"panel": panel, "kernel": 0, "stage": stage.id, "step": 0, "graph": "uops"}
    late = Late(tab, view, answers=False, mode="workbench", cursor=cursor, selected=[node])
    tab.wait_for_timeout(300)
    assert late.asked == []
    late.tell(answers=True)
    until(tab, lambda: bool(late.asked))
    kinds = {"debugger": "debug", "llvm": "passes"}
    assert [question["ask"] for question in late.asked] == [kinds.get(panel, panel)]
    assert tab.evaluate("document.querySelector('.panel-tabs [aria-selected=true]') !== null")


def test_a_panel_stops_requesting_when_python_is_gone(tab: Any, view: Explorer) -> None:
    late = Late(tab, view, answers=True, mode="workbench", cursor={"panel": "timing", "kernel": 0})
    late.tell(answers=False)
    tab.wait_for_selector(".panel-tabs")
    tab.evaluate("document.querySelector('.tinyexplore').focus()")
    late.tell(cursor={"panel": "caches", "kernel": 0})
    tab.wait_for_selector(".lazy-view:not([hidden]) code:has-text('view.kernels[0].caches()')")
    assert late.asked == []


def test_the_height_may_change_while_the_view_is_shown(tab: Any, view: Explorer) -> None:
    late = Late(tab, view, mode="workbench", height="700px")
    assert tab.locator(".tinyexplore").bounding_box()["height"] == 700
    late.tell(height="500px")
    tab.wait_for_function("() => document.querySelector('.tinyexplore').getBoundingClientRect().height === 500")
