"""The interface of commands, and the context in which they are executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

from tinyexplore.explore.analysis.opts import to_opt
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.bench import KernelBench
from tinyexplore.explore.whatif.outcome import Cancelled, CommandResult
from tinyexplore.explore.whatif.rescheduled import Rescheduling
from tinyexplore.kernel import Kernel


@dataclass(frozen=True)
class CommandContext:
    """What a command works on.

    bench: compiles and times kernels.
    rescheduling: compiles and times whole schedules.
    trace: the capture.
    branches: those until now.
    parent: the branch to continue, None for the capture.
    candidate: reports a tried candidate: kernel, opts, microseconds or None, a note. It becomes a branch without
        listings.
    progress: reports the progress: a text, parts done, all parts.
    is_cancelled: whether the reader cancelled the command; then it raises Cancelled or CommandRejected.
    shows_progress: whether a view shows the progress.
    """

    bench: KernelBench
    rescheduling: Rescheduling
    trace: Trace
    branches: Sequence[Branch]
    parent: Branch | None
    candidate: Callable[[int, tuple[str, ...], float | None, str], None]
    progress: Callable[[str, float, int], None]
    is_cancelled: Callable[[], bool]
    shows_progress: bool = False

    def step(self, text: str) -> None:
        """Begins the next part of a command, "timing" say. Cancelled where the reader has ended it."""
        if self.is_cancelled():
            raise Cancelled
        self.progress(text, 0, 0)

    def known(self, kernel: int, opts: tuple[str, ...]) -> Branch | None:
        """The branch in which that kernel has exactly these opts."""
        for branch in self.branches:
            if branch.status == "done" and branch.kernel == kernel and branch.kernels and branch.edited is None:
                if branch.kernels[0].opts == opts:
                    return branch
        return None

    def kernel(self, number: int) -> Kernel:
        """The kernel as it is in the branch to go on from."""
        if self.parent is None or self.parent.kernel != number:
            return self.bench.captured(number)
        return self.bench.with_opts(number, [to_opt(opt) for opt in self.parent.kernels[0].opts])


class Command(Protocol):
    """A question as data: a frozen dataclass, its fields ints and strings. Its docstring says what is done."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def label(self) -> str:
        """The label that the branch gets, "" for none."""
        ...

    @property
    def about(self) -> int | None:
        """The kernel that the command changes, or None."""
        ...

    def carry_out(self, context: CommandContext) -> CommandResult:
        """Carries it out; CommandRejected where it fails."""
        ...


def schedule_of(command: Command) -> int | None:
    """The stage that made the schedule that a command is about, if it is about one."""
    number: int | None = getattr(command, "schedule", None)
    return number


__all__ = ["Command", "CommandContext", "schedule_of"]
