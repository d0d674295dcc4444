"""Operators that reduce axes, scans, and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.operators.movement import axes_input
from tinyexplore.tensor import Tensor

Reduction = Callable[[Tensor, "tuple[int, ...]"], Tensor]  # mode that keeps the axes

_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes: x.abs().sum(axes, True),
    "ReduceL2": lambda x, axes: (x * x).sum(axes, True).sqrt(),
    "ReduceLogSum": lambda x, axes: x.sum(axes, True).log(),
    "ReduceLogSumExp": lambda x, axes: x.logsumexp(axes, True),
    "ReduceMax": lambda x, axes: x.max(axes, True),
    "ReduceMean": lambda x, axes: x.mean(axes, True),
    "ReduceMin": lambda x, axes: x.min(axes, True),
    "ReduceProd": lambda x, axes: x.prod(axes, True),
    "ReduceSum": lambda x, axes: x.sum(axes, True),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes, True),
}
# the elementwise part, if there is no axis to reduce
_WITHOUT_AXES: dict[str, Callable[[Tensor], Tensor]] = {
    "ReduceL1": Tensor.abs,
    "ReduceL2": Tensor.abs,
    "ReduceLogSum": Tensor.log,
    "ReduceSumSquare": Tensor.square,
}


def _reduce(node: OnnxNode) -> Tensor:
    x, axes = node.tensor(0), axes_input(node)
    if not axes:
        if node.attribute("noop_with_empty_axes", 0):
            elementwise = _WITHOUT_AXES.get(node.operator)
            return x if elementwise is None else elementwise(x)
        axes = list(range(x.ndim))
    chosen = tuple(sorted({axis_in(axis, x.ndim) for axis in axes}))
    if not x.ndim:
        return _REDUCTIONS[node.operator](x.reshape((1,)), (0,)).reshape(()).cast(x.dtype)
    is_bool = x.dtype == dtypes.bool
    result = _REDUCTIONS[node.operator](x.cast(dtypes.uint8) if is_bool else x, chosen).cast(x.dtype)
    if node.attribute("keepdims", 1):
        return result
    return result.reshape(tuple(size for axis, size in enumerate(x.shape) if axis not in chosen))


operator(*_REDUCTIONS)(_reduce)


@operator("ArgMax", "ArgMin")
def _arg(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    axis = node.axis(x.ndim)
    find = Tensor.argmax if node.operator == "ArgMax" else Tensor.argmin
    if node.attribute("select_last_index", 0):
        indices = x.shape[axis] - 1 - find(x.flip(axis), axis, True)
    else:
        indices = find(x, axis, True)
    indices = indices.cast(dtypes.int64)
    if node.attribute("keepdims", 1):
        return indices
    return indices.reshape(tuple(size for dim, size in enumerate(x.shape) if dim != axis))


@operator("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: OnnxNode) -> Tensor:
    """Computes softmax. Before operator set 13, all axes from `axis` on count as one."""
    x = node.tensor(0)
    functions: dict[str, Callable[[Tensor, int], Tensor]] = {
        "Softmax": Tensor.softmax,
        "LogSoftmax": Tensor.log_softmax,
        "Hardmax": _hardmax,
    }
    function = functions[node.operator]
    if node.version >= 13:
        return function(x, node.axis(x.ndim, -1))
    axis = node.axis(x.ndim, 1)
    return function(x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))), 1).reshape(x.shape)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    counter = Tensor.arange(x.shape[axis]).reshape(tuple(-1 if dim == axis else 1 for dim in range(x.ndim)))
    return x.argmax(axis, True).eq(counter).cast(x.dtype)


@operator("CumSum", "CumProd")
def _cumulative(node: OnnxNode) -> Tensor:
    """Computes a running sum or product. `exclusive`: without the element itself, so the first result is 0 (or 1)."""
    x = node.tensor(0)
    axis = axis_in(int(node.scalar(1)), x.ndim)
    if node.attribute("reverse", 0):
        x = x.flip(axis)
    scan = Tensor.cumsum if node.operator == "CumSum" else Tensor.cumprod
    result = scan(x, axis).cast(x.dtype)
    if node.attribute("exclusive", 0):
        first = 0 if node.operator == "CumSum" else 1
        shifted = result.shrink(tuple((0, n - 1) if dim == axis else (0, n) for dim, n in enumerate(x.shape)))
        result = shifted.pad([(1, 0) if dim == axis else (0, 0) for dim in range(x.ndim)], value=first)
    return result.flip(axis) if node.attribute("reverse", 0) else result
