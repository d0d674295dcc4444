"""TC computes a sum of products with matrix instructions.

On a CPU these are dot products of several small numbers in a 32-bit word, or products of tile registers (AMX). On a GPU
they are tensor cores, which multiply the tiles of a warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.dot_products import VALUES_PER_WORD, dot_of
from tinyexplore.kernel.analysis.tensor_cores import find_core_match
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import prefetch_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.kernel.transforms.tensor_cores import compute_on_cores
from tinyexplore.kernel.transforms.tiles import compute_on_tiles, word_of
from tinyexplore.target import AMX, TENSOR_CORES
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Packs `amount` values of each factor of a sum of products into one 32-bit word (two bfloat16 or four int8) for "
    "the machine's dot instruction. A separate loop sums the remaining steps",
    before="for k in 0..64: acc += a[k] * b[k]",
    after="""\
for k in 0..32: acc = dot(word(a[2*k], a[2*k+1]),
                          word(b[2*k], b[2*k+1]), acc)""",
)


STEPS = tuple(sorted({core.dims[2] for core in TENSOR_CORES.values() if not core.tiles}))
TILE_STEPS = tuple(sorted({core.dims[2] for core in AMX}))
CORES_EFFECT = Effect(
    "On a GPU: a warp computes a sum of products on a tensor core, `amount` steps per instruction. The core's layout "
    "says which elements of A and B each lane loads, and which elements of C it stores",
    before="""\
for i in 0..64: for j in 0..64:
  for k in 0..64: acc += a[i,k] * b[k,j]
  out[i,j] = acc""",
    after="""\
for i in 0..4: for j in 0..8: warp of 32 lanes x:
  for k in 0..4: C = core(A = a[16*i+…x, 16*k+…x], B = b[16*k+…x, 8*j+…x], C)
  out[16*i+…x, 8*j+…x] = C""",
)

TILES_EFFECT = Effect(
    "On a CPU with tile registers: one instruction multiplies 16 rows of A by 16 columns of B, `amount` steps of each. "
    "Words hold neighboring steps. The tile of C is stored to memory, and its rows are read from there",
    before="""\
for i in 0..64: for j in 0..64:
  for k in 0..64: acc += a[i,k] * b[k,j]
  out[i,j] = acc""",
    after="""\
for i in 0..4: for j in 0..4:
  for k in 0..2: C += tile(a[16*i+x, 32*k+y]) · tile(b[32*k+x, 16*j+y])
  for x in 0..16: out[16*i+x, 16*j .. 16*j+15] = C[x, 0..15]""",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (error := prefetch_error(axis)) is not None:
        return error
    if kernel.target.has_local or amount in TILE_STEPS:
        fit = find_core_match(kernel, axis, amount)
        return fit if isinstance(fit, str) else None
    if axis.arg.kind is not AxisKind.REDUCE or not axis.is_static:
        return f"the axis is {axis.arg.kind.value}; TC needs a reduction loop of constant size"
    users = [reduce for reduce in kernel.reduces if axis in reduce.src]
    dots = {dot_of(kernel, reduce) for reduce in users}
    if len(dots) != 1 or None in dots:
        supported = ", ".join(sorted(op.name for op in kernel.target.dots)) or "none"
        return (
            f"the axis does not sum products for which {kernel.target.name} has a dot instruction (it has: {supported})"
        )
    word_steps = VALUES_PER_WORD[next(op for op in dots if op is not None)]
    if amount != word_steps or axis.size < word_steps:
        return f"a word holds {word_steps} of these values; choose {word_steps} (the axis has size {axis.size})"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Computes every sum over `axis` by dot products of words. Remaining steps are summed as before.

    On a GPU the sum is computed on tensor cores. On a CPU it is computed in tiles if `amount` is the steps of a tile
    register.
    """
    if kernel.target.has_local:
        return compute_on_cores(kernel, axis, opt)
    if opt.amount in TILE_STEPS:
        return compute_on_tiles(kernel, axis, opt)
    amount, first_id = opt.amount, kernel.next_id()
    words, remainder = divmod(axis.size, amount)
    changes: dict[UOp, UOp] = {}
    for reduce in kernel.reduces:
        if axis not in reduce.src[1:]:
            continue
        op = dot_of(kernel, reduce)
        assert op is not None
        other_loops = tuple(loop for loop in reduce.src[1:] if loop is not axis)
        outer = UOp.range(words, axis.arg)
        start = outer * index_const(amount)
        factors = [word_of(factor.src[0], axis, start, amount) for factor in reduce.src[0].src]
        value = UOp(op, reduce.dtype, (*factors, UOp.const(reduce.dtype, 0)))
        replacement = UOp(Ops.REDUCE, reduce.dtype, (value, *other_loops, outer), Ops.ADD)
        if remainder:
            remaining_loop = UOp.range(remainder, Axis(first_id, AxisKind.REDUCE))
            body = reduce.src[0].substitute({axis: remaining_loop + index_const(axis.size - remainder)}, how=str(opt))
            replacement = replacement + UOp(Ops.REDUCE, reduce.dtype, (body, *other_loops, remaining_loop), Ops.ADD)
        changes[reduce] = replacement
    return substitute_recorded(kernel.ast, changes, str(opt))


AMOUNTS = tuple(sorted({*VALUES_PER_WORD.values(), *TILE_STEPS}))
KIND = OptKind((EFFECT, CORES_EFFECT, TILES_EFFECT), legality_error, apply, amounts=AMOUNTS, gpu_amounts=STEPS)
