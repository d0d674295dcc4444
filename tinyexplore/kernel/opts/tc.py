"""TC: sums of products by the instructions that a machine has for them: of a CPU, the dot instructions, which take
several small numbers to a word of 32 bits; of a GPU, the tensor cores, which a warp gives whole tiles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.analysis.dot_products import IN_A_WORD, dot_of
from tinyexplore.kernel.analysis.tensor_cores import fit_of
from tinyexplore.kernel.opts.kind import Law, OptKind
from tinyexplore.kernel.opts.obstacles import looks_ahead
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.kernel.transforms.tensor_cores import on_cores
from tinyexplore.target import TENSOR_CORES
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

LAW = Law(
    "`amount` small numbers of each factor of a sum of products lie side by side in a word, as the dot instruction "
    "takes them that the machine has (two bfloat16, four int8); what is left over is summed by itself",
    before="for k in 0..64: acc += a[k] * b[k]",
    after="""\
for k in 0..32: acc = dot(word(a[2*k], a[2*k+1]),
                          word(b[2*k], b[2*k+1]), acc)""",
)


STEPS = tuple(sorted({core.dims[2] for core in TENSOR_CORES.values()}))
CORES = Law(
    "On a GPU: a warp does a sum of products on a tensor core that takes `amount` steps at a time; each lane reads the "
    "elements of A and B that the core's map gives it, and stores those of C",
    before="""\
for i in 0..64: for j in 0..64:
  for k in 0..64: acc += a[i,k] * b[k,j]
  out[i,j] = acc""",
    after="""\
for i in 0..4: for j in 0..8: warp of 32 lanes x:
  for k in 0..4: C = core(A = a[16*i+…x, 16*k+…x], B = b[16*k+…x, 8*j+…x], C)
  out[16*i+…x, 8*j+…x] = C""",
)


def obstacle(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (found := looks_ahead(axis)) is not None:
        return found
    if kernel.target.has_local:
        fit = fit_of(kernel, axis, amount)
        return fit if isinstance(fit, str) else None
    if axis.arg.kind is not AxisKind.REDUCE or not axis.is_static:
        return f"the axis is {axis.arg.kind.value}, and only loops of sums do this, of a size that is known"
    users = [reduce for reduce in kernel.reduces if axis in reduce.src]
    dots = {dot_of(kernel, reduce) for reduce in users}
    if len(dots) != 1 or None in dots:
        have = ", ".join(sorted(op.name for op in kernel.target.dots)) or "none"
        return f"it does not sum products of two values that {kernel.target.name} has a dot instruction for ({have})"
    wanted = IN_A_WORD[next(op for op in dots if op is not None)]
    if amount != wanted or axis.size < wanted:
        return f"a word holds {wanted} of these values, and the axis has {axis.size}"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """The ast with every sum over `axis` as dot products of words; what is left over is summed as before. Of a GPU: on
    its tensor cores."""
    if kernel.target.has_local:
        return on_cores(kernel, axis, opt)
    amount, first = opt.amount, kernel.next_id()
    words, left = divmod(axis.size, amount)
    changes: dict[UOp, UOp] = {}
    for reduce in kernel.reduces:
        if axis not in reduce.src[1:]:
            continue
        op = dot_of(kernel, reduce)
        assert op is not None
        others = tuple(loop for loop in reduce.src[1:] if loop is not axis)
        outer = UOp.range(words, axis.arg)
        start = outer * index_const(amount)
        factors = [word_of(factor.src[0], axis, start, amount) for factor in reduce.src[0].src]
        value = UOp(op, reduce.dtype, (*factors, UOp.const(reduce.dtype, 0)))
        after = UOp(Ops.REDUCE, reduce.dtype, (value, *others, outer), Ops.ADD)
        if left:
            rest = UOp.range(left, Axis(first, AxisKind.REDUCE))
            body = reduce.src[0].substitute({axis: rest + index_const(axis.size - left)}, how=str(opt))
            after = after + UOp(Ops.REDUCE, reduce.dtype, (body, *others, rest), Ops.ADD)
        changes[reduce] = after
    return substitute_recorded(kernel.ast, changes, str(opt))


def word_of(load: UOp, axis: UOp, start: UOp, amount: int) -> UOp:
    """`amount` loaded values, from step `start` of `axis` on, side by side in a word, the first one lowest."""
    assert isinstance(load.dtype, DType)
    unsigned = {1: dtypes.uint8, 2: dtypes.uint16}[load.dtype.itemsize]
    word: UOp | None = None
    for step in range(amount):
        one = load.substitute({axis: start + index_const(step) if step else start}, how="a part of a word")
        part = one.bitcast(unsigned).cast(dtypes.uint32)
        part = part.alu(Ops.SHL, UOp.const(dtypes.uint32, step * load.dtype.bits)) if step else part
        word = part if word is None else word | part
    assert word is not None
    return word


KIND = OptKind((LAW, CORES), obstacle, apply, amounts=tuple(sorted(set(IN_A_WORD.values()))), items=STEPS)
