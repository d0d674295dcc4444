"""Pass "accumulators": turns a reduction or scan into a register that a loop changes."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import OpGroups, Ops, PatternMatcher, UOp, UPat, rule, var
from tinyexplore.uop.identity import reduce_identity


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def accumulate(reduce: UOp, value: UOp, ctx: Lowering) -> UOp:
    """A reduction becomes a register: initialized before the loops, updated in them, read after them."""
    loops = reduce.src[1:]
    register = UOp(Ops.DEFINE_ACC, reduce.dtype, (reduce_identity(reduce.arg, reduce.dtype),), next(ctx.numbers))
    step = multiply_add(register, value) if reduce.arg is Ops.ADD else None
    changed = combine_with(register, reduce.arg, value) if step is None else step
    assigned = UOp(Ops.ASSIGN, reduce.dtype, (register, changed))
    return UOp(Ops.RESULT, reduce.dtype, (register, assigned, *loops))


@rule(UPat.of(Ops.SCAN, var("value"), name="scan", more_src=True))
def carry(scan: UOp, value: UOp, ctx: Lowering) -> UOp:
    """A scan becomes a register: initialized before its loop, updated in every step, read in the same step."""
    if scan.src[-1].op is not Ops.RANGE:
        return scan_lanes(scan, value, ctx)
    *factor, loop = scan.src[1:]
    start = reduce_identity(Ops.ADD if factor else scan.arg, scan.dtype)
    register = UOp(Ops.DEFINE_ACC, scan.dtype, (start,), next(ctx.numbers))
    changed = register.alu(scan.arg, *factor, value) if factor else combine_with(register, scan.arg, value)
    assigned = UOp(Ops.ASSIGN, scan.dtype, (register, changed, loop))
    return UOp(Ops.RESULT, scan.dtype, (register, assigned))


def scan_lanes(scan: UOp, value: UOp, ctx: Lowering) -> UOp:
    """Computes a scan along lanes: a prefix scan of one vector of n lanes, then a carry-in from the previous step.

    The prefix scan takes log2(n) rounds (Sklansky, "Conditional-sum addition logic", 1960). In round k, of each two
    neighboring blocks of 2^k lanes, each lane of the second is combined with the last lane of the first. The rounds do
    not depend on the previous step.
    """
    assert isinstance(scan.dtype, DType)
    count = scan.dtype.count
    identity = reduce_identity(scan.arg, scan.dtype)
    identity_lane = UOp(Ops.GEP, scan.dtype.scalar, (identity,), 0)
    block = 1
    while block < count:
        lasts = [
            UOp(Ops.GEP, scan.dtype.scalar, (value,), block_start + block - 1)
            for block_start in range(0, count, 2 * block)
        ]
        lanes = [lane for last in lasts for lane in (*[identity_lane] * block, *[last] * block)]
        value = combine_with(value, scan.arg, UOp(Ops.VECTORIZE, scan.dtype, tuple(lanes)))
        block *= 2
    (*loops, _) = scan.src[1:]
    if not loops:
        return value
    register = UOp(Ops.DEFINE_ACC, scan.dtype, (identity,), next(ctx.numbers))
    last = UOp(Ops.GEP, scan.dtype.scalar, (register,), count - 1)
    changed = combine_with(last.broadcast(count), scan.arg, value)
    assigned = UOp(Ops.ASSIGN, scan.dtype, (register, changed, *loops))
    return UOp(Ops.RESULT, scan.dtype, (register, assigned))


def combine_with(register: UOp, op: Ops, value: UOp) -> UOp:
    """Combines the register with one more value. Bools are combined by `or` (ADD, MAX) or `and`."""
    if dtypes.is_bool(register.dtype):
        return register | value if op in (Ops.ADD, Ops.MAX) else register & value
    return register.alu(op, value)


def multiply_add(register: UOp, value: UOp) -> UOp | None:
    """Builds register + x * y as one operation, rounded once if the target can; None if `value` is no such product.

    Dot products of words and tensor cores have an addend as their third source: the register becomes that source.
    """
    if value.op is Ops.WMMA:
        addend = value.src[2]
        return value.replace(
            src=(*value.src[:2], register if addend.op is Ops.CONST else multiply_add(register, addend))
        )
    if value.op in OpGroups.DOT and value.src[2].op is Ops.CONST and value.src[2].arg == 0:
        return value.replace(src=(*value.src[:2], register))
    if value.op is not Ops.MUL or not dtypes.is_float(value.dtype):
        return None
    return UOp(Ops.MULACC, value.dtype, (*value.src, register))


ACCUMULATORS = PatternMatcher((accumulate, carry))

__all__ = ["ACCUMULATORS"]
