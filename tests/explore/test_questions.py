"""The trace responds to questions, tours lead to its locations, and both are stored in a page."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer
from tinyexplore.explore.analysis.questions import Stop, question
from tinyexplore.widgets import PredictWidget

TRACE = sample_trace()
SIMPLIFY = next(stage for stage in TRACE.stages if stage.name == "simplify")


def right(stop: Stop) -> str:
    assert stop.answer is not None
    return stop.choices[stop.answer]


def test_few_kernels_are_listed_by_their_calls():
    calls = [("__matmul__",), ("__matmul__", "__add__", "softmax")]
    kernels = tuple(replace(kernel, calls=calls[kernel.id]) for kernel in TRACE.kernels)
    stop = question(replace(TRACE, kernels=kernels), "kernels")
    assert "2, for 9 operations" in stop.reveal
    assert "matmul in kernel 0; add, softmax" in stop.reveal


def test_how_many_kernels():
    stop = question(TRACE, "kernels")
    assert right(stop) == str(len(TRACE.kernels)) == "2"
    assert len(set(stop.choices)) == len(stop.choices) == 4
    assert "2, for 9 operations" in stop.reveal
    assert stop.grade("2") and stop.grade(stop.answer) and not stop.grade("3")
    with pytest.raises(ValueError, match="one of the choices: 1, 2, 3"):
        stop.grade("two")


def test_the_answer_of_the_next_rule_is_the_recorded_one():
    fired = [k for k, step in enumerate(SIMPLIFY.steps) if step.rule is not None]
    for k in fired:
        stop = question(TRACE, "next rule", stage=SIMPLIFY.id, step=k)
        assert right(stop) == TRACE.rules[SIMPLIFY.steps[k].rule].name
        assert stop.link.startswith(f"#stage={SIMPLIFY.id}&step={k}&") and f"&step={k + 1}&" in stop.after
    with pytest.raises(ValueError, match=f"no rule fires .*stage {SIMPLIFY.id} .*step 20"):
        question(TRACE, "next rule", stage=SIMPLIFY.id, step=20)


def test_which_kernel_is_slowest_and_which_capture_is_faster():
    slowest = max(TRACE.runs, key=lambda run: run.median_us)
    assert right(question(TRACE, "slowest")).startswith(f"kernel {slowest.kernel}: ")
    half = replace(
        TRACE,
        title="half",
        runs=tuple(
            replace(r, median_us=r.median_us / 2, low_us=r.low_us / 2, high_us=r.high_us / 2) for r in TRACE.runs
        ),
    )
    assert right(question(TRACE, "faster", half)) == "half"
    assert "2.0 times as fast" in question(TRACE, "faster", half).reveal
    assert right(question(TRACE, "faster", TRACE)) == "no difference above the noise"
    with pytest.raises(ValueError, match="0 of this trace ran"):
        question(replace(TRACE, runs=()), "slowest")


def test_an_unknown_question_raises_an_error_with_the_known_ones():
    with pytest.raises(ValueError, match="'time'; .*kernels, next rule, slowest, faster"):
        question(TRACE, "time")


def test_a_tour_is_in_the_page_and_in_the_view():
    view = Explorer(TRACE)
    node = view.trace.where(op="REDUCE_AXIS")[0]
    view.tour([("See this", node), ("Then <that>", "#stage=3&step=2"), view.question("kernels")])
    assert [stop["link"] for stop in view.widget.tour] == [
        f"#graph=lazy&node={node.id}",
        "#stage=3&step=2",
        "#story=python",
    ]
    found = re.search(r'data-options="([^"]+)"', view.to_html())
    assert found is not None
    assert json.loads(html.unescape(found[1]))["tour"] == view.widget.tour
    view.tour([])
    assert "data-options" not in view.to_html()
    with pytest.raises(ValueError, match="the note 'x' has no place"):
        view.tour([("x", [])])


def test_a_question_is_a_widget_that_grades(monkeypatch):
    view = Explorer(TRACE)
    asked = view.question("kernels").widget
    assert isinstance(asked, PredictWidget) and asked.is_right is None
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    asked._ipython_display_()
    assert "<details><summary>The answer</summary>It is 2" in shown[0]["text/html"]
    assert "It is 2" not in shown[0]["text/plain"]
    asked.set_state({"guess": asked.question["answer"]})  # what a click sends
    assert asked.is_right is True
    asked.guess = 3
    assert asked.is_right is False
    view.close()
    assert asked.comm is None
