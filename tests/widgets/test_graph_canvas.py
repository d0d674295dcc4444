"""The workbench's graph: its legend, its direction, the zoom, products, and the controls beside the canvas."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import pages
from tests.support.pages import reload
from tests.widgets.sample_traces import big_trace, unrolled_trace
from tests.widgets.test_browser import SMALLEST_WORDS, TRACE, Open
from tests.widgets.test_browser import open_page as open_page  # the fixture
from tinyexplore import Tensor
from tinyexplore.explore import explore
from tinyexplore.explore.tracefile.trace import Trace

pytestmark = pytest.mark.browser

RECTANGLES = """(found) => [...document.querySelectorAll(found)].map((one) => {
  const { left, top, right, bottom } = one.getBoundingClientRect();
  return [left, top, right, bottom];
}).filter(([left, top, right, bottom]) => right > left && bottom > top)"""
PLACES = """() => Object.fromEntries([...document.querySelectorAll('.boxes .box')].map((box) => {
  const { left, top, right, bottom } = box.querySelector('rect').getBoundingClientRect();
  return [box.dataset.id, [left, top, right, bottom]];
}))"""
EDGES = """() => [...document.querySelectorAll('.edges .edge')].map(({ dataset }) => [dataset.src, dataset.dst])"""

Box = tuple[float, float, float, float]


def rectangles(tab: Any, found: str) -> list[Box]:
    return [tuple(one) for one in tab.evaluate(RECTANGLES, found)]


def overlaps(a: Box, b: Box) -> bool:
    return a[0] < b[2] - 1 and b[0] < a[2] - 1 and a[1] < b[3] - 1 and b[1] < a[3] - 1


def visible_boxes(tab: Any) -> list[Box]:
    """The visible part of each box of a node."""
    (left, top, right, bottom) = rectangles(tab, ".canvas")[0]
    found = []
    for x0, y0, x1, y1 in rectangles(tab, ".boxes .box"):
        part = (max(x0, left), max(y0, top), min(x1, right), min(y1, bottom))
        if part[0] < part[2] and part[1] < part[3]:
            found.append(part)
    return found


def is_whole(tab: Any) -> bool:
    left, top, right, bottom = rectangles(tab, ".canvas")[0]
    return all(
        x0 >= left - 1 and y0 >= top - 1 and x1 <= right + 1 and y1 <= bottom + 1
        for x0, y0, x1, y1 in rectangles(tab, ".boxes .box")
    )


def settle(tab: Any) -> None:
    """Waits until the boxes have moved to their places."""
    pages.settle(tab, 400)


@pytest.fixture(scope="module")
def softmax() -> Trace:
    x, w, b = (Tensor.rand(*shape).realize() for shape in ((64, 48), (48, 32), (32,)))
    return explore(lambda: (x @ w + b).softmax(), repeat=1, title="softmax").trace


@pytest.fixture(scope="module")
def attention() -> Trace:
    x, wq, wk, wv = (Tensor.rand(64, 64).realize() for _ in range(4))

    def heads() -> Tensor:
        q, k, v = x @ wq, x @ wk, x @ wv
        return ((q @ k.transpose()) * 0.125).softmax() @ v

    return explore(heads, repeat=1, title="attention").trace


# *** the legend ***


def open_legend(tab: Any) -> None:
    """Where the canvas is low it is folded at first."""
    if tab.get_attribute(".legend .fold", "aria-expanded") == "false":
        tab.click(".legend .fold")


@pytest.mark.parametrize("width", [700, 1440])
def test_the_legend_names_the_elements_of_the_canvas_and_covers_nothing(
    open_page: Open, softmax: Trace, width: int
) -> None:
    tab = open_page(softmax, busy=False, flow="", width=width, height=900)
    settle(tab)
    open_legend(tab)
    settle(tab)
    said = tab.inner_text(".legend")
    for classes, words in {
        ".boxes .by-kernel": "its kernel",
        ".boxes .no-kernel": "already in memory",
        ".boxes .d-realize": "gets memory",
        ".boxes .d-keep": "row buffer",
        ".boxes .region": "several nodes",
        ".edges .through-views": "through views",
        ".edge-decision.cut": "stored in memory",
        ".edge-decision.fused": "fused",
        ".frame.product": "a product",
    }.items():
        assert (words in said) == (tab.locator(classes).count() > 0), words
    (legend,) = rectangles(tab, ".legend")
    assert not any(overlaps(legend, box) for box in visible_boxes(tab))
    assert not overlaps(legend, rectangles(tab, ".canvas")[0])


def test_the_legend_follows_the_graph_and_stays_folded(open_page: Open) -> None:
    tab = open_page()
    settle(tab)
    open_legend(tab)
    assert "loop" in tab.inner_text(".legend") and "arithmetic" in tab.inner_text(".legend")
    assert "kernel" not in tab.inner_text(".legend")
    high = rectangles(tab, ".legend")[0]
    tab.click(".legend .fold")
    assert tab.locator(".legend .sign").count() == 0
    assert tab.get_attribute(".legend .fold", "aria-expanded") == "false"
    reload(tab)
    assert tab.locator(".legend .sign").count() == 0
    now = rectangles(tab, ".legend")[0]
    assert now[3] - now[1] <= high[3] - high[1]
    tab.click(".legend .fold")
    assert tab.locator(".legend .sign").count() > 0


# *** the direction ***


def flows(tab: Any) -> set[str]:
    """The directions in which every edge could run."""
    places = tab.evaluate(PLACES)
    pairs = [(places[src], places[dst]) for src, dst in tab.evaluate(EDGES)]
    right = all(src[2] <= dst[0] for src, dst in pairs)
    down = all(src[3] <= dst[1] for src, dst in pairs)
    return {name for name, holds in (("right", right), ("down", down)) if holds}


def test_a_wide_canvas_has_its_graph_from_left_to_right_and_a_high_one_from_top_to_bottom(
    open_page: Open, softmax: Trace
) -> None:
    wide = open_page(softmax, busy=False, flow="", width=1500, height=760)
    wide.evaluate("document.querySelector('.tinyexplore').style.setProperty('--split', '78%')")
    settle(wide)
    assert wide.get_attribute(".graph", "data-flow") == "right" and flows(wide) == {"right"}
    high = open_page(softmax, busy=False, flow="", width=760, height=1500)
    settle(high)
    assert high.get_attribute(".graph", "data-flow") == "down" and flows(high) == {"down"}
    for tab in (wide, high):
        assert tab.evaluate(SMALLEST_WORDS) >= 11


def test_the_direction_can_be_switched_and_is_remembered(open_page: Open, softmax: Trace) -> None:
    tab = open_page(softmax, busy=False, flow="")
    for expected in ("right", "down"):
        tab.click(".graph .direction")
        settle(tab)
        assert tab.get_attribute(".graph", "data-flow") == expected and flows(tab) == {expected}
        reload(tab)
        settle(tab)
        assert tab.get_attribute(".graph", "data-flow") == expected and flows(tab) == {expected}
    tab.click(".graph .direction")
    assert tab.get_attribute(".graph .direction", "aria-pressed") == "false"


def test_the_arrow_keys_move_along_the_flow(open_page: Open, softmax: Trace) -> None:
    tab = open_page(softmax, busy=False, flow="")
    tab.click(".graph .direction")  # from left to right
    settle(tab)
    tab.evaluate(f"tinyexplore.handle.select([{softmax.where(op='EXP')[0].id}])")
    tab.focus(".tinyexplore")
    labels = []
    for key in ("Shift+ArrowLeft", "Shift+ArrowRight"):
        tab.keyboard.press(key)
        labels.append(tab.text_content(".boxes .box.sel .label"))
    assert labels == ["ADD", "EXP"]


# *** what fits ***


@pytest.mark.parametrize("width", [700, 1440])
@pytest.mark.parametrize("name", ["sample", "softmax", "attention", "400 nodes", "copies"])
def test_fit_shows_the_graph_or_a_part_with_a_minimap_and_legible_words(
    open_page: Open, softmax: Trace, attention: Trace, name: str, width: int
) -> None:
    traces = {"sample": TRACE, "softmax": softmax, "attention": attention}
    trace = traces.get(name) or (big_trace(200) if name == "400 nodes" else unrolled_trace(30))
    tab = open_page(trace, flow="", busy=name == "copies", width=width, height=900)
    tab.click("button:text-is('fit')")
    settle(tab)
    assert tab.evaluate(SMALLEST_WORDS) >= 11
    assert len(visible_boxes(tab)) > 0
    assert is_whole(tab) or tab.locator(".minimap .view").is_visible() or width == 700
    for mini in rectangles(tab, ".minimap"):
        assert not overlaps(mini, rectangles(tab, ".canvas")[0])


def test_parts_without_room_are_folded_and_can_be_unfolded(open_page: Open, softmax: Trace) -> None:
    tab = open_page(softmax, busy=False, flow="", width=1440, height=900)
    settle(tab)
    boxes = tab.locator(".boxes .box").count()
    assert not is_whole(tab)
    tab.click("button:text-is('fit')")
    settle(tab)
    assert is_whole(tab) and "folded to fit" in tab.inner_text(".status")
    assert tab.locator(".boxes .box").count() < boxes
    tab.click(".status button:text-is('unfold')")
    settle(tab)
    assert tab.locator(".boxes .box").count() == boxes and "folded to fit" not in tab.inner_text(".status")


def test_a_graph_that_does_not_fit_starts_at_the_selection(open_page: Open, attention: Trace) -> None:
    tab = open_page(attention, busy=False, flow="", width=700, height=800)
    node = max(one.id for one in attention.nodes if one.kind == "lazybuffer")
    tab.evaluate(f"tinyexplore.handle.select([{node}])")
    tab.focus(".tinyexplore")
    tab.keyboard.press("f")
    settle(tab)
    (selected,) = rectangles(tab, ".boxes .box.sel")
    left, top, right, bottom = rectangles(tab, ".canvas")[0]
    assert left <= selected[0] and selected[2] <= right and top <= selected[1] and selected[3] <= bottom
    assert tab.evaluate(SMALLEST_WORDS) >= 11


# *** products ***


def unfold(tab: Any) -> None:
    """A double click on the last box that stands for several nodes, which may be out of sight."""
    tab.evaluate(
        """[...document.querySelectorAll('.boxes .box.region')].at(-1).querySelector('rect')
          .dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))"""
    )


def test_a_matmul_is_two_expanded_operands_a_multiply_and_a_sum_in_one_frame_that_folds(
    open_page: Open, softmax: Trace
) -> None:
    tab = open_page(softmax, busy=False, flow="", width=1440, height=900)
    settle(tab)
    heading = tab.text_content(".headings .frame.product .name")
    assert heading.endswith("multiply, then sum over k") and "x @ w" in heading
    ((left, top, right, bottom),) = rectangles(tab, ".frames .frame.product rect")
    inside = tab.evaluate(
        """([l, t, r, b]) => [...document.querySelectorAll('.boxes .box')].filter((box) => {
          const at = box.getBoundingClientRect();
          return at.left >= l && at.right <= r && at.top >= t && at.bottom <= b;
        }).map((box) => [...box.querySelectorAll('text')].map((text) => text.textContent))""",
        [left, top, right, bottom],
    )
    assert sorted(inside) == [
        ["EXPAND w", "48×32 → 64×32×48"],
        ["EXPAND x", "64×48 → 64×32×48"],
        ["MUL", "64×32×48"],
        ["REDUCE_AXIS", "ADD over 2 → 64×32×1"],
    ]
    boxes = tab.locator(".boxes .box").count()
    tab.click(".headings .frame.product .name")
    settle(tab)
    assert tab.locator(".frame.product").count() == 0 and tab.locator(".boxes .box").count() == boxes - 3
    folded = tab.locator(".boxes .box.region .label").all_text_contents()
    assert [heading.endswith(text) for text in folded] == [True]
    unfold(tab)
    settle(tab)
    assert tab.locator(".boxes .box").count() == boxes


def test_the_products_of_a_larger_program_are_a_box_each(open_page: Open, attention: Trace) -> None:
    tab = open_page(attention, busy=False, flow="", width=1440, height=900)
    labels = tab.locator(".boxes .box.region .label").all_text_contents()
    products = [label for label in labels if label.endswith(": multiply, then sum over k")]
    assert len(products) == 5 and {"x @ wq", "x @ wk", "x @ wv"} <= {label.split(":")[0] for label in products}
    unfold(tab)
    settle(tab)
    assert tab.locator(".frames .frame.product").count() == 1


# *** beside the canvas ***


@pytest.mark.parametrize("split", [50, 78])
@pytest.mark.parametrize("width", [700, 1440])
def test_neither_the_card_nor_the_minimap_covers_a_node(
    open_page: Open, attention: Trace, width: int, split: int
) -> None:
    tab = open_page(attention, busy=False, flow="", width=width, height=900)
    tab.evaluate(f"document.querySelector('.tinyexplore').style.setProperty('--split', '{split}%')")
    settle(tab)
    for at in range(3):
        node = int(tab.get_attribute(f".boxes .box >> nth={at}", "data-id"))
        tab.evaluate(f"tinyexplore.handle.select([{node}])")
        settle(tab)
        beside = rectangles(tab, ".card") + rectangles(tab, ".minimap") + rectangles(tab, ".legend")
        assert len(rectangles(tab, ".card")) == 1
        for part in beside:
            assert not any(overlaps(part, box) for box in visible_boxes(tab))
        (selected,) = rectangles(tab, ".boxes .box.sel")
        left, top, right, bottom = rectangles(tab, ".canvas")[0]
        assert left <= selected[0] + 1 and selected[2] <= right + 1
        assert top <= selected[1] + 1 and selected[3] <= bottom + 1
