"""What came of a command: made, refused or cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinyexplore.explore.tracefile.model import Branch, Edited, KernelVariant, RuleFiring, ScheduleVariant, Search
from tinyexplore.uop import Rule


@dataclass(frozen=True)
class Outcome:
    """What a command made: kernels, or a schedule, or nothing new but an earlier branch (`same`). `note`: what a reader
    must know. `rule`: the one that it is about, `firings` those of it. `edited`: of a text that was edited, what became
    of it. `search`: what a search measured."""

    kernels: tuple[KernelVariant, ...] = ()
    schedule: ScheduleVariant | None = None
    same: Branch | None = None
    note: str = ""
    rule: Rule | None = None
    firings: tuple[RuleFiring, ...] = ()
    edited: Edited | None = None
    search: Search | None = None


class Refused(Exception):
    """Why a command came to nothing, in words; the branch keeps them. `kernels`, `rest`: what was made until then."""

    def __init__(self, reason: str, kernels: Sequence[KernelVariant] = (), rest: Outcome | None = None) -> None:
        super().__init__(reason)
        self.outcome = replace(rest or Outcome(), kernels=tuple(kernels), note=reason)


class Cancelled(BaseException):
    """The reader has ended a long command."""


__all__ = ["Cancelled", "Outcome", "Refused"]
