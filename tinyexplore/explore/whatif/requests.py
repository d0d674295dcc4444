"""Requests about rules, firings and branches."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from tinyexplore.explore.analysis.requests import GONE, Request, RequestError, Source, request


@request("rules", "tinyexplore.explore.whatif.playground.door:RuleList")
@dataclass(frozen=True)
class Rules(Request):
    """All rules, with how often each fired in the trace."""

    def respond(self, source: Source) -> Any:
        from tinyexplore.explore.whatif.playground.door import RuleList, rule_rows
        from tinyexplore.explore.whatif.playground.proof import how_sure

        return RuleList(rule_rows(source.trace()), how_sure())


@request("matches", "tinyexplore.explore.whatif.playground.matches:MatchList")
@dataclass(frozen=True)
class Matches(Request):
    """The places at which a rule would fire, each firing checked."""

    rule: str

    def respond(self, source: Source) -> Any:
        from tinyexplore.explore.whatif.playground.door import find_rule
        from tinyexplore.explore.whatif.playground.matches import MatchList, matches_of

        return MatchList(tuple(matches_of(source.trace(), find_rule(self.rule))))


@dataclass(frozen=True)
class CheckResult:
    """The check of a firing; of a wrong one the inputs, and the values before and after at these."""

    status: str
    says: str
    inputs: tuple[tuple[str, str], ...] = ()
    was: str = ""
    has_become: str = ""


@request("check", "tinyexplore.explore.whatif.requests:CheckResult")
@dataclass(frozen=True)
class Check(Request):
    """Whether a firing kept the value: the one at `step` of a stage."""

    stage: int
    step: int

    def respond(self, source: Source) -> Any:
        from tinyexplore.explore.whatif.playground.checking import check_firings

        (found,) = check_firings(source.trace(), stages=[self.stage], step=self.step)
        verdict, wrong = found.verdict, found.verdict.counterexample
        if wrong is None:
            return CheckResult(verdict.status, str(verdict))
        return CheckResult(verdict.status, str(verdict), wrong.inputs, wrong.before, wrong.after)


@dataclass(frozen=True)
class PackedTrace:
    """A trace as `trace_to_bytes` writes it, in base64."""

    trace: str


@request("branch", "tinyexplore.explore.whatif.requests:PackedTrace")
@dataclass(frozen=True)
class BranchTrace(Request):
    """The trace of a branch, for a view of its own. `kernel`: which one, where the branch changed several."""

    branch: int
    kernel: int | None = None

    def respond(self, source: Source) -> Any:
        from tinyexplore.explore.tracefile.codec import trace_to_bytes
        from tinyexplore.explore.whatif.door import WhatIfDoor

        explorer = source.kernels()
        if not isinstance(explorer, WhatIfDoor):
            raise RequestError(GONE)
        return PackedTrace(b64encode(trace_to_bytes(explorer.branch_trace(self.branch, self.kernel))).decode())


__all__ = ["BranchTrace", "Check", "CheckResult", "Matches", "PackedTrace", "Rules"]
