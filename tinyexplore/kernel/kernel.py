"""Kernel: an ast over loops (RANGEs), and the Opts that were applied to it. `apply.py` applies Opts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.analysis.argextremes import ArgExtreme, find_argextremes
from tinyexplore.kernel.analysis.barriers import changes_in_steps, fills_row_buffer
from tinyexplore.kernel.analysis.strides import IndexStrides, strides_of
from tinyexplore.kernel.opt import Opt, OptError
from tinyexplore.target import Target
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.symbolic import text

COMPUTED = OpGroups.ALU | {Ops.REDUCE, Ops.SCAN, Ops.CAST, Ops.BITCAST}
WITH_LANES = frozenset({Ops.LOAD, Ops.REDUCE, Ops.STORE})


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel while Opts are applied to it.

    ast: a SINK of STOREs over RANGEs.
    target: the machine that it is for.
    original: the ast as the scheduler wrote it.
    start: the ast before the first Opt. It differs from `original` by axes that are always merged or split
    (`transforms/axes.py`).
    applied: the Opts applied so far, in order.
    """

    ast: UOp
    target: Target
    original: UOp
    start: UOp
    applied: tuple[Opt, ...] = ()

    @staticmethod
    def of(ast: UOp, target: Target) -> Kernel:
        return Kernel(ast, target, ast, ast)

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis.arg.name} {axis.arg.kind.value} {text(axis.src[0])}" for axis in self.axes)
        opts = ", ".join(map(str, self.applied))
        return f"Kernel({axes or 'no axes'}; {f'opts {opts}' if opts else 'no opts'})"

    def restart(self, ast: UOp) -> Kernel:
        """Returns a kernel without Opts over `ast`, the same computation with other axes."""
        return Kernel(ast, self.target, self.original, ast)

    @cached_property
    def nodes(self) -> list[UOp]:
        return self.ast.toposort()

    @cached_property
    def by_op(self) -> dict[Ops, list[UOp]]:
        """The nodes by their operation, sources first."""
        nodes: dict[Ops, list[UOp]] = {}
        for node in self.nodes:
            nodes.setdefault(node.op, []).append(node)
        return nodes

    def find(self, op: Ops) -> list[UOp]:
        """Returns the nodes with this operation, sources first."""
        return self.by_op.get(op, [])

    @cached_property
    def axes(self) -> tuple[UOp, ...]:
        """Every RANGE, outermost first."""
        return tuple(sorted(self.find(Ops.RANGE), key=lambda axis: axis.arg.id))

    @cached_property
    def reduces(self) -> tuple[UOp, ...]:
        return tuple(self.find(Ops.REDUCE))

    @cached_property
    def argextremes(self) -> tuple[ArgExtreme, ...]:
        """Each argmax or argmin that is computed in the loop of its extreme."""
        return tuple(find_argextremes(self.reduces))

    @cached_property
    def plain_reduces(self) -> tuple[UOp, ...]:
        """The REDUCEs that are not the index part of an argmax or argmin."""
        index_reduces = {argextreme.index_reduce for argextreme in self.argextremes}
        return tuple(reduce for reduce in self.reduces if reduce not in index_reduces)

    def with_partners(self, loop: UOp) -> tuple[UOp, ...]:
        """Returns the loop of a maximum and the loops of its argmax. They need the same opts, because they will be
        merged."""
        partners = [
            partner
            for argextreme in self.argextremes
            for partner, extreme_loop in argextreme.loops.items()
            if extreme_loop is loop
        ]
        return (loop, *partners)

    @cached_property
    def output_axes(self) -> tuple[UOp, ...]:
        """The loops of the results: RANGEs around the stores that no reduction closes."""
        left_open = frozenset[UOp]().union(*[store.ranges for store in self.ast.src])
        return tuple([axis for axis in self.axes if axis in left_open])

    @cached_property
    def accesses(self) -> tuple[IndexStrides, ...]:
        """The strides of every INDEX along each axis."""
        stored = {store.src[0] for store in self.ast.src}
        return tuple([IndexStrides(node, node in stored, strides_of(node.src[1])) for node in self.find(Ops.INDEX)])

    @property
    def name(self) -> str:
        """The name: r (reduces) or E (elementwise), then the sizes of the axes, outermost first (after TRIM, the
        largest sizes)."""
        prefix = "r" if self.reduces else "E"
        ends = [str(axis.size) if axis.src[0].ranges else text(axis.src[0]) for axis in self.axes]
        sizes = [re.sub(r"\W", "", size_text, flags=re.ASCII) for size_text in ends]
        return "_".join((prefix, *sizes)) if sizes else f"{prefix}_1"

    @cached_property
    def steps(self) -> int:
        """How often an innermost loop body of the kernel runs at most."""
        most_steps = prod(axis.size for axis in self.output_axes)
        for reduce in self.reduces:
            most_steps = max(most_steps, prod(axis.size for axis in reduce.ranges | set(reduce.src[1:])))
        return most_steps

    @cached_property
    def vector_dtype(self) -> DType:
        """The widest dtype that the kernel loads, stores or computes in. It determines the number of lanes."""
        widest = dtypes.bool
        for node in self.nodes:
            if node.op in WITH_LANES:
                dtype = node.src[1].dtype if node.op is Ops.STORE else node.dtype
                if dtype.itemsize > widest.itemsize:
                    widest = dtype
        if widest not in self.target.storage_only:
            return widest
        computed = [node for node in self.nodes if node.op in COMPUTED]
        types = {operand.dtype for node in computed for operand in (node, *node.src)}
        return dtypes.float32 if widest in types else widest  # a value that is only copied keeps its dtype

    @cached_property
    def lanes(self) -> int:
        return self.target.lanes(self.vector_dtype)

    @cached_property
    def gathered_along(self) -> frozenset[UOp]:
        """The axes along which an address, or its mask, depends on a loaded value."""
        loads: set[UOp] = set()
        for node in self.find(Ops.INDEX):
            for src in node.src[1:]:
                loads.update(*[load.ranges for load in src.find(Ops.LOAD)])
        return frozenset(loads)

    @cached_property
    def copied_along(self) -> frozenset[UOp]:
        """The axes with a separate staged copy for each step."""
        ranges: set[UOp] = set()
        for barrier in self.find(Ops.BARRIER):
            if not fills_row_buffer(barrier):
                ranges |= barrier.ranges
        return frozenset(ranges)

    @cached_property
    def result_copies(self) -> tuple[UOp, ...]:
        """The BARRIERs of a scatter or a FETCH_ADD, whose steps update memory in order, each step once."""
        return tuple(barrier for barrier in self.find(Ops.BARRIER) if changes_in_steps(barrier))

    def axis(self, axis_id: int) -> UOp:
        for axis in self.axes:
            if axis.arg.id == axis_id:
                return axis
        axis_list = ", ".join(f"{axis.arg.name} of size {text(axis.src[0])}" for axis in self.axes)
        raise OptError(f"no axis {axis_id} in this kernel; available: {axis_list or 'none'}")

    def next_id(self) -> int:
        return max((axis.arg.id for axis in self.axes), default=-1) + 1
