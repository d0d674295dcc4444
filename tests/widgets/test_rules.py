"""The rule playground in a real browser: in a widget with Python, and in a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import findings
from tests.support.pages import wait_until
from tests.support.widget_model import Served
from tests.widgets.test_tuner import BUNDLE
from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer, playground
from tinyexplore.explore.playground import UOp, check_firings, var
from tinyexplore.uop import Rule

pytestmark = pytest.mark.browser


def shuffled() -> Explorer:
    t = Tensor.rand(33, 64).realize()
    return explore(lambda: [(t.permute(1, 0).reshape(33, 64) + 1).sum(0), t * 2], title="shuffled", repeat=1)


def careless() -> Rule:
    x, y, a = var("x"), var("y"), playground.cvar("a")

    @playground.rule(x * a + y)
    def careless(x: UOp, y: UOp) -> UOp:
        """A constant factor is of no use: x * a + y is x + y."""
        return x + y

    return careless


@pytest.fixture
def live(browser: Any) -> Iterator[Callable[..., Any]]:
    """Shows the widget of an Explorer at its rules; Python answers."""
    tabs, errors = [], []

    def show(view: Explorer, *, width: int = 1300, scheme: str = "light", **cursor: int) -> Any:
        widget = view.widget
        widget.mode, widget.height = "workbench", "860px"
        widget.cursor = {"panel": "rules", "kernel": 0, **cursor}
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        Served(tab, widget, BUNDLE.read_text(encoding="utf-8"))
        tab.wait_for_selector(".rules .rules-row")
        tabs.append(tab)
        return tab

    yield show
    for tab in tabs:
        tab.close()
    assert errors == []


def test_a_rule_shows_its_matches_is_inserted_and_is_refuted(live: Callable[..., Any]) -> None:
    careless()
    view = shuffled()
    tab = live(view)
    tab.click('.rules-row:has-text("careless")')
    tab.wait_for_selector(".rules-place")
    places = view.rules.matches("careless")
    wrong = sum(place.verdict.status == "differs" for place in places)
    assert f"{len(places)} nodes · changes the value at {wrong}" in tab.inner_text(".rules-body")
    assert f"Check of each firing: {view.rules.proves}." in tab.inner_text(".rules-body")
    assert set(tab.evaluate("[...document.querySelectorAll('.rules-place dt')].map((one) => one.textContent)")) >= {
        "before",
        "after",
    }
    tab.click(".rules-place .event >> nth=0")
    tab.click('.rules-actions button:has-text("Insert at")')
    tab.wait_for_selector(".rules-branch")
    (branch,) = view.whatif.branches
    assert dict(branch.command.arguments) == {"rule": "careless", "stage": "simplify", "position": 0}
    first = branch.firings[0]
    values = tab.inner_text(".rules-branch .rules-values >> nth=0")
    assert first.was in values and first.has_become in values
    tab.click(".rules-kernel summary >> nth=0")
    for kind in ("new", "removed"):
        tab.wait_for_selector(f".rules-diff .tuner-code-line.{kind}")
    assert "its results are wrong" in tab.inner_text(".rules-kernel summary >> nth=0")


def test_a_rule_of_the_pipeline_is_disabled_and_one_place_is_fired(live: Callable[..., Any]) -> None:
    careless()
    view = shuffled()
    tab = live(view)
    tab.fill(".rules input", "accumulators")
    assert tab.eval_on_selector_all(".rules-row b", "found => found.map((one) => one.textContent)") == [
        "accumulate",
        "carry",
    ]
    tab.click('.rules-row:has-text("accumulate")')
    tab.click('.rules-actions button:has-text("Disable")')
    tab.wait_for_selector(".rules-branch")
    assert "cannot be compiled" in tab.inner_text(".rules-branch")
    tab.fill(".rules input", "")
    tab.click('.rules-row:has-text("careless")')
    tab.click(".rules-place button.quiet >> nth=0")
    wait_until(tab, "() => document.querySelectorAll('.rules-body > .event').length === 2")
    assert dict(view.whatif.branches[1].command.arguments)["node"] == view.rules.matches("careless")[0].digest


def test_a_firing_of_the_capture_is_checked_at_the_cursor(live: Callable[..., Any]) -> None:
    view = shuffled()
    stage = next(one for one in view.trace.stages if one.name == "simplify" and one.steps)
    step = next(number for number, one in enumerate(stage.steps, 1) if one.rule is not None)
    tab = live(view, stage=stage.id, step=step)
    tab.wait_for_selector(".rules-check .verdict")
    name = view.trace.rules[stage.steps[step - 1].rule].name
    assert tab.inner_text(".rules-check").startswith(f"simplify, step {step}: {name} fired")
    (checked,) = check_firings(view.trace, stages=[stage.id], step=step)
    assert tab.inner_text(".rules-check").endswith(str(checked.verdict))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_is_without_grave_findings(live: Callable[..., Any], scheme: str) -> None:
    careless()
    view = shuffled()
    view.rules.insert("careless", "simplify", 0)
    tab = live(view, scheme=scheme)
    tab.wait_for_selector(".rules-place")
    assert findings(tab, ".rules") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_branch_is_stepped_through_with_the_counterexample_at_its_step(
    live: Callable[..., Any], scheme: str, screenshots: Path
) -> None:
    careless()
    view = shuffled()
    branch = view.rules.insert("careless", "simplify", 0)
    tab = live(view, scheme=scheme)
    tab.wait_for_selector(".rules-branch")
    tab.click('.rules-branch button:text-is("Step through")')
    tab.wait_for_selector('.firing-check[data-verdict="differs"]')
    trace = view.whatif.trace_of(branch)
    first = next(check for check in trace.checks if check.verdict == "differs")
    values = tab.inner_text(".firing-check .rules-values")
    assert (
        first.was in values
        and first.has_become in values
        and "careless" in tab.inner_text(".stepper .detail h5 >> visible=true")
    )
    assert tab.evaluate("document.querySelectorAll('.row.wrong').length") >= 1
    tab.screenshot(path=screenshots / f"firing_check_{scheme}.png")
    assert findings(tab, ".stepper") == []
    tab.click('header button:has-text("Back")')
    tab.wait_for_selector(".rules-branch", state="visible")
    assert tab.locator(".tinyexplore").count() == 1
    firing = branch.firings[1]
    tab.click(".rules-branch .rules-place >> nth=1 >> button.quiet")
    tab.wait_for_selector(".firing-check")
    said = tab.inner_text(".scrub .at >> visible=true")
    place = next(
        check for check in trace.checks if check.step == firing.step and trace.stages[check.stage].name == firing.stage
    )
    done = sum(step.rule is not None for step in trace.stages[place.stage].steps[: place.step])
    assert said.startswith(f"{done} /")


def test_the_stepper_checks_a_firing_of_the_capture_on_request(live: Callable[..., Any]) -> None:
    view = shuffled()
    stage = next(one for one in view.trace.stages if one.name == "simplify" and one.steps)
    step = next(number for number, one in enumerate(stage.steps, 1) if one.rule is not None)
    tab = live(view, stage=stage.id, step=step)
    tab.click(".panel-tabs [data-key=passes]")
    tab.click('.firing-check button:text-is("check it")')
    tab.wait_for_selector(".firing-check .verdict")
    (checked,) = check_firings(view.trace, stages=[stage.id], step=step)
    assert tab.inner_text(".firing-check").endswith(str(checked.verdict))


def test_a_page_shows_recorded_branches_and_reports_what_needs_python(browser: Any, tmp_path: Path) -> None:
    careless()
    view = shuffled()
    view.rules.insert("careless", "simplify", 0)
    view.rules.disable("mul_one")
    path = tmp_path / "page.html"
    view.to_html(path)
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.goto(path.as_uri() + "#panel=rules&kernel=0")
    tab.wait_for_selector("html[data-tinyexplore=ready] .rules-branch", state="attached")
    assert "view.rules" in tab.inner_text(".rules-body")
    tab.click('.rules-body > .event:has-text("careless in simplify")')
    body, values = (tab.locator(one).bounding_box() for one in (".rules-body", ".rules-branch .rules-values >> nth=0"))
    assert (
        body["y"] <= values["y"] < values["y"] + values["height"] <= body["y"] + body["height"]
    )  # seen without scrolling
    assert tab.evaluate("document.activeElement.getAttribute('aria-current')") == "step"
    assert tab.query_selector(".rules-actions") is None
    tab.close()
