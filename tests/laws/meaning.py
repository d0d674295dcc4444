"""The value of an expression of UOps, by the definition of each operation; and its type check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.semantics import evaluate

Lanes = tuple[Any, ...]
SHIFTS = (Ops.SHL, Ops.SHR)


def value_of(root: UOp, values: Mapping[UOp, Any]) -> Lanes:
    """The lanes of `root`, where `values` gives each leaf's (the same in every lane of a vector)."""
    done: dict[UOp, Lanes] = {}
    for node in root.toposort():
        done[node] = _lanes(node, [done[src] for src in node.src], values)
    return done[root]


def _lanes(node: UOp, src: list[Lanes], values: Mapping[UOp, Any]) -> Lanes:
    count = node.dtype.count
    if node in values:
        return (values[node],) * count
    match node.op:
        case Ops.CONST:
            return (node.arg,) * count
        case Ops.VECTORIZE:
            return tuple(lane for (lane,) in src)
        case Ops.GEP:
            return (src[0][node.arg],)
    kinds = tuple(source.dtype.scalar for source in node.src)
    return tuple(evaluate(node.op, node.dtype.scalar, *lanes, src_dtypes=kinds) for lanes in zip(*src, strict=True))


def same_value(found: Lanes, expected: Lanes) -> bool:
    """Equal lane by lane. Zeros of different sign differ, all NaNs are equal."""
    return len(found) == len(expected) and all(map(_same, found, expected))


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def type_error(root: UOp) -> str | None:
    """What is wrong with the types of an expression; None where nothing is."""
    for node in root.toposort():
        if not _well_typed(node):
            return f"{written(node)}: {node.dtype!r} from {[src.dtype for src in node.src]}"
    return None


def _well_typed(node: UOp) -> bool:
    op, dtype, kinds = node.op, node.dtype, [src.dtype for src in node.src]
    if op is Ops.CONST:
        return dtype.scalar is not dtypes.int64 or dtypes.min(dtypes.int64) <= node.arg <= dtypes.max(dtypes.int64)
    if op not in OpGroups.ALU:
        return True
    if any(kind.count != dtype.count for kind in kinds):
        return False
    if op in (Ops.CAST, Ops.BITCAST):
        return True
    if op is Ops.WHERE:
        return kinds[0].scalar is dtypes.bool and kinds[1] is dtype and kinds[2] is dtype
    if op in OpGroups.COMPARE:
        return dtype.scalar is dtypes.bool and kinds[0] is kinds[1]
    return all(kind is dtype for kind in kinds)


_SIGNS = {
    Ops.ADD: "+",
    Ops.MUL: "*",
    Ops.FDIV: "/",
    Ops.IDIV: "//",
    Ops.MOD: "%",
    Ops.CMPLT: "<",
    Ops.CMPLE: "<=",
    Ops.CMPEQ: "==",
    Ops.CMPNE: "!=",
    Ops.AND: "&",
    Ops.OR: "|",
    Ops.XOR: "^",
    Ops.SHL: "<<",
    Ops.SHR: ">>",
}


def written(node: UOp) -> str:
    """An expression as one would write it: what a failing law shows."""
    match node.op:
        case Ops.CONST:
            return str(node.arg)
        case Ops.DEFINE_VAR:
            return f"{node.arg[0]}:{node.arg[1]}..{node.arg[2]}"
        case Ops.RANGE:
            return f"r{node.arg.id}:{node.size}"
    sources = [written(src) for src in node.src]
    if node.op in _SIGNS:
        return f"({sources[0]} {_SIGNS[node.op]} {sources[1]})"
    return f"{node.op.name.lower()}({', '.join(sources)})"
