"""Analyses of captured kernels that can run again: debugger, caches, throughput, GPU, other languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Device
from tinyexplore.execute.threads import estimated_ns, parts_for
from tinyexplore.explore.analysis.stored import Responses
from tinyexplore.target import core_count

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.byhand.caches import CacheModel
    from tinyexplore.explore.analysis.byhand.debugger import Debugger
    from tinyexplore.explore.analysis.byhand.gpu import GPUView
    from tinyexplore.explore.analysis.byhand.lru import Cache
    from tinyexplore.explore.analysis.byhand.streams import AddressStream
    from tinyexplore.explore.analysis.byhand.throughput import Throughput
    from tinyexplore.explore.analysis.comparing.rosetta import Rosetta
    from tinyexplore.explore.analysis.passes import LLVMPasses, Pipeline
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.recording.kept import CapturedKernel
    from tinyexplore.explore.tracefile.model import Branch, KernelInfo
    from tinyexplore.explore.tracefile.trace import Trace
    from tinyexplore.kernel import Opt
    from tinyexplore.uop import UOp
    from tinyexplore.util import Config


class NotKeptError(RuntimeError):
    """A kernel was asked for that cannot be run again: its Explorer was loaded from a file, or closed."""


Opts = tuple[str, ...] | None  # None: as captured


@dataclass
class Stored:
    """What the analyses of a capture store for later: responses for pages, and verdicts by kernel."""

    responses: Responses = field(default_factory=Responses)
    """Responses that the pages made afterwards store."""
    verdicts: dict[int, SpeedVerdict] = field(default_factory=dict)
    """Verdicts that were computed, by the kernel's number."""
    passes: dict[tuple[int, Pipeline], LLVMPasses] = field(default_factory=dict)
    """LLVM's passes by the kernel's number and what LLVM was asked to do."""


