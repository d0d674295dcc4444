"""Measures and models one kernel: computes the facts that the rules need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.analysis.machine.ceiling_table import Ceilings, stream_rate
from tinyexplore.explore.analysis.machine.probes import LARGE, slow_arithmetic_rows
from tinyexplore.explore.analysis.models.throughput import common_path
from tinyexplore.explore.analysis.verdict.access import (
    LINE,
    AccessPattern,
    CacheShape,
    Operand,
    Runs,
    crosses_lines,
    runs_of,
    size_of,
)
from tinyexplore.explore.analysis.verdict.code import (
    HotLoop,
    code_model,
    executed_operations,
    hot_loop_of,
    integer_operations,
    redundancy,
)
from tinyexplore.explore.analysis.verdict.facts import KernelFacts
from tinyexplore.kernel import Kernel
from tinyexplore.runtime.native import cache_bytes
from tinyexplore.uop import AxisKind, Ops

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
    from tinyexplore.explore.recording.captured_kernel import CapturedKernel
    from tinyexplore.explore.tracefile.model import Ceiling, KernelInfo, Run
    from tinyexplore.explore.tracefile.trace import Trace
    from tinyexplore.target import Target

PREFETCH_REACH_BYTES = 4096  # bytes between pieces that no hardware prefetcher crosses
L1_WAYS, L2_WAYS = 8, 16
# vector loads per cycle from (L1, L2), by whether they cross a line
ALIGNED_LOADS = {True: (0.8, 0.39), False: (1.75, 0.72)}
SPARSE_SHARE = 0.75  # share of its buffers' bytes; a kernel that accesses less is judged by its footprint
PAST_L3 = 1.5  # bytes / size of the last cache, from which on a working set counts as memory
LEVEL_GAIN = 1.3  # least bandwidth of a cache / bandwidth of memory
NARROW_TYPES = {
    "bfloat16": ("bfloat16 tile", "bfloat16 dot"),
    "int8": ("int8 tile", "int8 dot"),
    "uint8": ("int8 dot",),
}
MIN_GAIN = 1.3  # least gain in the rate of instructions for which other instructions are mentioned


def facts_of(view: KernelAnalyses, number: int, *, model: bool = True) -> KernelFacts:
    """Returns the facts of a kernel of `view` that has samples. Its ceilings are measured on first use.

    model: whether to run llvm-mca, which takes 15 to 70 ms.

    Raises:
        ValueError: the kernel cannot be compiled again here.
    """
    view.measure_ceilings()
    captured = view.captured(number)
    info = view.trace.kernels[number]
    run = next((timed_run for timed_run in view.trace.runs if timed_run.kernel == number), None)
    ceilings = Ceilings("", "", view.trace.ceilings)
    threads = view._threads_of(captured)
    names = [view.trace.buffers[buffer].name or f"data{slot}" for slot, buffer in enumerate(info.buffers)]
    kernel = captured.make_kernel()
    with_loops = _LoopFigures(captured, kernel, view.trace, names, ceilings, threads)
    facts = with_loops.facts(run)
    assembly = _assembly_of(view, info)
    loop = hot_loop_of(assembly, captured.spec.target, captured.uops) if assembly else None
    facts = with_loops.with_code(facts, assembly, loop, model)
    return replace(facts, stream_us=_measure_stream_us(facts)) if model and _may_wait_for_memory(facts) else facts


def _may_wait_for_memory(facts: KernelFacts) -> bool:
    """Whether a kernel that streams through memory takes longer than its bytes at their ceiling."""
    is_stream = facts.level == "memory" and not facts.gathers and facts.pattern_us <= 1.5 * facts.own_memory_us
    return is_stream and facts.bytes_moved >= LARGE and facts.share < 0.7


def _measure_stream_us(facts: KernelFacts) -> float:
    """Measures the time of a stream of as many bytes as the kernel moves; takes about 0.1 s."""
    rate = stream_rate(facts.bytes_moved, facts.bytes_written / facts.bytes_moved, facts.threads)
    return facts.bytes_moved / rate / 1e3 if rate else 0.0


class _LoopFigures:
    """Figures from the loops of a kernel and this machine's ceilings."""

    def __init__(
        self,
        captured: CapturedKernel,
        kernel: Kernel,
        trace: Trace,
        names: Sequence[str],
        ceilings: Ceilings,
        threads: int,
    ) -> None:
        self.captured, self.kernel, self.trace, self.names = captured, kernel, trace, names
        self.uops = common_path(captured.uops)
        self.info: KernelInfo = trace.kernels[captured.number]
        self.ceilings, self.threads = ceilings, threads
        self.target: Target = captured.spec.target
        self.all_threads = max((row.threads for row in ceilings.rows), default=threads)
        self.threads = min(threads, self.all_threads)
        self.pattern = AccessPattern(kernel)
        self.sizes = {operand.buffer: operand.nbytes for operand in self.pattern.operands if operand.buffer is not None}
        self.written = set(captured.spec.writes)
        self.random = [
            operand for operand in self.pattern.operands if operand.buffer is not None and _is_random(operand)
        ]
        self.random_buffers = {operand.buffer for operand in self.random}

    def facts(self, run: Run | None) -> KernelFacts:
        """Returns the facts without those from the assembly."""
        moved, written = self._count_bytes()
        operations, arithmetic, peaks, unused = self._analyze_arithmetic()
        samples = sorted(run.times_us) if run is not None and run.warm else []
        time_us = median(samples) if samples else 0.0
        missing = [] if self.ceilings.rows else ["no ceilings were measured for this machine and target"]
        if slow_arithmetic_rows(self.ceilings.rows, self.target.vector_bytes // 4):
            missing.append("the float32 ceiling: it was measured under load and is too low for this clock")
        memory = [self._estimate_memory_us(moved, written, count) for count in (self.all_threads, self.threads)]
        level = self._find_level(moved, written)
        return replace(
            self._analyze_patterns(moved, written),
            kernel=self.info.id,
            name=self.info.name,
            time_us=time_us,
            best_us=samples[0] if samples else 0.0,
            low_us=run.low_us if run is not None and samples else 0.0,
            high_us=run.high_us if run is not None and samples else 0.0,
            samples=len(samples),
            waited=run.waited if run is not None else None,
            single_us=median(run.single_us) if run is not None and run.single_us else 0.0,
            threads=self.threads,
            all_threads=self.all_threads,
            has_thread_axis=self.captured.spec.thread_extent is not None,
            launch_us=self.ceilings.launch_us or 0.0,
            bytes_moved=moved,
            bytes_written=written,
            level=level,
            memory_us=memory[0],
            own_memory_us=memory[1],
            operations=operations,
            arithmetic=arithmetic,
            compute_us=operations / peaks[0] / 1e3 if peaks[0] else 0.0,
            own_compute_us=operations / peaks[1] / 1e3 if peaks[1] else 0.0,
            not_run=self.info.not_run,
            opts=self.info.opts,
            unused_dots=unused,
            missing=tuple(missing),
        )

    def _count_bytes(self) -> tuple[int, int]:
        """Returns the bytes that must move, and the part of them that is written."""
        accessed = {buffer: self._count_accessed_bytes(buffer) for buffer in self.sizes}
        if not self.random and sum(accessed.values()) >= SPARSE_SHARE * sum(self.sizes.values()):
            return self.info.bytes_moved, self.info.bytes_written
        read = written = 0
        for buffer, nbytes in accessed.items():
            operands = [operand for operand in self.random if operand.buffer == buffer]
            if operands:
                visits, each = _count_visits(operands[0]), max(runs_of(operands[0]).run_bytes, operands[0].item_bytes)
                nbytes = min(nbytes, visits * each)
            if buffer in self.written:
                written += nbytes
            else:
                read += nbytes
        return read + written, written

    def _count_accessed_bytes(self, buffer: int) -> int:
        """Returns the bytes of the cache lines of a buffer that the kernel accesses; all if that is unknown."""
        operands = [operand for operand in self.pattern.operands if operand.buffer == buffer]
        return min(self.sizes[buffer], sum(operand.inside(0) for operand in operands))

    def _analyze_arithmetic(self) -> tuple[int, str, tuple[float, float], str]:
        """Returns the operations, their type, their peak rates (all threads, the kernel's threads), and unused dot
        instructions.

        Rates are in 10⁹ operations a second.
        """
        types = self.info.arithmetic
        dots = next((name for name in types if name.endswith(("dot", "tile"))), "")
        redundant = redundancy(self.uops, self.kernel)
        if dots:
            kind, operations = dots, self.info.flops
        else:
            kind, operations = self._find_longest_arithmetic(redundant if redundant >= 2 else 1)
        peak, peak_of_threads = (self._find_peak(kind, count) for count in (self.all_threads, self.threads))
        rates = {name: self._find_peak(name, self.all_threads) for name in self._find_narrow_instructions()}
        fastest = max(rates, key=rates.__getitem__, default="")
        unused = fastest if fastest not in ("", kind) and peak and rates[fastest] >= MIN_GAIN * peak else ""
        return operations, kind, (peak, peak_of_threads), unused

    def _find_longest_arithmetic(self, redundant: float) -> tuple[str, int]:
        """Returns the type whose operations take longest at their peak rate, and the number of its operations."""
        types = self.info.arithmetic
        floats = "float64" if "float64" in types and "float32" not in types else "float32"
        counts = {"int32": 2 * integer_operations(self.uops) / redundant}
        if types:
            counts[floats] = 2 * executed_operations(self.uops) / redundant
        peaks = {kind: self._find_peak(kind, self.all_threads) for kind in counts}
        kind = max(counts, key=lambda name: (counts[name] / peaks[name] if peaks[name] else 0.0, name != "int32"))
        return kind, round(counts[kind])

    def _find_narrow_instructions(self) -> tuple[str, ...]:
        """Returns the instructions that multiply and add the operand types of a sum of products.

        An operand that another kernel converted counts with its original type.
        """
        is_product = any(
            node.op is Ops.REDUCE and any(node_below.op is Ops.MUL for node_below in node.src[0].toposort())
            for node in self.kernel.ast.toposort()
        )
        if not is_product:
            return ()
        types = {
            self._find_original_type(buffer)
            for slot, buffer in enumerate(self.info.buffers)
            if slot not in self.written
        }
        return NARROW_TYPES.get(types.pop(), ()) if len(types) == 1 else ()

    def _find_original_type(self, buffer: int) -> str:
        """Returns the type of a buffer, or of the equally sized buffer from which a kernel converted it."""
        info = self.trace.buffers[buffer]
        if info.maker is not None and info.dtype in ("float32", "int32"):
            sources = [self.trace.buffers[other] for other in self.trace.kernels[info.maker].buffers if other != buffer]
            if len(sources) == 1 and sources[0].size == info.size:
                return sources[0].dtype
        return info.dtype

    def _find_peak(self, kind: str, threads: int) -> float:
        ceiling = self.ceilings.peak(kind, threads) or self.ceilings.peak(kind)
        return self._find_threads_rate(ceiling, self.ceilings.peak(kind, 1), threads)

    def _find_threads_rate(self, ceiling: Ceiling | None, single: Ceiling | None, threads: int) -> float:
        """Returns the rate of several threads; scales the rate of one thread if the former is lower, thus disturbed."""
        if ceiling is None:
            return 0.0
        return threads * single.rate if single is not None and ceiling.rate < single.rate else ceiling.rate

    def _estimate_memory_us(self, nbytes: int, written: int, threads: int) -> float:
        rate = self._find_rate(nbytes, written / nbytes if nbytes else 0.0, threads)
        return nbytes / rate / 1e3 if rate else 0.0

    def _find_rate(self, nbytes: int, write_share: float, threads: int) -> float:
        ceiling = self.ceilings.bandwidth(nbytes, write_share, threads)
        if nbytes > 0.75 * self.target.l2_bytes * threads:  # memory that the threads share
            return ceiling.rate if ceiling is not None else 0.0
        return self._find_threads_rate(ceiling, self.ceilings.bandwidth(nbytes // threads, write_share, 1), threads)

    def _find_level(self, nbytes: int, written: int) -> str:
        """Returns the memory level of a working set: by a core's cache sizes, and beyond them by the measured curve."""
        if nbytes <= self.target.l1_bytes * self.threads:
            return "L1"
        if nbytes <= 0.75 * self.target.l2_bytes * self.threads:
            return "L2"
        if nbytes > PAST_L3 * max(self.target.l3_bytes, cache_bytes(3, 0)):
            return "memory"
        own_rate, far_rate = (self._find_rate(size, 0.0, self.all_threads) for size in (nbytes, 1 << 40))
        return "L3" if far_rate and own_rate >= LEVEL_GAIN * far_rate else "memory"

    # *** access patterns ***

    def _analyze_patterns(self, moved: int, written: int) -> KernelFacts:
        """Returns the facts from the access patterns; all other fields are 0."""
        l1, l2 = CacheShape(self.target.l1_bytes, L1_WAYS), CacheShape(self.target.l2_bytes, L2_WAYS)
        beyond_l1, near = self.pattern.traffic(l1)
        beyond_l2, beyond_l3 = self.pattern.traffic(l2)
        total = sum(nbytes for buffer, nbytes in beyond_l2.items() if buffer not in self.random_buffers)
        facts = replace(
            _EMPTY,
            redundant=redundancy(self.uops, self.kernel),
            l2_traffic=total / moved if moved and not self.random else 1.0,
            refill_us=self._estimate_refill_us(sum(beyond_l1.values())),
            **self._analyze_gathers(),
        )
        if conflict := near or beyond_l3:
            facts = replace(facts, conflict=self.names[conflict[0]], conflict_pitch=conflict[1])
        worst_us, pattern_us, line_use = 0.0, 0.0, 1.0
        analyzed: set[int] = set()
        for operand in self.pattern.operands:
            buffer = operand.buffer
            if buffer is None or buffer in analyzed or buffer in self.random_buffers:
                continue
            analyzed.add(buffer)
            runs, nbytes = runs_of(operand), beyond_l2.get(buffer, 0)
            if operand.nbytes <= l2.nbytes and nbytes <= 4 * l2.nbytes and moved <= l2.nbytes * self.threads:
                continue
            cost_us = self._estimate_pattern_us(operand, runs, nbytes, moved)
            pattern_us += cost_us
            if cost_us > worst_us:
                worst_us = cost_us
                facts = replace(
                    facts,
                    worst=self.names[buffer],
                    worst_run=runs.run_bytes,
                    worst_pitch=runs.pitch_bytes or 0,
                    worst_bytes=operand.nbytes,
                    worst_times=nbytes / max(1, operand.nbytes),
                )
            pitch = runs.pitch_bytes
            is_sparse = (
                runs.run_bytes < 32 and pitch is not None and 2 * runs.run_bytes <= pitch <= PREFETCH_REACH_BYTES
            )
            if is_sparse and pitch and nbytes >= 0.5 * moved and operand.nbytes > l1.nbytes:
                line_use = min(line_use, runs.run_bytes / min(pitch, LINE))
        return replace(facts, pattern_us=pattern_us, line_use=line_use)

    def _estimate_refill_us(self, nbytes: int) -> float:
        rate = self._find_rate(self.target.l2_bytes // 4 * self.threads, 0.0, self.threads)
        return nbytes / rate / 1e3 if rate else 0.0

    def _estimate_pattern_us(self, operand: Operand, runs: Runs, nbytes: int, moved: int) -> float:
        """Returns the time of an operand's traffic, given the length of its contiguous pieces."""
        is_shared = any(loop.arg.kind is AxisKind.THREAD and not operand.varies(loop) for loop in operand.loops)
        spread = operand.nbytes * (self.threads if is_shared else 1)
        if (
            runs.pitch_bytes is not None
            and runs.pitch_bytes >= PREFETCH_REACH_BYTES
            and runs.run_bytes < PREFETCH_REACH_BYTES
        ):
            rate = self.ceilings.runs(spread, runs.run_bytes if runs.run_bytes >= LINE else 4, self.threads)
            if rate is not None and rate.rate:
                used = nbytes if runs.run_bytes >= LINE else nbytes / LINE * 4  # a single float per line
                return used / rate.rate / 1e3
        rate_all = self._find_rate(max(spread, moved), float(operand.buffer in self.written), self.threads)
        return nbytes / rate_all / 1e3 if rate_all else 0.0

    def _analyze_gathers(self) -> dict[str, Any]:
        if not self.random:
            return {}
        operand = max(self.random, key=_count_visits)
        assert operand.buffer is not None
        visits, rate = _count_visits(operand), self.ceilings.gather(operand.nbytes, self.threads)
        return {
            "gathers": visits,
            "gather_us": visits / rate.rate / 1e3 if rate is not None and rate.rate else 0.0,
            "gather_bytes": max(runs_of(operand).run_bytes, operand.item_bytes),
            "gather_of": self.names[operand.buffer],
            "scatters": operand.buffer in self.written,
        }

    # *** code ***

    def with_code(self, facts: KernelFacts, assembly: Sequence[str], loop: HotLoop | None, tool: bool) -> KernelFacts:
        """Returns `facts` with the facts from the assembly."""
        if loop is None:
            return replace(facts, missing=(*facts.missing, "instructions: the kernel has no x86 assembly with a loop"))
        if facts.level == "memory" and not loop.past_caches:
            facts = replace(facts, fetch_us=self._estimate_memory_us(facts.bytes_written, 0, facts.threads))
        facts = replace(
            facts,
            has_code=True,
            instructions=loop.instructions,
            vector=loop.vector,
            stack=loop.stack,
            first_line=loop.lines[0],
            level="memory" if loop.past_caches and facts.bytes_written >= 0.3 * facts.bytes_moved else facts.level,
        )
        lanes, clock = self.target.vector_bytes // 4, self.ceilings.clock_ghz
        rate = self._find_peak("float32", 1)
        fma = rate / 2 / lanes / clock if clock and rate else 2.0
        model, lacks = code_model(
            assembly,
            self.target,
            self.uops,
            facts.judged_us,
            facts.threads,
            clock,
            loop,
            fma,
            True,
            tool,
        )
        if lacks:
            facts = replace(facts, missing=(*facts.missing, lacks))
        if model is None:
            return facts
        facts = replace(
            facts,
            has_model=True,
            cycles=model.cycles,
            busiest=model.busiest,
            is_carried=model.is_carried,
            code_share=model.explains,
            measured_cycles=model.measured,
            ports=model.ports,
            model=model.source,
        )
        return replace(facts, **self._estimate_crossing_times(loop, facts))

    def _estimate_crossing_times(self, loop: HotLoop, facts: KernelFacts) -> dict[str, Any]:
        """Returns the time of the hot loop's loads, if some operand's vectors cross cache lines."""
        loops, operands = self.pattern.hottest()
        loads = [
            operand
            for operand in operands
            if operand.buffer not in (None, *self.random_buffers) and crosses_lines(operand)
        ]
        if not loads or not facts.cycles:
            return {}
        reduced = next((k for k, axis in enumerate(loops) if axis.arg.kind is AxisKind.REDUCE), 0)
        from_l1 = self.pattern.step_bytes(loops, reduced) <= 0.9 * self.target.l1_bytes
        cycles = loop.wide_loads / ALIGNED_LOADS[True][0 if from_l1 else 1]
        share = cycles * facts.code_share / facts.cycles
        return {
            "crossing_us": share * facts.judged_us,
            "crossing": ", ".join(
                dict.fromkeys(self.names[operand.buffer] for operand in loads if operand.buffer is not None)
            ),
        }


def _is_random(operand: Operand) -> bool:
    return operand.is_data_dependent


def _count_visits(operand: Operand) -> int:
    """Returns the number of data-dependent accesses: the iterations down to the last loop of unknown stride."""
    unknown = [k for k, loop in enumerate(operand.loops) if operand.varies(loop) and operand.stride(loop) is None]
    last = max(unknown, default=len(operand.loops) - 1)
    return prod(size_of(loop) for loop in operand.loops[: last + 1])


def _assembly_of(view: KernelAnalyses, info: KernelInfo) -> list[str]:
    owner = info.id if info.same_as is None else info.same_as
    listed = next(
        (program for program in view.trace.programs if program.kernel == owner and program.language == "asm"), None
    )
    return [line.text for line in listed.lines] if listed is not None else []


_EMPTY = KernelFacts(
    kernel=0,
    name="",
    time_us=0.0,
    best_us=0.0,
    low_us=0.0,
    high_us=0.0,
    samples=0,
    waited=None,
    single_us=0.0,
    threads=1,
    all_threads=1,
    has_thread_axis=False,
    launch_us=0.0,
    bytes_moved=0,
    bytes_written=0,
    level="",
    memory_us=0.0,
    own_memory_us=0.0,
    operations=0,
    arithmetic="",
    compute_us=0.0,
    own_compute_us=0.0,
)

__all__ = ["facts_of"]
