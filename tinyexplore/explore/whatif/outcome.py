"""The outcome of a command: done, rejected or cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinyexplore.explore.tracefile.model import Branch, EditReport, KernelVariant, RuleFiring, ScheduleVariant, Search
from tinyexplore.uop import Rule


@dataclass(frozen=True)
class CommandOutcome:
    """The changes that a command made.

    kernels: the kernels that it changed.
    schedule: a new schedule, None for none.
    same: the earlier branch with the same result, None for a new one.
    note: a remark for the reader, "" for none.
    rule: the rule that the command is about, None for none.
    firings: the firings of that rule.
    edited: the result of an edited text, None for other commands.
    search: the times of a search, None without one.
    """

    kernels: tuple[KernelVariant, ...] = ()
    schedule: ScheduleVariant | None = None
    same: Branch | None = None
    note: str = ""
    rule: Rule | None = None
    firings: tuple[RuleFiring, ...] = ()
    edited: EditReport | None = None
    search: Search | None = None


class CommandRejected(Exception):
    """A command failed. The branch stores the reason and the results so far: `kernels` and `rest`."""

    def __init__(self, reason: str, kernels: Sequence[KernelVariant] = (), rest: CommandOutcome | None = None) -> None:
        super().__init__(reason)
        self.outcome = replace(rest or CommandOutcome(), kernels=tuple(kernels), note=reason)


class Cancelled(BaseException):
    """The user cancelled a long command."""


__all__ = ["Cancelled", "CommandOutcome", "CommandRejected"]
