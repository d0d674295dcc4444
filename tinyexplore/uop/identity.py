"""The identity of a reduction: its start value."""

from __future__ import annotations

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.ops import Ops
from tinyexplore.uop.uop import UOp


def reduce_identity(op: Ops, dtype: DType) -> UOp:
    """Returns the identity of `op` (ADD, MUL, MAX, MIN): the constant that leaves every other operand unchanged."""
    match op:
        case Ops.ADD:
            return UOp.const(dtype, 0)
        case Ops.MUL:
            return UOp.const(dtype, 1)
        case Ops.MAX:
            return UOp.const(dtype, dtypes.min(dtype.scalar))
        case Ops.MIN:
            return UOp.const(dtype, dtypes.max(dtype.scalar))
    raise ValueError(f"{op.name} does not reduce; ADD, MUL, MAX and MIN do")
