"""Building blocks of functions in arithmetic (`transcendental.py`, `codegen/transforms/logistic.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.ops import RARELY, Ops
from tinyexplore.uop.uop import UOp


def is_native(ctx: Any, dtype: Any, op: Ops) -> bool:
    """Whether the target `ctx` has an instruction for `op` on this dtype."""
    return op in getattr(ctx, "native_ops", ()) and dtype.scalar in ctx.native_dtypes


def scales(ctx: Any, dtype: DType) -> bool:
    """Whether SCALE and TABLE are one instruction each. That holds for vectors, on a target with these instructions."""
    return getattr(ctx, "has_scale", False) and 1 < dtype.count <= ctx.lanes(dtype)


def like(x: UOp, scalar: DType) -> DType:
    """Returns the dtype `scalar` with as many lanes as `x`."""
    return scalar.vec(x.dtype.count)


def mulacc(a: UOp, b: Any, c: Any) -> UOp:
    return a.alu(Ops.MULACC, a._to_operand(b), a._to_operand(c))


def polynomial(t: UOp, coefficients: Sequence[float]) -> UOp:
    """Evaluates a polynomial by Horner's rule. The coefficients are in order of degree, lowest first."""
    *lower_coefficients, last_coefficient = coefficients
    value = UOp.const(t.dtype, last_coefficient)
    for coefficient in reversed(lower_coefficients):
        value = mulacc(value, t, coefficient)
    return value


def table(bits: UOp, values: tuple[float, ...]) -> UOp:
    """Returns the entry of a table of 2**k values that the low k bits select."""
    scalar = dtypes.float64 if bits.dtype.itemsize == 8 else dtypes.float32
    return UOp(Ops.TABLE, like(bits, scalar), (bits,), values)


def as_bits(x: UOp) -> UOp:
    """Reinterprets a float32 as int32."""
    return x.bitcast(like(x, dtypes.int32))


def as_float(bits: UOp) -> UOp:
    """Reinterprets an int32 as float32."""
    return bits.bitcast(like(bits, dtypes.float32))


def rarely(condition: UOp, then: UOp, otherwise: UOp) -> UOp:
    """Returns `then` where `condition` holds, else `otherwise`.

    The condition holds so rarely that a branch skips `then` if no lane needs it.
    """
    return UOp(Ops.WHERE, otherwise.dtype, (condition, then, otherwise), RARELY)


def opposite(condition: UOp) -> UOp:
    return condition ^ True


__all__ = ["as_bits", "as_float", "is_native", "like", "mulacc", "opposite", "polynomial", "rarely", "scales", "table"]
