"""Converts UOps to plain data and back, to send a kernel to another process. The data contains no code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop.ops import Axis, AxisKind, Ops
from tinyexplore.uop.uop import AnyDType, UOp

_OPTIONAL_AXIS_FIELDS = [field.name for field in fields(Axis) if field.name not in ("id", "kind")]
_SCALARS = {**dtypes.fields(), "void": dtypes.void}


def to_plain(roots: Sequence[UOp]) -> list[Any]:
    """Returns the graph of `roots` as plain data for JSON, and the numbers of the roots.

    The data is [[op, dtype, sources, arg], …], sources first. Raises TypeError for a type or an arg of an unknown kind.
    """
    order: dict[UOp, None] = {}
    for root in roots:
        order.update(dict.fromkeys(root.toposort()))
    number_of = {node: number for number, node in enumerate(order)}
    nodes = [
        [node.op.name, _dtype_to_plain(node.dtype), [number_of[src] for src in node.src], _arg_to_plain(node.arg)]
        for node in order
    ]
    return [nodes, [number_of[root] for root in roots]]


def from_plain(data: Sequence[Any]) -> tuple[UOp, ...]:
    """Returns the roots that `to_plain` converted. If the process already has equal nodes, these are the same objects.

    Raises ValueError for invalid data.
    """
    try:
        nodes, roots = data
        rebuilt: list[UOp] = []
        for op, dtype, sources, arg in nodes:
            if any(not 0 <= source < len(rebuilt) for source in sources):
                raise ValueError(f"{op} has sources {sources}, but only {len(rebuilt)} nodes stand before it")
            rebuilt.append(
                UOp(Ops[op], _to_dtype(dtype), tuple(rebuilt[source] for source in sources), _arg_from_plain(arg))
            )
        return tuple(rebuilt[root] for root in roots)
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"the data is not a graph of UOps: {type(error).__name__}: {error}") from error


def _dtype_to_plain(dtype: AnyDType) -> list[Any]:
    base = dtype.base if isinstance(dtype, PtrDType) else dtype
    if base.name not in _SCALARS:
        raise TypeError(f"a UOp of the type {dtype!r} cannot be sent to another process")
    return [base.name, base.count, *((dtype.size, dtype.space) if isinstance(dtype, PtrDType) else ())]


def _to_dtype(data: list[Any]) -> AnyDType:
    name, count, *pointer = data
    scalar: DType = _SCALARS[name]
    base = scalar if count == 1 else scalar.vec(count)
    return PtrDType(base, *pointer) if pointer else base


def _arg_to_plain(arg: Any) -> Any:
    """Converts the arg of a UOp to plain data for JSON. Raises TypeError for other types."""
    if arg is None or isinstance(arg, (bool, int, str)):
        return arg
    if isinstance(arg, float):
        return {"float": "nan" if math.isnan(arg) else arg.hex()}
    if isinstance(arg, Ops):
        return {"op": arg.name}
    if isinstance(arg, Axis):
        return {"axis": [arg.id, arg.kind.value, *(getattr(arg, name) for name in _OPTIONAL_AXIS_FIELDS)]}
    if isinstance(arg, tuple):
        return {"tuple": [_arg_to_plain(item) for item in arg]}
    raise TypeError(f"a UOp with the arg {arg!r} ({type(arg).__name__}) cannot be sent to another process")


def _arg_from_plain(data: Any) -> Any:
    """Converts plain data back to the arg of a UOp."""
    if not isinstance(data, dict):
        return data
    ((type_name, value),) = data.items()
    match type_name:
        case "float":
            return math.nan if value == "nan" else float.fromhex(value)
        case "op":
            return Ops[value]
        case "axis":
            number, name, *arguments = value
            return Axis(number, AxisKind(name), *arguments)
        case "tuple":
            return tuple(_arg_from_plain(item) for item in value)
    raise ValueError(f"an arg of the unknown kind {type_name!r}")
