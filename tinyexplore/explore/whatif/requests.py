"""Requests of views about rules, firings and branches, and requests that run commands."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tinyexplore.explore.analysis.requests import PipelineRequest, Request, RequestSource, request

if TYPE_CHECKING:
    from tinyexplore.explore.tracefile.model import Branch
    from tinyexplore.explore.whatif.command import Command


@request("rules", "tinyexplore.explore.whatif.playground.playground:RuleList")
@dataclass(frozen=True)
class Rules(Request):
    """All rules, with the number of their firings in the trace."""

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.whatif.playground.playground import RuleList, rule_rows
        from tinyexplore.explore.whatif.playground.proof import describe_certainty

        return RuleList(rule_rows(source.trace()), describe_certainty())


@request("matches", "tinyexplore.explore.whatif.playground.matches:MatchList")
@dataclass(frozen=True)
class Matches(Request):
    """The nodes at which a rule would fire, each firing checked.

    rule: the name of the rule.
    """

    rule: str

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.whatif.playground.matches import MatchList, matches_of
        from tinyexplore.explore.whatif.playground.playground import find_rule

        return MatchList(tuple(matches_of(source.trace(), find_rule(self.rule))))


@dataclass(frozen=True)
class CheckResult:
    """The check of a firing.

    status: "proved", "agrees", "differs" or "not checked".
    says: the result as text.
    inputs: (name, value) of a counterexample; empty if there is none.
    was: the value before the firing, for the counterexample.
    has_become: the value after the firing, for the counterexample.
    """

    status: str
    says: str
    inputs: tuple[tuple[str, str], ...] = ()
    was: str = ""
    has_become: str = ""


@request("check", "tinyexplore.explore.whatif.requests:CheckResult")
@dataclass(frozen=True)
class Check(Request):
    """The check whether a firing preserved the value.

    stage: the id of the pass.
    step: the number of the firing, from 1.
    """

    stage: int
    step: int

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.whatif.playground.firing_checks import check_firings

        (firing,) = check_firings(source.trace(), stages=[self.stage], step=self.step)
        verdict, wrong = firing.verdict, firing.verdict.counterexample
        if wrong is None:
            return CheckResult(verdict.status, str(verdict))
        return CheckResult(verdict.status, str(verdict), wrong.inputs, wrong.before, wrong.after)


@dataclass(frozen=True)
class PackedTrace:
    """A trace as `trace_to_bytes` writes it.

    trace: the bytes in base64.
    """

    trace: str


@request("branch", "tinyexplore.explore.whatif.requests:PackedTrace")
@dataclass(frozen=True)
class BranchTrace(Request):
    """The trace of a branch, for a view of its own.

    branch: the number of the branch.
    kernel: which kernel, if the branch changed several; None for the first.
    """

    branch: int
    kernel: int | None = None

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.tracefile.codec import trace_to_bytes

        trace = source.kernels().whatif.trace_of(self.branch, self.kernel)
        return PackedTrace(b64encode(trace_to_bytes(trace)).decode())


@request("opt steps", "tinyexplore.explore.whatif.opt_steps:OptSteps")
@dataclass(frozen=True)
class OptStepsOf(Request):
    """A kernel after each of its opts.

    kernel: the number of the kernel
    timed: whether to time each step, which takes seconds
    """

    kernel: int
    timed: bool = False

    def respond(self, source: RequestSource) -> Any:
        explorer = source.kernels()
        steps = explorer.responses.get(self.name, **asdict(self))
        if steps is None:
            steps = explorer.whatif.opt_steps(self.kernel, timed=self.timed)
            explorer.responses.store(self.name, steps, **asdict(self))
        return steps


@request("pipeline times", "tinyexplore.explore.analysis.passes.sequence:PipelineTimes")
@dataclass(frozen=True)
class TimesOfPipeline(PipelineRequest):
    """The times of a kernel under another LLVM pipeline, and as it was compiled."""

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.whatif.pipeline_times import times_of_pipeline

        return times_of_pipeline(source.kernels(), self.kernel, self.level, self.without, self.cpu)


# *** requests that create branches ***


class Commands(Protocol):
    """Runs commands: a `WhatIf`, or the channel of a view, which shows their progress and sends the branches."""

    def do(self, command: Command, parent: int | None = None) -> Branch: ...

    def begin(self, kernel: int) -> Branch: ...

    def go(self, branch: int) -> Branch: ...

    def cancel(self) -> None: ...


@dataclass(frozen=True)
class CommandResult:
    """The result of a command. The branch itself was sent before, as a row, so that views get each row once."""

    branch: int | None
    """Number of the branch; None for none."""
    status: str
    """"done" or "failed"; "" without a branch."""
    reason: str
    """Why it failed, or a remark for the reader."""


def _require_commands(source: RequestSource) -> Commands:
    if source.commands is not None:
        commands: Commands = source.commands
        return commands
    whatif_commands: Commands = source.kernels().whatif
    return whatif_commands


def _make_result(branch: Branch | None) -> CommandResult:
    return CommandResult(None, "", "") if branch is None else CommandResult(branch.id, branch.status, branch.reason)


@request("command", "tinyexplore.explore.whatif.requests:CommandResult")
@dataclass(frozen=True)
class Do(Request):
    """Run a command.

    command: its "kind" and its arguments.
    branch: the branch from which it starts; None for the current one.
    """

    background: ClassVar[bool] = True
    command: dict[str, int | str]
    branch: int | None = None

    def respond(self, source: RequestSource) -> Any:
        from tinyexplore.explore.whatif.commands import from_data

        return _make_result(_require_commands(source).do(from_data(self.command), self.branch))


@request("begin", "tinyexplore.explore.whatif.requests:CommandResult")
@dataclass(frozen=True)
class Begin(Request):
    """Compile and time a kernel as captured, without opts, and with the heuristics' opts.

    kernel: the number of the kernel.
    """

    background: ClassVar[bool] = True
    kernel: int

    def respond(self, source: RequestSource) -> Any:
        return _make_result(_require_commands(source).begin(self.kernel))


@request("go", "tinyexplore.explore.whatif.requests:CommandResult")
@dataclass(frozen=True)
class Go(Request):
    """Make a branch the current one of its kernel or schedule.

    branch: the number of the branch.
    """

    branch: int

    def respond(self, source: RequestSource) -> Any:
        return _make_result(_require_commands(source).go(self.branch))


@request("cancel", "tinyexplore.explore.whatif.requests:CommandResult")
@dataclass(frozen=True)
class Cancel(Request):
    """Cancel the running command, and drop the waiting ones."""

    def respond(self, source: RequestSource) -> Any:
        _require_commands(source).cancel()
        return _make_result(None)


__all__ = [
    "Begin",
    "Cancel",
    "CommandResult",
    "Commands",
    "Do",
    "Go",
    "BranchTrace",
    "Check",
    "CheckResult",
    "Matches",
    "OptStepsOf",
    "PackedTrace",
    "Rules",
    "TimesOfPipeline",
]
