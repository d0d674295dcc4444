"""Operators that sample images at computed positions: Resize and GridSample. (RoiAlign is in `detection`.)"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.values import Array, check_shape
from tinyexplore.tensor import Tensor


@operator("Resize", "Upsample")
def _resize(node: OnnxNode) -> Tensor:
    """Resizes axis by axis. Nearest gathers elements; linear and cubic multiply each axis by a matrix of weights."""
    x = node.tensor(0)
    axes = [axis_in(axis, x.ndim) for axis in node.attribute("axes", list(range(x.ndim)))]
    scales, sizes = _read_scales_and_sizes(node, x, axes)
    mode = node.attribute("mode", "nearest")
    transform = node.attribute("coordinate_transformation_mode", "half_pixel" if node.version >= 11 else "asymmetric")
    regions = [float(value) for value in np.asarray(node.array(1)).reshape(-1)] if node.has(1) and (
        transform == "tf_crop_and_resize"
    ) else []  # fmt: skip
    outside: Tensor | None = None
    dtype = x.dtype
    wide = x.cast(dtypes.float32) if not dtypes.is_float(dtype) or dtype.itemsize < 4 else x
    result = x if mode == "nearest" else wide
    for number, axis in enumerate(axes):
        length, new, scale = x.shape[axis], sizes[number], scales[number]
        if new == length and scale == 1 and not regions:
            continue
        region = (regions[number], regions[number + len(axes)]) if regions else (0.0, 1.0)
        positions = _compute_positions(transform, length, new, scale, region)
        if regions:
            is_inside = (positions >= 0) & (positions <= length - 1)
            shaped = Tensor(is_inside).reshape(tuple(-1 if dim == axis else 1 for dim in range(x.ndim)))
            outside = shaped if outside is None else outside & shaped
        if mode == "nearest":
            nearest = _round_to_nearest(
                positions, node.attribute("nearest_mode", "round_prefer_floor" if node.version >= 11 else "floor")
            )
            nearest = nearest.clip(0, length - 1).astype(np.int64)
            result = result[tuple([slice(None)] * axis + [Tensor(nearest)])]
        else:
            weights = _compute_weights(node, mode, positions, length, scale)
            last = result.ndim - 1
            result = result.transpose(axis, last).matmul(Tensor(weights).cast(wide.dtype)).transpose(axis, last)
    if outside is not None:
        result = outside.where(result, node.attribute("extrapolation_value", 0.0))
    if mode != "nearest" and not dtypes.is_float(dtype):
        return result.round().clip(float(dtypes.min(dtype)), float(dtypes.max(dtype))).cast(dtype)
    return result.cast(dtype)


def _read_scales_and_sizes(node: OnnxNode, x: Tensor, axes: list[int]) -> tuple[list[float], list[int]]:
    """Returns the scale and the new size of each axis."""
    scales: Array | None
    output_sizes: list[int] | None
    if node.version < 11:
        scales = node.array(1).reshape(-1) if node.has(1) else np.array(node.require("scales"))
        output_sizes = None
    else:
        scales_input = node.array(2) if node.has(2) else None
        scales = None if scales_input is None or not scales_input.size else scales_input.reshape(-1)
        output_sizes = node.ints(3) if node.has(3) and 0 not in node.shape(3) else None
    lengths = [x.shape[axis] for axis in axes]
    if output_sizes is not None:
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        ratios = [size / length for size, length in zip(output_sizes, lengths)]
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            return [ratio] * len(axes), [int(math.floor(ratio * length + 0.5)) for length in lengths]
        return ratios, list(check_shape(tuple(output_sizes)))
    if scales is None:
        raise OnnxError(f"{node.operator}: neither scales nor sizes are given")
    return [float(scale) for scale in scales], list(
        check_shape(tuple(int(math.floor(length * float(factor))) for length, factor in zip(lengths, scales)))
    )


def _compute_positions(transform: str, length: int, new: int, scale: float, region: tuple[float, float]) -> Array:
    """Returns the position of each new element on the old axis."""
    counter = np.arange(new, dtype=np.float64)
    if transform == "asymmetric":
        return counter / scale
    if transform == "align_corners":
        exact = scale * length  # the size before it was rounded
        return counter * (length - 1) / (exact - 1) if new > 1 else counter * 0
    if transform == "pytorch_half_pixel":
        return (counter + 0.5) / scale - 0.5 if new > 1 else counter * 0
    if transform == "half_pixel_symmetric":
        adjustment = new / (scale * length)
        return length / 2 * (1 - adjustment) + (counter + 0.5) / scale - 0.5
    if transform == "tf_crop_and_resize":
        start, end = region
        if new > 1:
            return start * (length - 1) + counter * (end - start) * (length - 1) / (new - 1)
        return counter * 0 + 0.5 * (start + end) * (length - 1)
    if transform == "half_pixel":
        return (counter + 0.5) / scale - 0.5
    raise OnnxError(f"Resize: the coordinate transformation {transform!r} is not one of the standard's")


def _round_to_nearest(positions: Array, mode: str) -> Array:
    if mode == "round_prefer_floor":
        return np.ceil(positions - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(positions + 0.5)
    return np.floor(positions) if mode == "floor" else np.ceil(positions)


def _cubic_weight(distance: Array, a: float) -> Array:
    """Returns Keys' kernel of cubic convolution (1981)."""
    inner_part = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    outer_part = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, inner_part, np.where(distance < 2, outer_part, 0.0))


