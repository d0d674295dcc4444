"""Sequences and optionals: lists of values, and values that may be missing."""

from __future__ import annotations

import numpy as np

from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.values import Value


def _check_position(node: OnnxNode, index: int, count: int, default: int) -> int:
    position = int(node.scalar(index)) if node.has(index) else default
    if not -count - 1 <= position <= count:
        raise OnnxError(f"{node.operator}: position {position} is out of range for a sequence of {count}")
    return position


@operator("SequenceConstruct")
def _construct(node: OnnxNode) -> Value:
    return list(node.inputs)


@operator("SequenceEmpty")
def _empty(node: OnnxNode) -> Value:
    return []


@operator("SequenceAt")
def _at(node: OnnxNode) -> Value:
    values = node.sequence(0)
    position = _check_position(node, 1, len(values), 0)
    if not -len(values) <= position < len(values):
        raise OnnxError(f"SequenceAt: position {position} is out of range for a sequence of {len(values)}")
    value: Value = values[position]
    return value


@operator("SequenceInsert")
def _insert(node: OnnxNode) -> Value:
    values = list(node.sequence(0))
    values.insert(_check_position(node, 2, len(values), len(values)), node.inputs[1])
    return values


@operator("SequenceErase")
def _erase(node: OnnxNode) -> Value:
    values = list(node.sequence(0))
    values.pop(_check_position(node, 1, len(values), -1))
    return values


@operator("SequenceLength")
def _length(node: OnnxNode) -> Value:
    return np.array(len(node.sequence(0)), np.int64)


@operator("ConcatFromSequence")
def _concat(node: OnnxNode) -> Value:
    from tinyexplore.frontends.onnx.values import tensor_of  # noqa: PLC0415

    first, *others = [tensor_of(value) for value in node.sequence(0)]
    if node.attribute("new_axis", 0):
        return first.stack(*others, dim=axis_in(int(node.require("axis")), first.ndim + 1))
    return first.cat(*others, dim=axis_in(int(node.require("axis")), first.ndim)) if others else first


@operator("SplitToSequence")
def _split(node: OnnxNode) -> Value:
    x = node.tensor(0)
    axis = node.axis(x.ndim)
    size = x.shape[axis]
    if node.has(1):
        sizes_input = node.array(1)
        if sizes_input.ndim == 0:
            step = int(sizes_input)
            sizes = [min(step, size - start) for start in range(0, size, step)]
        else:
            sizes = [int(length) for length in sizes_input]
    else:
        sizes = [1] * size
    parts = x.split(sizes, axis)
    if not node.has(1) and not node.attribute("keepdims", 1):
        return [part.squeeze(axis) for part in parts]
    return list(parts)


@operator("Optional")
def _optional(node: OnnxNode) -> Value:
    return node.inputs[0] if node.inputs else None


@operator("OptionalHasElement")
def _has_element(node: OnnxNode) -> Value:
    return np.array(bool(node.inputs) and node.inputs[0] is not None)


@operator("OptionalGetElement")
def _get_element(node: OnnxNode) -> Value:
    if not node.inputs or node.inputs[0] is None:
        raise OnnxError("OptionalGetElement of an optional that is empty")
    return node.inputs[0]
