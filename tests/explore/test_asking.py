"""What a view asks of Python: questions and answers are plain data, by function and over a widget's channel."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from tinyexplore import Tensor, Trace
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.asking import QUESTIONS, answer
from tinyexplore.explore.why.fusions import Edge, WhyKernels
from tinyexplore.explore.why.matching import Obstacle
from tinyexplore.explore.why.rules import Fired, Tried, WhyNot, explainer
from tinyexplore.explore.why.watching import Place

FRONT_END = Path(__file__).resolve().parents[2] / "widgets" / "src" / "asking.ts"


@pytest.fixture(scope="module")
def view() -> Explorer:
    x = Tensor.rand(16, 32).realize()
    return explore(lambda: (x * 2 + 1).softmax(), repeat=1)


def question(trace: Trace) -> dict[str, Any]:
    stage = next(one for one in trace.stages if one.name == "simplify")
    return {"ask": "why", "node": stage.before[0], "stage": stage.id, "step": 0}


def test_an_answer_is_the_same_data_that_python_has(view: Explorer):
    asked = question(view.trace)
    found = answer(view.trace, asked)
    same = explainer(view.trace).why_not(asked["node"], asked["stage"], 0)
    assert found == json.loads(json.dumps(asdict(same)))
    assert answer(view.trace, {"ask": "why", "node": asked["node"]})["node"] == asked["node"]


def test_what_cannot_be_answered_says_why(view: Explorer):
    assert (
        answer(view.trace, {"ask": "when"})["error"]
        == f"nobody knows the question 'when'; known: {', '.join(QUESTIONS)}"
    )
    assert "this trace has nodes 0 … " in answer(view.trace, {"ask": "why", "node": 10**6, "stage": 0})["error"]
    assert answer(view.trace, {"ask": "why"})["error"].startswith("TypeError: ")
    lazy = view.where(kind="lazybuffer")[0].id
    assert (
        "is a LazyBuffer: rules are about UOps" in answer(view.trace, {"ask": "why", "node": lazy, "stage": 0})["error"]
    )


def test_a_widget_answers_over_its_channel(view: Explorer, monkeypatch: pytest.MonkeyPatch):
    sent: list[Any] = []
    widget = view.widget
    monkeypatch.setattr(widget, "send", sent.append)
    assert widget.answers
    widget._handle_custom_msg({"id": "a 1", "question": question(view.trace)}, [])
    widget._handle_custom_msg({"something": "else"}, [])
    assert sent == [{"id": "a 1", "answer": answer(view.trace, question(view.trace))}]


@pytest.mark.parametrize("kind", [WhyNot, Tried, Fired, Obstacle, Place, WhyKernels, Edge])
def test_the_front_end_knows_the_fields_of_an_answer(kind: type):
    text = FRONT_END.read_text(encoding="utf-8")
    body = re.search(rf"export interface {kind.__name__} {{(.*?)\n}}", text, re.S)
    assert body is not None
    assert re.findall(r"^  (\w+): ", body[1], re.M) == [field.name for field in fields(kind)]
