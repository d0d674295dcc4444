"""Questions that a view asks of Python, and their answers, both plain data: JSON can carry them.

A notebook's view sends a question over its widget's channel; a page that carries the engine can call `answer` itself.
`{"ask": "why", "node": 17, "stage": 4, "step": 2}` is answered by the fields of a `WhyNot`,
`{"ask": "why kernels", "a": 3, "b": 9}` by those of a `WhyKernels`, `{"ask": "shape", "node": 5}` by what a node shows
of memory, `{"ask": "matches", "rule": "mul_one"}` by the places of a rule, `{"ask": "branch", "branch": 3}`
by the trace of a branch; what cannot be answered by `{"error": "..."}`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

from tinyexplore.explore.model import Trace

if TYPE_CHECKING:
    from tinyexplore.explore.byhand.answers import ByHandAnswers
    from tinyexplore.explore.byhand.asked import ByHand

GONE = "the Explorer of this view is gone: keep it in a variable, and show it again"
BY_HAND = ("debug", "caches", "gpu", "throughput", "rosetta")  # `byhand/answers.py` answers them
Question = Mapping[str, Any]
Answer = dict[str, Any]


def _why(trace: Trace, node: int, stage: int | None = None, step: int | None = None, rule: str | None = None) -> Any:
    from tinyexplore.explore.why.rules import explainer

    asked = explainer(trace)
    if stage is None:
        stage, step = asked.place_of(node)
    return asked.why_not(node, stage, step, rule)


def _why_kernels(trace: Trace, a: int, b: int) -> Any:
    from tinyexplore.explore.why.fusions import why_kernels

    return why_kernels(trace, a, b)


def _shape(trace: Trace, node: int | None = None, moves: Any = ()) -> Any:
    from tinyexplore.explore.shapes.of_trace import shape_data

    return shape_data(trace, node, moves)


@dataclass(frozen=True)
class Rows:
    """The rules of the pipeline, and those written here. `proves`: whether firings are proved, or why not."""

    rows: tuple[Any, ...]
    proves: str


@dataclass(frozen=True)
class Found:
    """The places at which a rule would fire."""

    places: tuple[Any, ...]


@dataclass(frozen=True)
class Said:
    """What the check says of a firing; where it is wrong, at which inputs, and what the two give there."""

    status: str
    says: str
    inputs: tuple[tuple[str, str], ...] = ()
    was: str = ""
    has_become: str = ""


def _rules(trace: Trace) -> Rows:
    from tinyexplore.explore.playground.door import rule_rows
    from tinyexplore.explore.playground.proof import how_sure

    return Rows(rule_rows(trace), how_sure())


def _matches(trace: Trace, rule: str) -> Found:
    from tinyexplore.explore.playground.door import find_rule
    from tinyexplore.explore.playground.matches import matches_of

    return Found(tuple(matches_of(trace, find_rule(rule))))


def _check(trace: Trace, stage: int, step: int) -> Said:
    from tinyexplore.explore.playground.checking import check_firings

    (found,) = check_firings(trace, stages=[stage], step=step)
    verdict, wrong = found.verdict, found.verdict.counterexample
    if wrong is None:
        return Said(verdict.status, str(verdict))
    return Said(verdict.status, str(verdict), wrong.inputs, wrong.before, wrong.after)


QUESTIONS: dict[str, Callable[..., Any]] = {
    "why": _why,
    "why kernels": _why_kernels,
    "shape": _shape,
    "rules": _rules,
    "matches": _matches,
    "check": _check,
}


def answer(trace: Trace, question: Question) -> Answer:
    """The answer to a question about a trace, as data."""
    about = dict(question)
    asked = about.pop("ask", None)
    if asked not in QUESTIONS:
        return {"error": f"nobody knows the question {asked!r}; known: {', '.join(QUESTIONS)}"}
    try:
        found = QUESTIONS[asked](trace, **about)
    except (ValueError, TypeError, IndexError, KeyError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    data: Answer = json.loads(json.dumps(found if isinstance(found, dict) else asdict(found)))
    return data


class Answers:
    """The one door for the questions of views, in a notebook and in a live page: what the trace alone answers, and what
    is about kernels that can run again. Holds the Explorer only as long as somebody else does."""

    def __init__(self, trace: Callable[[], Trace], explorer: ByHand) -> None:
        self._trace = trace
        self._explorer = ref(explorer)
        self._by_hand: ByHandAnswers | None = None

    def __call__(self, question: Question) -> Answer:
        if question.get("ask") in BY_HAND:
            return self._of_kernels(question)
        if question.get("ask") == "branch":
            return self._of_branch(question)
        return answer(self._trace(), question)

    def _of_branch(self, question: Question) -> Answer:
        """The trace of a branch, packed, to be stepped through in a view of its own."""
        from tinyexplore.explore.codec import trace_to_bytes
        from tinyexplore.explore.whatif.door import WhatIfDoor
        from tinyexplore.explore.whatif.place import WhatIfError

        explorer = self._explorer()
        if not isinstance(explorer, WhatIfDoor):
            return {"error": GONE}
        try:
            trace = explorer.branch_trace(int(question["branch"]), question.get("kernel"))
        except (WhatIfError, ValueError, KeyError) as error:
            return {"error": str(error)}
        return {"trace": b64encode(trace_to_bytes(trace)).decode()}

    def _of_kernels(self, question: Question) -> Answer:
        from tinyexplore.explore.byhand.answers import ByHandAnswers

        explorer = self._explorer()
        if self._by_hand is None and explorer is not None:
            self._by_hand = ByHandAnswers(explorer)
        if self._by_hand is None:
            return {"error": GONE}
        return self._by_hand.answer(question)


__all__ = ["QUESTIONS", "Answer", "Answers", "Question", "answer"]
