"""Annotate a kernel's loops with their working sets, reused data, and the smallest cache that holds them.

Loops are in execution order: output loops, then loops that reduce, then unrolled loops (a register tile, the lanes of
vectors).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tinyexplore.dtype import PtrDType
from tinyexplore.explore.analysis.traffic import count_accessed_bytes, whole_lines
from tinyexplore.explore.recording.descriptions import Printer
from tinyexplore.explore.recording.loops import MAX_STATEMENT, Statement, common_depth, loop_line, statements_of
from tinyexplore.explore.tracefile.model import NestLine, OperandAccess
from tinyexplore.kernel import Kernel
from tinyexplore.kernel.analysis.strides import strides_of
from tinyexplore.target import Target
from tinyexplore.uop import Ops, UOp


def annotated_nest(kernel: Kernel, names: Sequence[str] = ()) -> Iterator[NestLine]:
    """Yields the loop nest, line by line. `names` has the user's names of the kernel's buffers.

    ::

      for g0 in range(64)           # thread: one step accesses 1 kB of x and all of w, which the next reads again
        for g1 in range(4)
          for r2 in range(256)      # reduce
            for v3 in range(16)     # vector
              total0 += x[g0*256 + r2]*w[r2*64 + g1*16 + v3]
          for v3 in range(16)
            data0[g0*64 + g1*16 + v3] = total0
    """
    printer = Printer(limit=MAX_STATEMENT, sizes=True)
    for pointer in kernel.find(Ops.DEFINE_GLOBAL):
        if pointer.arg < len(names) and names[pointer.arg].isidentifier():
            printer.name(pointer, names[pointer.arg])
    statements = list(statements_of(kernel.ast, printer))
    opened: tuple[UOp, ...] = ()
    for number, statement in enumerate(statements):
        depth = common_depth(opened, statement.loops)
        for loop_depth in range(depth, len(statement.loops)):
            head = statement.loops[: loop_depth + 1]
            sharing = list(_yield_leading_inside(statements[number:], head))
            yield _make_loop_line(head, sharing, kernel.target, printer, names)
        yield NestLine(len(statement.loops), statement.text)
        opened = statement.loops


def _yield_leading_inside(statements: Iterable[Statement], head: tuple[UOp, ...]) -> Iterator[Statement]:
    """Yields the leading statements that are inside the loops `head`."""
    for statement in statements:
        if statement.loops[: len(head)] != head:
            return
        yield statement


def _make_loop_line(
    head: tuple[UOp, ...], inside: Sequence[Statement], target: Target, printer: Printer, names: Sequence[str]
) -> NestLine:
    """Returns the line of a loop with the memory that one iteration accesses, and the cache that holds it."""
    loop, depth = head[-1], len(head) - 1
    accesses: dict[str, OperandAccess] = {}
    for statement in inside:
        inner = statement.loops[depth + 1 :]
        for index in statement.accesses:
            access = _make_access(index, loop, inner, target, names)
            earlier = accesses.get(access.name)
            accesses[access.name] = (
                access if earlier is None else _merge_accesses(earlier, access, _compute_capacity(index, target))
            )
    total = sum(access.bytes for access in accesses.values())
    line = loop_line(loop, depth, printer)
    return replace(line, touches=tuple(accesses.values()), bytes=total, cache=cache_of(total, target))


def _make_access(index: UOp, loop: UOp, inner: Sequence[UOp], target: Target, names: Sequence[str]) -> OperandAccess:
    """Returns the bytes of an operand that one iteration of `loop` accesses."""
    pointer = index.src[0]
    strides = strides_of(index.src[1])
    is_argument = pointer.op is Ops.DEFINE_GLOBAL
    name = names[pointer.arg] if is_argument and pointer.arg < len(names) else ""
    steps = [(strides.get(axis, 0), axis.size) for axis in inner]
    return OperandAccess(
        buffer=pointer.arg if is_argument else None,
        name=name or (f"data{pointer.arg}" if is_argument else str(pointer.arg)),
        bytes=min(
            count_accessed_bytes(steps, _item_bytes_of(pointer), target.line_bytes), _compute_capacity(index, target)
        ),
        again=loop not in index.ranges,
        stride=strides.get(loop, 0),
    )


def _merge_accesses(first: OperandAccess, other: OperandAccess, capacity: int) -> OperandAccess:
    """Merges the accesses to one operand at two positions."""
    stride = first.stride if first.stride == other.stride else None
    return OperandAccess(
        first.buffer, first.name, min(first.bytes + other.bytes, capacity), first.again and other.again, stride
    )


def _item_bytes_of(pointer: UOp) -> int:
    assert isinstance(pointer.dtype, PtrDType)
    return int(pointer.dtype.base.itemsize)


def _compute_capacity(index: UOp, target: Target) -> int:
    """Returns the bytes of the cache lines of the whole operand."""
    pointer = index.src[0]
    assert isinstance(pointer.dtype, PtrDType)
    return whole_lines(int(pointer.dtype.size) * _item_bytes_of(pointer), target.line_bytes)


def cache_of(nbytes: int, target: Target) -> str:
    """Returns the first cache that holds `nbytes` bytes, or "memory"."""
    return next((name for name, size in cache_sizes(target) if nbytes <= size), "memory")


def cache_sizes(target: Target) -> tuple[tuple[str, int], ...]:
    """Returns the name and size in bytes of each cache of a machine, the nearest first."""
    return (("L1", target.l1_bytes), ("L2", target.l2_bytes), ("L3", target.l3_bytes))


__all__ = ["annotated_nest", "cache_of", "cache_sizes"]
