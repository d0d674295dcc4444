"""The interface of commands, and the context in which they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

from tinyexplore.explore.analysis.opts import to_opt
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.kernel_compiler import KernelCompiler
from tinyexplore.explore.whatif.outcome import Cancelled, CommandOutcome
from tinyexplore.explore.whatif.rescheduler import Rescheduler
from tinyexplore.kernel import Kernel


@dataclass(frozen=True)
class CommandContext:
    """The context in which a command runs.

    compiler: compiles and times kernels.
    rescheduling: compiles and times whole schedules.
    trace: the capture.
    branches: the existing branches.
    parent: the branch to continue, None for the capture.
    candidate: reports a tried candidate: kernel, opts, microseconds or None, a note. It becomes a branch without
        listings.
    progress: reports the progress: a text, the number of finished parts, the number of all parts.
    is_cancelled: whether the user cancelled the command, which must then raise Cancelled or CommandRejected.
    shows_progress: whether a view shows the progress.
    """

    compiler: KernelCompiler
    rescheduling: Rescheduler
    trace: Trace
    branches: Sequence[Branch]
    parent: Branch | None
    candidate: Callable[[int, tuple[str, ...], float | None, str], None]
    progress: Callable[[str, float, int], None]
    is_cancelled: Callable[[], bool]
    shows_progress: bool = False

    def step(self, text: str) -> None:
        """Begins the next part of a command, such as "timing". Raises Cancelled if the user cancelled the command."""
        if self.is_cancelled():
            raise Cancelled
        self.progress(text, 0, 0)

    def known(self, kernel: int, opts: tuple[str, ...]) -> Branch | None:
        """Returns the branch in which this kernel has exactly these opts, or None."""
        for branch in self.branches:
            if branch.status == "done" and branch.kernel == kernel and branch.kernels and branch.edited is None:
                if branch.kernels[0].opts == opts:
                    return branch
        return None

    def kernel(self, number: int) -> Kernel:
        """Returns the kernel with the opts of the parent branch."""
        if self.parent is None or self.parent.kernel != number:
            return self.compiler.captured(number)
        return self.compiler.with_opts(number, [to_opt(opt) for opt in self.parent.kernels[0].opts])


class Command(Protocol):
    """A what-if command as data: a frozen dataclass with int and str fields. Its docstring states the effect."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def label(self) -> str:
        """Returns the label of the branch, "" for none."""
        ...

    @property
    def about(self) -> int | None:
        """Returns the kernel that the command changes, or None."""
        ...

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        """Runs the command.

        Raises:
            CommandRejected: the command failed.
        """
        ...


def schedule_of(command: Command) -> int | None:
    """Returns the stage of the schedule that a command is about, or None."""
    number: int | None = getattr(command, "schedule", None)
    return number


__all__ = ["Command", "CommandContext", "schedule_of"]
