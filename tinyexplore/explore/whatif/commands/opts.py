"""Shared functions of the commands that change the opts of one kernel."""

from __future__ import annotations

from collections.abc import Callable

from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected
from tinyexplore.kernel import Kernel, OptError


class _KnownKernel(Exception):
    """Raised to stop a compilation because a branch already has the kernel."""

    def __init__(self, branch: Branch) -> None:
        super().__init__()
        self.branch = branch


def try_out(context: CommandContext, number: int, make: Callable[[], Kernel]) -> CommandOutcome:
    """Compiles and times the kernel that `make` returns; returns the earlier branch if it has the same kernel."""

    def accept(kernel: Kernel) -> None:
        same = context.known(number, tuple(map(str, kernel.applied)))
        if same is not None and same.kernels[0].listings:
            raise _KnownKernel(same)
        context.step("compiling")

    try:
        variant, note, lost = context.compiler.variant(number, make, accept, context.step)
    except OptError as error:
        raise CommandRejected(str(error)) from None
    except _KnownKernel as same:
        return CommandOutcome(same=same.branch)
    if lost:
        raise CommandRejected(lost, (variant,))
    return CommandOutcome((variant,), note=note)
