"""Converts a compiled kernel to a KernelVariant: plain data with everything that the tuner draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyexplore.codegen.cost import ZERO_COST_OPS
from tinyexplore.dtype import DType, dtypes
from tinyexplore.execute.runner import Runner
from tinyexplore.explore.analysis.traffic import loaded_bytes
from tinyexplore.explore.tracefile.model import KernelVariant, Listing, StageTime
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.annotated_nest import annotated_nest, cache_sizes
from tinyexplore.explore.whatif.editing.linear_text import program_text
from tinyexplore.explore.whatif.measurement import Measurement
from tinyexplore.explore.whatif.opt_offers import list_opt_offers
from tinyexplore.kernel import Kernel
from tinyexplore.uop import OpGroups, Ops, UOp

_SILENT = frozenset({Ops.CONST, Ops.INDEX, Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.ENDRANGE, Ops.BARRIER, Ops.PREFETCH})
_COUNTED = OpGroups.ALU - ZERO_COST_OPS


def variant_of(
    number: int,
    device: str,
    trace: Trace,
    kernel: Kernel,
    runner: Runner,
    times: Measurement,
    names: Sequence[str] = (),
) -> KernelVariant:
    """Returns `kernel` as data.

    trace: the trace of its compilation; it has one kernel.
    names: the user's names of its buffers.
    """
    (info,) = trace.kernels
    steps = [replace(step, laws=()) for stage in trace.stages for step in stage.opts]
    return KernelVariant(
        kernel=number,
        name=info.name,
        device=device,
        opts=tuple(map(str, kernel.applied)),
        steps=tuple(steps),
        axes=info.axes,
        nest=tuple(annotated_nest(kernel, names)),
        offers=tuple(list_opt_offers(kernel)),
        listings=tuple(
            Listing(program.language, tuple(line.text for line in program.lines))
            if program.language != "uops"
            else Listing("uops", tuple(program_text(runner.spec.uops).splitlines()))  # an editable form of the program
            for program in trace.programs
        ),
        stages=tuple(StageTime(stage.name, max(0.0, stage.elapsed_us), len(stage.steps)) for stage in trace.stages),
        flops=_complete_nest(runner.flops),
        bytes_moved=_complete_nest(runner.bytes_moved),
        bytes_loaded=loaded_bytes(runner.spec),
        compile_us=round(runner.compile_seconds * 1e6, 1),
        caches=cache_sizes(kernel.target),
        uops=count_executed(runner.spec.uops),
        **times.fields(),
    )


def count_executed(uops: Sequence[UOp], *, lanes: bool = False) -> int:
    """Counts the UOps that one run of a linear program executes. A vector counts once, or per lane with `lanes`.

    Returns 0 if the size of a loop is not constant.
    """
    times, total = [1], 0
    for node in uops:
        if node.op is Ops.RANGE:
            end = node.src[0]
            if end.op is not Ops.CONST:
                return 0
            times.append(times[-1] * end.arg)
        if node.op not in _SILENT:
            total += times[-1] * (node.dtype.count if lanes and isinstance(node.dtype, DType) else 1)
        if node.op is Ops.ENDRANGE:
            times.pop()
    return total


def executed_flops(uops: Sequence[UOp]) -> int:
    """Counts the floating-point operations of one run of a linear program; each lane counts.

    Returns 0 if the size of a loop is not constant.
    """
    times, total = [1], 0
    for node in uops:
        if node.op is Ops.RANGE:
            end = node.src[0]
            if end.op is not Ops.CONST:
                return 0
            times.append(times[-1] * end.arg)
        elif node.op is Ops.ENDRANGE:
            times.pop()
        elif node.op in _COUNTED and isinstance(node.dtype, DType) and dtypes.is_float(node.dtype):
            total += times[-1] * node.dtype.count * (2 if node.op is Ops.MULACC else 1)
    return total


def _complete_nest(count: object) -> int:
    """Returns `count`; 0 if it depends on sizes that are known only at run time."""
    return count if isinstance(count, int) else 0


__all__ = ["count_executed", "executed_flops", "variant_of"]
