"""The whole lowering, top to bottom: from a kernel's ast to its linear list of UOps."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.passes import Form, GraphPass, Pass, Rewrite, functions
from tinyexplore.codegen.rewrites.accumulators import ACCUMULATORS
from tinyexplore.codegen.rewrites.bools import BOOLS
from tinyexplore.codegen.rewrites.division import DIVISIONS
from tinyexplore.codegen.rewrites.dot_products import DOT_PRODUCTS, SIGNED_DOT_PRODUCTS
from tinyexplore.codegen.rewrites.fp8 import FP8_AS_BYTES, FP8_CONVERSIONS
from tinyexplore.codegen.rewrites.masked_addresses import MASKED_ADDRESSES
from tinyexplore.codegen.rewrites.narrow_comparisons import NARROW_COMPARISONS
from tinyexplore.codegen.rewrites.simplify import ALWAYS
from tinyexplore.codegen.rewrites.small_floats import WIDEN_SMALL_FLOATS
from tinyexplore.codegen.rewrites.unroll import UNROLL_REDUCTIONS, UNROLL_TILES
from tinyexplore.codegen.rewrites.vectorize import VECTORIZE_MEMORY, VECTORIZE_VALUES
from tinyexplore.codegen.transforms.argmax import fuse_argmax
from tinyexplore.codegen.transforms.branches import branch_where_rare
from tinyexplore.codegen.transforms.chained_sums import chain_sums
from tinyexplore.codegen.transforms.coalescing import coalesce_accesses
from tinyexplore.codegen.transforms.double_buffers import load_next_block
from tinyexplore.codegen.transforms.early_vectorization import vectorize_early
from tinyexplore.codegen.transforms.horizontal_reductions import join_horizontal_reductions
from tinyexplore.codegen.transforms.interleave import interleave
from tinyexplore.codegen.transforms.linearize import linearize
from tinyexplore.codegen.transforms.logistic import fuse_logistic
from tinyexplore.codegen.transforms.loop_barriers import end_steps_with_barriers
from tinyexplore.codegen.transforms.loop_fission import split_shared_loops
from tinyexplore.codegen.transforms.prefetch import prefetch_ahead
from tinyexplore.codegen.transforms.tiles import lower_tiles
from tinyexplore.codegen.transforms.vector_accesses import access_in_vectors
from tinyexplore.codegen.transforms.wide_vectors import widen_vectors
from tinyexplore.codegen.transforms.work_items import place_work_items
from tinyexplore.kernel import Kernel
from tinyexplore.uop import UOp
from tinyexplore.uop.remainder import REMAINDER
from tinyexplore.uop.spec import (
    AST_SPEC,
    FUSED_SPEC,
    LANES_SPEC,
    LINEAR_SPEC,
    LOADED_SPEC,
    LOOPS_SPEC,
    REGISTERS_SPEC,
    TILES_SPEC,
    UNROLLED_SPEC,
    VECTORS_SPEC,
    verify,
)
from tinyexplore.uop.transcendental import TRANSCENDENTAL
from tinyexplore.uop.transcendental64 import DOUBLE
from tinyexplore.util import config

PASSES: tuple[Pass, ...] = (
    # loops made by opts become work-items, are unrolled, or become vectors
    GraphPass("work items", place_work_items, AST_SPEC, AST_SPEC),
    GraphPass("tiles", lower_tiles, AST_SPEC, LOADED_SPEC),
    Rewrite("simplify", ALWAYS, LOADED_SPEC, LOADED_SPEC),
    GraphPass("wide vectors", widen_vectors, LOADED_SPEC, LOADED_SPEC),
    GraphPass("early vectorization", vectorize_early, LOADED_SPEC, TILES_SPEC),
    Rewrite("unroll tiles", UNROLL_TILES, TILES_SPEC, LOOPS_SPEC),
    Rewrite("unroll reductions", UNROLL_REDUCTIONS, LOOPS_SPEC, UNROLLED_SPEC),
    Rewrite("simplify the copies", ALWAYS, UNROLLED_SPEC, UNROLLED_SPEC),
    Rewrite("vectorize memory", VECTORIZE_MEMORY, UNROLLED_SPEC, LANES_SPEC),
    Rewrite("vectorize values", VECTORIZE_VALUES, LANES_SPEC, VECTORS_SPEC),
    GraphPass("coalesce accesses", coalesce_accesses, VECTORS_SPEC, VECTORS_SPEC),
    # types and functions that the target lacks are written out
    Rewrite("bool arithmetic", BOOLS, VECTORS_SPEC, VECTORS_SPEC),
    Rewrite("widen small floats", WIDEN_SMALL_FLOATS, VECTORS_SPEC, VECTORS_SPEC),
    Rewrite("fp8 conversions", FP8_CONVERSIONS, VECTORS_SPEC, VECTORS_SPEC),
    Rewrite("fp8 as bytes", FP8_AS_BYTES, VECTORS_SPEC, VECTORS_SPEC),
    GraphPass("logistic functions", fuse_logistic, VECTORS_SPEC, VECTORS_SPEC),
    Rewrite("transcendental functions", TRANSCENDENTAL + DOUBLE + REMAINDER, VECTORS_SPEC, VECTORS_SPEC, functions),
    Rewrite("signed dot products", SIGNED_DOT_PRODUCTS, VECTORS_SPEC, VECTORS_SPEC),
    # reductions become registers that loops change
    GraphPass("loop fission", split_shared_loops, VECTORS_SPEC, VECTORS_SPEC),
    GraphPass("argmax", fuse_argmax, VECTORS_SPEC, FUSED_SPEC),
    GraphPass("horizontal reductions", join_horizontal_reductions, FUSED_SPEC, FUSED_SPEC),
    Rewrite("accumulators", ACCUMULATORS, FUSED_SPEC, REGISTERS_SPEC),
    GraphPass("chained sums", chain_sums, REGISTERS_SPEC, REGISTERS_SPEC),
    GraphPass("branches", branch_where_rare, REGISTERS_SPEC, REGISTERS_SPEC),
    # the cheapest instructions, and their order
    Rewrite("dot products", DOT_PRODUCTS, REGISTERS_SPEC, REGISTERS_SPEC),
    Rewrite("divisions", DIVISIONS, REGISTERS_SPEC, REGISTERS_SPEC),
    Rewrite("masked addresses", MASKED_ADDRESSES, REGISTERS_SPEC, REGISTERS_SPEC),
    Rewrite("narrow comparisons", NARROW_COMPARISONS, REGISTERS_SPEC, REGISTERS_SPEC),
    Rewrite("simplify the rest", ALWAYS, REGISTERS_SPEC, REGISTERS_SPEC),
    GraphPass("prefetch", prefetch_ahead, REGISTERS_SPEC, REGISTERS_SPEC),
    GraphPass("vector accesses", access_in_vectors, REGISTERS_SPEC, REGISTERS_SPEC),
    GraphPass("linearize", linearize, REGISTERS_SPEC, LINEAR_SPEC),
    GraphPass("interleave", interleave, LINEAR_SPEC, LINEAR_SPEC),
    GraphPass("double buffering", load_next_block, LINEAR_SPEC, LINEAR_SPEC),
    GraphPass("loop barriers", end_steps_with_barriers, LINEAR_SPEC, LINEAR_SPEC),
)


def lower(kernel: Kernel, passes: Sequence[Pass] = PASSES) -> tuple[UOp, ...]:
    """Lowers `kernel` to its linear program, by every pass in order. With SPEC=1, checks each result against its spec.

    passes: other passes, for an experiment; the result is never cached.
    """
    check = config().SPEC > 0
    lowering = Lowering.of(kernel)
    form: Form = kernel.ast
    if check:
        verify(nodes_of(form), passes[0].before)
    for step in passes:
        form = step.run(form, lowering)
        if check:
            verify(nodes_of(form), step.after, step.name)
    program: tuple[UOp, ...] = form
    return program


def nodes_of(form: Form) -> Sequence[UOp]:
    """Returns all nodes, sources first."""
    return form.toposort() if isinstance(form, UOp) else form


__all__ = ["PASSES", "lower", "nodes_of"]
