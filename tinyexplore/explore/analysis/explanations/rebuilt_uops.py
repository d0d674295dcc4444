"""Rebuild UOps from a trace, whose nodes are plain data with all fields of a UOp.

Each rebuilt UOp is compared with its digest in the trace, so that rules run on exactly the recorded graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.explore.tracefile.model import Node
from tinyexplore.explore.tracefile.replay import DisplayedGraph
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.uop import Axis, AxisKind, Ops, UOp

_OF_OPS = (Ops.REDUCE, Ops.HREDUCE, Ops.SCAN)
_SCALARS: dict[str, DType] = {**dtypes.fields(), "void": dtypes.void}
_AXIS = re.compile(r"[a-z](\d+) (\w+)(?:, (\d+) ahead)?")
_MEMORY = re.compile(r"\[(\d+)\]$")


class RebuildError(ValueError):
    """The node cannot become a UOp: it is a LazyBuffer, or another version wrote it."""


class RebuiltUOps:
    """The UOps of one trace, each built on first use."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._made: dict[int, UOp] = {}
        self._digests = UopDigests()

    def uop(self, node: int) -> UOp:
        """Returns the UOp of node `node`, with the sources from the trace."""
        if node in self._made:
            return self._made[node]
        missing = {node}
        pending = list(missing)
        while pending:
            for source in self.trace.nodes[pending.pop()].src:
                if source not in self._made and source not in missing:
                    missing.add(source)
                    pending.append(source)
        for number in sorted(missing):  # a node's sources precede it
            row = self.trace.nodes[number]
            rebuilt = self._made[number] = uop_of(row, [self._made[source] for source in row.src])
            if not self._digests.is_named(rebuilt, row.digest):
                raise RebuildError(
                    f"node {number} ({row.label}) cannot be rebuilt as a UOp. Its argument is {row.arg!r}, its type "
                    f"{row.dtype!r}, and the rebuilt UOp differs from the recorded one. Another version may have "
                    "recorded the trace"
                )
        return self._made[node]

    def graph(self, graph: DisplayedGraph) -> dict[int, UOp]:
        """Returns the graph at one step of a pass: display id → UOp, each with its sources at that step."""
        nodes: dict[int, UOp] = {}
        for root in graph.root:
            stack = [root]
            while stack:
                node = graph.nodes[stack[-1]]
                missing = [source for source in node.src if source not in nodes]
                if missing:
                    stack += missing
                    continue
                number = stack.pop()
                if number not in nodes:
                    was = self.uop(node.node)
                    src = tuple([nodes[source] for source in node.src])
                    nodes[number] = was if src == was.src else UOp(was.op, was.dtype, src, was.arg)
        return nodes


def uop_of(node: Node, sources: Sequence[UOp]) -> UOp:
    """Returns the UOp for a row of a trace, with these sources."""
    if node.kind != "uop" or node.op not in Ops.__members__:
        raise RebuildError(f"node {node.id} is a {node.kind} ({node.op}), not a UOp of this version")
    op = Ops[node.op]
    try:
        dtype = _parse_dtype(node, op, sources)
        return UOp(op, dtype, tuple(sources), _parse_argument(node.arg, op, dtype))
    except (ValueError, KeyError, AttributeError, IndexError, TypeError) as error:
        raise RebuildError(
            f"node {node.id} ({node.label}) cannot be rebuilt as a UOp: {node.dtype!r}, {node.arg!r} ({error})"
        ) from error


def _parse_dtype(node: Node, op: Ops, sources: Sequence[UOp]) -> DType | PtrDType:
    if node.dtype.endswith("*"):
        if op not in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
            address: PtrDType = sources[0].dtype  # an address has the type of its memory
            return address
        size = int(_MEMORY.search(node.detail)[1])  # type: ignore[index]
        return PtrDType(_parse_value_type(node.dtype[:-1]), size, "local" if op is Ops.DEFINE_LOCAL else "global")
    return _parse_value_type(node.dtype)


def _parse_value_type(text: str) -> DType:
    name, _, lanes = (text or "void").partition("×")
    scalar = _SCALARS[name]
    return scalar.vec(int(lanes)) if lanes else scalar


def _parse_argument(text: str, op: Ops, dtype: Any) -> Any:
    """Parses the argument of a UOp from its text in the trace."""
    if text == "":
        return None
    if op is Ops.CONST:
        return _number(text, dtype.scalar)
    if op is Ops.RANGE:
        number, kind, ahead = _AXIS.fullmatch(text).groups()  # type: ignore[union-attr]
        return Axis(int(number), AxisKind(kind), int(ahead or 0))
    if op in _OF_OPS:
        return Ops[text]
    if op in (Ops.DEFINE_LOCAL, Ops.WMMA):
        return text
    if op is Ops.DEFINE_VAR:
        name, low, high = text[1:-1].rsplit(", ", 2)
        return name, int(low), int(high)
    if op is Ops.TABLE:
        return tuple(_number(item, dtype.scalar) for item in text[1:-1].rstrip(",").split(", "))
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _number(text: str, dtype: DType) -> bool | int | float:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


__all__ = ["RebuildError", "RebuiltUOps", "uop_of"]
