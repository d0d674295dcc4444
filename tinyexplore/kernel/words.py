"""TC: sums of products of small numbers, several to a word of 32 bits, as the dot instructions of a CPU take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.opt import Opt
from tinyexplore.kernel.told import substitute_told
from tinyexplore.target import Target
from tinyexplore.uop import Axis, AxisKind, Group, Ops, UOp, index_const
from tinyexplore.util import config

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

DOTS = {(dtypes.bfloat16, dtypes.float32): Ops.DOT_BF16, (dtypes.int8, dtypes.int32): Ops.DOT_I8}
IN_A_WORD = {Ops.DOT_BF16: 2, Ops.DOT_I8: 4}
EMULATED = 2  # TC=2: also where the target has no such instruction


def dot_of(kernel: Kernel, reduce: UOp) -> Ops | None:
    """The operation that sums what `reduce` sums: products of two loaded values that the target multiplies so."""
    value = reduce.src[0]
    if reduce.arg is not Ops.ADD or value.op is not Ops.MUL or not config().TC:
        return None
    sources = [factor.src[0] for factor in value.src if factor.op is Ops.CAST and factor.src[0].op is Ops.LOAD]
    if len(sources) < 2 or sources[0].dtype is not sources[1].dtype:
        return None
    op = DOTS.get((sources[0].dtype, reduce.dtype))
    return op if op is not None and has_dot(kernel.target, op) else None


def has_dot(target: Target, op: Ops) -> bool:
    """True where kernels for `target` may use `op`."""
    return config().TC > 0 and (op in target.dots or config().TC >= EMULATED)


def words_obstacle(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    """What stands against TC; None where it is legal."""
    if axis.arg.kind is not AxisKind.REDUCE or not axis.is_static:
        return f"the axis is {axis.arg.kind.value}, and only loops of sums do this, of a size that is known"
    users = [reduce for reduce in kernel.reduces if axis in reduce.src]
    found = {dot_of(kernel, reduce) for reduce in users}
    if len(found) != 1 or None in found:
        have = ", ".join(sorted(op.name for op in kernel.target.dots)) or "none"
        return f"it does not sum products of two values that {kernel.target.name} has a dot instruction for ({have})"
    wanted = IN_A_WORD[next(op for op in found if op is not None)]
    if amount != wanted or axis.size < wanted:
        return f"a word holds {wanted} of these values, and the axis has {axis.size}"
    return None


def summed_in_words(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """The ast with every sum over `axis` as dot products of words; what is left over is summed as before."""
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
            body = reduce.src[0].substitute({axis: rest + index_const(axis.size - left)}, tell=str(opt))
            after = after + UOp(Ops.REDUCE, reduce.dtype, (body, *others, rest), Ops.ADD)
        changes[reduce] = after
    return substitute_told(kernel.ast, changes, str(opt))


def word_of(load: UOp, axis: UOp, start: UOp, amount: int) -> UOp:
    """`amount` loaded values, from step `start` of `axis` on, side by side in a word, the first one lowest."""
    assert isinstance(load.dtype, DType)
    unsigned = {1: dtypes.uint8, 2: dtypes.uint16}[load.dtype.itemsize]
    word: UOp | None = None
    for step in range(amount):
        one = load.substitute({axis: start + index_const(step) if step else start}, tell="a part of a word")
        part = one.bitcast(unsigned).cast(dtypes.uint32)
        part = part.alu(Ops.SHL, UOp.const(dtypes.uint32, step * load.dtype.bits)) if step else part
        word = part if word is None else word | part
    assert word is not None
    return word


def first_load(word: UOp) -> UOp:
    """Of the values in a word, the load of the first; of a load, itself."""
    return word if word.op is Ops.LOAD else next(node for node in word.toposort() if node.op is Ops.LOAD)


def words_in(value: UOp) -> list[UOp]:
    """The words that are multiplied in a summed value, as `summed_in_words` made them; none elsewhere."""
    return list(value.src[:2]) if value.op in Group.DOT else []
