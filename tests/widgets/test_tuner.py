"""The kernel tuner in a real browser: in a widget with Python, and in a page without Python."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.axe import findings
from tests.support.pages import wait_until
from tests.support.panels import open_panel
from tests.support.patience import milliseconds, seconds
from tests.support.widget_model import Served
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings
from tinyexplore.explore.analysis.machine.roofs import with_ceilings
from tinyexplore.explore.tracefile.model import Ceiling
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.kernel import Kernel
from tinyexplore.kernel.search import neighbors
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.trace import CandidateMeasured, SearchProgress, active_recorder

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tinyexplore/static/explorer.js"

pytestmark = pytest.mark.browser


def product() -> Explorer:
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    return explore(lambda: a @ b, title="product", repeat=2)


@pytest.fixture
def live(browser: Any) -> Iterator[Callable[..., Any]]:
    """Shows the widget of an Explorer at its tuner; messages of the view go to its Python."""
    tabs, errors = [], []

    def show(view: Explorer, *, width: int = 1300, scheme: str = "light") -> Any:
        widget = view.widget
        widget.mode, widget.cursor, widget.height = "workbench", {"panel": "tuner", "kernel": 0}, "820px"
        tab = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        Served(tab, widget, BUNDLE.read_text(encoding="utf-8"))
        tab.wait_for_selector(".tuner .tuner-bar")
        tabs.append(tab)
        return tab

    yield show
    for tab in tabs:
        tab.close()
    assert errors == []


def at_hand(tab: Any) -> str:
    return tab.inner_text('.tuner-row[aria-selected="true"] .tuner-opt')


def until(tab: Any, condition: Callable[[], bool]) -> None:
    """Wait for Python, and send its messages to the view."""
    end = time.monotonic() + seconds(60)
    while not condition():
        assert time.monotonic() < end
        tab.evaluate("poll()")
        tab.wait_for_timeout(50)


def test_opts_are_applied_undone_and_branched(live: Callable[..., Any]) -> None:
    view = product()
    tab = live(view)
    tab.click(".tuner-begin")
    tab.wait_for_selector(".tuner-nest")
    until(tab, lambda: at_hand(tab) == "as captured")  # of several branches, the last to come
    tab.click('.tuner-bar button:has-text("No opts")')
    assert at_hand(tab) == "no opts"
    kinds = tab.eval_on_selector_all(".tuner-loop .tuner-kind", "found => found.map((one) => one.textContent)")
    assert kinds == ["global", "global", "reduce"]
    tab.click(".tuner-loop >> nth=0")  # shows the opts of this loop only
    assert tab.query_selector('[data-opt="VECTOR(1, 4)"]') is None
    tab.click(".tuner-loop >> nth=0")
    tab.hover('[data-opt="VECTOR(1, 4)"]')
    assert "vector" in tab.inner_text(".tuner-law").lower()
    tab.click('[data-opt="VECTOR(1, 4)"]')
    wait_until(
        tab, "() => document.querySelector('.tuner-row[aria-selected=\"true\"]')?.textContent.includes('VECTOR(1, 4)')"
    )
    tab.click('[data-opt="UPCAST(0, 4)"]')
    wait_until(
        tab, "() => document.querySelector('.tuner-row[aria-selected=\"true\"]')?.textContent.includes('UPCAST(0, 4)')"
    )
    assert view.kernels[0].branch.kernels[0].opts == ("VECTOR(1, 4)", "UPCAST(0, 4)")
    variant = view.kernels[0].branch.kernels[0]
    assert variant.base_times_us and tab.inner_text(".tuner-base").startswith("as captured ")
    assert len(tab.query_selector_all(".tuner-ratio")) == 1  # one baseline
    assert tab.query_selector(".tuner-code-line.new") and tab.query_selector(".tuner-code-line.removed")
    tab.click('.tuner-bar button:has-text("Undo")')
    assert at_hand(tab) == "VECTOR(1, 4)"
    assert view.kernels[0].branch.kernels[0].opts == ("VECTOR(1, 4)",)
    known = tab.query_selector('[data-opt="UPCAST(0, 4)"]').get_attribute("class")
    assert known == "known"
    tab.click('[data-opt="UNROLL(2, 2)"]')
    wait_until(
        tab, "() => document.querySelector('.tuner-row[aria-selected=\"true\"]')?.textContent.includes('UNROLL(2, 2)')"
    )
    assert len(tab.query_selector_all(".tuner-dots .dot")) == sum(b.status == "done" for b in view.kernels[0].branches)
    axes = tab.inner_text(".tuner-illegal summary")
    assert axes.endswith("illegal now, with reasons")


def test_any_two_branches_are_compared_line_by_line(live: Callable[..., Any]) -> None:
    view = product()
    view.whatif.begin(0)
    view.kernels[0].set_opts()
    view.kernels[0].apply("VECTOR(1, 4)")
    tab = live(view)
    assert "against no opts" in tab.get_attribute(".tuner-says", "title")
    tab.click('.tuner-row:has-text("as captured") .tuner-compare')
    assert "against as captured" in tab.get_attribute(".tuner-says", "title")
    tab.click('.tuner-code .tab:has-text("Assembly")')
    assert tab.query_selector(".tuner-code-line.new")


def endless_search(device: str, kernel: Kernel, width: int) -> Kernel:
    """A search that runs until the recorder stops it."""
    recorder = active_recorder()
    assert recorder is not None
    candidates = neighbors(with_merged_axes(with_split_axes(kernel)))
    for number, candidate in enumerate(itertools.cycle(candidates)):
        recorder.record(SearchProgress(kernel, len(candidates), number % len(candidates), len(candidates), 1e-3))
        recorder.record(CandidateMeasured(candidate, 1e-3 + number * 1e-6, ""))
        time.sleep(0.02)
    return kernel


def test_a_search_fills_the_tree_and_can_be_cancelled(
    live: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinyexplore.explore.whatif.commands.search.search_opts", endless_search)
    view = product()
    view.whatif.begin(0)
    tab = live(view)
    tab.click('.tuner-bar button:has-text("BEAM 2")')
    until(tab, lambda: len(tab.query_selector_all(".tuner-candidate")) > 5)
    assert len(tab.query_selector_all(".tuner-row")) == sum(
        bool(branch.kernels[0].listings) for branch in view.kernels[0].branches
    )  # the times of a search stand apart
    assert tab.query_selector(".tuner-status progress")
    tab.click(".tuner-status button")
    until(tab, lambda: tab.query_selector(".tuner-status progress") is None)
    assert "cancelled after" in tab.inner_text(".tuner-status")
    tried = [branch for branch in view.kernels[0].branches if branch.kernels and not branch.kernels[0].listings]
    assert tried
    light = next(branch for branch in tried if branch.status == "done")
    tab.evaluate(f"document.querySelector('.tuner-candidate[data-branch=\"{light.id}\"]').click()")
    wait_until(
        tab, f"() => document.querySelector('.tuner-row[aria-selected=\"true\"]')?.dataset.branch === '{light.id}'"
    )
    assert view.kernels[0].branch.kernels[0].listings


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_view_that_opens_later_shows_all_branches_and_both_update(
    live: Callable[..., Any], screenshots: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    go_on = Event()

    def held_back(place: Any, *rest: Any) -> Any:
        while not go_on.wait(0.01):
            place.step("compiling")
        return try_out(place, *rest)

    view = product()
    tab = live(view, scheme=scheme)
    tab.click(".tuner-begin")
    tab.wait_for_selector(".tuner-nest")
    tab.click('.tuner-bar button:has-text("No opts")')
    tab.click('[data-opt="UPCAST(0, 4)"]')
    until(tab, lambda: "UPCAST(0, 4)" in at_hand(tab))
    monkeypatch.setattr("tinyexplore.explore.whatif.commands.apply_opt.try_out", held_back)
    tab.click('[data-opt="VECTOR(1, 4)"]')
    until(tab, lambda: tab.locator(".tuner-status button").count() == 1)
    tab.screenshot(path=screenshots / f"whatif_working_{scheme}.png")
    count = len(view.whatif.branches)
    tab.click(".tuner-status button")
    until(tab, lambda: "cancelled: no branch was created" in tab.inner_text(".tuner-status"))
    tab.screenshot(path=screenshots / f"whatif_cancelled_{scheme}.png")
    assert len(view.whatif.branches) == count and "UPCAST(0, 4)" in at_hand(tab)
    later = live(view, scheme=scheme)
    rows = "[...document.querySelectorAll('.tuner-row')].map((one) => one.textContent)"
    assert later.evaluate(rows) == tab.evaluate(rows) and at_hand(later) == at_hand(tab)
    go_on.set()
    later.click('[data-opt="VECTOR(1, 4)"]')
    until(later, lambda: "VECTOR(1, 4)" in at_hand(later))
    assert len(later.query_selector_all(".tuner-row")) == len(view.kernels[0].branches)


def test_a_page_shows_recorded_branches_and_reports_that_it_cannot_continue(browser: Any, tmp_path: Path) -> None:
    view = product()
    view.whatif.begin(0)
    view.kernels[0].set_opts()
    view.kernels[0].apply("VECTOR(1, 4)")
    view.kernels[0].apply("UPCAST(0, 4)")
    view.kernels[0].apply("UPCAST(7, 4)")
    view.kernels[0].undo()
    path = tmp_path / "page.html"
    view.to_html(path)
    tab = browser.new_page(viewport={"width": 1300, "height": 860})
    tab.goto(path.as_uri() + "#panel=tuner&kernel=0")
    tab.wait_for_selector("html[data-tinyexplore=ready] .tuner-nest", state="attached")
    tab.click('.tuner-row:has-text("no opts")')
    assert tab.is_enabled('[data-opt="VECTOR(1, 4)"]') and not tab.is_enabled('[data-opt="VECTOR(1, 2)"]')
    tab.click('[data-opt="VECTOR(1, 4)"]')
    tab.click('[data-opt="UPCAST(0, 4)"]')
    assert at_hand(tab) == "UPCAST(0, 4)"
    failed = tab.query_selector(".tuner-row.failed")
    assert "no axis 7 in this kernel" in failed.inner_text()
    tab.close()


def test_names_in_the_tree_are_complete_in_a_narrow_panel(browser: Any, tmp_path: Path) -> None:
    view = product()
    long = "UPCAST(0, 2), UPCAST(1, 2), UNROLL(2, 2), VECTOR(1, 4), UPCAST(7, 4)"
    view.kernels[0].set_opts(view.kernels[0].opts)
    view.kernels[0].set_opts(long)
    view.kernels[0].edit("c", "floaty x;")
    view.kernels[0].edit("llvm", "floaty x;")
    view.kernels[0].edit("opts", f"UNROLL(2, 2),\n{long}")
    path = tmp_path / "page.html"
    view.to_html(path)
    tab = browser.new_page()
    tab.goto(path.as_uri() + "#panel=tuner&kernel=0")
    tab.wait_for_selector("html[data-tinyexplore=ready] .tuner-nest", state="attached")
    for width in (366, 600, 940, 1300):
        tab.set_viewport_size({"width": width, "height": 900})
        wait_until(tab, f"document.querySelector('.tinyexplore').clientWidth === {width - 2}")
        rows = tab.evaluate(
            """() => [...document.querySelectorAll(".tuner-row")].map((row) => {
              const name = row.querySelector(".tuner-opt");
              const whole = name.scrollWidth <= name.clientWidth && name.scrollHeight <= name.clientHeight + 1;
              return [name.textContent, whole && row.scrollWidth <= row.clientWidth, row.title.startsWith(name.textContent)];
            })"""
        )
        names = {"as captured", long, "edited C", "edited LLVM IR", f"UNROLL(2, 2), {long}"}
        assert {name for name, *_ in rows} == names, width
        assert [name for name, whole, titled in rows if not whole or not titled] == [], width
    tab.close()


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (1300, "dark"), (560, "light")])
def test_the_tuner_is_accessible_and_fits_its_width(live: Callable[..., Any], width: int, scheme: str) -> None:
    view = product()
    view.whatif.begin(0)
    tab = live(view, width=width, scheme=scheme)
    assert findings(tab, ".tuner", impacts=None) == []
    assert tab.evaluate("document.querySelector('.tuner').scrollWidth <= document.querySelector('.tuner').clientWidth")
    smallest = tab.evaluate(
        "Math.min(...[...document.querySelectorAll('.tuner *')].filter((e) => e.textContent && e.clientWidth > 0)"
        ".map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 11


@pytest.mark.parametrize("measured", [True, False])
def test_the_dots_are_below_the_ceilings(browser: Any, tmp_path: Path, measured: bool) -> None:
    """Those of the machine where they were measured; else there is none."""
    view = product()
    rows = (
        Ceiling("float32 arithmetic", "arithmetic", 4000.0, 0, "float32", 1),
        Ceiling("read memory", "memory", 20.0, 1 << 30, "read", 1),
        Ceiling("read L1", "memory", 21.0, 64, "read", 1),
    )
    view.kernels[0].set_opts()
    view.kernels[0].use_heuristics()
    known = Ceilings("CPU", "target", rows if measured else (), "not measured")
    view.capture._take_ceilings(with_ceilings(view.trace, known))
    view.capture.repeat = 1  # nothing is measured for the page
    view.to_html(tmp_path / "page.html")
    tab = browser.new_page(viewport={"width": 1280, "height": 1000})
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    open_panel(tab, "tuner")
    tab.wait_for_selector(".tuner-dots .dot")
    titles = tab.locator(".tuner-dots .roof title").all_text_contents()
    if not measured:
        assert titles == []
        tab.close()
        return
    assert titles[0] == "float32 arithmetic: 4,000 GFLOP/s"
    peak, dots = tab.evaluate(
        "() => [Number(document.querySelector('.roof.arithmetic').getAttribute('d').match(/M[\\d.]+ ([\\d.]+)/)[1]),"
        " [...document.querySelectorAll('.tuner-dots .dot')].map((dot) => Number(dot.getAttribute('cy')))]"
    )
    assert all(dot >= peak - 0.1 for dot in dots), "a lower place has a larger y"
    words = tab.eval_on_selector_all(
        ".tuner-dots .roof-text[transform]", "found => found.map((one) => one.transform.baseVal[0].matrix.f)"
    )
    assert len(words) == 2 and abs(words[0] - words[1]) >= 11, "words do not meet"
    tab.close()
