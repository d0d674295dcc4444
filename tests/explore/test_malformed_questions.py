"""Questions and messages that no view of ours sends: each is answered by an error, and none raises."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.live.serving import Serving
from tinyexplore.explore.notebook.requests import REQUESTS, Answers, answer

FIELDS = ("node", "stage", "step", "rule", "a", "b", "moves", "kernel", "branch", "do", "count", "line", "condition")
FIELDS += ("counters", "lane", "before", "after", "targets", "other")
KINDS = tuple(kind for kind in REQUESTS if kind != "rosetta")
BY_HAND = ("debug", "caches", "gpu", "throughput", "rosetta")
ACTIONS = ("step", "back", "run to", "run until", "iteration", "restart", "finish", "made up", "no action")
VALUES: tuple[Any, ...] = (None, True, False, -1, 0, 1, 3, 10**6, 2**31, 2**63, 10**40, 1.5, float("nan"), float("inf"))
VALUES += ("", "x", "0", "a" * 5000, "\ud800", "__class__", [], {}, [0], [[0]], {"a": 1}, [[[[[[[]]]]]]], "(" * 300)
VALUES += (["reshape", [2**40]], [["reshape", [2, -1]]], {"k0": 10**30}, "1+1", "value > 10**10**10", "9**9**9")


@pytest.fixture(scope="module")
def shown() -> Explorer:
    x = Tensor(np.ones((8, 8), np.float32)).realize()
    return explore(lambda: (x @ x).relu().sum(1), keep_inputs=True)


def questions(kind: Any, random: Random, count: int) -> list[Any]:
    found: list[Any] = [{"ask": kind}]
    for _ in range(count):
        question = {"ask": kind}
        if kind == "debug":
            question["do"] = random.choice(ACTIONS)
        for field in random.sample(FIELDS, random.choice((1, 1, 2, 3))):
            question[field] = random.choice(VALUES)
        found.append(question)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_question_is_answered(kind: str, shown: Explorer) -> None:
    answers = Answers(lambda: shown.trace, shown)
    for question in questions(kind, Random(kind), 120):
        found = answers(question)
        assert isinstance(found, dict), question
        json.dumps(found)


@pytest.mark.parametrize("question", [*VALUES, {"ask": []}, {"ask": None}, {"ask": {}}, {1: 2}], ids=repr)
def test_what_is_no_question_at_all_is_answered(question: Any, shown: Explorer) -> None:
    assert "error" in Answers(lambda: shown.trace, shown)(question)
    assert "error" in answer(shown.trace, question)


def test_malformed_kernels_are_refused_by_what_runs_them(shown: Explorer) -> None:
    answers = Answers(lambda: shown.trace, shown)
    for kind in BY_HAND:
        for kernel in ("x", None, [], {}, 10**40, -1, 1.5e300, float("nan"), "\ud800"):
            assert "error" in answers({"ask": kind, "kernel": kernel}), (kind, kernel)


def test_a_live_page_answers_whatever_it_is_sent(shown: Explorer) -> None:
    serving = Serving(lambda kind, text: None)
    serving.serve(shown)
    for text in ("", "{", "[]", "5", '"why"', "null", "[" * 5000, '{"ask": "write"}', '{"ask": "write", "text": 5}'):
        assert isinstance(json.loads(serving.answer(text)), dict), text


def test_a_malformed_message_is_a_complaint(shown: Explorer) -> None:
    told: list[dict[str, Any]] = []
    serving = Serving(lambda kind, text: told.append(json.loads(text)) if kind == "working" else None)
    serving.serve(shown)
    random = Random(4)
    for do in ("command", "begin", "go", "cancel", "x", None, [], {}):
        for _ in range(15):
            message: dict[str, Any] = {"do": do}
            for field in ("branch", "kernel"):
                message[field] = random.choice([value for value in VALUES if value not in (0,)])
            message["command"] = random.choice((*VALUES, {"kind": "SetOpts", "kernel": random.choice(VALUES)}))
            if do == "begin" and message["kernel"] in (True, False):
                continue  # these are numbers of kernels
            serving.tell(json.dumps(message))
            assert told[-1]["complaint"] or do == "cancel", message
