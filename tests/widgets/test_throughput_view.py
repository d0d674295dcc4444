"""The panel of the inner loop's throughput in a real browser: stored in a page, and requested from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.explore.test_throughput import FOUND
from tests.support.panels import open_panel
from tests.support.patience import milliseconds
from tests.widgets.test_accessibility import findings
from tests.widgets.test_why import MOUNT
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.analysis.models.throughput import INSTALLATION_HINT
from tinyexplore.explore.analysis.requests import to_data
from tinyexplore.explore.exports.html_export import chunk_scripts

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    x = Tensor.rand(64, 64).realize()
    found = explore(lambda: [x.sum(0), x + 1], repeat=1, title="two kernels")
    found.trace  # noqa: B018  it is made now
    found.capture.analyses.responses.store("throughput", FOUND, kernel=0, branch=None)
    return found


def opened(browser: Any, html: str, folder: Path, **options: Any) -> Any:
    (folder / "page.html").write_text(html, encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 1000}, **options)
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((folder / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    return tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_shows_its_stored_bounds_and_ports(
    browser: Any, view: Explorer, tmp_path: Path, scheme: str, screenshots: Path
) -> None:
    tab = opened(browser, view.to_html(), tmp_path, color_scheme=scheme)
    tab.evaluate(
        "tinyexplore.handle.go({kernel: 0})"
    )  # a page opens at a slow kernel: under load that may be the other
    open_panel(tab, "throughput")
    tab.wait_for_selector(".throughput .bound")
    told = {one.get_attribute("data-bound"): one.inner_text().split("\n") for one in tab.query_selector_all(".bound")}
    assert [told[name][1] for name in ("ports", "front end", "dependencies", "measured")] == [
        "1.00",
        "0.50",
        "4.02",
        "4.40",
    ]
    assert "the bottleneck" in tab.inner_text(".bound.binds") and "simulated" in tab.inner_text(".bound.binds")
    assert "4.02 cycles an iteration" in tab.inner_text(".throughput-says")
    head = tab.eval_on_selector_all(".throughput thead th", "found => found.map((one) => one.textContent)")
    assert head == ["instruction", "µops", "latency", "P0", "P1", "P5", "P6"]
    rows = tab.eval_on_selector_all(
        ".throughput tbody tr", "found => found.map((row) => [...row.cells].map((one) => one.textContent))"
    )
    assert rows[0] == ["vfmadd231ps ymm0, ymm1, ymm2", "1", "4", "0.50", "0.50", "", ""]
    assert rows[2] == ["jne .LBB0_1", "1", "1", "", "", "", "1.00"]
    assert findings(tab) == []
    tab.screenshot(path=screenshots / f"throughput_{scheme}.png")
    tab.evaluate("tinyexplore.handle.go({kernel: 1})")
    tab.wait_for_selector(".throughput [role=alert]")
    assert "view.kernels[1].throughput()" in tab.inner_text(".throughput [role=alert]")
    tab.close()


def test_the_view_requests_data_and_reports_a_missing_tool(browser: Any, view: Explorer, tmp_path: Path) -> None:
    page = view.to_html().replace("</body>", f"{chunk_scripts(['throughput'])}</body>")
    tab = opened(browser, page, tmp_path)
    asked: list[Any] = []
    replies = [{"error": INSTALLATION_HINT}, to_data(FOUND)]

    def answer(question: Any) -> Any:
        asked.append(question)
        return replies[len(asked) - 1]

    tab.expose_function("askPython", answer)
    tab.evaluate(MOUNT)
    open_panel(tab, "throughput")
    tab.wait_for_selector(".throughput [role=alert]")
    assert "llvm-mca is not installed" in tab.inner_text(".throughput")
    open_panel(tab, "timing")
    open_panel(tab, "throughput")
    tab.wait_for_selector(".throughput .bound")
    opened_kernel = asked[0]["kernel"]  # a slow one: under load that may be either
    assert opened_kernel in (0, 1) and asked == [{"ask": "throughput", "kernel": opened_kernel, "branch": None}] * 2
    tab.close()
