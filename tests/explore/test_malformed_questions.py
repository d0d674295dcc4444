"""Malformed requests and messages: each gets an error as its response, and none raises."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from tinyexplore import Tensor, Trace
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.live.page_server import PageServer
from tinyexplore.explore.notebook.requests import REQUESTS, RequestHandler, respond_from_trace

FIELDS = ("node", "stage", "step", "rule", "a", "b", "moves", "kernel", "branch", "do", "count", "line", "condition")
FIELDS += ("counters", "lane", "before", "after", "targets", "other")
KINDS = tuple(kind for kind in REQUESTS if kind != "rosetta")
BY_HAND = ("debug", "caches", "gpu", "throughput", "rosetta", "passes")
ACTIONS = ("step", "back", "run to", "run until", "iteration", "restart", "finish", "generated", "no action")
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
def test_a_malformed_request_gets_a_response(kind: str, shown: Explorer) -> None:
    answers = RequestHandler(lambda: shown.trace, shown.capture)
    for question in questions(kind, Random(kind), 120):
        found = answers(question)
        assert isinstance(found, dict), question
        json.dumps(found)


@pytest.mark.parametrize("question", [*VALUES, {"ask": []}, {"ask": None}, {"ask": {}}, {1: 2}], ids=repr)
def test_data_that_is_no_request_gets_an_error_response(question: Any, shown: Explorer) -> None:
    assert "error" in RequestHandler(lambda: shown.trace, shown.capture)(question)
    assert "error" in respond_from_trace(shown.trace, question)


def test_commands_that_run_kernels_refuse_malformed_kernel_numbers(shown: Explorer) -> None:
    answers = RequestHandler(lambda: shown.trace, shown.capture)
    for kind in BY_HAND:
        for kernel in ("x", None, [], {}, 10**40, -1, 1.5e300, float("nan"), "\ud800"):
            assert "error" in answers({"ask": kind, "kernel": kernel}), (kind, kernel)


def test_a_page_with_engine_responds_to_any_message(shown: Explorer) -> None:
    serving = PageServer(lambda kind, text: None)
    serving.serve(shown)
    for text in ("", "{", "[]", "5", '"why"', "null", "[" * 5000, '{"ask": "write"}', '{"ask": "write", "text": 5}'):
        assert isinstance(json.loads(serving.respond(text)), dict), text


def test_a_malformed_command_is_an_error(shown: Explorer) -> None:
    serving = PageServer(lambda kind, text: None)
    serving.serve(shown)
    random = Random(4)
    before = shown.whatif.branches
    for ask in ("command", "begin", "go"):
        for _ in range(30):
            question: dict[str, Any] = {"ask": ask}
            for field in ("branch", "kernel", "command"):
                if random.random() < 0.7:
                    question[field] = random.choice([value for value in VALUES if value not in (0, None)])
            if random.random() < 0.5:
                question["command"] = {"kind": "SetOpts", "kernel": random.choice(VALUES)}
            assert "error" in json.loads(serving.respond(json.dumps(question))), question
    assert shown.whatif.branches == before


def test_commands_are_requests_of_a_script_too(shown: Explorer) -> None:
    answers = RequestHandler(lambda: shown.trace, shown.capture)
    begun = answers({"ask": "begin", "kernel": 0})
    assert begun == {"branch": shown.kernels[0].branch.id, "status": "done", "reason": ""}
    command = {"kind": "SetOpts", "kernel": 0, "opts": "UPCAST(0, 4)"}
    made = answers({"ask": "command", "command": command, "branch": begun["branch"]})
    branch = shown.whatif.branches[made["branch"]]
    assert branch.kernels[0].opts == ("UPCAST(0, 4)",) and branch.parent == begun["branch"]
    assert answers({"ask": "go", "branch": begun["branch"]})["branch"] == shown.kernels[0].branch.id == begun["branch"]
    assert answers({"ask": "cancel"}) == {"branch": None, "status": "", "reason": ""}
    failed = answers({"ask": "command", "command": {**command, "opts": "UPCAST(9, 4)"}})
    assert failed["status"] == "failed" and failed["reason"]


def test_a_page_without_a_trace_runs_programs_and_refuses_other_requests(tmp_path: Path) -> None:
    played = tmp_path / "played.json.gz"
    serving = PageServer(lambda kind, text: None, str(played))

    def ask(**question: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(serving.respond(json.dumps(question)))
        return found

    for question in ({"ask": "why", "node": 1}, {"ask": "begin", "kernel": 0}, {"ask": "gpu"}):
        assert list(ask(**question)) == ["error"]
    assert ask(ask="play", text="print(1)\n2 +") == {
        "output": "",
        "trace": False,
        "failed": {"text": ANY, "line": 2},
    }
    assert not played.exists()
    told = ask(ask="play", text="print(5)\n(Tensor([1.0, 2.0]) + 1).realize()")
    assert told["trace"] and told["failed"] is None and told["output"].startswith("5\n")
    assert len(Trace.load(played).kernels) == 1 and "error" not in ask(ask="rules")


def test_a_notebook_does_not_run_programs_from_requests(shown: Explorer) -> None:
    assert "error" in RequestHandler(lambda: shown.trace, shown)({"ask": "play", "text": "1"})
