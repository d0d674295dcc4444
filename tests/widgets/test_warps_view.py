"""The panel of a GPU's warps in a real browser: stored in a page, and requested from Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.panels import open_panel
from tests.widgets.test_accessibility import findings
from tests.widgets.test_throughput_view import opened
from tests.widgets.test_why import MOUNT
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.exports.html_export import chunk_scripts
from tinyexplore.explore.notebook.requests import RequestHandler

pytestmark = pytest.mark.browser
ROWS = "() => [...document.querySelectorAll('.warps tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()))"


@pytest.fixture(scope="module")
def view() -> Explorer:
    zeros = np.zeros((256, 256), np.float32)
    return explore(lambda: Tensor(zeros) @ Tensor(zeros).T.contiguous(), target="sm_80", title="product and transpose")


def place_of(view: Explorer, kernel: int, place: int) -> set[int]:
    (listing,) = (one for one in view.trace.programs if one.kernel == kernel and one.language == "uops")
    return set(listing.lines[place].nodes)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 800)])
def test_a_page_shows_the_accesses_of_a_warp_by_lane(
    browser: Any, view: Explorer, tmp_path: Path, scheme: str, width: int, screenshots: Path
) -> None:
    transpose, product = (kernel.gpu() for kernel in view.kernels)
    tab = opened(browser, view.to_html(), tmp_path, color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 1200})
    open_panel(tab, "warps")
    tab.wait_for_selector(".warps table")
    assert tab.inner_text(".warps-says").startswith(transpose.says)
    assert [row[1:] for row in tab.evaluate(ROWS)] == [
        ["32 of 4", "12.5 %", "stride of 1024 bytes between lanes"],
        ["4 of 4", "100 %", "coalesced"],
    ]
    assert tab.locator(".warps .request .way").count() == tab.locator(".warps .request .segment").count() == 32
    tab.evaluate("tinyexplore.handle.go({kernel: 1})")
    assert tab.inner_text(".warps-says").startswith(product.says)
    assert tab.inner_text(".warps .bound.binds .name") == product.occupancy.limit
    rows = tab.evaluate(ROWS)
    says = {access.says for access in product.accesses}
    assert {row[-1] for row in rows} == says == {"coalesced", "2-way bank conflict", "no bank conflict"}
    assert len(rows) < len(product.accesses) and rows[-1][0].endswith("× 4"), "the stores of a tile are one row"
    for words, in_conflict in (("2-way bank conflict", True), ("no bank conflict", False)):
        number = next(at for at, row in enumerate(rows) if row[-1] == words)
        tab.click(f".warps tbody button >> nth={number}")
        first = next(access for access in product.accesses if access.says == words)
        assert place_of(view, 1, first.place) <= set(tab.evaluate("tinyexplore.handle.state.selected"))
        assert tab.locator(".warps tr.sel").count() == 1
        assert (tab.locator(".warps svg .conflict").count() > 0) == in_conflict
    assert tab.locator(".codes .line.sel, .codes .line.rel").count() > 0
    tab.evaluate(f"tinyexplore.handle.select([...{sorted(place_of(view, 1, product.accesses[0].place))}])")
    assert tab.get_attribute(".warps tbody button >> nth=0", "aria-pressed") == "true"
    assert findings(tab) == []
    tab.locator(".warps").screenshot(path=screenshots / f"warps_{scheme}.png")
    tab.close()


def test_the_view_requests_warps_and_reports_when_there_are_none(browser: Any, view: Explorer, tmp_path: Path) -> None:
    cpu = explore(lambda: Tensor(np.zeros(8, np.float32)) + 1, repeat=1)
    page = cpu.to_html()
    tab = opened(browser, page, tmp_path)
    tab.evaluate("tinyexplore.handle.go({panel: 'warps'})")  # no tab leads there, a link may
    assert tab.inner_text(".lazy-view:not([hidden]) code") == 'explore(f, target="sm_80")'
    tab.close()
    tab = opened(browser, page.replace("</body>", f"{chunk_scripts(['warps'])}</body>"), tmp_path)
    tab.expose_function("askPython", RequestHandler(lambda: cpu.trace, cpu.capture))
    tab.evaluate(MOUNT)
    open_panel(tab, "warps")
    tab.wait_for_selector(".warps [role=alert]:has-text('is for a CPU')")
    tab.click(".warps button:has-text('an A100')")
    tab.wait_for_selector(".warps table")
    assert "compiled for this GPU, not run" in tab.inner_text(".warps-says")
    tab.close()
    tab = opened(browser, re.sub(r'<script[^>]*id="stored">.*?</script>', "", view.to_html()), tmp_path)
    tab.expose_function("askPython", RequestHandler(lambda: view.trace, view.capture))
    tab.evaluate(MOUNT)
    open_panel(tab, "warps")
    tab.wait_for_selector(".warps table")
    assert tab.inner_text(".warps-says").startswith(view.kernels[0].gpu().says)
    tab.close()
