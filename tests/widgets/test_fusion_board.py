"""The fusion board in a real browser: in a widget with Python, and in a page without Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import findings
from tests.support.widget_model import Served
from tests.widgets.test_tuner import BUNDLE
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer

pytestmark = pytest.mark.browser


def softmax() -> Explorer:
    x = Tensor.rand(64, 100).realize()
    return explore(lambda: x.softmax(), title="softmax", repeat=2)


def sources(view: Explorer, op: str) -> int:
    return next(edge.src for edge in view.fusion.edges() if view.trace.nodes[edge.src].op == op)


@pytest.fixture
def live(browser: Any) -> Iterator[Callable[..., Any]]:
    """Shows the widget of an Explorer at its board; messages of the view go to its Python."""
    tabs, errors = [], []

    def show(view: Explorer, *, width: int = 1400, scheme: str = "light") -> Any:
        widget = view.widget
        widget.mode, widget.cursor, widget.height = "workbench", {"panel": "fusion"}, "820px"
        tab = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        Served(tab, widget, BUNDLE.read_text(encoding="utf-8"))
        tab.wait_for_selector(".fusion .fusion-edge")
        tabs.append(tab)
        return tab

    yield show
    for tab in tabs:
        tab.close()
    assert errors == []


def frames(tab: Any) -> int:
    kernels = tab.eval_on_selector_all(".fusion-graph g.frame", "all => all.map((one) => one.dataset.kernel)")
    return len(set(kernels))


def at_hand(tab: Any) -> str:
    return tab.inner_text('.fusion .tuner-row[aria-selected="true"] .tuner-opt')


AT_THE_CUT = """() => {
    const box = [...document.querySelectorAll(".fusion-graph .boxes .box")].find((one) => /EXP/.test(one.textContent));
    if (!box) return false;
    const [inner, outer] = [box, document.querySelector(".fusion-graph .canvas")].map((e) => e.getBoundingClientRect());
    return outer.top <= inner.top && inner.bottom <= outer.bottom;
}"""


def test_edges_are_cut_joined_undone_and_reset_to_the_scheduler(live: Callable[..., Any]) -> None:
    view = softmax()
    tab = live(view)
    exp = sources(view, "EXP")
    tab.click(".fusion .tuner-begin")
    tab.wait_for_selector('.fusion .tuner-row[aria-selected="true"]')
    assert at_hand(tab) == "as captured" and frames(tab) == 1
    tab.click(f'.fusion-edge[data-edge^="{exp}-"]')
    assert f"EXP #{exp}" in tab.inner_text(".fusion-card h4")
    assert "Cannot be" not in tab.inner_text(".fusion-card")
    tab.click('.fusion-tools button:has-text("Cut")')
    tab.wait_for_selector(f'.fusion .tuner-row[aria-selected="true"]:has-text("cut EXP #{exp}")')
    assert frames(tab) == 2
    assert view.fusion.branch().schedule.cut == (exp,)
    tab.wait_for_function(AT_THE_CUT)  # a worker lays the graph out, and then it moves there
    zoom = tab.evaluate("document.querySelector('.fusion-graph .world').getCTM().a")
    assert zoom >= 1, "the graph opens where its words can be read"
    assert "you cut here" in tab.inner_text(".fusion-card")
    table = tab.inner_text(".fusion-before")
    assert "as captured" in table and "25.6 kB" in table
    assert [row.inner_text().strip()[:1] for row in tab.query_selector_all(".fusion-kernel .tuner-sign")] == [
        "−",
        "+",
        "+",
    ]
    assert "equal" in tab.inner_text(".fusion-table")
    tab.set_viewport_size({"width": 1166, "height": 860})
    assert (
        tab.evaluate(
            "(() => { const {scrollWidth, clientWidth} = document.querySelector('.fusion-table'); return scrollWidth - clientWidth; })()"
        )
        <= 0
    )
    tab.click('.fusion .tuner-bar button:has-text("Undo")')
    assert at_hand(tab) == "as captured" and frames(tab) == 1
    asked = len(view.whatif.branches)
    tab.click(f'.fusion-edge[data-edge^="{exp}-"]')
    tab.click('.fusion-tools button:has-text("Cut")')
    assert at_hand(tab) == f"cut EXP #{exp}" and len(view.whatif.branches) == asked
    tab.click('.fusion-tools button:has-text("Leave")')
    assert at_hand(tab) == "as captured"


def test_a_mark_in_the_graph_selects_an_edge_and_shows_its_legality_error(live: Callable[..., Any]) -> None:
    x = Tensor.rand(64, 32).realize()
    view = explore(lambda: x.cumsum(1) * 2, title="running", repeat=1)
    view.fusion.branch()
    tab = live(view)
    tab.locator(".fusion-graph g.edge-decision.cut").first.locator(".target").click(force=True)
    card = tab.inner_text(".fusion-card")
    assert "joined: a scan carries state" in card
    assert tab.is_disabled('.fusion-tools button:has-text("Join")')


def test_the_board_works_by_keyboard(live: Callable[..., Any]) -> None:
    view = softmax()
    view.fusion.cut(sources(view, "EXP"))
    tab = live(view)
    tab.focus('.fusion .tuner-row[aria-selected="true"]')
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Enter")
    assert at_hand(tab) == "as captured"
    tab.focus(".fusion-edge")
    tab.keyboard.press("Enter")
    assert tab.get_attribute(".fusion-edge", "aria-pressed") == "true"


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (620, "light")])
def test_a_page_shows_recorded_branches(
    browser: Any, tmp_path: Path, screenshots: Path, width: int, scheme: str
) -> None:
    view = softmax()
    exp = sources(view, "EXP")
    view.fusion.cut(exp)
    page = tmp_path / "page.html"
    view.to_html(page)
    tab = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"{page.as_uri()}#panel=fusion")
    tab.wait_for_selector(".fusion .fusion-edge")
    assert "can be opened" in tab.inner_text(".fusion .tuner-status")
    assert frames(tab) == 2
    tab.click('.fusion .tuner-row:has-text("as captured")')
    assert at_hand(tab) == "as captured" and frames(tab) == 1
    tab.click(f'.fusion-edge[data-edge^="{exp}-"]')
    tab.click('.fusion-tools button:has-text("Cut")')  # this one is recorded
    assert at_hand(tab) == f"cut EXP #{exp}"
    other = sources(view, "REDUCE_AXIS")
    tab.click(f'.fusion-edge[data-edge^="{other}-"]')
    assert tab.is_disabled('.fusion-tools button:has-text("Cut")')  # and this one is not
    tab.screenshot(path=screenshots / f"fusion_{width}_{scheme}.png")
    assert findings(tab, ".fusion") == []
    assert errors == []
    tab.close()
