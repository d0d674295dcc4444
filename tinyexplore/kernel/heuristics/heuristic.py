"""Defines a heuristic: a function that proposes Opts for a kernel, and the aspects of the schedule that it settles."""

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
    """An aspect of the schedule that several heuristics may settle. The first one that changes the kernel settles
    it."""

    LANES = "which axes are vectorized"
    WORDS = "whether dot instructions or tile registers multiply neighboring elements of the factors"
    TILE = "the work of one iteration: rows and columns of a register tile, or several vectors"


@dataclass(frozen=True)
class Proposal:
    """An Opt that a heuristic proposes.

    opt: the Opt.
    reason: why it is proposed, as text.
    """

    opt: Opt
    reason: str


Proposals = Generator[Proposal, Kernel, None]  # each `yield` proposes one Opt, and evaluates to the kernel after it


@dataclass(frozen=True)
class Heuristic:
    """A heuristic of the default schedule. It does not run if one of its aspects is settled already.

    choose: proposes Opts for a kernel. Its docstring says what it proposes, when and why.
    settles: the aspects that are settled when it changes the kernel.
    """

    choose: Callable[[Kernel], Proposals]
    settles: frozenset[ScheduleAspect] = frozenset()

    @property
    def name(self) -> str:
        return self.choose.__name__


def exceeds(quantity: str, value: float, bound: float) -> bool:
    """Whether `value` is greater than `bound`. Records the comparison under the name `quantity`."""
    return _record_comparison(quantity, value, bound, value > bound)


def reaches(quantity: str, value: float, bound: float) -> bool:
    """Whether `value` is at least `bound`. Records the comparison under the name `quantity`."""
    return _record_comparison(quantity, value, bound, value >= bound)


def _record_comparison(quantity: str, value: float, bound: float, over: bool) -> bool:
    recorder = active_recorder()
    if recorder is not None:
        recorder.record(NumberCompared(quantity, value, bound, over))
    return over


def record_scores(quantity: str, options: Mapping[str, float], chosen: str, *, least: bool = False) -> None:
    """Records the options of a heuristic with their scores, and the chosen option."""
    recorder = active_recorder()
    if recorder is not None and options:
        recorder.record(OptionsScored(quantity, tuple(options.items()), chosen, least))


def block_of(steps: str, size: int, largest: int, limit: int) -> int:
    """Returns `best_block`. Records the ratio of work done to work needed for each block size."""
    size_of_block = best_block(size, largest, limit)
    recorder = active_recorder()
    if recorder is not None:
        title = f"computed / needed work, by {steps} per iteration (largest block within 9/8)"
        work = [(str(block), -(-size // block) * block / size) for block in range(min(largest, limit, size), 1, -1)]
        if work:
            recorder.record(OptionsScored(title, tuple(work), str(size_of_block), True))
    return size_of_block


def apply_heuristic(kernel: Kernel, heuristic: Heuristic) -> Kernel:
    """Applies the Opts that `heuristic` proposes, one after the other. Illegal ones are recorded and skipped."""
    proposals = heuristic.choose(kernel)
    proposal = next(proposals, None)
    while proposal is not None:
        kernel = attempt(kernel, proposal)
        try:
            proposal = proposals.send(kernel)
        except StopIteration:
            proposal = None
    return kernel


def attempt(kernel: Kernel, proposal: Proposal) -> Kernel:
    try:
        return apply_opt(kernel, proposal.opt, proposal.reason)
    except OptError as error:
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(OptRejected(kernel, proposal.opt, str(error)))
        return kernel
