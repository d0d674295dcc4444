"""Analyses of captured kernels that can run again: debugger, caches, throughput, GPU, other languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tinyexplore.device import Device
from tinyexplore.execute.threads import estimated_ns, parts_for
from tinyexplore.explore.analysis.stored_responses import Responses
from tinyexplore.target import core_count

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparisons.language_comparison import LanguageComparison
    from tinyexplore.explore.analysis.models.address_stream import AddressStream
    from tinyexplore.explore.analysis.models.caches import CacheModel
    from tinyexplore.explore.analysis.models.debugger import Debugger
    from tinyexplore.explore.analysis.models.gpu import GPUView
    from tinyexplore.explore.analysis.models.lru import Cache
    from tinyexplore.explore.analysis.models.throughput import Throughput
    from tinyexplore.explore.analysis.passes import LLVMPasses, Pipeline
    from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
    from tinyexplore.explore.recording.captured_kernel import CapturedKernel
    from tinyexplore.explore.tracefile.model import Branch, KernelInfo
    from tinyexplore.explore.tracefile.trace import Trace
    from tinyexplore.kernel import Opt
    from tinyexplore.uop import UOp
    from tinyexplore.util import Config


STACK = re.compile(r"\[(?:r[sb]p|sp)\b")  # an operand on the stack


class KernelUnavailableError(RuntimeError):
    """The kernel cannot run again: its Explorer was loaded from a file, or closed."""


Opts = tuple[str, ...] | None  # None: as captured


@dataclass
class StoredResults:
    """The stored results of a capture's analyses: responses for pages, and verdicts by kernel."""

    responses: Responses = field(default_factory=Responses)
    """Responses that pages saved later contain."""
    verdicts: dict[int, SpeedVerdict] = field(default_factory=dict)
    """Computed verdicts, by kernel number."""
    passes: dict[tuple[int, Pipeline], LLVMPasses] = field(default_factory=dict)
    """LLVM's passes, by kernel number and pipeline."""


