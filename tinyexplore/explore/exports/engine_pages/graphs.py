"""Converts a captured graph to plain data and back, for the fusion board of a page with engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.recording.captured_graph import CapturedGraph, NodeMemory, NodeRow
from tinyexplore.uop import Ops

_TYPES: Mapping[str, DType] = dtypes.fields()


def is_plain(graph: CapturedGraph) -> bool:
    """Whether the graph can be stored as data. It cannot if its sizes change from call to call."""
    try:
        graph_to_data(graph)
    except TypeError:
        return False
    return True


def graph_to_data(graph: CapturedGraph) -> dict[str, Any]:
    """Returns the graph as plain data for JSON.

    Raises:
        TypeError: an argument is no plain value.
    """
    return {
        "rows": [_row_to_data(row) for row in graph.rows],
        "outputs": graph.outputs,
        "in_place": sorted(graph.in_place),
        "why": list(graph.why.items()),
        "computed_first": sorted(graph.computed_first),
        "stored_separately": sorted(graph.stored_separately),
    }


def graph_from_data(data: Mapping[str, Any]) -> CapturedGraph:
    """Returns the graph that `graph_to_data` encoded."""
    return CapturedGraph(
        tuple([_row_from_data(row) for row in data["rows"]]),
        tuple(data["outputs"]),
        frozenset(data["in_place"]),
        dict(data["why"]),
        frozenset(data["computed_first"]),
        frozenset(data["stored_separately"]),
    )


def _row_to_data(row: NodeRow) -> list[Any]:
    """Returns a row of a graph as plain data. `_row_from_data` is the inverse."""
    memory = row.memory
    lies = None if memory is None else [memory.key, memory.device, memory.size, memory.dtype.name]
    return [
        row.node,
        row.op.name,
        row.dtype.name,
        _value_to_data(tuple(row.shape)),
        row.src,
        _value_to_data(row.arg),
        row.device,
        lies,
        row.calls,
    ]


def _row_from_data(data: Any) -> NodeRow:
    """Returns the row of a graph from plain data."""
    node, op, dtype, shape, src, arg, device, lies, calls = data
    memory = None
    if lies is not None:
        key, address, size, kind = lies
        memory = NodeMemory(key, address, size, _TYPES[kind])
    return NodeRow(
        node,
        Ops[op],
        _TYPES[dtype],
        _value_from_data(shape),
        tuple(src),
        _value_from_data(arg),
        device,
        memory,
        tuple(calls),
    )


def _value_to_data(value: Any) -> Any:
    """Returns a value as JSON data. Raises TypeError for other values than plain data."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": "nan" if math.isnan(value) else value.hex()}
    if isinstance(value, Ops):
        return {"op": value.name}
    if isinstance(value, (tuple, list)):
        return [_value_to_data(item) for item in value]
    raise TypeError(
        f"{type(value).__name__} is not plain data: use None, bool, int, float, str, Ops, or a list or tuple of these"
    )


def _value_from_data(data: Any) -> Any:
    if isinstance(data, list):
        return tuple([_value_from_data(item) for item in data])
    if not isinstance(data, dict):
        return data
    ((kind, text),) = data.items()
    if kind == "op":
        return Ops[text]
    return math.nan if text == "nan" else float.fromhex(text)


__all__ = ["graph_from_data", "graph_to_data", "is_plain"]
