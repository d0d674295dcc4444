"""The playground page in a real browser without a network: a program is typed, run, explored and shared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import findings
from tests.widgets.test_live import START_MS, opened
from tinyexplore.cli import main

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROGRAM = "x = Tensor.ones(4, 8).contiguous().realize()\n# %%\nprint('hello')\n(x * 2 + 1).sum(1)"
RUN = ".pg-run:text-is('Run')"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the playground, made by the command."""
    folder = tmp_path_factory.mktemp("site")
    assert main(["playground", str(folder)]) == 0
    return folder / "index.html"


@pytest.fixture(scope="module")
def page(browser: Any, site: Path) -> Iterator[Any]:
    yield from opened(browser, site)


def run(page: Any, program: str) -> None:
    page.fill(".pg-text", program)
    runs = int(page.get_attribute(".pg-explorer", "data-runs") or 0)
    page.press(".pg-text", "Control+Enter")
    page.wait_for_selector(f".pg-explorer[data-runs='{runs + 1}']")


def test_a_typed_program_runs_and_is_explored(page: Any) -> None:
    page.wait_for_selector(".pg-editor")
    assert page.get_attribute("html", "data-live") == "asleep" and "softmax" in page.input_value(".pg-text")
    run(page, PROGRAM)
    assert "hello" in page.inner_text(".pg-output")
    assert "[24.0, 24.0, 24.0, 24.0]" in page.inner_text(".pg-output")
    page.evaluate("tinyexplore.handle.show('workbench')")
    page.wait_for_selector(".pg-explorer .drawing .box", state="attached")
    page.evaluate("tinyexplore.handle.go({panel: 'debugger', kernel: 0})")
    page.wait_for_selector(".debugger .program")


def test_a_program_that_raises_shows_the_error_at_its_line(page: Any) -> None:
    run(page, "x = Tensor.ones(3)\nx.reshape(2, 2)\n")
    assert "3 elements are not 4" in page.inner_text(".pg-failed")
    assert page.inner_text(".pg-gutter .wrong") == "2"
    run(page, "x = (1,\n")
    assert "SyntaxError" in page.inner_text(".pg-failed") and page.inner_text(".pg-gutter .wrong") == "1"


def test_kernels_are_compiled_for_the_selected_machine_without_times(page: Any) -> None:
    page.select_option(".pg-bar select >> nth=1", index=1)
    run(page, PROGRAM)
    options = page.inner_text(".pg-explorer header .chips")
    assert "x86-64-v3" in options
    assert "there are no times" in page.inner_text(".pg-explorer .banner")
    page.select_option(".pg-bar select >> nth=1", index=0)


def test_a_link_contains_program_and_position_and_runs_nothing(page: Any, browser: Any, site: Path) -> None:
    run(page, PROGRAM)
    page.evaluate("tinyexplore.handle.show('workbench')")
    page.evaluate("tinyexplore.handle.go({panel: 'kernels'})")
    page.click("button:text-is('Share')")
    page.wait_for_selector(".pg-note")
    link = page.evaluate("location.hash")
    assert link.startswith("#code=") and "panel=kernels" in link
    context = browser.new_context(offline=True)
    other = context.new_page()
    other.goto(f"{site.as_uri()}{link}")
    other.wait_for_selector(".pg-note:has-text('has not run yet')")
    assert other.input_value(".pg-text") == PROGRAM and other.get_attribute("html", "data-live") == "asleep"
    other.set_default_timeout(START_MS)
    other.click(RUN)
    other.wait_for_selector(".pg-explorer [role=tab][aria-selected=true]:has-text('Kernels')")
    context.close()


def test_a_truncated_link_shows_an_error(browser: Any, site: Path) -> None:
    context = browser.new_context(offline=True)
    tab = context.new_page()
    tab.goto(f"{site.as_uri()}#code=AAAA")
    tab.wait_for_selector(".pg-note.wrong:has-text('cannot be read')")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_playground_is_without_grave_findings(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.wait_for_timeout(300)
    assert findings(page, "#playground") == []


@pytest.mark.parametrize("mode", ["story", "workbench"])
def test_a_page_after_a_run_is_without_any_finding(page: Any, mode: str) -> None:
    """Of all impacts, in the whole page: its headings follow one another, too."""
    run(page, PROGRAM)
    page.evaluate(f"tinyexplore.handle.show('{mode}')")
    page.wait_for_timeout(500)
    assert findings(page, "html", impacts=None) == []
