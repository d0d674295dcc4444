"""What a kernel costs at the least: arithmetic and bytes, read off its ast before any Opt."""

from __future__ import annotations

from math import prod

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.uop import Group, Ops, UOp

FREE = frozenset({Ops.CAST, Ops.BITCAST, Ops.WHERE})


def flop_count(ast: UOp) -> int:
    """Arithmetic on values (not on indices), each operation once per run of the loops that it depends on."""
    total = 0
    for node in ast.toposort():
        if node.op in (Ops.REDUCE, Ops.SCAN):
            if not _is_index(node):
                total += prod(axis.size for axis in node.ranges | set(node.src[1:]))
        elif node.op in Group.ALU - FREE and not _is_index(node):
            total += prod(axis.size for axis in node.ranges)
    return total


def _is_index(node: UOp) -> bool:
    return node.dtype is dtypes.index or (node.op in Group.COMPARE and node.src[0].dtype is dtypes.index)


def bytes_moved(ast: UOp) -> int:
    """Every buffer that the kernel touches, once."""
    pointers = {node for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL}
    sizes = [node.dtype for node in pointers]
    return sum(dtype.size * dtype.base.itemsize for dtype in sizes if isinstance(dtype, PtrDType))