class KernelAnalyses:
    """The analyses of one capture's kernels, by their numbers in the trace. `KernelView` is what a user holds."""

    def __init__(
        self,
        trace: Callable[[], Trace],
        kept: Callable[[], Mapping[int, CapturedKernel]],
        settings: Config,
        stored: Stored,
        measure_ceilings: Callable[[], Any],
        whatif: Callable[[], Any],
    ) -> None:
        """
        Args:
            trace: returns the trace.
            kept: returns the kernels that can run again, by number.
            settings: those of the capture.
            stored: responses and verdicts that were computed before.
            measure_ceilings: puts this machine's ceilings into the trace, if they are not there.
            whatif: returns the branches (`whatif.WhatIf`), which are above this package.
        """
        self._trace = trace
        self._kept = kept
        self._settings = settings
        self.responses = stored.responses
        self.verdicts = stored.verdicts
        self._passes = stored.passes
        self.measure_ceilings = measure_ceilings
        self._whatif = whatif

    @property
    def whatif(self) -> Any:
        """The branches of the capture."""
        return self._whatif()

    @property
    def trace(self) -> Trace:
        """What was captured."""
        return self._trace()

    def kept(self, kernel: int | KernelInfo = 0) -> CapturedKernel:
        """What the capture keeps of a kernel beside the trace: its program, and with `keep_inputs` what it read."""
        number = kernel if isinstance(kernel, int) else kernel.id
        kept = self._kept()
        found = kept.get(number)
        if found is not None:
            return found
        if not kept:
            raise NotKeptError("no kernel of this Explorer can be run again: it was loaded or closed, or none ran")
        raise ValueError(f"kernel {number}: those of this capture that can run are {', '.join(map(str, kept))}")

    def kept_of_a_core(self, kernel: int | KernelInfo = 0) -> CapturedKernel:
        """The same, of a kernel that one core goes through from its first line to its last."""
        kept = self.kept(kernel)
        if kept.spec.target.has_local:
            raise NotKeptError(
                f"kernel {kept.number} ({kept.spec.name}) is a GPU's ({kept.spec.target.cpu}): many work-items go "
                "through it together, and this looks at one core; capture it for a CPU, or run it on DEVICE=PYTHON, "
                "which watches what the work-items do"
            )
        return kept

    def debug(
        self, kernel: int | KernelInfo = 0, inputs: Sequence[Any] | str | None = None, **options: Any
    ) -> Debugger:
        """A kernel that can be stepped: see `explore.Debugger`. `inputs`: what each of its buffers holds before the
        run (anything with the buffer protocol, None for zeros), or "generated"; by default what `keep_inputs` kept.
        `item`: of a GPU's kernel the work-item that is followed, `{"gidx0": 1, "lidx0": 3}` (0 what is not said)."""
        from tinyexplore.explore.analysis.byhand.debugging import debugger_of

        return debugger_of(self.kept(kernel), inputs, **options)

    def memory_stream(self, kernel: int | KernelInfo = 0, unit: int | None = None) -> AddressStream:
        """Which pieces of `unit` bytes each load and store of a kernel touches, in order: by default elements."""
        from tinyexplore.explore.analysis.byhand.streams import AddressStream

        kept = self.kept_of_a_core(kernel)
        known = dict(zip(kept.spec.variables, kept.values))
        return AddressStream(kept.uops, known, unit=unit, contents=kept.contents)

    def caches(
        self,
        kernel: int | KernelInfo = 0,
        opts: Iterable[Opt | str] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> CacheModel:
        """What a kernel's accesses do to its target's caches, or to `caches`. `opts`: as if it had these, () none.

        Pages that are made after have the kernel beside itself without opts; where `opts` were given, beside these.
        """
        given = None if opts is None else tuple(map(str, opts))
        found = self.cache_model(kernel, given, caches)
        if caches is None:
            number = self.kept(kernel).number
            self.responses.compare(number, *(((), None) if given is None else (None, given)))
        return found

    def cache_model(
        self, kernel: int | KernelInfo = 0, opts: Opts = None, caches: Sequence[Cache] | None = None
    ) -> CacheModel:
        """The same, of which no page has to know."""
        from tinyexplore.explore.analysis.byhand.microscope import model_of

        kept = self.kept_of_a_core(kernel)
        device = Device[self.trace.kernels[kept.number].device]
        return model_of(kept, opts, caches, device.renderer.render if kept.spec.target == device.target else None)

    def gpu(self, kernel: int | KernelInfo = 0, registers: int | None = None, target: str = "") -> GPUView:
        """A GPU's kernel: its grid, what a warp asks of memory at each load and store (lane by lane: does it coalesce,
        which banks conflict), and how many groups a multiprocessor holds. ValueError for one of a CPU.

        registers: of a work-item, as its compiler tells (`ptxas -v`), for an occupancy that rests on no estimate; the
        panel, and pages that are made after, have it so. target: a GPU such as "sm_80" for which the kernel is compiled
        with the opts that the heuristics choose there; nothing runs.
        """
        from tinyexplore.explore.analysis.byhand.gpu import gpu_view

        kept = self.kept(kernel)
        number = kept.number
        found: GPUView | None = self.responses.get("gpu", kernel=number, target=target)
        if found is None or registers is not None:
            if target:
                from tinyexplore.explore.analysis.comparing.translating import kept_for

                kept = kept_for(kept, target, self._settings)
            found = gpu_view(kept, registers)
            self.responses.store("gpu", found, kernel=number, target=target)
        return found

    def gpu_all(self) -> None:
        """Every kernel of a GPU, for a page: it takes no time, and nobody can be asked there."""
        for number, kept in self._kept().items():
            if kept.spec.target.has_local and self.trace.kernels[number].same_as is None:
                self.gpu(number)

    def throughput(self, kernel: int | KernelInfo = 0, branch: Branch | None = None) -> Throughput:
        """What bounds the busiest loop of a kernel on its CPU, as `llvm-mca` models it: ports, the front end, or
        results that are waited for; per instruction its ports and cycles. ThroughputError where it is not installed.

        `branch`: as the kernel is there. What was asked goes with the pages that are made after.
        """
        from tinyexplore.explore.analysis.byhand.throughput import throughput

        kept = self.kept(kernel)
        assembly, uops, time_us = self._captured(kept) if branch is None else self._branched(kept, branch)
        threads = self._threads_of(kept)
        clock_ghz = None if time_us is None else self._clock_ghz(kept.spec.target.name)
        found = throughput(
            assembly,
            kept.spec.target,
            uops,
            time_us,
            threads=threads,
            kernel=kept.spec.name,
            clock_ghz=clock_ghz,
        )
        self.responses.store("throughput", found, kernel=kept.number, branch=None if branch is None else branch.id)
        return found

    def passes(
        self, kernel: int | KernelInfo = 0, level: str = "", without: tuple[str, ...] = (), cpu: str = ""
    ) -> LLVMPasses:
        """What LLVM makes of a kernel, pass by pass. Each pipeline is run once."""
        from tinyexplore.explore.analysis.passes import Pipeline, kernel_passes

        kept = self.kept(kernel)
        key = (kept.number, Pipeline(level, without, cpu))
        if key not in self._passes:
            self._passes[key] = kernel_passes(self.trace, kept.number, kept.spec, key[1])
        return self._passes[key]

    def _clock_ghz(self, device: str) -> float | None:
        """The clock that was measured on the machine of the trace."""
        from tinyexplore.explore.analysis.machine.table import ceilings

        known = next((one.rate for one in self.trace.ceilings if one.kind == "clock"), None)
        return known or ceilings(device).clock_ghz

    def translate(self, kernel: int | KernelInfo = 0, targets: str | Iterable[str] | None = None) -> Rosetta:
        """A kernel in other languages, for other machines, its lines aligned by the nodes of its ast: see
        `explore.Rosetta`. `targets`: languages ("c", "llvm", "opencl", "cuda", "hip", "metal", "wgsl", "wasm"),
        machines ("sm_90"), or both ("cuda:sm_90", "llvm:neoverse-n1"); by default every language. RosettaError for
        another.

        Its machine's own text is as it was captured; for every other machine the heuristics choose the opts. What was
        asked goes with the pages that are made after.
        """
        from tinyexplore.explore.analysis.comparing.languages import wanted
        from tinyexplore.explore.analysis.comparing.translating import translate

        kept = self.kept(kernel)
        found = translate(kept, wanted(targets), self.trace, self._settings)
        same_as = self.trace.kernels[kept.number].same_as
        self.responses.store("rosetta", found, kernel=kept.number if same_as is None else same_as, targets=None)
        return found

    def translate_all(self) -> None:
        """Every kernel in every language, those that were asked for as they are."""
        for number in self._kept():
            is_stored = self.responses.get("rosetta", kernel=number, targets=None) is not None
            if self.trace.kernels[number].same_as is None and not is_stored:
                self.translate(number)

    def _threads_of(self, kept: CapturedKernel) -> int:
        """How many threads a run was divided among."""
        info, extent = self.trace.kernels[kept.number], kept.spec.thread_extent
        threads = int(dict(self.trace.options).get("THREADS", "0")) or core_count()
        if extent is None:
            return 1
        work_ns = estimated_ns(info.flops, info.bytes_moved, kept.spec.target)
        return min(threads, max(1, parts_for(extent, work_ns, threads)))

    def _captured(self, kept: CapturedKernel) -> tuple[Sequence[str], Sequence[UOp], float | None]:
        """The assembly of a kernel, its linear program, and the median of its warm samples."""
        trace = self.trace
        same_as = trace.kernels[kept.number].same_as
        owner = kept.number if same_as is None else same_as
        listed = [one.lines for one in trace.programs if one.kernel == owner and one.language == "asm"]
        times = [run.median_us for run in trace.runs if run.kernel == kept.number and run.warm]
        lines = [line.text for line in listed[0]] if listed else []
        return _assembly(kept, lines), kept.uops, min(times, default=None)

    def _branched(self, kept: CapturedKernel, branch: Branch) -> tuple[Sequence[str], Sequence[UOp], float | None]:
        from tinyexplore.explore.analysis.byhand.microscope import lowered

        variant = next((one for one in branch.kernels if one.kernel == kept.number), None)
        if variant is None:
            raise ValueError(f"branch {branch.id} is not about kernel {kept.number}")
        listed = next((one.lines for one in variant.listings if one.language == "asm"), ())
        assembly = _assembly(kept, listed)
        if branch.edited is not None:  # nobody knows the loops of a text
            return assembly, (), None
        return assembly, lowered(kept.make_kernel(), variant.opts)[1], variant.median_us


def _assembly(kept: CapturedKernel, lines: Sequence[str]) -> Sequence[str]:
    from tinyexplore.explore.analysis.byhand.throughput import ThroughputError

    if not lines:
        raise ThroughputError(f"kernel {kept.number} ({kept.spec.name}) has no assembly: it is no machine code")
    return lines


__all__ = ["KernelAnalyses", "NotKeptError", "Stored"]
