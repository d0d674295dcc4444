"""Evaluates arithmetic UOps by NumPy, for many values at once: the reference in the tests of rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyexplore.dtype import DType
from tinyexplore.uop import Ops, UOp

_INFIX = {
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
    Ops.CMPLT: np.less,
    Ops.CMPLE: np.less_equal,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
    Ops.SQRT: np.sqrt,
    Ops.FLOOR: np.floor,
    Ops.SIN: np.sin,
    Ops.COS: np.cos,
}


def numpy_dtype(dtype: DType) -> np.dtype:
    return np.dtype(dtype.scalar.name)


def evaluate_in_numpy(root: UOp, values: Mapping[UOp, np.ndarray], *, fused: bool = False) -> np.ndarray:
    """Evaluate `root` for every element of the arrays in `values`, one per leaf. All lanes of a vector have that value.

    fused: MULACC is rounded once instead of twice.
    """
    done = {node: np.asarray(value) for node, value in values.items()}
    with np.errstate(all="ignore"):
        for node in root.toposort():
            if node not in done:
                done[node] = _value(node, [done[src] for src in node.src], fused)
    return done[root]


def _value(node: UOp, src: list[np.ndarray], fused: bool) -> np.ndarray:
    dtype = numpy_dtype(node.dtype)
    match node.op:
        case Ops.CONST:
            return np.array(node.arg).astype(dtype)
        case Ops.CAST:
            return src[0] != 0 if dtype == np.bool_ else src[0].astype(dtype)
        case Ops.BITCAST:
            return src[0].view(dtype)
        case Ops.NEG:
            return src[0] if dtype == np.bool_ else np.negative(src[0])
        case Ops.WHERE:
            return np.where(*src)
        case Ops.MULACC if fused and dtype == np.float32:
            exact = src[0].astype(np.float64) * src[1]
            return (exact + src[2]).astype(np.float32)
        case Ops.MULACC if fused and dtype == np.float64:
            return _fused(*src)
        case Ops.MULACC:
            return src[0] * src[1] + src[2]
        case Ops.SCALE:
            exponent = np.floor(np.clip(np.nan_to_num(src[1]), -5000, 5000)).astype(np.int32)
            return np.where(np.isnan(src[1]), src[1], np.ldexp(src[0], exponent))
        case Ops.TABLE:
            return np.array(node.arg, dtype)[src[0] & (len(node.arg) - 1)]
        case Ops.IDIV:
            return _quotient(*src)
        case Ops.MOD:
            return np.fmod(src[0], src[1]) if dtype.kind == "f" else src[0] - _quotient(*src) * src[1]
    found = _INFIX[node.op](*src)
    assert found.dtype == dtype, f"{node!r} gives {found.dtype}"
    return found


def _fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x y + z of float64 with the error of the product, and of the sum, added at the end (Dekker, Knuth)."""
    product, total = x * y, x * y + z
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    lost = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    other = total - product
    exact = total + ((product - (total - other)) + (z - other) + lost)
    return np.where(np.isfinite(exact), exact, total)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split float64s into their leading 26 bits and the rest."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integer quotient rounded towards zero; 0 for a divisor of 0."""
    divisor = np.where(y == 0, np.ones_like(y), y)
    floor = x // divisor
    towards_zero = floor + ((floor * divisor != x) & ((x < 0) != (divisor < 0)))
    return np.where(y == 0, np.zeros_like(x), towards_zero).astype(x.dtype)
