"""The whole lowering, top to bottom: from a kernel's ast to its linear list of UOps."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tinyexplore.codegen.abreast import ABREAST
from tinyexplore.codegen.ahead import PREFETCHES
from tinyexplore.codegen.division import DIVISIONS
from tinyexplore.codegen.expand import ALWAYS, EXPAND_REDUCES, EXPAND_STORES
from tinyexplore.codegen.fp8 import FP8_AS_BYTES, FP8_CONVERSIONS, as_bytes
from tinyexplore.codegen.late import (
    ACCUMULATE,
    BOOL_PASS,
    DOTS,
    MASKS,
    SEPARATE_LOOPS,
    SIGNS,
    SMALL_FLOAT_PASS,
    LateContext,
)
from tinyexplore.codegen.linearize import ARGUMENTS, linearize
from tinyexplore.codegen.places import PLACES
from tinyexplore.codegen.rare import RARE_BRANCHES
from tinyexplore.codegen.row_ends import ROW_ENDS
from tinyexplore.codegen.vectorise import LANES, NEIGHBOURS, VECTOR_MEMORY
from tinyexplore.codegen.walks import WALKS
from tinyexplore.dtype import dtypes
from tinyexplore.kernel import Kernel
from tinyexplore.target import Target
from tinyexplore.uop import Pass, UOp, run_passes
from tinyexplore.uop.double import DOUBLE
from tinyexplore.uop.logistic import LOGISTIC
from tinyexplore.uop.remainder import REMAINDER
from tinyexplore.uop.spec import AST_SPEC, LINEAR_SPEC, verify
from tinyexplore.uop.transcendental import TRANSCENDENTAL
from tinyexplore.util import config

EARLY = (
    Pass("simplify", ALWAYS),
    Pass("vectors abreast", ABREAST),
    Pass("walks in lanes", WALKS),
    Pass("write out tiles", EXPAND_STORES),
    Pass("write out reductions", EXPAND_REDUCES),
    Pass("simplify the copies", ALWAYS),
    Pass("vector memory", VECTOR_MEMORY),
    Pass("lanes", LANES),
    Pass("neighbours", NEIGHBOURS),
)
TYPES = (
    Pass("truths", BOOL_PASS),
    Pass("small floats in float32", SMALL_FLOAT_PASS),
    Pass("fp8 conversions", FP8_CONVERSIONS),
    Pass("fp8 as bytes", FP8_AS_BYTES),
)
LATE = (
    Pass("signs of dot products", SIGNS),
    Pass("loops of their own", SEPARATE_LOOPS),
    Pass("places at once", PLACES),
    Pass("ends of rows", ROW_ENDS),
    Pass("accumulators", ACCUMULATE),
    Pass("rare branches", RARE_BRANCHES),
    Pass("dot products", DOTS),
    Pass("divisions", DIVISIONS),
    Pass("masks", MASKS),
    Pass("simplify the rest", ALWAYS),
)
FUNCTIONS = (
    Pass("logistic functions", LOGISTIC),
    Pass("transcendental functions", TRANSCENDENTAL + DOUBLE + REMAINDER),
)
AHEAD = (Pass("prefetches", PREFETCHES),)  # where a loop looks ahead


def lower(kernel: Kernel) -> tuple[UOp, ...]:
    """The program of `kernel`: every pass in turn, each checked against its spec where SPEC=1."""
    check = config().SPEC > 0
    sink = kernel.ast
    if check:
        verify(sink.toposort(), AST_SPEC, "ast")
    sink = run_passes(sink, EARLY, kernel.target)
    context = LateContext(kernel.target, count())
    sink = run_passes(sink, TYPES, context)
    sink = run_passes(sink, FUNCTIONS, with_functions(kernel.target))
    sink = run_passes(sink, LATE, context)
    if any(axis.arg.ahead for axis in kernel.axes):
        sink = run_passes(sink, AHEAD)
    given = (as_bytes(node) for node in kernel.original.toposort() if node.op in ARGUMENTS)
    uops = linearize(sink, given, kernel.target)
    if check:
        verify(uops, LINEAR_SPEC, "linear program")
    return uops


def with_functions(target: Target) -> Target:
    """`target` with the functions of its own that TRANSCENDENTAL lets kernels use.

    0: those of libm, lane by lane; 1: as the target says; 2: none of float32 and float64.
    """
    written_out = (dtypes.float32, dtypes.float64)
    match config().TRANSCENDENTAL:
        case 0:
            return replace(target, native_dtypes=(*target.native_dtypes, *written_out))
        case 1:
            return target
        case _:
            kept = tuple(dtype for dtype in target.native_dtypes if dtype not in written_out)
            return replace(target, native_dtypes=kept)


def all_passes() -> tuple[Pass, ...]:
    """Every pass in the order in which it runs."""
    return (*EARLY, *TYPES, *FUNCTIONS, *LATE, *AHEAD)


__all__ = ["all_passes", "lower"]
