"""The loop nest of a kernel, in the order in which the program runs it.

Outside are the output loops. Inside them are the loops that reduce or fill scratch memory. Innermost are the unrolled
loops: a register tile, the lanes of vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tinyexplore.explore.recording.descriptions import Printer, expr_text
from tinyexplore.explore.tracefile.model import NestLine
from tinyexplore.uop import AxisKind, Ops, UOp

MAX_STATEMENT = 120  # most characters of one operand
# nesting order of unrolled loops; the larger number is farther inside
WRITTEN_OUT = {AxisKind.UNROLL: 1, AxisKind.UPCAST: 1, AxisKind.VECTOR: 2}
_RESULTS = {Ops.ADD: "total", Ops.MUL: "product", Ops.MAX: "most", Ops.MIN: "least"}
_UPDATES = {
    Ops.ADD: "{0} += {1}",
    Ops.MUL: "{0} *= {1}",
    Ops.MAX: "{0} = max({0}, {1})",
    Ops.MIN: "{0} = min({0}, {1})",
}


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement of a loop nest.

    loops: the loops around it, outermost first.
    text: the statement.
    accesses: the INDEX nodes that it reads or writes.
    """

    loops: tuple[UOp, ...]
    text: str
    accesses: tuple[UOp, ...]


def plain_nest(ast: UOp) -> tuple[NestLine, ...]:
    """Returns the loops and their statements, line by line::

    for g0 in range(64)
      for r2 in range(256)
        for v3 in range(16)
          total0 += data1[g0*256 + r2]*data2[r2*16 + v3]
      for v3 in range(16)
        data0[g0*16 + v3] = total0
    """
    printer = Printer(limit=MAX_STATEMENT, sizes=True)
    lines: list[NestLine] = []
    opened: tuple[UOp, ...] = ()
    for statement in statements_of(ast, printer):
        for depth in range(common_depth(opened, statement.loops), len(statement.loops)):
            lines.append(loop_line(statement.loops[depth], depth, printer))
        lines.append(NestLine(len(statement.loops), statement.text))
        opened = statement.loops
    return tuple(lines)


def loop_line(loop: UOp, depth: int, printer: Printer) -> NestLine:
    text = f"for {loop.arg.name} in range({printer.text(loop.src[0])})"
    return NestLine(depth, text, axis=loop.arg.id, kind=loop.arg.kind.value, size=axis_size(loop))


def axis_size(axis: UOp) -> int | str:
    """Returns the number of iterations of a loop, or its expression if the number is known only at run time."""
    end = axis.src[0]
    return end.arg if end.op is Ops.CONST else expr_text(end)


def statements_of(sink: UOp, printer: Printer) -> Iterator[Statement]:
    """Yields reductions, fills of scratch memory, and stores, each after its operands."""
    count = 0
    filled: set[UOp] = set()
    for node in sink.toposort():
        if node.op is Ops.REDUCE:
            name = f"{_RESULTS[node.arg]}{count}"
            count += 1
            text = _UPDATES[node.arg].format(name, printer.text(node.src[0]))
            yield Statement(_order_nest(node.ranges, node.src[1:]), text, _find_accesses(node.src[:1]))
            printer.name(node, name)
        elif node.op is Ops.BARRIER:
            stores = [src for src in node.src if src.op is Ops.STORE and src not in filled]
            filled.update(stores)  # several barriers may wait for one store
            loops = frozenset[UOp]().union(*(store.ranges for store in stores)) - node.ranges
            for store in stores:
                yield Statement(
                    _order_nest(node.ranges, loops & store.ranges), printer.text(store), _find_accesses(store.src)
                )
    for store in sink.src:
        yield Statement(_order_nest(store.ranges, ()), printer.text(store), _find_accesses(store.src))


def _order_nest(outer: Iterable[UOp], inner: Iterable[UOp]) -> tuple[UOp, ...]:
    """Returns the loops around a statement, in execution order."""
    loops = [*_sort_by_id(outer), *_sort_by_id(set(inner) - set(outer))]
    return tuple(sorted(loops, key=lambda loop: WRITTEN_OUT.get(loop.arg.kind, 0)))


def _sort_by_id(loops: Iterable[UOp]) -> list[UOp]:
    return sorted((loop for loop in loops if loop.op is Ops.RANGE), key=lambda loop: loop.arg.id)


def _find_accesses(roots: Iterable[UOp]) -> tuple[UOp, ...]:
    """Returns the INDEX nodes on which `roots` depend, except inside REDUCE and BARRIER: those are other statements."""
    loads: dict[UOp, None] = {}
    visited: set[UOp] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in visited or node.op in (Ops.REDUCE, Ops.BARRIER):
            continue
        visited.add(node)
        if node.op is Ops.INDEX:
            loads[node] = None
        stack.extend(node.src)
    return tuple(loads)


def common_depth(opened: Sequence[UOp], loops: Sequence[UOp]) -> int:
    depth = 0
    while depth < min(len(opened), len(loops)) and opened[depth] is loops[depth]:
        depth += 1
    return depth
