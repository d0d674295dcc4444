"""The bench of a session: it compiles kernels again with other opts, records how, and has a worker time them."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tinyexplore.codegen import PASSES, Pass
from tinyexplore.compile.lowering import compile_optimised, further_listings
from tinyexplore.device import Device
from tinyexplore.execute.runner import Runner
from tinyexplore.explore.recording.build import build_trace
from tinyexplore.explore.recording.kept import Kept
from tinyexplore.explore.tracefile.model import KernelVariant, Trace
from tinyexplore.explore.whatif.measure import Lost, Measure, Measured, Untimed, measured
from tinyexplore.explore.whatif.variant import variant_of
from tinyexplore.kernel import Kernel, Opt, apply_opt, hand_coded
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.trace import Recorder, active_recorder, recording, stage, staged
from tinyexplore.uop import UOp
from tinyexplore.util import Config, Context

if TYPE_CHECKING:
    from tinyexplore.explore.whatif.editing.asking import Text, Tried

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Subject:
    """A captured kernel, as far as it takes to compile it again: no memory, no program."""

    device: str
    original: UOp
    applied: tuple[Opt, ...]

    @staticmethod
    def of(device: str, kernel: Kernel) -> Subject:
        return Subject(device.partition(":")[0], kernel.original, kernel.applied)


@dataclass(frozen=True, eq=False)
class Bench:
    """subjects: the captured kernels by their numbers. settings: those in force in the capture. names: what the user
    calls the buffers of a kernel, by its number. kept: what the capture keeps of a kernel beside that.
    measure: what times a kernel beside the captured one, given another of the same results. try_text: what tries edits,
    where no process can (`editing.asking.tried` does)."""

    subjects: Mapping[int, Subject]
    settings: Config
    names: Mapping[int, tuple[str, ...]]
    kept: Mapping[int, Kept] = field(default_factory=dict)
    measure: Measure = measured
    try_text: Callable[[Text, Kept | None], Tried] | None = None

    def under_settings(self, work: Callable[[], R]) -> R:
        """`work()` under the settings of the capture, heard by whoever listens here."""
        recorder = active_recorder()
        settings = {**asdict(self.settings), "DEBUG": 0, "PROFILE": 0, "BEAM": 0}

        def run() -> R:
            with Context(**settings), recording(recorder):
                return work()

        return contextvars.Context().run(run)

    # *** kernels; to be asked under the settings of the capture ***

    def start(self, number: int) -> Kernel:
        """The kernel before any opt; axes that are one are merged, as the heuristics and BEAM begin."""
        with recording(None):
            return with_merged_axes(with_split_axes(self.unchanged(number)))

    def unchanged(self, number: int) -> Kernel:
        """The kernel as the scheduler wrote it."""
        subject = self.subjects[number]
        return Kernel.of(subject.original, Device[subject.device].target)

    def with_opts(self, number: int, opts: Sequence[Opt]) -> Kernel:
        """The kernel after `opts`, each told."""
        kernel = self.start(number)
        for opt in opts:
            kernel = apply_opt(kernel, opt)
        return kernel

    def captured(self, number: int) -> Kernel:
        """The kernel with the opts that it was captured with."""
        return self.with_opts(number, self.subjects[number].applied)

    def hand_coded(self, number: int) -> Kernel:
        """The kernel with the opts that the heuristics choose."""
        return hand_coded(self.unchanged(number))

    # *** compiling and timing ***

    def recorded(
        self, number: int, make: Callable[[], Kernel], passes: Sequence[Pass] = PASSES
    ) -> tuple[Trace, Kernel, Runner]:
        """What `make` chooses, lowered and compiled: as a Trace of one kernel, and itself."""
        subject = self.subjects[number]
        recorder = Recorder()

        def work() -> tuple[Kernel, Runner]:
            with stage("kernel", subject.original, 0, subject.original):
                kernel = staged("optimise", subject.original, make)
                return kernel, compile_optimised(subject.device, kernel, passes)

        with recording(recorder):
            kernel, runner = self.under_settings(work)
        trace = self.under_settings(lambda: build_trace(recorder, title=kernel.name, listings=further_listings))
        return trace, kernel, runner

    def variant(self, number: int, make: Callable[[], Kernel]) -> tuple[KernelVariant, str, str]:
        """What `make` chooses, compiled here and timed by a worker; why it has no times; why it is no good at all."""
        trace, kernel, runner = self.recorded(number, make)
        subject = self.subjects[number]

        def ask() -> Measured:
            captured = self.captured(number)
            base = None if kernel.ast is captured.ast else captured
            return self.measure(subject.device, kernel, self.hand_coded(number), base)

        found = Measured(())
        note = lost = ""
        try:
            with recording(None):
                found = self.under_settings(ask)
            note = found.note
        except Untimed as error:
            note = str(error)
        except Lost as error:
            lost = str(error)
        names = self.names.get(number, ())
        variant = self.under_settings(lambda: variant_of(number, subject.device, trace, kernel, runner, found, names))
        return variant, note, lost


__all__ = ["Bench", "Subject"]
