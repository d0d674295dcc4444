"""The table of ATen operations: names, and the function on Tensors that computes each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from tinyexplore.dtype import DType, dtypes
from tinyexplore.frontends.torch.values import DTYPES
from tinyexplore.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

OPERATIONS: dict[str, Callable[..., Any]] = {}


class TranslationError(NotImplementedError):
    """Raised for an operation, or a form of it, that has no translation. ATen computes it."""


class AtenCall:
    """PyTorch's metadata of a call: its result, and the common dtype of its operands.

    Attributes:
        val: the fake tensor of the result, or a sequence of them.
        operands: the positional arguments with fake tensors in place of tensors.
    """

    def __init__(self, val: Any, operands: tuple[Any, ...]) -> None:
        self.val = val
        self.operands = operands

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the (first) result."""
        return tuple([int(size) for size in self.first.shape])

    @cached_property
    def dtype(self) -> DType:
        """The dtype of the (first) result."""
        return DTYPES[self.first.dtype]

    @property
    def first(self) -> Any:
        return self.val[0] if isinstance(self.val, (tuple, list)) else self.val

    def shape_of(self, number: int) -> tuple[int, ...]:
        """Returns the shape of one of several results."""
        return tuple([int(size) for size in self.val[number].shape])

    def dtype_of(self, number: int) -> DType:
        """Returns the dtype of one of several results."""
        return DTYPES[self.val[number].dtype]

    @cached_property
    def common(self) -> DType:
        """The dtype that the operands are promoted to, by PyTorch's rules."""
        operands = [
            value
            for value in self.operands
            if isinstance(value, (torch.Tensor, int, float, bool)) and not isinstance(value, torch.dtype)
        ]
        kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
        return DTYPES[elementwise_dtypes(*operands, type_promotion_kind=kind)[1]]

    def tensor(self, value: Any, dtype: DType | None = None) -> Tensor:
        """Converts a Tensor or number to a Tensor of the result's dtype, or of `dtype`."""
        target = self.dtype if dtype is None else dtype
        if isinstance(value, Tensor):
            return value.cast(target)
        if dtypes.is_int(target) and isinstance(value, float):
            value = int(value)
        return Tensor.full((), value, dtype=target)

    def promote(self, *values: Any) -> list[Tensor]:
        """Converts Tensors and numbers to Tensors of the operands' common dtype."""
        return [self.tensor(value, self.common) for value in values]

    def full(self, value: Any) -> Tensor:
        """Returns a tensor filled with `value`, in the result's shape and dtype."""
        return Tensor.full(self.shape, value, dtype=self.dtype)


def aten(*names: str) -> Callable[[F], F]:
    """Registers a function in the table. Its first parameter is the `AtenCall`; the others are the operation's.

    Args:
        names: names of operations, without "aten::". A name with an overload ("view.dtype") is for that overload only.
    """

    def enter(function: F) -> F:
        for name in names:
            if name in OPERATIONS:
                raise ValueError(f"the operation {name} has two translations")
            OPERATIONS[name] = function
        return function

    return enter


def translation(target: Any) -> Callable[..., Any] | None:
    """Returns the function for an overload of an ATen or prims operation; None if there is none."""
    schema = getattr(target, "_schema", None)
    if schema is None or schema.is_mutable:
        return None
    space, _, name = schema.name.partition("::")
    if space not in ("aten", "prims"):
        return None
    return OPERATIONS.get(f"{name}.{schema.overload_name}") or OPERATIONS.get(name)
