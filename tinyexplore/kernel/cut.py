"""CUT: loops that end where a mask hides all that is left, as in causal attention.

A masked value is a constant wherever its condition fails: −∞ before a softmax, and so 0 after its exponential. A sum
over zeros, or a maximum over −∞, may stop there; a kept row need not be filled past the place where its readers stop.
(What such a 0 is multiplied with counts for nothing, be it infinite: what is hidden is hidden. A 0 that a program
writes by itself is a number like any other: 0 · ∞ is NaN.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, lcm, prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.opt import OptOps
from tinyexplore.kernel.told import substitute_told
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.uop import ops_mask

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

IDENTITY = {Ops.ADD: 0.0, Ops.MAX: -inf, Ops.MIN: inf}
LONGEST_BLOCK = 1024
MASKED = ops_mask((Ops.WHERE,))
SPLITS = frozenset({OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL, OptOps.GROUP, OptOps.LOCAL})


@dataclass(frozen=True)
class Hidden:
    """A value is `constant` wherever `column` > `row` + `ahead`, both RANGEs. `weight`: it is an exponential."""

    constant: float
    row: UOp
    column: UOp
    ahead: int
    weight: bool = False


def hidden(node: UOp) -> Hidden | None:
    """Where `node`, a value of an ast before any Opt, is known to be constant."""
    if node.op is Ops.WHERE:
        condition, yes, no = node.src
        if no.op is Ops.CONST:
            return hidden_unless(condition, no.arg)
        return hidden_unless(condition.ne(True), yes.arg) if yes.op is Ops.CONST else None
    if node.op is Ops.EXP:
        found = hidden(node.src[0])
        return replace(found, constant=0.0, weight=True) if found and found.constant == -inf else None
    if node.op is Ops.FDIV:
        found = hidden(node.src[0])
        return found if found and found.weight else None
    if node.op in (Ops.MUL, Ops.ADD):
        for src in node.src:
            found = hidden(src)
            if found and (found.weight if node.op is Ops.MUL else found.constant == -inf):
                return found
        return None
    if node.op is Ops.LOAD and len(node.src) == 2:
        return hidden_in_row(node)
    return None


def hidden_in_row(load: UOp) -> Hidden | None:
    """What is read from a kept row is hidden where it was when the row was filled."""
    place, barrier = load.src
    filled_at, value = barrier.src[0].src
    found = hidden(value)
    if found is None or filled_at.src[1] is not found.column or place.src[1].op is not Ops.RANGE:
        return None
    return replace(found, column=place.src[1])


def hidden_unless(condition: UOp, masked: float) -> Hidden | None:
    """The reading of `row + ahead >= column`, in any of the ways to write it."""
    holds = True
    while True:
        if condition.op is Ops.WHERE and [src.op for src in condition.src[1:]] == [Ops.CONST] * 2:
            holds = holds if condition.src[1].arg else not holds
            condition = condition.src[0]
        elif condition.op is Ops.CMPNE and condition.src[1].op is Ops.CONST and dtypes.is_bool(condition.src[0].dtype):
            holds = not holds if condition.src[1].arg else holds
            condition = condition.src[0]
        else:
            break
    if condition.op not in (Ops.CMPLT, Ops.CMPLE):
        return None
    left, right = (uncast(src) for src in condition.src)
    if dtypes.is_float(left.dtype):
        return None
    strict = condition.op is Ops.CMPLT
    if not holds:  # not a < b is b <= a
        left, right, strict = right, left, not strict
    terms, constant = linear_terms(right)
    for term, factor in linear_terms(left)[0].items():
        terms[term] = terms.get(term, 0) - factor
    constant -= linear_terms(left)[1]
    rows = [term for term, factor in terms.items() if factor == 1]
    columns = [term for term, factor in terms.items() if factor == -1]
    if len(terms) != 2 or not rows or not columns or any(term.op is not Ops.RANGE for term in terms):
        return None
    return Hidden(masked, rows[0], columns[0], constant - strict)


def uncast(node: UOp) -> UOp:
    """An index as it was before it became an integer of the user's."""
    while node.op is Ops.CAST and dtypes.is_int(node.dtype) and not dtypes.is_float(node.src[0].dtype):
        node = node.src[0]
    return node


