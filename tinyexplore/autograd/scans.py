"""Gradients of scans (running results): each is a scan from the other end."""

from __future__ import annotations

from tinyexplore.autograd.rules import Gradients, constant, gradient_of
from tinyexplore.autograd.tape import TapeEntry
from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops


@gradient_of(Ops.SCAN_AXIS)
def cumsum_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(i) = Σ x(j) over j ≤ i: dx(j) = Σ g(i) over i ≥ j, the running sum from the other end"""
    axis = step.arg
    return (g.flip((axis,)).scan(Ops.ADD, axis).flip((axis,)),)


def _without_ends(x: LazyBuffer, axis: int, start: int, left_out: int) -> LazyBuffer:
    """Removes the first `start` and the last `left_out` positions of `axis`."""
    return x.shrink([(start, size - left_out) if dim == axis else (0, size) for dim, size in enumerate(x.shape)])


def _pad_axis(x: LazyBuffer, axis: int, before: int, after: int) -> LazyBuffer:
    return x.pad([(before, after) if dim == axis else (0, 0) for dim in range(len(x.shape))])


def _scan_from_end(g: LazyBuffer, factor: LazyBuffer, axis: int) -> LazyBuffer:
    """Returns r(j) = g(j) + factor(j) · r(j + 1). The last element needs no factor."""
    factors = _pad_axis(factor, axis, 0, 1)
    return g.flip((axis,)).recurrence(factors.flip((axis,)), axis).flip((axis,))


def recurrence_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(i) = y(i - 1) · f(i) + x(i): dx(j) = r(j) = g(j) + f(j + 1) · r(j + 1), and df(j) = y(j - 1) · r(j)"""
    (_, factor), axis = step.sources, step.arg
    dx = _scan_from_end(g, _without_ends(factor, axis, 1, 0), axis)
    previous_result = _pad_axis(_without_ends(step.result, axis, 0, 1), axis, 1, 0)
    return dx, previous_result.alu(Ops.MUL, dx) if step.needs(1) else None


def cumprod_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(i) = Π x(j) over j ≤ i: dx(j) = y(j - 1) · r(j), where r(j) = g(j) + x(j + 1) · r(j + 1); correct also for
    zeros"""
    (x,), axis = step.sources, step.arg
    one = constant(1.0, x, tuple(1 if dim == axis else n for dim, n in enumerate(x.shape)))
    is_first = _pad_axis(one.cast(dtypes.bool), axis, 0, x.shape[axis] - 1)
    previous_result = is_first.alu(
        Ops.WHERE, constant(1.0, x), _pad_axis(_without_ends(step.result, axis, 0, 1), axis, 1, 0)
    )
    return (previous_result.alu(Ops.MUL, _scan_from_end(g, _without_ends(x, axis, 1, 0), axis)),)


def logcumsumexp_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(i) = ln Σ e^x(j) over j ≤ i: dx(j) = e^(x(j) - y(j)) · r(j), r(j) = g(j) + e^(y(j) - y(j + 1)) · r(j + 1)

    y never decreases, so no exponent is positive.
    """
    (x,), y, axis = step.sources, step.result, step.arg
    earlier, later = _without_ends(y, axis, 0, 1), _without_ends(y, axis, 1, 0)
    change = later.alu(Ops.CMPEQ, earlier).alu(
        Ops.WHERE, constant(0.0, earlier), earlier.alu(Ops.ADD, later.alu(Ops.NEG))
    )
    weight = x.alu(Ops.ADD, y.alu(Ops.NEG)).alu(Ops.EXP)
    return (weight.alu(Ops.MUL, _scan_from_end(g, change.alu(Ops.EXP), axis)),)
