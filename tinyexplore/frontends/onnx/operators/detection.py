"""Operators of object detection."""

from __future__ import annotations

import numpy as np

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import Array, Value
from tinyexplore.tensor import Tensor


@operator("NonMaxSuppression")
def _non_max_suppression(node: OnnxNode) -> Value:
    """Returns the selected boxes as an array. Reads boxes and scores, because their elements determine the size of
    the result."""
    boxes, scores = node.array(0), node.array(1)
    max_boxes = int(node.scalar(2)) if node.has(2) else 0
    overlap = float(node.scalar(3)) if node.has(3) else 0.0
    min_score = float(node.scalar(4)) if node.has(4) else -np.inf
    corners = _read_corners(boxes, bool(node.attribute("center_point_box", 0)))
    chosen: list[tuple[int, int, int]] = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            class_scores = scores[batch, kind]
            order = [
                int(index) for index in np.argsort(-class_scores, kind="stable") if class_scores[index] > min_score
            ]
            chosen_boxes: list[int] = []
            for index in order:
                if len(chosen_boxes) >= max_boxes:
                    break
                if all(
                    _compute_overlap(corners[batch, index], corners[batch, other]) <= overlap for other in chosen_boxes
                ):
                    chosen_boxes.append(index)
            chosen += [(batch, kind, index) for index in chosen_boxes]
    return np.array(chosen, np.int64).reshape(-1, 3)


def _read_corners(boxes: Array, centered: bool) -> Array:
    """Returns boxes as (top, left, bottom, right)."""
    if centered:
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _compute_overlap(a: Array, b: Array) -> float:
    """Returns the area of the intersection divided by that of the union."""
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    shared = float(sides[0] * sides[1])
    areas = [float((box[2] - box[0]) * (box[3] - box[1])) for box in (a, b)]
    return shared / (areas[0] + areas[1] - shared) if shared else 0.0


@operator("RoiAlign")
def _roi_align(node: OnnxNode) -> Tensor:
    """Averages (or takes the largest of) samples between the pixels, in each cell of each region."""
    x, regions, batch = node.tensor(0), node.array(1), node.tensor(2)
    height, width = node.attribute("output_height", 1), node.attribute("output_width", 1)
    ratio, scale = node.attribute("sampling_ratio", 0), node.attribute("spatial_scale", 1.0)
    default = "half_pixel" if node.version >= 16 else "output_half_pixel"
    shift = 0.5 if node.attribute("coordinate_transformation_mode", default) == "half_pixel" else 0.0
    take_max = node.attribute("mode", "avg") == "max"
    results = []
    image = x.cast(dtypes.float32)
    for index, region in enumerate(np.asarray(regions, np.float64)):
        left, top, right, bottom = region * scale - shift
        spans = [bottom - top, right - left] if shift else [max(bottom - top, 1.0), max(right - left, 1.0)]
        weights = []
        for start, span, cells, size in zip((top, left), spans, (height, width), x.shape[2:]):
            count = ratio if ratio > 0 else max(int(np.ceil(span / cells)), 1)
            step = span / cells
            positions = start + (np.arange(cells)[:, None] + (np.arange(count) + 0.5) / count) * step
            weights.append(_compute_linear_weights(positions.reshape(-1), size).reshape(cells, count, size))
        region_image = image[batch[index].cast(dtypes.int64).reshape((1,))].squeeze(0)
        rows, columns = Tensor(weights[0]).cast(dtypes.float32), Tensor(weights[1]).cast(dtypes.float32)
        if take_max:
            results.append(_take_largest(region_image, weights))
        else:
            results.append(
                Tensor.einsum("chw,ith,jsw->cij", region_image, rows, columns) / (rows.shape[1] * columns.shape[1])
            )
    return results[0].stack(*results[1:], dim=0).cast(x.dtype)


def _compute_linear_weights(positions: Array, size: int) -> Array:
    """Returns weights of linear interpolation at positions of an axis: one row each, zero outside the axis."""
    matrix = np.zeros((len(positions), size))
    for row, position in enumerate(positions):
        if position < -1 or position > size:
            continue
        position = min(max(position, 0), size - 1)
        low = int(np.floor(position))
        high = min(low + 1, size - 1)
        matrix[row, low] += 1 - (position - low)
        matrix[row, high] += position - low
    return matrix


def _take_largest(image: Tensor, weights: list[Array]) -> Tensor:
    """Returns the largest weighted pixel among the corners of the samples of each cell, like the standard's
    reference."""
    rows, columns = (Tensor(weight).cast(dtypes.float32) for weight in weights)
    cells = []
    for i in range(rows.shape[0]):
        line = []
        for j in range(columns.shape[0]):
            products = rows[i].reshape((-1, 1, rows.shape[2], 1)) * columns[j].reshape((1, -1, 1, columns.shape[2]))
            used = products > 0
            values = image.reshape((image.shape[0], 1, 1, *image.shape[1:])) * products
            line.append(used.where(values, -float("inf")).max((1, 2, 3, 4)))
        cells.append(line[0].stack(*line[1:], dim=-1))
    return cells[0].stack(*cells[1:], dim=-2)
