"""Precision of composed functions: as in PyTorch, they compute narrow floats in float32 and round the result once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from tinyexplore.dtype import DType, dtypes, least_upper_dtype, least_upper_float
from tinyexplore.tensor.base import TensorBase

T = TypeVar("T", bound="TensorBase")
Parameters = ParamSpec("Parameters")

NARROW = frozenset((dtypes.float16, dtypes.bfloat16, *dtypes.fp8s))


def wide_float(dtype: DType) -> DType:
    """Returns the dtype to compute in for floats of `dtype`: at least float32."""
    return least_upper_dtype(dtype, dtypes.float32)


def rounded_once(
    method: Callable[Concatenate[T, Parameters], T],
) -> Callable[Concatenate[T, Parameters], T]:
    """Makes a method of tensors compute narrow floats in float32 and round the result to their type at the end.

    The result has the type that this tensor and the tensors among the arguments promote to; ints become floats.
    """

    @wraps(method)
    def _compute_widened(self: T, *args: Parameters.args, **kwargs: Parameters.kwargs) -> T:
        dtype = self.lazydata.dtype
        operands: list[Any] = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, TensorBase)]
        if dtype is dtypes.float32 and not operands:
            return method(self, *args, **kwargs)
        target = least_upper_float(least_upper_dtype(dtype, *[operand.dtype for operand in operands]))
        if target not in NARROW and dtype not in NARROW:
            return method(self, *args, **kwargs)
        return method(self.cast(wide_float(target)), *args, **kwargs).cast(target)

    return cast("Callable[Concatenate[T, Parameters], T]", _compute_widened)


__all__ = ["NARROW", "rounded_once", "wide_float"]
