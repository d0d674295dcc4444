"""Operations that create tensors, from arguments or from the shape of another tensor."""

from __future__ import annotations

from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.table import AtenCall, aten
from tinyexplore.tensor import Tensor


@aten("full", "full_like", "new_full", "scalar_tensor")
def full(call: AtenCall, *args: Any, **options: Any) -> Tensor:
    """Returns a tensor filled with the last positional argument."""
    value = options.get("fill_value", args[-1] if args else 0)
    return call.full(value.item() if hasattr(value, "item") and not isinstance(value, Tensor) else value)


@aten("fill")
def fill(call: AtenCall, a: Tensor, value: Any) -> Tensor:
    """Returns a tensor filled with one value, a number or a tensor without axes."""
    if isinstance(value, Tensor):
        return value.cast(call.dtype).reshape(()).expand(call.shape)
    return call.full(value)


@aten(
    *("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty"),
    *("empty_strided", "new_empty_strided", "empty_permuted"),
)
def zeros(call: AtenCall, *args: Any, **options: Any) -> Tensor:
    """Returns zeros, also for memory with undefined content."""
    return call.full(0)


@aten("ones", "ones_like", "new_ones")
def ones(call: AtenCall, *args: Any, **options: Any) -> Tensor:
    """Returns ones."""
    return call.full(1)


@aten("arange")
def arange(call: AtenCall, *args: Any, **options: Any) -> Tensor:
    """Returns numbers from a start, with a step."""
    start, step = (0, 1) if len(args) == 1 else (args[0], args[2] if len(args) > 2 else 1)
    return _make_sequence(call, start, step)


@aten("iota")
def iota(call: AtenCall, length: int, *, start: int = 0, step: int = 1, **options: Any) -> Tensor:
    """Returns `length` integers from a start, with a step."""
    return _make_sequence(call, start, step)


def _make_sequence(call: AtenCall, start: float, step: float) -> Tensor:
    (count,) = call.shape
    if count == 0:
        return call.full(0)
    counter = Tensor.arange(count)
    if not dtypes.is_float(call.dtype):  # ATen rounds both before it counts
        start, step = int(start), int(step)
    if isinstance(start, float) or isinstance(step, float):
        return (counter.cast(dtypes.float64) * step + start).cast(call.dtype)
    return (counter.cast(dtypes.int64) * step + start).cast(call.dtype)


@aten("eye")
def eye(call: AtenCall, *args: Any, **options: Any) -> Tensor:
    """Returns ones on the diagonal, zeros elsewhere."""
    rows, columns = call.shape
    if rows == 0 or columns == 0:
        return call.full(0)
    return (Tensor.arange(rows).reshape(rows, 1) == Tensor.arange(columns)).cast(call.dtype)
