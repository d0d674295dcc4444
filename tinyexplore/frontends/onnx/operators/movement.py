"""Operators that move elements without computing: reshape, transpose, slice, pad, concatenate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.values import Value, check_shape
from tinyexplore.tensor import Tensor


def axes_input(node: OnnxNode, index: int = 1) -> list[int] | None:
    """Returns the axes: an input in later versions, an attribute in earlier ones; None if not given."""
    if node.has(index):
        return node.ints(index)
    axes: list[int] | None = node.attribute("axes", None)
    return axes


@operator("Shape")
def _shape(node: OnnxNode) -> Value:
    sizes = list(node.shape(0))
    return np.array(sizes[slice(node.attribute("start", 0), node.attribute("end", len(sizes)))], np.int64)


@operator("Size")
def _resolve_size(node: OnnxNode) -> Value:
    return np.array(math.prod(node.shape(0)), np.int64)


@operator("Reshape")
def _reshape(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    shape = node.ints(1) if node.has(1) else list(node.require("shape"))
    if not node.attribute("allowzero", 0):
        if any(size == 0 and axis >= x.ndim for axis, size in enumerate(shape)):
            raise OnnxError(f"Reshape of {x.shape} to {shape}: a 0 copies a size that the input does not have")
        shape = [x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)]
    if shape.count(-1) > 1:
        raise OnnxError(f"Reshape to {shape}: more than one size is -1")
    if -1 in shape:
        rest = math.prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = x.numel() // rest if rest else 0
    return x.reshape(check_shape(tuple(shape)))


@operator("Flatten")
def _flatten(node: OnnxNode) -> Tensor:
    x, axis = node.tensor(0), node.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Transpose")
def _transpose(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return x.permute(tuple(node.attribute("perm", list(range(x.ndim))[::-1]))) if x.ndim else x


@operator("Squeeze")
def _squeeze(node: OnnxNode) -> Tensor:
    x, axes = node.tensor(0), axes_input(node)
    chosen = [axis for axis, size in enumerate(x.shape) if size == 1] if axes is None else [
        axis_in(axis, x.ndim) for axis in axes
    ]  # fmt: skip
    if wrong := [axis for axis in chosen if x.shape[axis] != 1]:
        raise OnnxError(f"Squeeze of {x.shape} along {chosen}: axis {wrong[0]} has size {x.shape[wrong[0]]}, not 1")
    return x.reshape(tuple(size for axis, size in enumerate(x.shape) if axis not in chosen))


@operator("Unsqueeze")
def _unsqueeze(node: OnnxNode) -> Tensor:
    x, axes = node.tensor(0), axes_input(node) or []
    rank = x.ndim + len(axes)
    shape = list(x.shape)
    for axis in sorted(axis_in(axis, rank) for axis in axes):
        shape.insert(axis, 1)
    return x.reshape(tuple(shape))


@operator("Expand")
def _expand(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    shape = check_shape(tuple(np.broadcast_shapes(tuple(x.shape), tuple(node.ints(1)))))
    return x.reshape((1,) * (len(shape) - x.ndim) + tuple(x.shape)).expand(shape)


@operator("Tile")
def _tile(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    if node.version < 6:
        times, axis = int(node.scalar(1)), int(node.scalar(2))
        return x.repeat(tuple(times if number == axis else 1 for number in range(x.ndim)))
    times_each = node.ints(1)
    check_shape(tuple(size * times for size, times in zip(x.shape, times_each)))
    return x.repeat(tuple(times_each)) if times_each else x


@operator("Concat")
def _concat(node: OnnxNode) -> Tensor:
    parts = node.tensors()
    axis = node.axis(parts[0].ndim, 1)
    return parts[0] if len(parts) == 1 else parts[0].cat(*parts[1:], dim=axis)


@operator("Split")
def _split(node: OnnxNode) -> tuple[Value, ...]:
    x = node.tensor(0)
    axis = node.axis(x.ndim)
    sizes = node.ints(1) if node.has(1) else node.attribute("split", [])
    if not sizes:
        count = node.attribute("num_outputs", node.outputs)
        size = -(-x.shape[axis] // count)
        sizes = [size] * (count - 1) + [x.shape[axis] - size * (count - 1)]
    if any(size < 0 for size in sizes) or sum(sizes) != x.shape[axis]:
        raise OnnxError(f"Split of {x.shape} along axis {axis} into {list(sizes)}: the sizes add up to {sum(sizes)}")
    return tuple(x.split(list(sizes), axis))


def take_strided(x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    """Returns `x[start:end:step]` along one axis, with bounds clamped as in ONNX."""
    if step == 0:
        raise OnnxError("Slice: a step is 0; expected positive or negative steps")
    size = x.shape[axis]
    stop = None if step < 0 and end <= -size - 1 else end
    positions = range(size)[slice(start, stop, step)]
    if not positions:
        return x.shrink(tuple((0, 0) if dim == axis else (0, n) for dim, n in enumerate(x.shape)))
    last = positions[-1] + (1 if step > 0 else -1)
    part = slice(positions[0], last if last >= 0 else None, step)
    return x[tuple([slice(None)] * axis + [part])]


@operator("Slice")
def _slice(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    if node.version < 10:
        starts, ends = list(node.require("starts")), list(node.require("ends"))
        axes, steps = node.attribute("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = node.ints(1), node.ints(2)
        axes = node.ints(3) if node.has(3) else list(range(len(starts)))
        steps = node.ints(4) if node.has(4) else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        x = take_strided(x, axis_in(axis, x.ndim), start, end, step)
    return x


PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@operator("Pad")
def _pad(node: OnnxNode) -> Tensor:
    x, mode = node.tensor(0), node.attribute("mode", "constant")
    if node.version < 11:
        amounts, value = list(node.attribute("pads", node.attribute("paddings", []))), node.attribute("value", 0.0)
    else:
        amounts = node.ints(1)
        value = node.scalar(2) if node.has(2) else 0
    axes = node.ints(3) if node.has(3) else list(range(x.ndim))
    axes = [axis_in(axis, x.ndim) for axis in axes]
    if len(amounts) != 2 * len(axes):
        raise OnnxError(f"Pad: {len(amounts)} amounts for {len(axes)} axes")
    if mode not in PAD_MODES:
        raise node.unsupported(f"the mode {mode!r}")
    full = [(0, 0)] * x.ndim
    for number, axis in enumerate(axes):
        full[axis] = (amounts[number], amounts[number + len(axes)])
    check_shape(tuple(max(size + before + after, 0) for size, (before, after) in zip(x.shape, full)))
    if mode == "constant":
        if x.dtype == dtypes.bool:
            return x.cast(dtypes.uint8).pad(full, value=int(bool(value))).cast(dtypes.bool)
        return x.pad(full, value=value)
    return _pad_by_places(x, full, mode)


def _pad_by_places(x: Tensor, full: Sequence[tuple[int, int]], mode: str) -> Tensor:
    """Pads with elements of the tensor itself: gathers each axis at computed indices."""
    for axis, (before, after) in enumerate(full):
        size = x.shape[axis]
        if not before and not after:
            continue
        positions = np.arange(-before, size + after)
        if mode == "edge":
            positions = positions.clip(0, size - 1)
        elif mode == "wrap":
            positions = positions % size
        else:  # mirrored at the edges, which are not repeated
            period = max(2 * (size - 1), 1)
            positions = np.abs(positions) % period
            positions = np.where(positions < size, positions, period - positions)
        x = x[tuple([slice(None)] * axis + [Tensor(positions)])]
    return x


@operator("DepthToSpace")
def _depth_to_space(node: OnnxNode) -> Tensor:
    x, block = node.tensor(0), int(node.require("blocksize"))
    n, c, h, w = x.shape
    if node.attribute("mode", "DCR") == "DCR":
        parts = x.reshape((n, block, block, c // block**2, h, w)).permute((0, 3, 4, 1, 5, 2))
    else:
        parts = x.reshape((n, c // block**2, block, block, h, w)).permute((0, 1, 4, 2, 5, 3))
    return parts.reshape((n, c // block**2, h * block, w * block))


@operator("SpaceToDepth")
def _space_to_depth(node: OnnxNode) -> Tensor:
    x, block = node.tensor(0), int(node.require("blocksize"))
    n, c, h, w = x.shape
    parts = x.reshape((n, c, h // block, block, w // block, block))
    order = (0, 3, 5, 1, 2, 4) if node.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.permute(order).reshape((n, c * block**2, h // block, w // block))


@operator("ReverseSequence")
def _reverse_sequence(node: OnnxNode) -> Tensor:
    """Reverses the first `sequence_lens[i]` elements along the time axis of batch entry i."""
    x, lengths = node.tensor(0), node.tensor(1)
    batch, time = node.attribute("batch_axis", 1), node.attribute("time_axis", 0)
    rank, size = x.ndim, x.shape[time]
    lengths = lengths.cast(dtypes.int64).reshape(tuple(-1 if axis == batch else 1 for axis in range(rank)))
    steps = Tensor.arange(size).cast(dtypes.int64).reshape(tuple(-1 if axis == time else 1 for axis in range(rank)))
    positions = (steps < lengths).where(lengths - 1 - steps, steps)
    return x.gather(time, positions.expand(tuple(x.shape)))


@operator("Trilu")
def _trilu(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    diagonal = int(node.scalar(1)) if node.has(1) else 0
    return x.triu(diagonal) if node.attribute("upper", 1) else x.tril(diagonal)
