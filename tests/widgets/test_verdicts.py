"""The verdict in the graph, the kernel table, Timing, the story's last page and Go to; its numbers are links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.panels import open_panel, panels_with_tabs
from tests.support.patience import milliseconds
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.notebook.kernels import KernelView
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline
from tinyexplore.explore.tracefile.texts import duration_text

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def view() -> Explorer:
    """Two kernels: a product that takes most of the time, and a sum over all of it."""
    x, w = (Tensor(np.ones((256, 256), np.float32)).realize() for _ in range(2))
    return explore(lambda: (x @ w).exp().contiguous().sum(), repeat=3, noopt=1, title="product")


@pytest.fixture
def tab(browser: Any, view: Explorer, tmp_path: Path) -> Iterator[Any]:
    """Its page, opened as a workbench."""
    file = tmp_path / "page.html"
    view.to_html(file)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(
        "localStorage.getItem('tinyexplore.mode') ?? localStorage.setItem('tinyexplore.mode', 'workbench')"
    )
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    yield page
    page.close()
    assert errors == []


def slowest(view: Explorer) -> int:
    return max(view.trace.runs, key=lambda run: run.median_us).kernel


def cursor(tab: Any) -> dict[str, Any]:
    found: dict[str, Any] = tab.evaluate("tinyexplore.handle.state.cursor")
    return found


def label(kernel: KernelView) -> str:
    """The word of a verdict in the graph: for noisy samples the likely kind."""
    found = kernel.verdict()
    return found.kind if found.likely in (found.kind, "unexplained") else f"{found.likely}?"


def test_the_graph_has_a_colored_word_for_each_kernel_that_leads_to_its_numbers(tab: Any, view: Explorer) -> None:
    for kernel in view.kernels:
        word = tab.locator(f".verdict-word[data-verdict='{kernel.number}']")
        assert word.evaluate("one => one.lastChild.textContent") == label(kernel)
        assert "tone-" in word.get_attribute("class")
    assert tab.locator(".tone-key").count() >= 1  # what the colors mean
    number = view.kernels[0].number
    tab.locator(f".verdict-word[data-verdict='{number}']").click()
    assert (cursor(tab)["panel"], cursor(tab)["kernel"]) == ("timing", number)


def test_a_kernel_box_shows_the_verdict_too(tab: Any, view: Explorer) -> None:
    tab.select_option(".graph .tools select", label="box per kernel")
    tab.wait_for_function(
        "[...document.querySelectorAll('.boxes .box')].some((one) => one.textContent.includes('kernel 0'))"
    )
    texts = tab.evaluate("[...document.querySelectorAll('.boxes .box')].map((one) => one.textContent)")
    assert any(label(view.kernels[0]) in text for text in texts)


def test_the_kernel_table_has_a_column_of_verdicts(tab: Any, view: Explorer) -> None:
    open_panel(tab, "kernels")
    found = tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.kernels tbody tr')]"
        ".map((row) => [row.dataset.kernel, row.querySelector('.verdict-kind')?.textContent ?? '']))"
    )
    assert set(found) == {str(kernel.number) for kernel in view.kernels}
    for kernel in view.kernels:
        assert kernel.verdict().kind in found[str(kernel.number)]
    box, table = (tab.locator(one).first.bounding_box() for one in (".kernels .verdict-kind", ".kernels"))
    assert box["x"] + box["width"] < table["x"] + table["width"]  # in sight without scrolling


def test_timing_begins_with_the_sentence_and_each_number_leads_to_its_evidence(tab: Any, view: Explorer) -> None:
    number = slowest(view)
    verdict = view.kernels[number].verdict()
    tab.evaluate(f"tinyexplore.handle.go({{kernel: {number}}})")
    open_panel(tab, "timing")
    assert tab.evaluate("document.querySelector('.timing').firstElementChild.matches('.verdict-card')")
    card = tab.locator(".timing .verdict-card")
    assert card.get_attribute("data-kind") == verdict.kind
    assert verdict.text.split(".")[0] in card.inner_text()
    count = card.locator(".evidence").count()
    assert count == len(verdict.evidence) > 2
    panels = panels_with_tabs(tab)
    for place, evidence in enumerate(verdict.evidence):
        open_panel(tab, "timing")
        shown = tab.locator(".timing .verdict-card .evidence").nth(place)
        assert evidence.name in shown.inner_text()
        panel = {"gpu": "warps", "samples": "timing"}.get(evidence.panel, evidence.panel)
        if panel != "code" and panel not in panels:
            assert shown.evaluate("one => one.tagName") == "SPAN"  # this page does not store it: text, and no button
            continue
        shown.click()
        if panel == "code":
            assert cursor(tab)["place"] == "code"
        else:
            assert cursor(tab)["panel"] == panel
        assert cursor(tab)["kernel"] == number


@pytest.mark.parametrize(
    "question", ["why is it slow", "is this fast", "slowest", "bottleneck", "which kernel is slowest"]
)
def test_the_command_palette_answers_questions_with_the_verdict(tab: Any, view: Explorer, question: str) -> None:
    whole = view.verdict()
    tab.focus(".tinyexplore")
    tab.keyboard.press("g")
    tab.fill(".goto input", question)
    first = tab.locator(".goto [role=option]").first
    assert "question" in first.inner_text().lower() or "?" in first.inner_text()
    assert whole.text.split(".")[0].strip() in first.inner_text() or whole.text.split(".")[0] in (
        first.get_attribute("title") or first.text_content() or ""
    )
    tab.keyboard.press("Enter")
    assert (cursor(tab)["panel"], cursor(tab)["kernel"]) == ("timing", slowest(view))
    assert tab.locator(".timing .verdict-card").is_visible()


def test_the_last_page_of_the_story_is_the_verdict(tab: Any, view: Explorer) -> None:
    tab.evaluate("tinyexplore.handle.open('#story=time')")
    card = tab.locator(".story .verdict-card").first
    card.wait_for()
    kinds = {kernel.verdict().kind for kernel in view.kernels} | {view.verdict().kind}
    assert card.get_attribute("data-kind") in kinds


def test_every_view_of_a_kernel_shows_its_labeled_median(tab: Any, view: Explorer) -> None:
    """The verdict, Timing, the table, the graph's heading, the roofline and the story: one statistic."""
    number = slowest(view)
    run = next(run for run in view.trace.runs if run.kernel == number)
    median = duration_text(run.median_us)
    assert f"median {median}" in (tab.locator(".graph .canvas svg").first.text_content() or "")
    tab.evaluate(f"tinyexplore.handle.go({{kernel: {number}}})")
    open_panel(tab, "timing")
    evidence = tab.locator(".timing .verdict-card .evidence").first.inner_text()
    assert evidence.startswith(f"median {median}")
    assert tab.inner_text(".timing .timed[aria-current] .strong") == median
    open_panel(tab, "kernels")
    assert "median" in tab.inner_text(".kernels thead")
    assert median in tab.inner_text(f".kernels tr[data-kernel='{number}']")
    open_panel(tab, "roofline")
    assert "points are medians" in tab.inner_text(".roofline .note")
    (point,) = (one for one in roofline(view.trace).points if one.kernel == number)
    assert point.time_us == run.median_us
    tab.evaluate("tinyexplore.handle.open('#story=time')")
    card = tab.locator(f".time-card[data-kernel='{number}']")
    card.wait_for()
    assert median in card.locator("h3").inner_text() and f"median of {len(run.times_us)} samples" in card.inner_text()
    assert "edian" in tab.locator(".time-picture svg text").first.text_content()
