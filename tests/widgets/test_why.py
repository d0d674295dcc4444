"""The panel of decisions in a real browser: with responses of the engine, and without an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import milliseconds
from tests.widgets.test_accessibility import findings
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.notebook.requests import respond_from_trace
from tinyexplore.explore.tracefile.fusions import Fusions, compared_text

pytestmark = pytest.mark.browser

MOUNT = """async () => {
  const ask = async (question) => {
    const found = await askPython(question);
    if (found.error) throw new Error(found.error);
    return found;
  };
  const place = document.getElementById("explorer");
  tinyexplore.handle.destroy();
  const trace = await tinyexplore.readTrace(tinyexplore.fromBase64(document.getElementById("trace").textContent));
  tinyexplore.handle = tinyexplore.mount(place, trace, { height: "100vh", page: true, mode: "workbench", ask });
}"""


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = Tensor.rand(16, 32).realize(), Tensor.rand(32, 24).realize()
    return explore(lambda: (x @ w).softmax(), repeat=1, title="softmax")


@pytest.fixture
def page(browser: Any, view: Explorer, tmp_path: Path) -> Iterator[Any]:
    """The page of a trace, without an engine; no error may be left in it."""
    errors: list[str] = []
    view.to_html(tmp_path / "page.html")
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached", timeout=milliseconds(15))
    yield tab
    tab.close()
    assert errors == []


@pytest.fixture
def asking(page: Any, view: Explorer) -> Any:
    """The same page, with this Python behind it."""
    page.expose_function("askPython", lambda question: respond_from_trace(view.trace, question))
    page.evaluate(MOUNT)
    page.wait_for_selector(".drawing .box", state="attached")
    return page


def firing(view: Explorer) -> tuple[int, int, int, str]:
    """A stage, the steps before a firing, the node and the rule."""
    trace = view.trace
    for stage in trace.stages:
        for number, step in enumerate(stage.steps):
            if step.rule is not None and not view.why_not(step.before, stage=stage.id, step=number).note:
                return stage.id, number, step.before, trace.rules[step.rule].name
    raise AssertionError("no rule fired")


def go(tab: Any, stage: int, step: int, node: int) -> None:
    tab.evaluate(f"tinyexplore.handle.go({{stage: {stage}, step: {step}, graph: 'uops', place: 'passes'}})")
    tab.evaluate(f"tinyexplore.handle.select([{node}])")
    tab.focus(".tinyexplore")
    tab.keyboard.press("y")


def test_the_next_rule_is_listed_first_and_the_others_with_their_mismatch(asking: Any, view: Explorer):
    stage, step, node, rule = firing(view)
    go(asking, stage, step, node)
    first = asking.wait_for_selector(".why-body .attempt.fires >> nth=0")
    assert rule in first.inner_text() and "fires" in first.inner_text()
    found = view.why_not(node, stage=stage, step=step)
    assert f"{len(found.stopped)} cannot" in asking.inner_text(".why-body .note >> nth=0")
    stopped = asking.query_selector_all(".why-body .attempt.stopped")
    names = [row.query_selector("summary b").inner_text() for row in stopped]
    assert set(names) <= {one.rule for one in found.stopped}
    asking.keyboard.press("y")
    assert asking.is_hidden(".why-body")


def test_two_values_side_by_side_and_the_node_at_which_it_stopped(asking: Any, view: Explorer):
    trace = view.trace
    stage = next(one for one in trace.stages if one.name == "simplify")
    for node in view.trace.where(op="ADD", kind="uop"):
        found = view.why_not(node, stage=stage.id, step=0)
        deep = [one for one in found.stopped[:5] if one.mismatch.kind == "operation" and one.mismatch.path]
        if deep and not found.note:
            break
    go(asking, stage.id, 0, node.id)
    row = asking.wait_for_selector(f".why-body .attempt:has(b:text-is('{deep[0].rule}'))")
    assert f"expected {deep[0].mismatch.expected}" in row.query_selector(".expected").inner_text()
    assert f"found {deep[0].mismatch.actual}" in row.query_selector(".found").inner_text()
    row.query_selector("summary").click()
    assert deep[0].law in row.query_selector(".law").inner_text()
    row.query_selector("button:text-is('show it')").click()
    assert asking.evaluate("tinyexplore.handle.state.selected") == [deep[0].at]


def test_every_list_of_names_and_values_has_a_caption(asking: Any, view: Explorer):
    """x = ADD … says nothing without: what are these names of?"""
    go(asking, *firing(view)[:3])
    asking.wait_for_selector(".why-body .attempt")
    assert "counted from 0" in asking.inner_text(".why-body")
    for row in asking.query_selector_all(".why-body .attempt summary"):
        row.click()
    before = asking.eval_on_selector_all(
        ".why-body dl.values", "(all) => all.map((one) => one.previousElementSibling.textContent)"
    )
    assert before and all(text.endswith("here:") for text in before)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 600)])
def test_a_response_is_without_grave_findings(asking: Any, view: Explorer, scheme: str, width: int):
    asking.emulate_media(color_scheme=scheme)
    asking.set_viewport_size({"width": width, "height": 900})
    go(asking, *firing(view)[:3])
    asking.wait_for_selector(".why-body .attempt")
    for row in asking.query_selector_all(".why-body .attempt summary")[:3]:
        row.click()
    assert findings(asking) == []
    assert (
        asking.evaluate(
            "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('.why-body'))"
        )
        <= 0
    )


def test_each_step_sends_a_request_and_late_responses_are_dropped(asking: Any, view: Explorer):
    stage, step, node, rule = firing(view)
    go(asking, stage, step, node)
    asking.wait_for_selector(".why-body .attempt.fires")
    asking.evaluate(f"tinyexplore.handle.go({{step: {step + 1}}})")
    asking.wait_for_selector(f".why-body .note:has-text('after step {step + 1}')")
    row = asking.wait_for_selector(f".why-body .event:has-text('{rule}')")
    assert f"step {step + 1}" in row.inner_text()


def test_every_edge_of_the_tensors_is_marked_and_a_click_shows_the_numbers(page: Any):
    x, w, v = (Tensor.rand(256, 256).realize() for _ in range(3))
    view = explore(lambda: (x @ w).relu() @ v, repeat=1, title="two layers")
    page.set_content(view.to_html())
    page.wait_for_selector(".drawing .box", state="attached")
    page.evaluate("tinyexplore.handle.show('workbench')")
    page.evaluate("tinyexplore.handle.go({graph: 'lazy', place: 'lazy'})")
    fusions = Fusions(view.trace)
    marks = page.query_selector_all(".edge-decision[data-src]")  # the legend has samples
    places = [(int(one.get_attribute("data-src")), int(one.get_attribute("data-dst"))) for one in marks]
    classes = [one.get_attribute("class").split()[-1] for one in marks]
    assert [fusions.edge(*place).mark for place in places] == classes
    assert {"fused", "cut"} <= set(classes)
    cut = next(place for place, mark in zip(places, classes, strict=True) if mark == "cut")
    told = fusions.edge(*cut)
    tip = marks[classes.index("cut")].query_selector("title").text_content()
    assert tip.startswith("cut: one kernel stores") and told.reason in tip
    target = page.locator(".edge-decision.cut[data-src] .target").first
    for event in ("pointerdown", "pointerup", "click"):  # it may be out of sight
        target.dispatch_event(event, {"button": 0})
    card = page.inner_text(".card")
    assert "cut: one kernel stores" in card and compared_text(told.compared[0]) in card
    assert page.evaluate("tinyexplore.handle.state.selected") == list(cut)
    page.focus(".tinyexplore")
    page.keyboard.press("y")
    assert told.reason in page.inner_text(".why-body") and "read by" in page.inner_text(".why-body").lower()
    page.click(".why-body .event >> nth=0")
    assert len(page.evaluate("tinyexplore.handle.state.selected")) == 2


def test_why_these_opts_decision_by_decision(page: Any, view: Explorer):
    stage = next(one for one in view.trace.stages if one.choices)
    page.evaluate(f"tinyexplore.handle.go({{stage: {stage.id}, graph: 'uops', place: 'passes', panel: 'why'}})")
    rows = page.query_selector_all(".why-body .attempt")
    assert [row.query_selector("b").inner_text() for row in rows] == [one.name for one in stage.choices]
    for row, choice in zip(rows, stage.choices, strict=True):
        row.query_selector("summary").click()
        text = row.inner_text()
        assert all(stage.opts[place].reason in text for place in choice.opts)
        assert all(one.what in text for one in (*choice.compared, *choice.weighed))  # type: ignore[attr-defined]
        assert choice.settled_by in text
    assert "chosen" in page.inner_text(".why-body")
    assert findings(page) == []


def test_two_tensors_are_one_kernel_or_two(asking: Any, view: Explorer):
    first, second = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")[:2]
    asking.evaluate("tinyexplore.handle.go({graph: 'lazy', place: 'lazy'})")
    asking.evaluate(f"tinyexplore.handle.select([{first.id}, {second.id}])")
    asking.focus(".tinyexplore")
    asking.keyboard.press("y")
    text = view.why_kernels(first, second).text
    assert asking.wait_for_selector(".why-body [role=status]").inner_text() == f"{text}."


def test_a_page_without_an_engine_shows_recorded_firings_and_a_remedy(page: Any, view: Explorer):
    stage, step, node, rule = firing(view)
    go(page, stage, step + 1, node)
    assert rule in page.wait_for_selector(".why-body .event").inner_text()
    assert f"why_not({node}, stage={stage}, step={step + 1})" in page.inner_text(".why-body code")
    page.click(".why-body .event")
    assert page.evaluate("tinyexplore.handle.state.cursor.step") == step + 1


def test_errors_of_python_are_shown(page: Any, view: Explorer):
    page.expose_function("askPython", lambda question: {"error": "the kernel is busy"})
    page.evaluate(MOUNT)
    stage, step, node, _ = firing(view)
    go(page, stage, step, node)
    assert page.wait_for_selector(".why-body [role=alert]").inner_text() == "the kernel is busy"


def test_a_rule_s_pattern_is_drawn_next_to_the_node_in_the_same_colors(asking: Any, view: Explorer):
    stage, number = next(
        (stage, k)
        for stage in view.trace.stages
        for k, step in enumerate(stage.steps)
        if step.rule is not None and stage.kernel == 0
    )
    where = f"{{stage: {stage.id}, step: {number}, kernel: 0, graph: 'uops', place: 'passes', panel: 'why'}}"
    asking.evaluate(f"tinyexplore.handle.go({where})")
    asking.evaluate(f"tinyexplore.handle.select([{stage.steps[number].before}])")
    asking.wait_for_selector(".why-body .attempt.fires", state="attached")
    asking.evaluate("document.querySelector('.why-body .attempt.fires').open = true")
    asking.wait_for_selector(".why-body .attempt.fires .pattern-picture", state="attached")
    pattern, node = asking.evaluate(
        """[...document.querySelectorAll('.attempt.fires .pattern-picture')][0].querySelectorAll('svg.pattern').length
          && [...document.querySelectorAll('.attempt.fires .pattern-picture')[0].querySelectorAll('svg.pattern')].map(
            (svg) => [...svg.querySelectorAll('.part')].map((part) => [part.dataset.part, part.getAttribute('class')]))"""
    )
    assert pattern == node and all("by-kernel" in look for _, look in pattern)


def test_the_rewrite_history_shows_the_opts_that_created_a_node(page: Any, view: Explorer):
    kernel = next(one for one in view.trace.kernels if one.opts)
    stages = [one for one in view.trace.stages if one.kernel == kernel.id and one.after]
    (opts,) = [[opt for opt in one.opts if opt.applied] for one in stages if any(opt.applied for opt in one.opts)]
    where = f"{{stage: {stages[-1].id}, kernel: {kernel.id}, graph: 'uops', place: 'passes', panel: 'history'}}"
    page.evaluate(f"tinyexplore.handle.go({where})")
    store = next(node for node in stages[-1].after if view.trace.nodes[node].op == "STORE")
    page.evaluate(f"tinyexplore.handle.select([{store}])")
    rows = page.locator(".history .made-by").all_inner_texts()
    assert len(rows) == len([opt for opt in opts if opt.made])  # a store lies in every loop that an opt made
    for row, opt in zip(rows, [opt for opt in opts if opt.made], strict=True):
        assert f"of {len(opts)}" in row and opt.opt in row and opt.axis in row and ", ".join(opt.made) in row
