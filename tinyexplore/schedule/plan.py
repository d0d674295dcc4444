"""Kernels during fusion: their loops, the nodes they store, and every use of a LazyBuffer in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.indexing import ZERO, Conditions, Index, from_terms_of
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.uop.symbolic import sint, variables

IN_ORDER = (Ops.SCAN_AXIS, Ops.SCATTER, Ops.FETCH_ADD)


@dataclass(eq=False)
class KernelPlan:
    """One kernel during fusion.

    shape: the shape of its output loops.
    device: the device that will run it.
    idxs: the index expressions of its outputs.
    loops: its output loops, outermost first.
    next_axis: the id of the next new axis.
    stores: the LazyBuffers that it stores.
    rows: number of row buffers.
    uses: every use of a node in this kernel.
    op_count: number of operations.
    sums: its reductions outside of other reductions' loops.
    """

    shape: tuple[sint, ...]
    device: str
    idxs: Index
    loops: tuple[UOp, ...]
    next_axis: int
    stores: list[LazyBuffer] = field(default_factory=list)
    rows: int = 0
    uses: list[tuple[LazyBuffer, Use]] = field(default_factory=list)
    op_count: int = 0
    sums: list[LazyBuffer] = field(default_factory=list)

    @staticmethod
    def over(root: LazyBuffer, bounds: frozenset[int] = frozenset()) -> KernelPlan:
        """Returns a kernel that loops over the elements of `root`, row-major. A scan's axis runs in order, inside all
        other loops.

        For a scatter, the loops are over the scattered values, in order along its axis. An axis becomes two loops if
        one of `bounds` (numbers of elements) lies inside it: a step of the outer loop covers that many elements.
        """
        in_order = root.arg[1] if root.op in IN_ORDER else None
        shape = root.src[-1].shape if root.op is Ops.SCATTER else root.shape
        order = sorted(range(len(shape)), key=lambda axis: root.op is Ops.SCAN_AXIS and axis == in_order)
        idxs: list[UOp] = [ZERO] * len(shape)
        ranges: list[UOp] = []
        for axis in order:
            if shape[axis] == 1:
                continue
            axis_kind = AxisKind.SCAN if axis == in_order else AxisKind.GLOBAL
            axis_digits = []
            for size, step in digits(shape, axis, bounds):
                ranges.append(UOp.range(size, Axis(len(ranges), axis_kind)))
                axis_digits.append((ranges[-1], step))
            idxs[axis] = from_terms_of(*axis_digits)
        return KernelPlan(root.shape, root.device, tuple(idxs), tuple(ranges), len(ranges), [root])

    def inner_range(self, size: sint, axis_kind: AxisKind) -> UOp:
        self.next_axis += 1
        return UOp.range(size, Axis(self.next_axis - 1, axis_kind))


def digits(shape: tuple[sint, ...], axis: int, bounds: frozenset[int]) -> list[tuple[sint, int]]:
    """Returns the loops of an axis as (size, stride in the axis), outermost first. Each of `bounds` inside the axis
    splits it."""
    sizes = [size for size in shape[axis:] if isinstance(size, int)]
    if not bounds or len(sizes) < len(shape) - axis:
        return [(shape[axis], 1)]
    result: list[tuple[sint, int]] = []
    outer_size, inner = sizes[0], prod(sizes[1:])
    step = 1
    for bound in sorted(bounds):
        inner_count, remainder = divmod(bound, inner * step)
        if (
            remainder == 0
            and 1 < inner_count
            and outer_size % (step * inner_count) == 0
            and step * inner_count < outer_size
        ):
            result.insert(0, (inner_count, step))
            step *= inner_count
    return [(outer_size // step, step), *result]


@dataclass(eq=False, slots=True)
class Use:
    """One use of a node in a kernel: the elements that the kernel needs of the node.

    plan: the kernel.
    idxs: the index expressions of the elements.
    conditions: conditions under which the elements are needed.
    loops: the loops around the use, outermost first.
    executions: how often the use is executed, at most.
    sources: the uses of the node's sources.
    ranges: the loops of the node's own reduction.
    gathered_index: the index that a gather reads, or None.
    row_buffer: the row buffer that the elements are read from, or None.
    """

    plan: KernelPlan
    idxs: Index
    conditions: Conditions
    loops: tuple[UOp, ...]
    executions: int
    sources: tuple[Use, ...] = ()
    ranges: tuple[UOp, ...] = ()
    gathered_index: UOp | None = None  # stands for a gathered position until the index is computed
    row_buffer: RowBuffer | None = None  # the row buffer that holds the value, if it is not computed here

    @property
    def key(self) -> tuple[Index, Conditions]:
        return self.idxs, self.conditions


@dataclass(eq=False, slots=True)
class RowBuffer:
    """A row buffer in scratch memory.

    number: its number in the kernel.
    fill_use: the use that computes the row.
    axes: the node's axes that form the row.
    ranges: the loops that fill it, one for each of `axes`.
    """

    number: int
    fill_use: Use
    axes: tuple[int, ...]
    ranges: tuple[UOp, ...]


def make_use(plan: KernelPlan, idxs: Index, conditions: Conditions, loops: tuple[UOp, ...]) -> Use:
    """Returns a use inside only the `loops` that its index needs: the deepest such loop, and the loops around it.

    Drops conditions on loops and Variables that the index does not depend on.
    """
    index_loops: frozenset[UOp] = frozenset()
    for idx in idxs:
        index_loops |= idx.ranges
    needed_conditions = tuple(
        [c for c in conditions if c.ranges & index_loops or not variables(c).isdisjoint(variables(*idxs))]
    )
    for condition in needed_conditions:
        index_loops |= condition.ranges
    depth = max((number + 1 for number, loop in enumerate(loops) if loop in index_loops), default=0)
    inner = loops[:depth]
    return Use(plan, idxs, needed_conditions, inner, prod(loop.size for loop in inner))