def cut_loops(kernel: Kernel, rows: UOp) -> dict[int, int]:
    """The loops that can end early for each block of `rows`, by id: how many places past the row each must go.

    Asked of the ast before any Opt, where every place is one loop; the outer part of a split loop keeps its id.
    """
    if not kernel.start.mask & MASKED:
        return {}
    loops = {axis.arg.id for axis in kernel.axes if axis.arg.kind in (AxisKind.REDUCE, AxisKind.ROW)}
    found: dict[int, int] = {}
    whole: set[int] = set()
    nodes = kernel.start.toposort()
    for reduce in nodes:
        if reduce.op is not Ops.REDUCE:
            continue
        what = hidden(reduce.src[0])
        for axis in reduce.src[1:]:
            name = axis.arg.id
            if what is None or what.column is not axis or what.row.arg.id != rows.arg.id:
                whole.add(name)
            elif what.constant != IDENTITY.get(reduce.arg) or not goes_in_blocks(kernel, axis):
                whole.add(name)
            else:
                found[name] = max(what.ahead, found.get(name, what.ahead))
    found = {name: ahead for name, ahead in found.items() if name in loops - whole}
    loads = [node for node in nodes if node.op is Ops.LOAD and len(node.src) == 2]
    for barrier in sorted({load.src[1] for load in loads}, key=lambda barrier: barrier.src[1].arg.id):
        readers = [load.src[0].src[1] for load in loads if load.src[1] is barrier]
        name = barrier.src[1].arg.id
        if len(barrier.src) == 2 and name in loops:
            if all(reader.op is Ops.RANGE and reader.arg.id in found for reader in readers):
                found[name] = max(found[reader.arg.id] for reader in readers)
    return found


def goes_in_blocks(kernel: Kernel, axis: UOp) -> bool:
    """True where the blocks of an axis before any Opt are whole ones."""
    return axis.is_static and axis.size % block_of(kernel, axis.arg.id) == 0


def block_of(kernel: Kernel, axis_id: int) -> int:
    """How many steps of an axis before any Opt one step of its loop stands for by now."""
    return prod(opt.amount for opt in kernel.applied if opt.op in SPLITS and opt.axis == axis_id)


def cut_obstacle(kernel: Kernel, rows: UOp) -> str | None:
    """What stands against CUT; None where it is legal."""
    if rows.arg.kind not in (AxisKind.GLOBAL, AxisKind.THREAD):
        return f"the axis is {rows.arg.kind.value}, and only output axes that are still loops do this"
    if kernel.result_copies:
        return "the steps of a scatter change what they read: none of them is left out"
    if any(opt.op in (OptOps.SWAP, OptOps.MERGE) for opt in kernel.applied):
        return "loops have changed places: which one a mask speaks of is not known any more"
    found = cut_loops(kernel, rows)
    if not found:
        return "no mask hides the end of a loop from all that comes before a place of this axis"
    if common_block(kernel, found) > LONGEST_BLOCK:
        return f"the loops go in blocks that only meet every {common_block(kernel, found)} places"
    return None


def common_block(kernel: Kernel, loops: Iterable[int]) -> int:
    return lcm(*(block_of(kernel, name) for name in loops))


def shorter_loops(kernel: Kernel, rows: UOp) -> UOp:
    """The ast with every loop that a mask cuts off ended there, rounded up to a place where all their blocks end."""
    found = cut_loops(kernel, rows)
    together = common_block(kernel, found)
    whole = next(axis.size for axis in kernel.start.toposort() if axis.op is Ops.RANGE and axis.arg.id == rows.arg.id)
    past = ((rows + 1) * block_of(kernel, rows.arg.id)).minimum(whole)  # the first row after this block
    changes = {}
    for axis in kernel.axes:
        if axis.arg.id in found:
            blocks = (past + (found[axis.arg.id] + together - 1)) // together
            end = (blocks * (together // block_of(kernel, axis.arg.id))).minimum(axis.size)
            changes[axis] = axis.replace(src=(end,))
    return substitute_told(kernel.ast, changes, f"CUT({rows.arg.id})")
