"""Requests of a view and their responses are plain data, by function call and over a widget channel."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import pytest

from tinyexplore import Tensor, Trace
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.analysis.explanations.rules import explainer
from tinyexplore.explore.live import typed_programs  # noqa: F401  it registers a request, too
from tinyexplore.explore.notebook.requests import (
    EXPLORER_GONE,
    REQUESTS,
    RequestHandler,
    from_data,
    request_key,
    respond_from_trace,
)


@pytest.fixture(scope="module")
def view() -> Explorer:
    x = Tensor.rand(16, 32).realize()
    return explore(lambda: (x * 2 + 1).softmax(), repeat=1)


def question(trace: Trace) -> dict[str, Any]:
    stage = next(one for one in trace.stages if one.name == "simplify")
    return {"ask": "why", "node": stage.before[0], "stage": stage.id, "step": 0}


def test_a_response_equals_the_data_in_python(view: Explorer):
    asked = question(view.trace)
    found = respond_from_trace(view.trace, asked)
    same = explainer(view.trace).why_not(asked["node"], asked["stage"], 0)
    assert found == json.loads(json.dumps(asdict(same)))
    assert respond_from_trace(view.trace, {"ask": "why", "node": asked["node"]})["node"] == asked["node"]


def test_invalid_requests_get_an_error_with_a_reason(view: Explorer):
    assert (
        respond_from_trace(view.trace, {"ask": "when"})["error"]
        == f"unknown request 'when'; supported: {', '.join(REQUESTS)}"
    )
    assert (
        "this trace has nodes 0 … "
        in respond_from_trace(view.trace, {"ask": "why", "node": 10**6, "stage": 0})["error"]
    )
    assert respond_from_trace(view.trace, {"ask": "why"})["error"] == "why: node is missing"
    lazy = view.trace.where(kind="lazybuffer")[0].id
    assert (
        "is a LazyBuffer: rules are about UOps"
        in respond_from_trace(view.trace, {"ask": "why", "node": lazy, "stage": 0})["error"]
    )


def test_a_widget_responds_over_its_channel(view: Explorer, monkeypatch: pytest.MonkeyPatch):
    sent: list[Any] = []
    widget = view.widget
    monkeypatch.setattr(widget, "send", sent.append)
    assert widget.answers
    widget._handle_custom_msg({"id": "a 1", "question": question(view.trace)}, [])
    widget._handle_custom_msg({"something": "else"}, [])
    assert sent == [{"id": "a 1", "answer": respond_from_trace(view.trace, question(view.trace))}]


def test_every_request_is_one_row_of_the_table(view: Explorer):
    """A request of each kind is read from its JSON as the same request; its TypeScript type is generated."""
    text = (Path(__file__).resolve().parents[2] / "widgets" / "src" / "requests.ts").read_text(encoding="utf-8")
    given = {
        "node": 1,
        "a": 1,
        "b": 2,
        "rule": "mul_one",
        "stage": 1,
        "step": 0,
        "branch": 0,
        "text": "",
        "kernel": 0,
        "command": {"kind": "AsCaptured"},
    }
    for name, cls in REQUESTS.items():
        needed = {one.name: given[one.name] for one in fields(cls) if one.default is MISSING}
        assert from_data({"ask": name, **needed}) == cls(**needed)
        assert f'ask: "{name}";' in text and f"  {json.dumps(name)}: " in text


def test_the_canonical_form_omits_defaults_and_sorts_names():
    """Parsing returns the same request. `request_channel.test.ts` tests `requestKey` on the same pairs."""
    pairs = [
        ({"ask": "throughput", "kernel": 0, "branch": None}, '{"ask":"throughput"}'),
        ({"kernel": 3, "branch": 1, "ask": "throughput"}, '{"ask":"throughput","branch":1,"kernel":3}'),
        ({"ask": "caches", "before": [], "after": ["UPCAST(0, 4)"]}, '{"after":["UPCAST(0, 4)"],"ask":"caches"}'),
        ({"ask": "matches", "rule": "×"}, '{"ask":"matches","rule":"×"}'),
        ({"ask": "debug", "counters": {"r1": 2, "g0": 1}}, '{"ask":"debug","counters":{"g0":1,"r1":2}}'),
    ]
    for data, key in pairs:
        request = from_data(data)
        assert request_key(request) == key and from_data(json.loads(key)) == request


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], ".* JSON object"),
        ({"ask": "gpu", "core": 1}, "gpu: no field 'core'"),
        ({"ask": "gpu", "kernel": "0"}, "gpu: kernel: .* int, .*'0'"),
        ({"ask": "gpu", "kernel": True}, "gpu: kernel: .* int, .*True"),
        ({"ask": "caches", "before": [1]}, "caches: before: .* str, .*1"),
        ({"ask": "debug", "do": "run to"}, 'debug: "run to" needs a line'),
        ({"ask": "write", "text": "raise SystemExit"}, "rules are written in"),
    ],
)
def test_the_error_of_a_malformed_request_names_the_field(view: Explorer, data: Any, complaint: str):
    assert re.match(complaint, RequestHandler(lambda: view.trace, view.capture)(data)["error"])


def test_a_trace_alone_cannot_run_kernels(view: Explorer):
    assert respond_from_trace(view.trace, {"ask": "throughput"}) == {"error": EXPLORER_GONE}
