"""Prints a kernel's AST as plain loops."""

from __future__ import annotations

from collections.abc import Iterator

from tinyexplore.explore.recording.descriptions import Printer, walk_text
from tinyexplore.uop import Ops, UOp

MAX_STATEMENT = 400  # most characters of one operand: enough for a whole formula
_NAMES = {Ops.ADD: "total", Ops.MUL: "product", Ops.MAX: "largest", Ops.MIN: "smallest"}

Statement = tuple[tuple[UOp, ...], str]  # (the loops around it, outermost first; its text)


def loop_nest(sink: UOp) -> str:
    """Returns the output loops, the reductions and rows computed inside them, and the stores::

    for g0 in range(64):  # global
      largest0 = max(data1[g0*128 + r2] for r2 in range(128))
      for g1 in range(128):  # global
        data0[g0*128 + g1] = data1[g0*128 + g1] - largest0
    """
    lines = []
    opened: tuple[UOp, ...] = ()
    printer = Printer(limit=MAX_STATEMENT, sizes=True)
    for loops, text in _yield_statements(sink, printer):
        depth = _count_common_loops(opened, loops)
        for axis in loops[depth:]:
            end, kind = printer.text(axis.src[0]), walk_text(axis.arg)
            lines.append(f"{'  ' * depth}for {axis.arg.name} in range({end}):  # {kind}")
            depth += 1
        lines.append(f"{'  ' * depth}{text}")
        opened = loops
    return "\n".join(lines)


def _yield_statements(sink: UOp, printer: Printer) -> Iterator[Statement]:
    """Yields the statements of a kernel, each with its loops: reductions and stores, in execution order."""
    nodes = sink.toposort()
    stores = [node for node in nodes if node.op is Ops.STORE]
    output_axes = frozenset[UOp]().union(*(store.ranges for store in stores))
    count = 0
    for node in nodes:
        if node.op is Ops.STORE and node not in sink.src:  # this store fills a row buffer before its readers run
            yield _find_loops(node), printer.text(node)
        # a reduction inside another one is part of its formula
        if node.op is Ops.REDUCE and node.ranges <= output_axes:
            name = f"{_NAMES[node.arg]}{count}"
            count += 1
            yield _find_loops(node), f"{name} = {printer.text(node)}"
            printer.name(node, name)
    for store in sink.src:
        yield _find_loops(store), printer.text(store)


def _find_loops(node: UOp) -> tuple[UOp, ...]:
    return tuple(sorted(node.ranges, key=lambda axis: axis.arg.id))


def _count_common_loops(opened: tuple[UOp, ...], loops: tuple[UOp, ...]) -> int:
    depth = 0
    for left, right in zip(opened, loops, strict=False):
        if left is not right:
            break
        depth += 1
    return depth