def _compute_weights(node: OnnxNode, mode: str, positions: Array, length: int, scale: float) -> Array:
    """Returns the weight of each old element in each new element, as a matrix [old, new]."""
    a = node.attribute("cubic_coeff_a", -0.75)
    antialias = bool(node.attribute("antialias", 0)) and scale < 1
    stretch = scale if antialias else 1.0
    radius = (1 if mode == "linear" else 2) / stretch
    matrix = np.zeros((length, len(positions)))
    exclude = bool(node.attribute("exclude_outside", 0))
    for new, position in enumerate(positions):
        start = math.floor(position - radius) + 1
        neighbors = np.arange(start, math.floor(position + radius) + 1)
        distance = np.abs(neighbors - position) * stretch
        weights = np.maximum(1 - distance, 0) if mode == "linear" else _cubic_weight(distance, a)
        if exclude:
            weights = np.where((neighbors < 0) | (neighbors >= length), 0, weights)
        if exclude or antialias:
            weights = weights / weights.sum()
        np.add.at(matrix[:, new], neighbors.clip(0, length - 1), weights)
    return matrix


@operator("GridSample")
def _grid_sample(node: OnnxNode) -> Tensor:
    """Samples an image of any rank at the positions of a grid, which lie between -1 and 1."""
    x, grid = node.tensor(0), node.tensor(1)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        node.attribute("mode", "linear"), node.attribute("mode", "linear")
    )
    aligned, padding = bool(node.attribute("align_corners", 0)), node.attribute("padding_mode", "zeros")
    sizes = x.shape[2:]
    wide = grid.cast(dtypes.float32) if grid.dtype.itemsize < 4 else grid
    positions = []
    for axis, size in enumerate(sizes):
        unit = wide[..., len(sizes) - 1 - axis]  # the grid has the last axis first
        points = (unit + 1) / 2 * (size - 1) if aligned else ((unit + 1) * size - 1) / 2
        positions.append(points)
    choices: list[list[tuple[Tensor, Tensor | None]]]
    if mode == "nearest":
        choices = [
            [(points.round(), None)]
            for points in (_find_inside(p, n, padding, aligned) for p, n in zip(positions, sizes))
        ]
    elif mode == "linear":
        fixed = [_find_inside(p, n, padding, aligned) for p, n in zip(positions, sizes)]
        choices = [
            [(points.floor(), 1 - (points - points.floor())), (points.floor() + 1, points - points.floor())]
            for points in fixed
        ]
    elif mode == "cubic":
        choices = [
            [(points.floor() + k, _cubic_weight_tensor((points - points.floor() - k).abs())) for k in range(-1, 3)]
            for points in positions
        ]
    else:
        raise node.unsupported(f"the mode {mode!r}")
    total: Tensor | None = None
    for corner in itertools.product(*choices):
        value = _read_at(x, [position for position, _ in corner], sizes, padding if mode == "cubic" else "", aligned)
        for _, weight in corner:
            if weight is not None:
                value = value * weight.unsqueeze(1)
        total = value if total is None else total + value
    assert total is not None
    return total.cast(x.dtype)


def _find_inside(position: Tensor, size: int, padding: str, aligned: bool) -> Tensor:
    """Moves positions into the image as `padding` says. "zeros" leaves them unchanged."""
    if padding == "border":
        return position.clip(0, size - 1)
    if padding == "reflection":
        low, high = (0.0, float(size - 1)) if aligned else (-0.5, size - 0.5)
        return _reflect(position, low, high).clip(0, size - 1)
    return position


def _reflect(position: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return position * 0
    distance = (position - low).abs()
    turns = (distance / span).floor()
    rest = distance - turns * span
    return (turns % 2).eq(0).where(low + rest, high - rest)


def _cubic_weight_tensor(distance: Tensor, a: float = -0.75) -> Tensor:
    inner_part = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    outer_part = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return (distance <= 1).where(inner_part, (distance < 2).where(outer_part, 0))


def _read_at(x: Tensor, positions: list[Tensor], sizes: Any, padding: str, aligned: bool) -> Tensor:
    """Returns the elements at whole positions; 0 outside the image."""
    if padding in ("border", "reflection"):
        positions = [_find_inside(position, size, padding, aligned) for position, size in zip(positions, sizes)]
    valid: Tensor | None = None
    flat: Tensor | None = None
    for position, size in zip(positions, sizes):
        is_inside = (position >= 0) & (position <= size - 1)
        valid = is_inside if valid is None else valid & is_inside
        index = position.clip(0, size - 1).cast(dtypes.int64)
        flat = index if flat is None else flat * size + index
    assert valid is not None and flat is not None
    batch, channels = x.shape[:2]
    count = math.prod(flat.shape[1:])
    index = flat.reshape((batch, 1, count)).expand((batch, channels, count))
    values = x.reshape((batch, channels, math.prod(sizes))).gather(2, index)
    values = values.reshape((batch, channels, *flat.shape[1:]))
    return valid.unsqueeze(1).where(values, 0)
