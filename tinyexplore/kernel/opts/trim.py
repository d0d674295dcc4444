"""TRIM: stops loops after the last step that the mask keeps, as in causal attention.

A masked value is constant wherever its condition fails: −∞ before a softmax, and 0 after its exponential. A sum may
stop where all further terms are 0, a maximum where they are −∞. A row buffer is filled only up to the position where
its readers stop. (A masked 0 drops its product with any value, even with an infinite one. A 0 that a program writes
itself is an ordinary number: 0 · ∞ is NaN.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, lcm, prod
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.masks import causal_mask
from tinyexplore.kernel.analysis.work_groups import group_dimensions
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.uop import ops_mask

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

IDENTITY = {Ops.ADD: 0.0, Ops.MAX: -inf, Ops.MIN: inf}
LONGEST_BLOCK = 1024
MASKED = ops_mask((Ops.WHERE,))
EFFECT = Effect(
    "Stops loops after the last step that the mask keeps (`amount` is not used; no Opt may follow)",
    before="""\
for i in 0..64: for k in 0..64: acc += p[k] * v[k]
                                        (p[k] = 0 for k > i)""",
    after="for i in 0..64: for k in 0..i+1: acc += p[k] * v[k]",
)


def masked_reduces(kernel: Kernel, rows: UOp, nodes: Sequence[UOp]) -> dict[int, int]:
    """Returns for each reduction loop that a causal mask ends, by id, how many columns past each of `rows` it runs."""
    ahead_of: dict[int, int] = {}
    untrimmed: set[int] = set()
    for reduce in nodes:
        if reduce.op is not Ops.REDUCE:
            continue
        mask = causal_mask(reduce.src[0])
        for axis in reduce.src[1:]:
            name = axis.arg.id
            if mask is None or mask.column is not axis or mask.row.arg.id != rows.arg.id:
                untrimmed.add(name)
            elif mask.constant != IDENTITY.get(reduce.arg) or not has_full_blocks(kernel, axis):
                untrimmed.add(name)
            else:
                ahead_of[name] = max(mask.ahead, ahead_of.get(name, mask.ahead))
    return {name: ahead for name, ahead in ahead_of.items() if name not in untrimmed}


def trimmed_loops(kernel: Kernel, rows: UOp) -> dict[int, int]:
    """Returns for each loop that can end early for each block of `rows`, by id, how many columns past the row it must
    run.

    The analysis reads the ast before any Opt, in which no loop is split. The outer part of a split loop keeps its id.
    """
    if not kernel.start.mask & MASKED:
        return {}
    loops = {axis.arg.id for axis in kernel.axes if axis.arg.kind in (AxisKind.REDUCE, AxisKind.ROW)}
    nodes = kernel.start.toposort()
    ahead_of = {name: ahead for name, ahead in masked_reduces(kernel, rows, nodes).items() if name in loops}
    loads = [node for node in nodes if node.op is Ops.LOAD and len(node.src) == 2]
    for barrier in sorted({load.src[1] for load in loads}, key=lambda barrier: barrier.src[1].arg.id):
        readers = [load.src[0].src[1] for load in loads if load.src[1] is barrier]
        name = barrier.src[1].arg.id
        if len(barrier.src) == 2 and name in loops:
            if all(reader.op is Ops.RANGE and reader.arg.id in ahead_of for reader in readers):
                ahead_of[name] = max(ahead_of[reader.arg.id] for reader in readers)
    return ahead_of


def has_full_blocks(kernel: Kernel, axis: UOp) -> bool:
    """Whether all blocks of `axis`, an axis of the ast before any Opt, are full."""
    return axis.is_static and axis.size % block_of(kernel, axis.arg.id) == 0


def block_of(kernel: Kernel, axis_id: int) -> int:
    """Returns how many steps of an axis before any Opt one step of its loop now covers."""
    return prod(opt.amount for opt in kernel.applied if opt.op.splits and opt.axis == axis_id)


def legality_error(kernel: Kernel, rows: UOp, _: int = 0) -> str | None:
    """Returns why TRIM of the axis `rows` is illegal; None if it is legal."""
    if rows.arg.kind not in (AxisKind.GLOBAL, AxisKind.THREAD):
        return f"the axis is {rows.arg.kind.value}; TRIM needs an output axis that is a loop"
    if kernel.result_copies:
        return "a step of a scatter may read the writes of earlier steps, so no step may be skipped"
    if kernel.target.has_local and group_dimensions(kernel.ast):
        return "all work-items of a group must run the same number of steps"
    if any(opt.op.moves for opt in kernel.applied):
        return "an earlier Opt reordered or merged loops, so the loops of the mask are unknown"
    loops = trimmed_loops(kernel, rows)
    if not loops:
        return "no causal mask hides the last steps of a loop from the rows of this axis"
    if (block_steps := common_block(kernel, loops)) > LONGEST_BLOCK:
        return f"the least common multiple of the loops' block sizes is {block_steps}; the limit is {LONGEST_BLOCK}"
    return None


def common_block(kernel: Kernel, loops: Iterable[int]) -> int:
    """Returns the number of steps after which the blocks of all these loops end together."""
    return lcm(*(block_of(kernel, name) for name in loops))


def apply(kernel: Kernel, rows: UOp, opt: Opt) -> UOp:
    """Ends masked loops early, at the next index where the blocks of all these loops end."""
    loops = trimmed_loops(kernel, rows)
    block_steps = common_block(kernel, loops)
    row_count = next(
        axis.size for axis in kernel.start.toposort() if axis.op is Ops.RANGE and axis.arg.id == rows.arg.id
    )
    next_row = ((rows + 1) * block_of(kernel, rows.arg.id)).minimum(row_count)  # the first row after this block
    changes = {}
    for axis in kernel.axes:
        if axis.arg.id in loops:
            blocks = (next_row + (loops[axis.arg.id] + block_steps - 1)) // block_steps
            stop = (blocks * (block_steps // block_of(kernel, axis.arg.id))).minimum(axis.size)
            changes[axis] = axis.replace(src=(stop,))
    return substitute_recorded(kernel.ast, changes, str(opt))


KIND = OptKind((EFFECT,), legality_error, apply, reason_to_be_last="its loop bounds depend on other loops")
