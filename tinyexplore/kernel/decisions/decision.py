"""What a decision is: a function that proposes Opts for a kernel, and the questions that it settles."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from enum import Enum

from tinyexplore.kernel.analysis.access import best_block
from tinyexplore.kernel.apply import apply_opt
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptError
from tinyexplore.trace import NumberCompared, OptionsScored, OptRejected, active_recorder


class ScheduleAspect(Enum):
    """What several decisions may answer: the first one that does settles it for the others."""

    LANES = "along which axes a vector has its lanes"
    WORDS = "whether neighbours of a factor are multiplied together, as words or in tiles"
    TILE = "what the innermost body does at a time: rows and columns of a register tile, or several vectors"


@dataclass(frozen=True)
class Proposal:
    """An Opt that a heuristic proposes.

    opt: the Opt.
    reason: why it is proposed, as text.
    """

    opt: Opt
    reason: str


Proposals = Generator[Proposal, Kernel, None]  # each `yield` proposes one, and is the kernel as it is afterwards


@dataclass(frozen=True)
class Heuristic:
    """choose: proposes Opts for a kernel; its docstring says what it decides, and why. settles: the questions that are
    answered when it changed the kernel; where one of them has been answered before, it is not asked."""

    choose: Callable[[Kernel], Proposals]
    settles: frozenset[ScheduleAspect] = frozenset()

    @property
    def name(self) -> str:
        return self.choose.__name__


def exceeds(what: str, value: float, bound: float) -> bool:
    """Whether `value` of `what` is more than `bound`: what a decision depends on, told."""
    return _noted(what, value, bound, value > bound)


def reaches(what: str, value: float, bound: float) -> bool:
    """Whether `value` is at least `bound`, also recorded."""
    return _noted(what, value, bound, value >= bound)


def _noted(what: str, value: float, bound: float, over: bool) -> bool:
    recorder = active_recorder()
    if recorder is not None:
        recorder.record(NumberCompared(what, value, bound, over))
    return over


def weigh(what: str, options: Mapping[str, float], chosen: str, *, least: bool = False) -> None:
    """Tells what a decision chose from, and the score of each."""
    recorder = active_recorder()
    if recorder is not None and options:
        recorder.record(OptionsScored(what, tuple(options.items()), chosen, least))


def block_of(what: str, size: int, most: int, limit: int) -> int:
    """`best_block`, told: each block with the work done over the work wanted."""
    size_of_block = best_block(size, most, limit)
    recorder = active_recorder()
    if recorder is not None:
        title = f"{what} at a time: work done over work wanted, the largest that wastes little"
        work = [(str(block), -(-size // block) * block / size) for block in range(min(most, limit, size), 1, -1)]
        if work:
            recorder.record(OptionsScored(title, tuple(work), str(size_of_block), True))
    return size_of_block


def decided(kernel: Kernel, decision: Heuristic) -> Kernel:
    """`kernel` with what `decision` proposes, one Opt after the other; what is not legal is told, and left out."""
    choices = decision.choose(kernel)
    choice = next(choices, None)
    while choice is not None:
        kernel = attempt(kernel, choice)
        try:
            choice = choices.send(kernel)
        except StopIteration:
            choice = None
    return kernel


def attempt(kernel: Kernel, choice: Proposal) -> Kernel:
    try:
        return apply_opt(kernel, choice.opt, choice.reason)
    except OptError as error:
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(OptRejected(kernel, choice.opt, str(error)))
        return kernel
