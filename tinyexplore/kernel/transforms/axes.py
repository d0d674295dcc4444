"""Splits and merges loops to match memory: splits a loop with divided indices, merges contiguous loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.scratch import barriers_along, is_after_copy
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp, graph_rewrite, index_const
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import simplified
from tinyexplore.uop.uop import ops_mask
from tinyexplore.util import toposort

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

ARITHMETIC = OpGroups.ALU | {Ops.CAST}
DIVIDED = ops_mask((Ops.IDIV, Ops.MOD))
# the loops that replace an axis, outermost first, each with the steps of the axis that one of its steps counts
Digits = list[tuple[UOp, int]]


def with_split_axes(kernel: Kernel) -> Kernel:
    """Splits every axis whose index is divided by a constant, so that no division remains. Example: the heads of an
    attention."""
    while divided := divided_axes(kernel):
        digits, count = split_divided_axes(kernel, divided)
        how = ", ".join(f"axis {axis.arg.id} is divided by {divisor}" for axis, divisor in divided)
        changes: dict[UOp, UOp] = {}
        for axis, axis_digits in digits.items():
            (number, divisor), *other_digits = axis_digits
            number = number * index_const(divisor)
            for loop, step in other_digits:
                number = number + (loop if step == 1 else loop * index_const(step))
            changes[axis] = number
            for position, loop in enumerate(staying_inside(kernel, axis)):
                # ids order the loops
                changes[loop] = UOp.range(loop.src[0], Axis(kernel.next_id() + count + position, loop.arg.kind))
        for reduce in kernel.reduces:
            if not digits.keys().isdisjoint(reduce.src[1:]):
                body = substitute_recorded(reduce.src[0], changes, how)
                loops = [digit_loop for loop in reduce.src[1:] for digit_loop, _ in digits.get(loop, [(loop, 1)])]
                changes[reduce] = UOp(Ops.REDUCE, reduce.dtype, (body, *loops), reduce.arg)
        ast = graph_rewrite(substitute_recorded(kernel.ast, changes, how), SIMPLIFY, stage="split axes")
        kernel = kernel.restart(ast)
    return kernel


def split_divided_axes(kernel: Kernel, divided: list[tuple[UOp, int]]) -> tuple[dict[UOp, Digits], int]:
    """Returns the loops that replace each axis of `divided`, and the number of added loops.

    Skips a divisor that fits none of the loops so far: its division remains.
    """
    digits: dict[UOp, Digits] = {}
    count = 0
    for axis, divisor in divided:
        axis_digits = digits.setdefault(axis, [(axis, 1)])
        for number, (loop, step) in enumerate(axis_digits):
            size = divisor // step
            if divisor % step == 0 and 1 < size < loop.size and simplified(loop.src[0] % size) == 0:
                outer = UOp.range(simplified(loop.src[0] // size), loop.arg)
                inner = UOp.range(size, Axis(kernel.next_id() + count, axis.arg.kind))
                axis_digits[number : number + 1] = [(outer, divisor), (inner, step)]
                count += 1
                break
    return digits, count


def staying_inside(kernel: Kernel, axis: UOp) -> list[UOp]:
    """Returns the loops that must stay inside all parts of `axis`, outermost first: the first such loop, and all inside
    it.

    These are the loop of a scan, which runs in order, and a loop of a scatter that is outside its copy. A loop that
    reads a row buffer of `axis` again is another one: outside a part of `axis`, each of its steps would compute the
    row.
    """
    inner_loops = [loop for loop in kernel.output_axes if loop.arg.id > axis.arg.id]
    rows = barriers_along(kernel, axis)
    pinned_ids = [
        loop.arg.id
        for loop in inner_loops
        if loop.arg.kind is AxisKind.SCAN or is_after_copy(kernel, loop) or any(loop not in row.ranges for row in rows)
    ]
    return [loop for loop in inner_loops if pinned_ids and loop.arg.id >= min(pinned_ids)]


def divided_axes(kernel: Kernel) -> list[tuple[UOp, int]]:
    """Returns the axes whose index, alone or plus a constant, is divided by a divisor of their size, each with this
    divisor.

    If some loops must stay inside, returns only the first axis, because their ids depend on it.
    """
    divisions: dict[tuple[UOp, int], None] = {}
    for node in kernel.nodes if kernel.ast.mask & DIVIDED else ():
        if node.op not in (Ops.IDIV, Ops.MOD) or node.src[1].op is not Ops.CONST:
            continue
        axis, divisor = node.src[0], node.src[1].arg
        if axis.op is Ops.ADD and axis.src[1].op is Ops.CONST:
            axis = axis.src[0]
        if axis.op is Ops.RANGE and axis.arg.kind in (AxisKind.GLOBAL, AxisKind.REDUCE) and 1 < divisor < axis.size:
            if (axis, divisor) not in divisions and simplified(axis.src[0] % divisor) == 0:
                divisions[axis, divisor] = None
    all_divisions = list(divisions)
    return all_divisions[:1] if any(staying_inside(kernel, axis) for axis, _ in all_divisions) else all_divisions


def with_merged_axes(kernel: Kernel) -> Kernel:
    """Merges neighboring loops if a step of the outer loop moves each address as far as all steps of the inner loop
    do."""
    merged = True
    while merged:
        merged = False
        for outer, inner in neighbors(kernel):
            if can_collapse(kernel, outer, inner):
                kernel = merge(kernel, outer, inner)
                merged = True
                break
    return kernel


def neighbors(kernel: Kernel) -> list[tuple[UOp, UOp]]:
    """Returns pairs (outer, inner) that could be one loop: output axes of the same stores, or axes of the same
    reductions."""
    outputs = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL]
    pairs = list(zip(outputs, outputs[1:]))
    for reduce in kernel.reduces:
        loops = sorted(reduce.src[1:], key=lambda axis: axis.arg.id)
        pairs.extend(zip(loops, loops[1:]))
    return [pair for pair in pairs if occur_together(kernel, *pair)]


def occur_together(kernel: Kernel, outer: UOp, inner: UOp) -> bool:
    """Whether every store and every reduction has either both axes or neither of them."""
    for node in (*kernel.ast.src, *kernel.reduces):
        open_here = node.ranges
        if (outer in open_here) != (inner in open_here):
            return False
        if (outer in node.src[1:]) != (inner in node.src[1:]):
            return False
    return True


def can_collapse(kernel: Kernel, outer: UOp, inner: UOp) -> bool:
    """Whether both axes occur only in addresses, and there as outer * (size * stride) + inner * stride."""
    indices = kernel.find(Ops.INDEX)
    for node in indices:
        terms, _ = linear_terms(node.src[1])
        if not inner.is_static or terms.get(outer, 0) != terms.get(inner, 0) * inner.size:
            return False
        if any(term not in (outer, inner) and term.ranges & {outer, inner} for term in terms):
            return False
        if len(node.src) == 3 and node.src[2].ranges & {outer, inner}:
            return False
    addresses = set().union(*[_find_address_arithmetic(node.src[1]) for node in indices])
    pair = frozenset((outer, inner))
    return not any(_computes_with(node, pair, addresses) for node in kernel.nodes if node not in addresses)


def _find_address_arithmetic(address: UOp) -> list[UOp]:
    """Returns the arithmetic of an address, without values in it (a reduction, for example) and their operations."""
    nodes = toposort([address], lambda node: node.src if node.op in ARITHMETIC else ())
    return [node for node in nodes if node.op in ARITHMETIC]


def _computes_with(node: UOp, pair: frozenset[UOp], addresses: set[UOp]) -> bool:
    """Whether `node` computes with the index of a step, or stores it. (A REDUCE only names its loops.)"""
    if node.op in (Ops.INDEX, Ops.LOAD, Ops.SINK):
        return False
    values = node.src
    if node.op is Ops.REDUCE:
        values = node.src[:1]
    elif node.op is Ops.STORE:
        values = node.src[1:2]
    return any(value in pair or (value in addresses and value.ranges & pair) for value in values)


def merge(kernel: Kernel, outer: UOp, inner: UOp) -> Kernel:
    """Replaces the two axes by one axis with the product of their sizes."""
    merged = UOp.range(simplified(outer.src[0] * inner.src[0]), Axis(outer.arg.id, outer.arg.kind))
    how = f"axes {outer.arg.id} and {inner.arg.id} walk memory as one"
    reduces: dict[UOp, UOp] = {outer: index_const(0), inner: merged}
    ast = kernel.ast
    for reduce in kernel.reduces:
        if inner not in reduce.src[1:]:
            continue
        loops = tuple(merged if axis is inner else axis for axis in reduce.src[1:] if axis is not outer)
        body = substitute_recorded(reduce.src[0], reduces, how)
        reduces[reduce] = UOp(Ops.REDUCE, reduce.dtype, (body, *loops), reduce.arg)
    ast = substitute_recorded(ast, reduces, how)
    return kernel.restart(ast)
