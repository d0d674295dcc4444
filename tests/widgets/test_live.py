"""Pages with engine in a real browser without a network: the engine in the page responds like a notebook's kernel."""

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
    """A page with engine of a capture, from a file, where nothing can be fetched; the tests share its Python."""
    file = tmp_path_factory.mktemp("live") / "page.html"
    view.to_html(file, live=True)
    yield from opened(browser, file, shows=".tinyexplore")


def opened(browser: Any, file: Path, shows: str = "body") -> Iterator[Any]:
    """A page in a browser without a network, once it has what `shows` selects."""
    errors: list[str] = []
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    tab = context.new_page()
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto(file.as_uri())
    tab.set_default_timeout(START_MS)
    tab.wait_for_selector(shows, state="attached")
    yield tab
    context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []


def ready(tab: Any) -> None:
    tab.wait_for_selector(".tinyexplore", state="attached")


def test_the_engine_starts_at_the_first_request_and_shows_progress(page: Any, view: Explorer) -> None:
    ready(page)
    assert page.get_attribute("html", "data-live") == "asleep"
    assert page.inner_text(".live") == "page with engine"
    stage, step, node, rule = firing(view)
    go(page, stage, step, node)
    page.wait_for_selector(".live progress")
    assert page.is_visible(".live button:text-is('Cancel')")
    first = page.wait_for_selector(".why-body .attempt.fires >> nth=0")
    assert rule in first.inner_text()
    found = view.why_not(node, stage=stage, step=step)
    assert f"{len(found.stopped)} cannot" in page.inner_text(".why-body .note >> nth=0")
    page.wait_for_selector(".live[data-state=ready]")
    assert "in this page" in page.inner_text(".live")


def test_a_repeated_request_is_answered_immediately(page: Any, view: Explorer) -> None:
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
    debugger = view.kernels[0].debug()
    debugger.run_until("nan")
    assert f"step {debugger.position:,}" in page.inner_text(".debugger .where")
    page.click(".debugger .steps button >> nth=2")
    page.wait_for_selector(f".debugger .where:has-text('step {debugger.position + 1:,}')")


def test_the_tuner_compiles_in_the_page_and_counts_uops(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'tuner', kernel: 0})")
    page.click(".tuner-begin")
    page.wait_for_selector(".tuner-tree [role=treeitem] >> nth=1")
    assert "UOps a run" in page.inner_text(".tuner-current")
    assert "µs" not in page.inner_text(".tuner-tree") and "ms" not in page.inner_text(".tuner-tree")
    page.click(".tuner button:text-is('No opts')")
    page.wait_for_selector(".tuner-row[aria-selected=true]:has-text('no opts')")
    command = {"kind": "ApplyOpt", "kernel": 0, "opt": "UPCAST(0, 4)"}
    page.evaluate("(command) => tinyexploreEngine.send({ask: 'command', command, branch: 1})", command)
    page.wait_for_selector(".tuner-row[aria-selected=true]:has-text('UPCAST(0, 4)')")
    page.wait_for_selector(".tuner-status:has-text('interpreting one run took')")


def test_the_caches_are_modeled_without_numpy(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'caches', kernel: 1})")
    page.wait_for_selector(".caches .traffic")
    told = page.locator(".caches .traffic .num").all_inner_texts()
    assert f"{view.kernels[1].caches().total.accesses:,}" in [text.split(" ")[0] for text in told[:2]]


def test_an_edge_is_cut_in_the_page_and_its_results_compared(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'fusion'})")
    page.wait_for_selector(".fusion")
    (schedule,) = view.whatif.schedules
    edge = next(edge for edge in view.fusion.edges() if not edge.against_cut)
    command = {"kind": "Cut", "schedule": schedule, "src": edge.src, "dst": edge.dst}
    page.evaluate("(command) => tinyexploreEngine.send({ask: 'command', command, branch: null})", command)
    page.wait_for_selector(".fusion .tuner-row >> nth=1")
    assert "the results are the same" in page.inner_text(".fusion")


def test_uops_are_edited_in_the_page_and_c_needs_a_compiler(page: Any, view: Explorer) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'tuner', kernel: 0})")
    page.click('.tuner-code [role="tab"] >> text="C"')
    edit = page.locator('.tuner-code button:text-is("edit")')
    assert edit.is_disabled() and "has no compiler for C" in edit.get_attribute("title")
    page.click('.tuner-code [role="tab"] >> text="UOps"')
    edit.click()
    text = page.input_value(".edit-area")
    page.fill(".edit-area", f"{text}no such thing\n")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(f".edit-message:has-text('line {len(text.splitlines()) + 1}')")
    page.fill(".edit-area", text.replace("0.0:float32", "0.5:float32"))
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".edit-bad:has-text('differs from the PYTHON device')")
    edit.click()


