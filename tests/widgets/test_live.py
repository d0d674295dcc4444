"""Live pages in a real browser without a network: the engine in the page answers as a notebook's kernel would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.widgets.test_accessibility import findings
from tests.widgets.test_why import firing, go
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START_MS = 180_000  # a loaded machine takes long to unpack Python and to start it; bench/explorer has the figure


@pytest.fixture(scope="module")
def view() -> Explorer:
    rows = np.arange(16 * 24, dtype=np.float32).reshape(16, 24) / 64
    rows[3, 5] = np.inf
    x, w = Tensor(rows).realize(), Tensor(np.zeros((24, 8), np.float32)).realize()
    return explore(lambda: (x @ w).softmax(), repeat=1, keep_inputs=True, title="product")


@pytest.fixture(scope="module")
def page(browser: Any, view: Explorer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The live page of a capture, from a file, where nothing can be fetched; the tests share its Python."""
    file = tmp_path_factory.mktemp("live") / "page.html"
    view.to_html(file, live=True)
    yield from opened(browser, file)


def opened(browser: Any, file: Path) -> Iterator[Any]:
    errors: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    tab = context.new_page()
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto(file.as_uri())
    tab.set_default_timeout(START_MS)
    yield tab
    context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []


def ready(tab: Any) -> None:
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached")


def test_nothing_starts_before_somebody_asks_and_the_first_answer_comes_with_progress(page: Any, view: Explorer) -> None:
    ready(page)
    assert page.get_attribute("html", "data-live") == "asleep"
    assert page.inner_text(".live") == "live page"
    stage, step, node, rule = firing(view)
    go(page, stage, step, node)
    page.wait_for_selector(".live progress")
    assert page.is_visible(".live button:text-is('Cancel')")
    first = page.wait_for_selector(".whys .tried.fires >> nth=0")
    assert rule in first.inner_text()
    found = view.why_not(node, stage=stage, step=step)
    assert f"{len(found.stopped)} cannot" in page.inner_text(".whys .note >> nth=0")
    page.wait_for_selector(".live[data-state=ready]")
    assert "in this page" in page.inner_text(".live")


def test_the_same_question_again_is_answered_at_once(page: Any, view: Explorer) -> None:
    stage, step, node, _ = firing(view)
    question = {"ask": "why", "stage": stage, "step": step, "node": node}
    took = page.evaluate(
        """async (question) => {
          await tinyexploreEngine.ask(question);
          const began = performance.now();
          await tinyexploreEngine.ask(question);
          return performance.now() - began;
        }""",
        question,
    )
    assert took < 3000  # 0.3 s where the machine does nothing else


def test_the_debugger_steps_on_the_inputs_that_the_page_carries(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'debugger', kernel: 0})")
    page.wait_for_selector(".debugger .program")
    page.fill(".debugger .until input", "nan")
    page.press(".debugger .until input", "Enter")
    page.wait_for_selector(".debugger .where:not(:has-text('step 0 '))")
    debugger = view.debug(0)
    debugger.run_until("nan")
    assert f"step {debugger.position:,}" in page.inner_text(".debugger .where")
    page.click(".debugger .steps button >> nth=2")
    page.wait_for_selector(f".debugger .where:has-text('step {debugger.position + 1:,}')")


def test_the_tuner_compiles_in_the_page_and_counts_uops(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'tuner', kernel: 0})")
    page.click(".tuner-begin")
    page.wait_for_selector(".tuner-tree [role=treeitem] >> nth=1")
    assert "UOps a run" in page.inner_text(".tuner-now")
    assert "µs" not in page.inner_text(".tuner-tree") and "ms" not in page.inner_text(".tuner-tree")
    page.click(".tuner button:text-is('No opts')")
    page.wait_for_selector(".tuner-row[aria-selected=true]:has-text('no opts')")
    command = {"kind": "ApplyOpt", "kernel": 0, "opt": "UPCAST(0, 4)"}
    page.evaluate("(command) => tinyexploreEngine.send({do: 'command', command, branch: 1})", command)
    page.wait_for_selector(".tuner-row[aria-selected=true]:has-text('UPCAST(0, 4)')")
    assert "interpreting one run took" in page.inner_text(".tuner-status")


def test_the_caches_are_modelled_without_numpy(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'caches', kernel: 1})")
    page.wait_for_selector(".caches .traffic")
    told = page.locator(".caches .traffic .num").all_inner_texts()
    assert f"{view.caches(1).total.touches:,}" in [text.split(" ")[0] for text in told[:2]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_live_page_is_without_grave_findings(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.evaluate("tinyexplore.handle.go({panel: 'debugger'})")
    assert findings(page) == []


def test_what_takes_long_can_be_cancelled_and_the_next_question_starts_python_anew(page: Any, view: Explorer) -> None:
    found = page.evaluate(
        """async () => {
          const asked = tinyexploreEngine.ask({ask: 'debug', kernel: 0, do: 'finish'}).catch((error) => error.message);
          tinyexploreEngine.cancel();
          return [await asked, document.documentElement.dataset.live];
        }"""
    )
    assert found == ["cancelled: ask again, and Python starts anew", "asleep"]
    answer = page.evaluate("tinyexploreEngine.ask({ask: 'debug', kernel: 0, do: 'look'})")
    assert answer["position"] == 0
