"""Functions for the commands that change the opts of one kernel."""

from __future__ import annotations

from collections.abc import Callable

from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif.outcome import Outcome, Refused
from tinyexplore.explore.whatif.place import CommandContext
from tinyexplore.kernel import Kernel, OptError


class _Known(Exception):
    """A branch has the kernel already."""

    def __init__(self, branch: Branch) -> None:
        super().__init__()
        self.branch = branch


def try_out(context: CommandContext, number: int, make: Callable[[], Kernel]) -> Outcome:
    """The kernel that `make` gives, compiled and timed; or the branch that has it already."""

    def accept(kernel: Kernel) -> None:
        same = context.known(number, tuple(map(str, kernel.applied)))
        if same is not None and same.kernels[0].listings:
            raise _Known(same)
        context.step("compiling")

    try:
        variant, note, lost = context.bench.variant(number, make, accept, context.step)
    except OptError as error:
        raise Refused(str(error)) from None
    except _Known as known:
        return Outcome(same=known.branch)
    if lost:
        raise Refused(lost, (variant,))
    return Outcome((variant,), note=note)
