"""Rounding and signs, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.autograd import GradientRule
from tinyexplore.autograd.rules import abs_gradient, copysign_gradient, step_gradient
from tinyexplore.dtype import dtypes
from tinyexplore.tensor.arithmetic import Arithmetic, Operand
from tinyexplore.tensor.base import unsigned_of
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class Signs(Arithmetic):
    __slots__ = ()

    def _with_rule(self, value: Self, rule: GradientRule) -> Self:
        """Wraps `value`, which was computed from this tensor off the tape, with the gradient rule `rule`."""
        return self._wrap_with_rule(value.lazydata, rule, (self,))

    def floor(self) -> Self:
        return self._apply_unary(Ops.FLOOR) if self.is_floating_point() else self

    def ceil(self) -> Self:
        return self.neg()._apply_unary(Ops.FLOOR).neg() if self.is_floating_point() else self

    def trunc(self) -> Self:
        """Rounds towards zero."""
        if not self.is_floating_point():
            return self
        return self.lt(0).where(self.ceil(), self.floor())

    def round(self) -> Self:
        """Rounds to the nearest whole number, and halves to the even one. The sign stays, also for a zero."""
        if not self.is_floating_point():
            return self
        if self.dtype.itemsize < 4:
            return self.cast(dtypes.float32).round().cast(self.dtype)
        x = self._detach_value()
        # at this magnitude and above, all numbers are whole
        threshold = 2.0**52 if self.dtype == dtypes.float64 else 2.0**23
        size = x.abs()
        # a sum of this magnitude has no fraction: the addition rounds it away
        return self._with_rule(
            x._lend_sign(size.lt(threshold).where(size.add(threshold).sub(threshold), size)), step_gradient
        )

    def abs(self) -> Self:
        """Returns the absolute value."""
        if self.dtype is dtypes.bool or dtypes.is_unsigned(self.dtype):
            return self
        if not dtypes.is_float(self.dtype):
            return self._alu(Ops.MAX, self._apply_unary(Ops.NEG))
        x = self._detach_value()
        bits_dtype = unsigned_of(x.dtype.itemsize)
        bits = x.bitcast(bits_dtype).bitwise_and(dtypes.max(bits_dtype) >> 1)  # no comparison distinguishes -0 from 0
        return self._with_rule(bits.bitcast(x.dtype), abs_gradient)

    def __abs__(self) -> Self:
        return self.abs()

    def sign(self) -> Self:
        """Returns -1, 0 (without a sign) or 1. NaN stays NaN."""
        if self.dtype is dtypes.bool:
            return self
        x = self._detach_value()
        signs = x.lt(0).where(x._const(0) if dtypes.is_unsigned(x.dtype) else x._const(-1), x._const(1))
        signs = x._alu(Ops.CMPEQ, x._const(0)).where(x._const(0), signs)
        if dtypes.is_float(x.dtype):
            signs = x.isnan().where(x, signs)
        return self._with_rule(signs, step_gradient)

    def copysign(self, other: Operand) -> Self:
        """Returns the magnitude of this tensor with the sign of `other` (-0 counts as negative)."""
        x, y = self._match_floats(other, "copysign")
        return x._wrap_with_rule(y._lend_sign(x._detach_value()).lazydata, copysign_gradient, (x, y))

    def _lend_sign(self, value: Self) -> Self:
        """Returns `value` with the sign of this tensor."""
        x = self._detach_value()
        ints = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.itemsize]
        size = value.abs()
        return x.bitcast(ints).lt(0).where(size.neg(), size)

    def isnan(self) -> Self:
        return self._alu(Ops.CMPNE, self)
