"""Compiles the kernels of a session with other opts under a recorder; a worker process times them."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tinyexplore.codegen import PASSES, Pass
from tinyexplore.compile.lowering import compile_optimized, further_listings
from tinyexplore.device import Device
from tinyexplore.execute.runner import Runner
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.explore.tracefile.model import KernelVariant
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.kernel_variant import variant_of
from tinyexplore.explore.whatif.measurement import KernelFailed, KernelNotTimed, Measure, Measurement, measure_in_worker
from tinyexplore.kernel import Kernel, Opt, apply_heuristics, apply_opt
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.trace import Recorder, active_recorder, record_stage, recording, stage
from tinyexplore.uop import UOp
from tinyexplore.util import Config, Context

if TYPE_CHECKING:
    from tinyexplore.explore.whatif.editing.client import EditResult, Text

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class KernelSubject:
    """A captured kernel as data from which it can be compiled again. It holds no memory and no program.

    device: the device that runs it.
    original: its AST before any opt.
    applied: its opts, in order.
    """

    device: str
    original: UOp
    applied: tuple[Opt, ...]

    @staticmethod
    def of(device: str, kernel: Kernel) -> KernelSubject:
        return KernelSubject(device.partition(":")[0], kernel.original, kernel.applied)


@dataclass(frozen=True, eq=False)
class CompiledRecording:
    """A kernel that was compiled under a recorder.

    trace: the recorded trace.
    kernel: the Kernel with its opts.
    runner: the compiled program.
    recorder: the recorder with its events.
    """

    trace: Trace
    """The trace of this kernel alone."""
    kernel: Kernel
    runner: Runner
    recorder: Recorder
    """Keeps the program's text and UOps alive, which a runner does not, so that nothing is lowered twice."""


@dataclass(frozen=True, eq=False, repr=False)
class KernelCompiler:
    """Compiles and times the kernels of a capture.

    subjects: the captured kernels, by number.
    settings: the configuration of the capture.
    names: the user's names of a kernel's buffers, by kernel number.
    contents: the kernels with their stored inputs, by number.
    measure: times a kernel alternately with the captured one, after comparing its results with a reference kernel.
    try_text: compiles and runs an edited text; `editing.client.try_edit` uses a worker process.
    references: a cache of the reference kernels.
    """

    subjects: Mapping[int, KernelSubject]
    settings: Config
    names: Mapping[int, tuple[str, ...]]
    contents: Mapping[int, CapturedKernel] = field(default_factory=dict)
    measure: Measure = measure_in_worker
    try_text: Callable[[Text, CapturedKernel | None], EditResult] | None = None
    references: dict[tuple[int, str], Kernel] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<compiler of kernels {', '.join(map(str, self.subjects))}>"

    def under_settings(self, work: Callable[[], R]) -> R:
        """Returns `work()`, run under the capture's configuration and recorded by the active recorder."""
        recorder = active_recorder()
        settings = {**asdict(self.settings), "DEBUG": 0, "PROFILE": 0, "BEAM": 0}

        def run() -> R:
            with Context(**settings), recording(recorder):
                return work()

        return contextvars.Context().run(run)

    # *** kernels; call these methods under the capture's configuration ***

    def start(self, number: int) -> Kernel:
        """Returns the kernel before any opt, with unit axes merged as the heuristics and BEAM start."""
        with recording(None):
            return with_merged_axes(with_split_axes(self.unchanged(number)))

    def unchanged(self, number: int) -> Kernel:
        """Returns the kernel as the scheduler built it."""
        subject = self.subjects[number]
        return Kernel.of(subject.original, Device[subject.device].target)

    def with_opts(self, number: int, opts: Sequence[Opt]) -> Kernel:
        """Returns the kernel after `opts`; each opt is recorded."""
        kernel = self.start(number)
        for opt in opts:
            kernel = apply_opt(kernel, opt)
        return kernel

    def captured(self, number: int) -> Kernel:
        """Returns the kernel with its captured opts."""
        return self.with_opts(number, self.subjects[number].applied)

    def apply_heuristics(self, number: int) -> Kernel:
        """Returns the kernel with the opts that the heuristics choose."""
        return apply_heuristics(self.unchanged(number))

    # *** compiling and timing ***

    def recorded(
        self,
        number: int,
        make: Callable[[], Kernel],
        passes: Sequence[Pass] = PASSES,
        accept: Callable[[Kernel], None] = lambda _: None,
    ) -> CompiledRecording:
        """Compiles the kernel that `make` returns under a recorder.

        accept: called with that kernel before it is compiled; an exception from it ends the compilation.
        """
        subject = self.subjects[number]
        recorder = Recorder()

        def work() -> tuple[Kernel, Runner]:
            with stage("kernel", subject.original, 0, subject.original):
                kernel = record_stage("optimize", subject.original, make)
                accept(kernel)
                return kernel, compile_optimized(subject.device, kernel, passes)

        with recording(recorder):
            kernel, runner = self.under_settings(work)
        trace = self.under_settings(lambda: build_trace(recorder, title=kernel.name, listings=further_listings))
        return CompiledRecording(trace, kernel, runner, recorder)

    def _make_reference(self, number: int, name: str, make: Callable[[int], Kernel]) -> Kernel:
        if (number, name) not in self.references:
            self.references[number, name] = make(number)
        return self.references[number, name]

    def variant(
        self, number: int, make: Callable[[], Kernel], accept: Callable[[Kernel], None], step: Callable[[str], None]
    ) -> tuple[KernelVariant, str, str]:
        """Compiles the kernel that `make` returns, and lets a worker time it.

        accept: see `recorded`.
        step: called before the timing; an exception from it ends the command.

        Returns:
            The variant, the reason why it has no times, and the reason why it cannot be used; "" for no reason.
        """
        recorded = self.recorded(number, make, accept=accept)
        kernel, subject = recorded.kernel, self.subjects[number]
        step("timing")

        def ask() -> Measurement:
            captured = self._make_reference(number, "captured", self.captured)
            base = None if kernel.ast is captured.ast else captured
            reference = self._make_reference(number, "heuristics", self.apply_heuristics)
            return self.measure(subject.device, kernel, reference, base, recorded.runner.spec.uops)

        measured = Measurement(())
        note = lost = ""
        try:
            with recording(None):
                measured = self.under_settings(ask)
            note = measured.note
        except KernelNotTimed as error:
            note = str(error)
        except KernelFailed as error:
            lost = str(error)
        names = self.names.get(number, ())
        variant = self.under_settings(
            lambda: variant_of(number, subject.device, recorded.trace, kernel, recorded.runner, measured, names)
        )
        return variant, note, lost


__all__ = ["KernelCompiler", "CompiledRecording", "KernelSubject"]
