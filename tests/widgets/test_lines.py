"""The lines of Python by the time of their kernels: as data, in a page, and by requests to Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.panels import open_panel, panels_with_tabs
from tests.support.patience import milliseconds
from tests.widgets.test_throughput_view import opened
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.analysis.requests import request_key
from tinyexplore.explore.exports.html_export import chunk_scripts
from tinyexplore.explore.exports.panels import PANEL_REQUESTS
from tinyexplore.explore.notebook.requests import respond_from_trace


def step() -> Tensor:
    x, w = (Tensor(np.ones((64, 64), np.float32)).realize() for _ in range(2))
    y = x @ w  # the product
    z = y.relu() + 1  # shares its kernel
    return z.sum()  # may have one of its own


@pytest.fixture(scope="module")
def view() -> Explorer:
    return explore(step, repeat=3, title="lines")


def test_the_times_of_the_lines_sum_to_those_of_the_kernels(view: Explorer) -> None:
    found = view.panels.result("lines")
    medians = {run.kernel: run.median_us for run in view.trace.runs}
    assert found.total_us == pytest.approx(sum(medians[kernel.id] for kernel in view.trace.kernels))
    assert sum(line.time_us for line in found.lines) == pytest.approx(found.total_us)
    assert sum(line.share for line in found.lines) == pytest.approx(1)
    assert {kernel for line in found.lines for kernel in line.kernels} == {kernel.id for kernel in view.trace.kernels}
    numbers = [line.line for line in found.lines if line.source is not None]
    assert numbers == sorted(numbers)
    times = [line.time_us for line in found.by_time()]
    assert times == sorted(times, reverse=True)


def test_a_kernel_that_lines_share_is_divided_by_the_elements_they_compute(view: Explorer) -> None:
    """Both lines of this kernel compute as many elements, one operation for each."""
    x = Tensor(np.ones(4096, np.float32)).realize()

    def two() -> Tensor:
        y = x.exp2()
        return y.sqrt()

    found = explore(two, repeat=3).panels.result("lines")
    first, second = found.lines
    assert first.text == "y = x.exp2()" and second.text == "return y.sqrt()"
    assert first.kernels == second.kernels == (0,) and second.line == first.line + 1
    assert first.time_us == pytest.approx(second.time_us)
    product = max(view.panels.result("lines").lines, key=lambda line: line.time_us)
    assert product.text == "y = x @ w  # the product"  # 64 times the elements of the other lines


def test_the_text_has_a_row_for_each_line(view: Explorer) -> None:
    found = view.panels.result("lines")
    rows = str(found).splitlines()
    assert len(rows) == len(found.lines) + 2
    assert found.by_time()[0].text in rows[1]


def test_the_request_has_the_same_result_and_pages_store_it(view: Explorer) -> None:
    from tests.support.pages import stored_in

    found = view.panels.result("lines")
    response = respond_from_trace(view.trace, {"ask": "lines"})
    assert [line["time_us"] for line in response["lines"]] == [line.time_us for line in found.lines]
    assert stored_in(view.to_html())["responses"][request_key(PANEL_REQUESTS["lines"]())] == response
    assert found.by_time()[0].text in view.panels["lines"].svg()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [430, 1200])
def test_a_click_on_a_line_selects_its_nodes(
    browser: Any, view: Explorer, tmp_path: Path, screenshots: Path, scheme: str, width: int
) -> None:
    view.to_html(tmp_path / "page.html")
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    open_panel(tab, "lines")
    found = view.panels.result("lines")
    names = ".lines-by-time [data-line] .name"
    tab.wait_for_selector(names)
    assert tab.locator(names).all_text_contents() == [line.text for line in found.by_time()]
    tab.click("[data-order=source]")
    tab.wait_for_selector("[data-order=source][aria-pressed=true]")
    assert tab.locator(names).all_text_contents() == [line.text for line in found.lines]
    line = found.by_time()[0]
    tab.click(f'.lines-by-time [data-line="{line.source}:{line.line}"] .name')
    tab.wait_for_selector(f'.lines-by-time .on[data-line="{line.source}:{line.line}"]')
    selected = tab.evaluate("tinyexplore.handle.state.selected")
    frames = {one.id for one in view.trace.frames if (one.source, one.line) == (line.source, line.line)}
    assert set(selected) == {node.id for node in view.trace.nodes if node.user in frames}
    tab.screenshot(path=screenshots / f"lines_{width}_{scheme}.png")
    tab.close()


@pytest.mark.browser
def test_data_that_the_page_lacks_is_requested_from_python(browser: Any, view: Explorer, tmp_path: Path) -> None:
    bare = view.to_html().replace('id="stored"', 'id="other"')
    asked = respond_from_trace(view.trace, {"ask": "lines"})
    tab = opened(browser, bare.replace("</body>", f"{chunk_scripts(['lines'])}</body>"), tmp_path)
    assert "lines" not in panels_with_tabs(tab)
    tab.evaluate("tinyexplore.handle.go({panel: 'lines'})")  # a link leads there, and says what is missing
    tab.wait_for_selector(".lazy-view:not([hidden]) code:has-text('panels.result')")
    assert asked["lines"]
    tab.close()
