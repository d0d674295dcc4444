"""The cost model of a kernel: counts its arithmetic and bytes on the ast before any Opt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.symbolic import greatest, simplified, sint

ZERO_COST_OPS = frozenset({Ops.CAST, Ops.BITCAST, Ops.WHERE})


def flop_count(ast: UOp, weight: Callable[[Ops], int] = lambda op: 1) -> sint:
    """Returns the number of arithmetic operations on values (not on indices), counted once per iteration of their
    loops.

    If loops are symbolic, the result is an expression of the kernel's Variables, as for `bytes_moved`.
    weight: how much an operation counts; `multiplications_in` estimates its time.
    """
    total: sint = 0
    for node in ast.toposort():
        if node.op in (Ops.REDUCE, Ops.SCAN):
            if not _is_index(node):
                total = total + step_count(node.ranges | set(node.src[node.value_count :]))
        elif node.op in OpGroups.ALU - ZERO_COST_OPS and not _is_index(node):
            total = total + weight(node.op) * step_count(node.ranges)
    return simplified(total)


def step_count(axes: Iterable[UOp]) -> sint:
    return prod([axis.size if axis.is_static else axis.src[0] for axis in axes])


def _is_index(node: UOp) -> bool:
    return node.dtype is dtypes.index or (node.op in OpGroups.COMPARE and node.src[0].dtype is dtypes.index)


def bytes_moved(ast: UOp) -> sint:
    """Returns the bytes that the kernel accesses, each counted once.

    At most the size of each buffer, and at most one element for each access: a gather of 10 elements from a large table
    reads 10 elements.
    """
    reached: dict[UOp, sint] = {}
    nodes = ast.toposort()
    written_memory = {store.src[0].src[0] for store in ast.src}
    for node in nodes:
        if node.op is Ops.INDEX:
            pointer, steps = node.src[0], simplified(step_count(node.src[1].ranges))
            if pointer not in written_memory and pointer in reached:
                steps = simplified(reached[pointer] + steps)
            if greatest(steps) > greatest(reached.get(pointer, 0)):
                reached[pointer] = steps
    total: sint = 0
    for node in nodes:
        if node.op is Ops.DEFINE_GLOBAL and isinstance(node.dtype, PtrDType):
            size = reached.get(node, node.dtype.size)
            size = node.dtype.size if greatest(size) > node.dtype.size else size
            total = total + size * node.dtype.base.itemsize
    return simplified(total)