class KernelAnalyses:
    """The analyses of one capture's kernels, by number. `KernelView` is the user's interface."""

    def __init__(
        self,
        trace: Callable[[], Trace],
        captured: Callable[[], Mapping[int, CapturedKernel]],
        settings: Config,
        stored: StoredResults,
        measure_ceilings: Callable[[], Any],
        whatif: Callable[[], Any],
    ) -> None:
        """Stores the functions and data of a capture.

        Args:
            trace: returns the trace.
            captured: returns the kernels that can run again, by number.
            settings: the configuration of the capture.
            stored: responses and verdicts that were computed before.
            measure_ceilings: adds this machine's ceilings to the trace if they are missing.
            whatif: returns the branches (`whatif.WhatIf`, from a higher package).
        """
        self._trace = trace
        self._captured_kernels = captured
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
        """The captured trace."""
        return self._trace()

    def captured(self, kernel: int | KernelInfo = 0) -> CapturedKernel:
        """Returns the captured kernel: its program, and with `keep_inputs` its inputs."""
        number = kernel if isinstance(kernel, int) else kernel.id
        kernels = self._captured_kernels()
        captured = kernels.get(number)
        if captured is not None:
            return captured
        if not kernels:
            raise KernelUnavailableError(
                "this Explorer has no kernel that can run again (loaded, closed, or no kernel ran): capture again"
            )
        raise ValueError(
            f"kernel {number}: the kernels of this capture that can run again are {', '.join(map(str, kernels))}"
        )

    def captured_of_one_core(self, kernel: int | KernelInfo = 0) -> CapturedKernel:
        """Returns a captured CPU kernel.

        Raises:
            KernelUnavailableError: this is a GPU kernel, which many work-items run.
        """
        captured = self.captured(kernel)
        if captured.spec.target.has_local:
            raise KernelUnavailableError(
                f"kernel {captured.number} ({captured.spec.name}) is compiled for a GPU ({captured.spec.target.cpu}); "
                "this analysis models one CPU core. Capture the kernel for a CPU, or run it on "
                "DEVICE=PYTHON, which checks the accesses of all work-items"
            )
        return captured

    def debug(
        self, kernel: int | KernelInfo = 0, inputs: Sequence[Any] | str | None = None, **options: Any
    ) -> Debugger:
        """Returns an `explore.Debugger` of a kernel.

        Args:
            kernel: the kernel or its number.
            inputs: a content for each buffer before the run (anything with the buffer protocol, None for zeros), or
                "generated"; by default the contents that `keep_inputs` stored.
            options: `item`, the work-item of a GPU kernel to follow: `{"gidx0": 1, "lidx0": 3}`; missing indices are 0.
        """
        from tinyexplore.explore.analysis.models.kernel_debugger import debugger_of

        return debugger_of(self.captured(kernel), inputs, **options)

    def memory_stream(self, kernel: int | KernelInfo = 0, unit: int | None = None) -> AddressStream:
        """Returns the accesses of a kernel in order, as multiples of `unit` bytes (by default, of elements)."""
        from tinyexplore.explore.analysis.models.address_stream import AddressStream

        captured = self.captured_of_one_core(kernel)
        values = dict(zip(captured.spec.variables, captured.values))
        return AddressStream(captured.uops, values, unit=unit, contents=captured.contents)

    def caches(
        self,
        kernel: int | KernelInfo = 0,
        opts: Iterable[Opt | str] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> CacheModel:
        """Simulates a kernel's accesses on its target's caches, or on `caches`.

        Pages that are saved later compare the kernel with itself without opts, or with `opts` if given.

        opts: opts to use instead of the kernel's own; () for none.
        """
        opt_texts = None if opts is None else tuple(map(str, opts))
        model = self.cache_model(kernel, opt_texts, caches)
        if caches is None:
            number = self.captured(kernel).number
            self.responses.compare(number, *(((), None) if opt_texts is None else (None, opt_texts)))
        return model

    def cache_model(
        self, kernel: int | KernelInfo = 0, opts: Opts = None, caches: Sequence[Cache] | None = None
    ) -> CacheModel:
        """Returns the cache simulation without storing a response for pages."""
        from tinyexplore.explore.analysis.models.kernel_cache_model import model_of

        captured = self.captured_of_one_core(kernel)
        device = Device[self.trace.kernels[captured.number].device]
        return model_of(
            captured, opts, caches, device.renderer.render if captured.spec.target == device.target else None
        )

    def gpu(self, kernel: int | KernelInfo = 0, registers: int | None = None, target: str = "") -> GPUView:
        """Models a GPU kernel: its grid, the memory accesses of a warp at each load and store, and its occupancy.

        For each access it has the address of every lane, whether the lanes coalesce, and which banks conflict.

        registers: the registers of a work-item that the compiler reports (`ptxas -v`). The occupancy is then exact,
            also in the panel and in pages that are saved later.
        target: a GPU such as "sm_80". The kernel is compiled for it, with the opts of the heuristics; nothing runs.

        Raises:
            ValueError: this is a CPU kernel.
        """
        from tinyexplore.explore.analysis.models.gpu import gpu_view

        captured = self.captured(kernel)
        number = captured.number
        view: GPUView | None = self.responses.get("gpu", kernel=number, target=target)
        if view is None or registers is not None:
            if target:
                from tinyexplore.explore.analysis.comparisons.translation import compile_for_gpu

                captured = compile_for_gpu(captured, target, self._settings)
            view = gpu_view(captured, registers)
            self.responses.store("gpu", view, kernel=number, target=target)
        return view

    def gpu_all(self) -> None:
        """Models every GPU kernel, for a page, which cannot request models. This takes little time."""
        for number, captured in self._captured_kernels().items():
            if captured.spec.target.has_local and self.trace.kernels[number].same_as is None:
                self.gpu(number)

    def throughput(self, kernel: int | KernelInfo = 0, branch: Branch | None = None) -> Throughput:
        """Returns the bottleneck of a kernel's busiest loop on its CPU, as `llvm-mca` models it.

        The bottleneck is the ports, the front end, or dependencies. The result also has the ports and cycles of each
        instruction. Pages that are saved later contain it.

        branch: analyze the kernel of this branch.

        Raises:
            ThroughputError: `llvm-mca` is not installed.
        """
        from tinyexplore.explore.analysis.models.throughput import throughput

        captured = self.captured(kernel)
        assembly, uops, time_us = (
            self._read_captured(captured) if branch is None else self._read_branch(captured, branch)
        )
        threads = self._threads_of(captured)
        clock_ghz = None if time_us is None else self._find_clock_ghz(captured.spec.target.name)
        estimate = throughput(
            assembly,
            captured.spec.target,
            uops,
            time_us,
            threads=threads,
            kernel=captured.spec.name,
            clock_ghz=clock_ghz,
        )
        if branch is None and any(STACK.search(instruction.text) for instruction in estimate.instructions):
            note = self.llvm_explanation(captured.number, "spills")
            estimate = replace(estimate, notes=(*estimate.notes, note)) if note else estimate
        self.responses.store(
            "throughput", estimate, kernel=captured.number, branch=None if branch is None else branch.id
        )
        return estimate

    def llvm_explanation(self, number: int, about: str) -> str:
        """Quotes LLVM on a kernel: the values that it spills, or its reason for a loop without vectors.

        about: "spills" or "not vectorized". Returns "" if LLVM reports none, or does not compile the kernel.
        """
        from tinyexplore.explore.analysis.passes import LLVMPassesError
        from tinyexplore.explore.analysis.passes.quotations import refusal_text, spills_text

        try:
            passes = self.passes(number)
        except (ValueError, LLVMPassesError):
            return ""
        return spills_text(passes) if about == "spills" else refusal_text(passes)

    def passes(
        self, kernel: int | KernelInfo = 0, level: str = "", without: tuple[str, ...] = (), cpu: str = ""
    ) -> LLVMPasses:
        """Returns LLVM's passes on a kernel. Each pipeline runs once. Pages that are saved later contain the result."""
        from tinyexplore.explore.analysis.passes import Pipeline, kernel_passes
        from tinyexplore.explore.analysis.passes.passes_data import passes_data

        captured = self.captured(kernel)
        key = (captured.number, Pipeline(level, without, cpu))
        if key not in self._passes:
            passes = self._passes[key] = kernel_passes(self.trace, captured.number, captured.spec, key[1])
            data = passes_data(passes, captured.number)
            self.responses.store("passes", data, kernel=captured.number, level=level, without=without, cpu=cpu)
        return self._passes[key]

    def passes_of_slowest(self) -> None:
        """Runs LLVM's passes on the slowest kernel, for a page, which cannot run LLVM."""
        from tinyexplore.explore.analysis.passes import LLVMPassesError

        number = self.slowest()
        if number is None:
            return
        try:
            self.passes(number)
        except (ValueError, LLVMPassesError):
            return  # LLVM does not compile it, or rejected it: the panel reports this

    def slowest(self) -> int | None:
        """Returns the number of the captured kernel that takes longest; None without kernels."""
        times = {run.kernel: run.median_us for run in self.trace.runs}
        numbers = [number for number in self._captured_kernels() if self.trace.kernels[number].same_as is None]
        return max(numbers, key=lambda number: times.get(number, 0.0)) if numbers else None

    def _find_clock_ghz(self, device: str) -> float | None:
        """Returns the clock that was measured on the machine of the trace, in GHz."""
        from tinyexplore.explore.analysis.machine.ceiling_table import ceilings

        measured = next((ceiling.rate for ceiling in self.trace.ceilings if ceiling.kind == "clock"), None)
        return measured or ceilings(device).clock_ghz

    def translate(self, kernel: int | KernelInfo = 0, targets: str | Iterable[str] | None = None) -> LanguageComparison:
        """Translates a kernel to other languages and machines, with lines aligned by the nodes of its AST; see
        `explore.LanguageComparison`.

        The text for its own machine is the captured one. For other machines, the heuristics choose the opts. Pages that
        are saved later contain the result.

        targets: languages ("c", "llvm", "opencl", "cuda", "hip", "metal", "wgsl", "wasm"), machines ("sm_90"), or both
            ("cuda:sm_90", "llvm:neoverse-n1"); by default every language.

        Raises:
            LanguageError: a target is unknown.
        """
        from tinyexplore.explore.analysis.comparisons.languages import parse_targets
        from tinyexplore.explore.analysis.comparisons.translation import translate

        captured = self.captured(kernel)
        comparison = translate(captured, parse_targets(targets), self.trace, self._settings)
        same_as = self.trace.kernels[captured.number].same_as
        self.responses.store(
            "rosetta", comparison, kernel=captured.number if same_as is None else same_as, targets=None
        )
        return comparison

    def translate_all(self) -> None:
        """Translates every kernel to every language; keeps earlier translations as they are."""
        for number in self._captured_kernels():
            is_stored = self.responses.get("rosetta", kernel=number, targets=None) is not None
            if self.trace.kernels[number].same_as is None and not is_stored:
                self.translate(number)

    def _threads_of(self, captured: CapturedKernel) -> int:
        """Returns the number of threads that shared a run."""
        info, extent = self.trace.kernels[captured.number], captured.spec.thread_extent
        threads = int(dict(self.trace.options).get("THREADS", "0")) or core_count()
        if extent is None:
            return 1
        work_ns = estimated_ns(info.flops, info.bytes_moved, captured.spec.target)
        return min(threads, max(1, parts_for(extent, work_ns, threads)))

    def _read_captured(self, captured: CapturedKernel) -> tuple[Sequence[str], Sequence[UOp], float | None]:
        """Returns the assembly of a kernel, its linear program, and the median of its warm samples in microseconds."""
        trace = self.trace
        same_as = trace.kernels[captured.number].same_as
        owner = captured.number if same_as is None else same_as
        listed = [program.lines for program in trace.programs if program.kernel == owner and program.language == "asm"]
        times = [run.median_us for run in trace.runs if run.kernel == captured.number and run.warm]
        lines = [line.text for line in listed[0]] if listed else []
        return _require_assembly(captured, lines), captured.uops, min(times, default=None)

    def _read_branch(
        self, captured: CapturedKernel, branch: Branch
    ) -> tuple[Sequence[str], Sequence[UOp], float | None]:
        from tinyexplore.explore.analysis.models.kernel_cache_model import lower_with_opts

        variant = next((kernel for kernel in branch.kernels if kernel.kernel == captured.number), None)
        if variant is None:
            raise ValueError(f"what-if branch {branch.id} is not about kernel {captured.number}")
        listed = next((listing.lines for listing in variant.listings if listing.language == "asm"), ())
        assembly = _require_assembly(captured, listed)
        if branch.edited is not None:  # the loops of an edited text are unknown
            return assembly, (), None
        return assembly, lower_with_opts(captured.make_kernel(), variant.opts)[1], variant.median_us


def _require_assembly(captured: CapturedKernel, lines: Sequence[str]) -> Sequence[str]:
    from tinyexplore.explore.analysis.models.throughput import ThroughputError

    if not lines:
        raise ThroughputError(
            f"kernel {captured.number} ({captured.spec.name}) has no assembly, because it is not machine code"
        )
    return lines


__all__ = ["KernelAnalyses", "KernelUnavailableError", "StoredResults"]
