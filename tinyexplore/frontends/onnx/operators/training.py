"""Optimizer steps of the domain ai.onnx.preview.training. Each takes the tensors of several parameters."""

from __future__ import annotations

from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import Value
from tinyexplore.tensor import Tensor

TRAINING = "ai.onnx.preview.training"


def _split_groups(node: OnnxNode, kinds: int) -> tuple[Tensor, Tensor, list[list[Tensor]]]:
    """Reads the inputs: the learning rate, the step, and for each parameter its tensors of each kind."""
    rate, step, *rest = node.tensors()
    if not rest or len(rest) % kinds:
        raise OnnxError(
            f"{node.operator}: found {len(rest)} tensors after rate and step; expected a positive multiple of {kinds}"
        )
    count = len(rest) // kinds
    return rate, step, [[rest[kind * count + number] for kind in range(kinds)] for number in range(count)]


def _flatten_columns(rows: list[tuple[Tensor, ...]]) -> tuple[Value, ...]:
    return tuple(value for column in zip(*rows) for value in column)


@operator("Adagrad", domain=TRAINING)
def _adagrad(node: OnnxNode) -> tuple[Value, ...]:
    rate, step, groups = _split_groups(node, 3)
    rate = rate / (1 + step * node.attribute("decay_factor", 0.0))
    rows: list[tuple[Tensor, ...]] = []
    for x, gradient, squares in groups:
        gradient = gradient + x * node.attribute("norm_coefficient", 0.0)
        squares = squares + gradient * gradient
        new = x - rate * gradient / (squares.sqrt() + node.attribute("epsilon", 1e-6))
        rows.append((new.cast(x.dtype), squares.cast(x.dtype)))
    return _flatten_columns(rows)


@operator("Adam", domain=TRAINING)
def _adam(node: OnnxNode) -> tuple[Value, ...]:
    rate, step, groups = _split_groups(node, 4)
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    corrected = rate * (1 - beta ** step.cast(rate.dtype)).sqrt() / (1 - alpha ** step.cast(rate.dtype))
    rate = (step > 0).where(corrected, rate)
    rows: list[tuple[Tensor, ...]] = []
    for x, gradient, first, second in groups:
        gradient = gradient + x * node.attribute("norm_coefficient", 0.0)
        first = first * alpha + gradient * (1 - alpha)
        second = second * beta + gradient * gradient * (1 - beta)
        new = x - rate * first / (second.sqrt() + node.attribute("epsilon", 1e-6))
        new = new * (1 - node.attribute("norm_coefficient_post", 0.0))
        rows.append((new.cast(x.dtype), first.cast(x.dtype), second.cast(x.dtype)))
    return _flatten_columns(rows)


@operator("Momentum", domain=TRAINING)
def _momentum(node: OnnxNode) -> tuple[Value, ...]:
    rate, step, groups = _split_groups(node, 3)
    alpha, beta = node.attribute("alpha", 0.0), node.attribute("beta", 0.0)
    factor = (step > 0).where(beta, 1.0)
    rows: list[tuple[Tensor, ...]] = []
    for x, gradient, velocity in groups:
        gradient = gradient + x * node.attribute("norm_coefficient", 0.0)
        velocity = velocity * alpha + gradient * factor
        move = gradient + velocity * alpha if node.attribute("mode", "standard") == "nesterov" else velocity
        rows.append(((x - rate * move).cast(x.dtype), velocity.cast(x.dtype)))
    return _flatten_columns(rows)
