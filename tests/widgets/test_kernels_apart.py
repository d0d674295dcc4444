"""Kernels in a real browser: each has a script and a distinct label; the wheel scrolls the notebook."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.pages import wait_until
from tests.support.panels import open_panel
from tests.widgets.sample_traces import sample_trace
from tests.widgets.test_browser import Open, open_page, state  # noqa: F401
from tinyexplore import Tensor, Variable, explore
from tinyexplore.explore import Trace, reproducer
from tinyexplore.explore.tracefile.pictures.drawing import KERNEL_HUES
from tinyexplore.explore.tracefile.pictures.table_pictures import listing_svg, passes_svg, timing_svg

pytestmark = pytest.mark.browser


def panel(tab: Any, name: str) -> None:
    open_panel(tab, name)


@pytest.fixture(scope="module")
def trace() -> Trace:
    x, w = Tensor.rand(64, 48).realize(), Tensor.rand(48, 32).realize()
    rows = Variable("rows", 1, 64).bind(5)
    return explore(
        lambda: ((x @ w).softmax(), (w * 2).contiguous(), x.shrink(((0, rows), None)).sum(1)), repeat=1
    ).trace


def test_the_button_copies_the_script_of_python(open_page: Open, trace: Trace) -> None:  # noqa: F811
    tab = open_page(trace, busy=False)
    panel(tab, "kernels")
    seen = 0
    for kernel in trace.kernels:
        owner = kernel.id if kernel.same_as is None else kernel.same_as
        tab.click(f".kernels tr[data-kernel='{kernel.id}']")
        with tab.expect_download() as started:
            tab.click(".kernels button.script")
        path = started.value.path()
        text = path.read_text(encoding="utf-8")
        assert started.value.suggested_filename == f"kernel_{kernel.id}_{kernel.name}.py"
        assert text == reproducer(trace, owner)
        compile(text, "kernel.py", "exec")
        seen += "rows = 5" in text
    assert seen >= 1


def test_a_kernel_without_source_has_no_script(open_page: Open) -> None:  # noqa: F811
    bare = replace(sample_trace(), programs=())
    tab = open_page(bare, busy=False)
    panel(tab, "kernels")
    assert tab.query_selector(".kernels button.script") is None


def alike(count: int = 2 * KERNEL_HUES + 1) -> Trace:
    """Kernels that all have one name."""
    x = Tensor.rand(count, 16).realize()
    return explore(lambda: [(x[i] * (i + 2.0)).contiguous() for i in range(count)], repeat=1).trace


def test_kernels_of_equal_name_are_distinguished_everywhere(open_page: Open) -> None:  # noqa: F811
    trace = alike()
    assert len(trace.kernels) > KERNEL_HUES and len({kernel.name for kernel in trace.kernels}) == 1
    tab = open_page(trace, busy=False)

    def words(where: str) -> list[str]:
        return tab.evaluate("(where) => [...document.querySelectorAll(where)].map((one) => one.textContent)", where)

    for name, where in (("kernels", ".kernels tbody tr"), ("timing", ".timing .timed .kernel-label")):
        panel(tab, name)
        found = words(where)
        assert len(found) == len(set(found)) == len(trace.kernels)
    assert re.search(r"\b\d+\s", words("[data-place=kernels] .kernel-label")[0])
    assert any("kernel 0 ·" in text for text in words(".passes .row"))
    node = trace.kernels[3].roots[0]
    tab.evaluate(f"tinyexplore.handle.select([{node}])")
    assert "kernel 3 ·" in tab.inner_text(".card")
    for picture in (timing_svg(trace), passes_svg(trace)):
        rows: dict[str, list[str]] = {}
        for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
            rows.setdefault(text.get("y", ""), []).append(text.text or "")
        named = [tuple(row[:3]) for row in rows.values() if any(trace.kernels[0].name in word for word in row)]
        assert named and all(re.search(r"\d", "".join(row)) for row in named)
    assert "kernel 0 ·" in listing_svg(trace, "c")


def test_boxes_with_repeated_colors_show_their_kernels_number(open_page: Open) -> None:  # noqa: F811
    trace = alike()
    tab = open_page(trace, busy=False)
    tab.evaluate("document.querySelector('.detail-choice').value = 'views'")
    tab.dispatch_event(".detail-choice", "change")
    tab.wait_for_selector(".boxes .box")
    look = """() => [...document.querySelectorAll('.boxes .box.by-kernel')].map((box) => [
      getComputedStyle(box.querySelector('rect')).fill, box.querySelector('.badge')?.textContent ?? '',
      document.querySelector('.frames .frame') === null, box.querySelector('title').textContent])"""
    boxes = tab.evaluate(look)
    assert boxes and all(re.search(r"in kernel \d+ ·", says) for *_, says in boxes)
    for _, badge, is_unframed, says in boxes:
        if is_unframed:
            assert badge == re.search(r"in kernel (\d+) ·", says)[1]


def notebook(tab: Any) -> None:
    """The page as a notebook has it: other cells above and below, and the explorer no page of its own."""
    tab.evaluate("""() => {
      const root = document.querySelector('.tinyexplore');
      delete root.dataset.page;
      root.style.setProperty('--height', '700px');
      for (const place of ['beforebegin', 'afterend']) {
        const cell = document.createElement('div');
        cell.style.height = '1500px';
        root.insertAdjacentElement(place, cell);
      }
      root.scrollIntoView();
    }""")


def test_the_wheel_scrolls_the_notebook_and_zooms_with_ctrl_only(open_page: Open) -> None:  # noqa: F811
    tab = open_page(busy=False)
    notebook(tab)
    zoom = "document.querySelector('.drawing .world').getAttribute('transform')"
    box = tab.query_selector(".graph .canvas").bounding_box()
    tab.mouse.move(box["x"] + 20, box["y"] + 20)
    before, at = tab.evaluate(zoom), tab.evaluate("scrollY")
    tab.mouse.wheel(0, 200)
    wait_until(tab, f"scrollY > {at} + 100")
    assert tab.evaluate(zoom) == before
    # a click inside, and the focus that it brings, change nothing of that
    tab.evaluate("document.querySelector('.tinyexplore').scrollIntoView()")
    tab.click(".boxes .box >> nth=0")
    tab.evaluate("document.querySelector('.drawing').focus?.()")
    before, at = tab.evaluate(zoom), tab.evaluate("scrollY")
    box = tab.query_selector(".graph .canvas").bounding_box()
    tab.mouse.move(box["x"] + 20, box["y"] + 20)
    tab.mouse.wheel(0, 200)
    wait_until(tab, f"scrollY > {at} + 100")
    assert tab.evaluate(zoom) == before
    tab.evaluate("document.querySelector('.tinyexplore').scrollIntoView()")
    at = tab.evaluate("scrollY")
    box = tab.query_selector(".graph .canvas").bounding_box()
    tab.mouse.move(box["x"] + 20, box["y"] + 20)
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, 200)
    tab.keyboard.up("Control")
    wait_until(tab, f"{zoom} !== {before!r}")
    assert tab.evaluate("scrollY") == at and state(tab)["selected"] != []