def test_rules_are_disabled_in_the_page_checked_and_stepped_through(page: Any, view: Explorer) -> None:
    names = {
        view.trace.rules[step.rule].name for stage in view.trace.stages for step in stage.steps if step.rule is not None
    }
    rule = next(name for name in sorted(names) if view.rules.disable(name).kernels)
    page.evaluate("tinyexplore.handle.go({panel: 'rules', kernel: 0})")
    page.click(f'.rules-row:has(b:text-is("{rule}"))')
    page.click('.rules-actions button:has-text("Disable")')
    page.click('.rules-branch button:text-is("Step through")')
    page.wait_for_selector("header button:has-text('Back')")
    assert page.locator(".stepper .scrub >> visible=true").count() == 1
    page.click("header button:has-text('Back')")
    stage, step, _, _ = firing(view)
    page.evaluate(
        f"tinyexplore.handle.go({{stage: {stage}, step: {step + 1}, graph: 'uops', place: 'passes', panel: 'rewrites'}})"
    )
    page.click('.firing-check button:text-is("check it")')
    page.wait_for_selector(".firing-check .verdict")


def test_a_rule_is_written_in_the_page_and_a_wrong_one_gets_its_counterexample(page: Any) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'rules', kernel: 0})")
    page.click(".rules-row >> nth=0")
    page.click('.rules-left button:text-is("Write a rule")')
    right = page.input_value(".rules-draft")
    page.fill(".rules-draft", right.replace("x * c)", "x * q)"))
    page.click('button:text-is("Add this rule")')
    page.wait_for_selector(".rules-write-status:has-text(\"line 6: NameError: name 'q' is not defined\")")
    page.fill(".rules-draft", right)
    page.press(".rules-draft", "Control+Enter")
    page.wait_for_selector('.rules-row[aria-selected="true"]:has-text("shift")')
    page.wait_for_selector(".rules-place .v-agrees")
    page.click('.rules-left button:text-is("Write a rule")')
    page.fill(
        ".rules-draft",
        right.replace("def shift", "def doubled").replace("c.arg.bit_length() - 1", "c.arg.bit_length()"),
    )
    page.click('button:text-is("Add this rule")')
    page.wait_for_selector(".rules-place .v-differs")
    page.click('.rules-actions button:text-is("Insert at")')
    page.wait_for_selector(".rules-branch .rules-place .v-differs")
    assert "not timed: " in page.inner_text(".rules-kernel summary >> nth=0")


def test_the_throughput_panel_reports_that_a_browser_cannot_run_the_tool(page: Any) -> None:
    page.evaluate("tinyexplore.handle.go({panel: 'throughput', kernel: 0})")
    page.wait_for_selector(".throughput [role=alert]:has-text('which a browser cannot start')")


def test_the_engine_in_the_page_writes_a_kernel_in_every_language(page: Any, view: Explorer) -> None:
    ready(page)
    page.evaluate("tinyexplore.handle.go({panel: 'rosetta', kernel: 0})")
    page.wait_for_selector(".languages table")
    asked = [one.target for one in view.kernels[0].translate().translations]
    assert (
        page.eval_on_selector_all(".languages select >> nth=0 >> option", "found => found.map((one) => one.value)")
        == asked
    )
    page.select_option(".languages select >> nth=1", "wgsl")
    assert page.locator(".languages .line:has-text('@builtin(')").count() == 1
    assert page.locator(".languages td.no-translation").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_with_engine_is_without_grave_findings(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.evaluate("tinyexplore.handle.go({panel: 'debugger'})")
    assert findings(page) == []


def test_a_long_request_can_be_cancelled_and_the_next_one_restarts_python(page: Any, view: Explorer) -> None:
    found = page.evaluate(
        """async () => {
          const asked = tinyexploreEngine.ask({ask: 'debug', kernel: 0, do: 'finish'}).catch((error) => error.message);
          tinyexploreEngine.cancel();
          return [await asked, document.documentElement.dataset.live];
        }"""
    )
    assert found[0].startswith("cancelled") and found[1:] == ["asleep"]
    answer = page.evaluate("tinyexploreEngine.ask({ask: 'debug', kernel: 0, do: 'look'})")
    assert answer["position"] == 0


def test_a_page_with_engine_leads_to_the_playground(browser: Any, view: Explorer, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    view.to_html(file, live=True)
    for tab in opened(browser, file, shows=".tinyexplore"):
        tab.evaluate("tinyexplore.handle.open('#stage=1&step=0')")
        tab.get_by_role("button", name="Playground").click()
        tab.wait_for_selector(".pg-program textarea")
        assert tab.locator(".tinyexplore").count() == 0
        tab.locator(".pg-program textarea").fill("y = Tensor([1.0, 2.0]) * 3\nprint(y.tolist())\ny")
        tab.click(".pg-run")
        tab.wait_for_selector(".pg-explorer .tinyexplore")
        assert "[3.0, 6.0]" in tab.inner_text(".pg-output")
        assert tab.get_by_role("button", name="Playground").count() == 0
        tab.reload()
        tab.wait_for_selector("#explorer .tinyexplore", state="attached")
