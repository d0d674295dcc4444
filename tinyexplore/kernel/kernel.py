"""Kernel: an ast in range form, the Opts that were applied to it, and the Opts that could be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.cut import cut_obstacle, shorter_loops
from tinyexplore.kernel.opt import Opt, OptError, OptOps
from tinyexplore.kernel.rows import copies_result, filling, keeps_row, kept_along, more_rows, split_row
from tinyexplore.kernel.stage import collect_obstacle, collected_stores, stage_obstacle, staged_loads
from tinyexplore.kernel.told import substitute_told
from tinyexplore.kernel.words import IN_A_WORD, summed_in_words, words_obstacle
from tinyexplore.target import Target
from tinyexplore.trace import Derived, OptApplied, active_recorder
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import as_size, simplified, text

OUTPUT_KINDS = (AxisKind.GLOBAL, AxisKind.THREAD, AxisKind.LOCAL)
LOOP_KINDS = (AxisKind.GLOBAL, AxisKind.LOCAL)
REDUCE_KINDS = (AxisKind.REDUCE, AxisKind.GROUP)
WITHOUT_AMOUNT = (OptOps.THREAD, OptOps.STAGE, OptOps.COLLECT, OptOps.CUT)
AMOUNTS = (2, 3, 4, 6, 8, 12, 16, 32)


@dataclass(frozen=True, eq=False)
class Kernel:
    """`ast` is a SINK of STOREs over RANGEs; `original` as the scheduler wrote it; `start` before the first Opt.

    Between `original` and `start` lie only changes that are no choice: axes merged or split (`kernel/merge.py`).
    """

    ast: UOp
    target: Target
    original: UOp
    start: UOp
    applied: tuple[Opt, ...] = ()

    @staticmethod
    def of(ast: UOp, target: Target) -> Kernel:
        return Kernel(ast, target, ast, ast)

    def restarted(self, ast: UOp) -> Kernel:
        """The same kernel with other axes, before any Opt."""
        return Kernel(ast, self.target, self.original, ast)

    # *** asking ***

    @cached_property
    def nodes(self) -> list[UOp]:
        return self.ast.toposort()

    @cached_property
    def axes(self) -> tuple[UOp, ...]:
        """Every RANGE, outermost first."""
        return tuple(sorted((node for node in self.nodes if node.op is Ops.RANGE), key=lambda axis: axis.arg.id))

    @cached_property
    def reduces(self) -> tuple[UOp, ...]:
        return tuple(node for node in self.nodes if node.op is Ops.REDUCE)

    @cached_property
    def output_axes(self) -> tuple[UOp, ...]:
        """The RANGEs that the stores leave open."""
        return tuple(axis for axis in self.axes if any(axis in store.ranges for store in self.ast.src))

    @property
    def name(self) -> str:
        """r (reduces) or E (elementwise) and the sizes of the axes, outermost first; the largest after CUT."""
        kind = "r" if self.reduces else "E"
        ends = [str(axis.size) if axis.src[0].ranges else text(axis.src[0]) for axis in self.axes]
        sizes = [re.sub(r"\W", "", end, flags=re.ASCII) for end in ends]
        return "_".join((kind, *sizes)) if sizes else f"{kind}_1"

    @cached_property
    def steps(self) -> int:
        """How many times the innermost body runs (at most), of the nest that runs it most."""
        most = prod(axis.size for axis in self.output_axes)
        for reduce in self.reduces:
            most = max(most, prod(axis.size for axis in reduce.ranges | set(reduce.src[1:])))
        return most

    @cached_property
    def vector_dtype(self) -> DType:
        """The widest type that the kernel loads, stores or accumulates: it says how many lanes a vector has."""
        widest = dtypes.bool
        for node in self.nodes:
            if node.op in (Ops.LOAD, Ops.REDUCE, Ops.STORE):
                dtype = node.src[1].dtype if node.op is Ops.STORE else node.dtype
                if dtype.itemsize > widest.itemsize:
                    widest = dtype
        return widest if widest not in self.target.storage_only else dtypes.float32

    @property
    def lanes(self) -> int:
        return self.target.lanes(self.vector_dtype)

    @cached_property
    def gathered_along(self) -> frozenset[UOp]:
        """The axes along which some address, or whether it is one, depends on a loaded value."""
        found: set[UOp] = set()
        for node in self.nodes:
            if node.op is Ops.INDEX:
                for src in node.src[1:]:
                    found.update(*(part.ranges for part in src.toposort() if part.op is Ops.LOAD))
        return frozenset(found)

    @cached_property
    def copied_along(self) -> frozenset[UOp]:
        """The axes of which each step has a staged copy of its own."""
        found: set[UOp] = set()
        for node in self.nodes:
            if node.op is Ops.BARRIER and not keeps_row(node):
                found |= node.ranges
        return frozenset(found)

    @cached_property
    def result_copies(self) -> tuple[UOp, ...]:
        """The BARRIERs of a scatter: its steps change what they name step by step, each of them once."""
        return tuple(barrier for barrier in filling(self) if copies_result(barrier))

    def axis(self, axis_id: int) -> UOp:
        for axis in self.axes:
            if axis.arg.id == axis_id:
                return axis
        known = ", ".join(f"{axis.arg.name} of size {text(axis.src[0])}" for axis in self.axes)
        raise OptError(f"no axis {axis_id} in this kernel; it has {known or 'none'}")

    # *** changing ***

    def apply(self, opt: Opt, reason: str = "") -> Kernel:
        """The kernel after `opt`; OptError where it is not legal."""
        axis = self.axis(opt.axis)
        self.check(opt, axis)
        if opt.op is OptOps.THREAD:
            ast = substitute_told(self.ast, {axis: axis.replace(arg=Axis(axis.arg.id, AxisKind.THREAD))}, str(opt))
        elif opt.op is OptOps.SWAP:
            other = self.axis(opt.amount)
            trade = {axis: axis.replace(arg=Axis(other.arg.id, axis.arg.kind))}
            trade[other] = other.replace(arg=Axis(axis.arg.id, other.arg.kind))
            ast = substitute_told(self.ast, trade, str(opt))
        elif opt.op is OptOps.MERGE:
            ast = substitute_told(self.ast, self.merged(axis, self.axis(opt.amount)), str(opt))
        elif opt.op is OptOps.CUT:
            ast = shorter_loops(self, axis)
        elif opt.op is OptOps.STAGE:
            ast = substitute_told(self.ast, staged_loads(self, axis), str(opt))
        elif opt.op is OptOps.COLLECT:
            ast = substitute_told(self.ast, collected_stores(self), str(opt))
        elif opt.op is OptOps.TC:
            ast = summed_in_words(self, axis, opt)
        elif axis.arg.kind in REDUCE_KINDS:
            ast = self.split_reduce(axis, opt)
        elif axis.arg.kind is AxisKind.ROW:
            ast = split_row(self, axis, opt)
        else:
            places = self.split_output(axis, opt)
            ast = substitute_told(self.with_edge(axis, opt), more_rows(self, axis, opt, self.next_id()), str(opt))
            ast = substitute_told(ast, places, str(opt))
        after = replace(self, ast=ast, applied=(*self.applied, opt))
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(OptApplied(self, opt, after, reason))
        return after

    def undo(self) -> Kernel:
        """The kernel without the last Opt."""
        kernel = self.restarted(self.start)
        for opt in self.applied[:-1]:
            kernel = kernel.apply(opt)
        return kernel

    def available_opts(self) -> tuple[Opt, ...]:
        """Every Opt (with the usual amounts) that is legal now."""
        found = []
        for axis in self.axes:
            for op in OptOps:
                amounts: tuple[int, ...] = (0,) if op in WITHOUT_AMOUNT else AMOUNTS
                if op is OptOps.SWAP:
                    amounts = tuple(other.arg.id for other in self.output_axes if other.arg.id > axis.arg.id)
                if op is OptOps.TC:
                    amounts = tuple(sorted(set(IN_A_WORD.values())))
                if op is OptOps.MERGE:
                    amounts = tuple(other.arg.id for other in self.output_axes if other is not axis)
                for amount in amounts:
                    opt = Opt(op, axis.arg.id, amount)
                    if self.obstacle(opt, axis) is None:
                        found.append(opt)
        return tuple(found)

    def check(self, opt: Opt, axis: UOp) -> None:
        obstacle = self.obstacle(opt, axis)
        if obstacle is not None:
            by = f" by {opt.amount}" if opt.amount else ""
            raise OptError(f"{opt.op.name} axis {opt.axis}{by}: {obstacle}")

    def obstacle(self, opt: Opt, axis: UOp) -> str | None:
        """What stands against `opt`, in words; None where it is legal."""
        kind, size = axis.arg.kind, axis.size
        if any(done.op is OptOps.CUT for done in self.applied):
            return "loops end at a place that depends on others by now: CUT comes last"
        if opt.op is OptOps.CUT:
            return cut_obstacle(self, axis)
        if self.result_copies and (found := self.scatter_obstacle(opt, axis)) is not None:
            return found
        if opt.op is OptOps.THREAD:
            return self.thread_obstacle(axis)
        if opt.op is OptOps.SWAP:
            return self.swap_obstacle(axis, self.axis(opt.amount))
        if opt.op is OptOps.MERGE:
            return self.merge_obstacle(axis, self.axis(opt.amount))
        if opt.op is OptOps.STAGE:
            return stage_obstacle(self, axis)
        if opt.op is OptOps.COLLECT:
            return collect_obstacle(self, axis)
        if opt.op is OptOps.TC:
            return words_obstacle(self, axis, opt.amount)
        if axis in self.copied_along:
            return "what is staged is copied once for each step of it: do this before STAGE"
        if opt.amount < 2 or opt.amount > size:
            return f"the axis has size {size}; choose an amount from 2 to {size}"
        if opt.op in (OptOps.UNROLL, OptOps.GROUP):
            return None if kind is AxisKind.REDUCE else f"the axis is {kind.value}, and only reduce axes do this"
        if opt.op is OptOps.VECTOR:
            return self.vector_obstacle(opt, axis)
        if opt.op in (OptOps.LOCAL, OptOps.GROUP) and not axis.is_static:
            return f"the axis has size {text(axis.src[0])}, and a workgroup has the same size in every call"
        if kind not in LOOP_KINDS and (kind is not AxisKind.ROW or opt.op is not OptOps.UPCAST):
            return f"the axis is {kind.value}, and only output axes that are still loops do this"
        if opt.op is OptOps.LOCAL and any(other.arg.kind is AxisKind.SCAN for other in self.axes):
            return "the loop of a scan must stay innermost"
        if opt.op is OptOps.LOCAL and size == opt.amount:
            return f"the axis has size {size}: a block of all of it changes nothing"
        return None

    def scatter_obstacle(self, opt: Opt, axis: UOp) -> str | None:
        """A scatter adds to what stands in its result by then: no step may come twice, or before the copy."""
        if opt.op in (OptOps.SWAP, OptOps.MERGE, OptOps.LOCAL, OptOps.STAGE, OptOps.COLLECT):
            return "the steps of a scatter come in order, after the copy of what they write into"
        if opt.op is OptOps.THREAD and any(axis not in barrier.ranges for barrier in self.result_copies):
            return "each thread would copy all that the others scatter into"
        if opt.op in (OptOps.VECTOR, OptOps.UPCAST) and axis in self.output_axes:
            if not axis.is_static or axis.size % max(1, opt.amount):
                return f"the last block of an axis of size {text(axis.src[0])} would be scattered twice in part"
        return None

    def vector_obstacle(self, opt: Opt, axis: UOp) -> str | None:
        if axis.arg.kind not in (*LOOP_KINDS, AxisKind.REDUCE, AxisKind.ROW):
            return f"the axis is {axis.arg.kind.value}, and only loops become vectors"
        if opt.amount & (opt.amount - 1) or opt.amount > max(1, self.lanes):
            have = f"a vector of {self.target.name} has {self.lanes} lanes of {self.vector_dtype.name}"
            return f"{have}; choose a power of two up to that"
        if kept_along(self, axis):
            return "along this axis rows are kept in scratch memory, one after the other: lanes would need all at once"
        if axis in self.gathered_along:
            return "along this axis addresses depend on loaded values: each lane would load by itself"
        taken = [other for other in self.axes if other.arg.kind is AxisKind.VECTOR]
        together = [node.ranges for node in self.nodes]
        together += [reduce.src[0].ranges.union(reduce.src[1:]) for reduce in self.reduces]  # lanes that nothing reads
        for other in taken:
            if any(axis in ranges and other in ranges for ranges in together):
                return f"axis {other.arg.id} is a vector already, and a value has lanes along one axis only"
        return None

    def swap_obstacle(self, axis: UOp, other: UOp) -> str | None:
        for one in (axis, other):
            if one.arg.kind not in LOOP_KINDS:
                return f"axis {one.arg.id} is {one.arg.kind.value}, and only output axes that are still loops do this"
        if axis is other:
            return "an axis has nothing to change places with but another"
        if any(node.op is Ops.BARRIER for node in self.nodes):
            return "what is staged was staged for the order that the loops have"
        return None

    def merge_obstacle(self, outer: UOp, inner: UOp) -> str | None:
        for axis, kinds in ((outer, (AxisKind.GLOBAL, AxisKind.UPCAST)), (inner, (AxisKind.GLOBAL,))):
            if axis.arg.kind not in kinds or axis not in self.output_axes:
                what = "output axes that are still loops" + (", or a tile of one," if axis is outer else "")
                return f"axis {axis.arg.id} is {axis.arg.kind.value}, and only {what} do this"
        if outer is inner:
            return "an axis has nothing to merge with but another"
        if any(node.op in (Ops.BARRIER, Ops.SCAN) for node in self.nodes):
            return "what is staged, or runs on from step to step, needs the loops as they are"
        for store in self.ast.src:
            terms, _ = linear_terms(store.src[0].src[1])
            rest = [term for term in terms if term not in (outer, inner)]
            as_one = inner.is_static and inner in terms and terms.get(outer) == terms[inner] * inner.size
            if not as_one or any(term.ranges & {outer, inner} for term in rest):
                return "the result does not walk the two as one"
        return None

    def merged(self, outer: UOp, inner: UOp) -> dict[UOp, UOp]:
        """What stands for the two axes: quotient and remainder of one of both sizes, in the place of the inner."""
        both = UOp.range(simplified(outer.src[0] * inner.size), Axis(inner.arg.id, AxisKind.GLOBAL))
        size = index_const(inner.size)
        return {outer: both.alu(Ops.IDIV, size), inner: both.alu(Ops.MOD, size)}

    def thread_obstacle(self, axis: UOp) -> str | None:
        if self.target.threads < 2:
            return f"{self.target.name} has one thread"
        if axis.arg.kind is not AxisKind.GLOBAL:
            return f"the axis is {axis.arg.kind.value}, and only a global axis is divided among threads"
        if any(other.arg.kind is AxisKind.THREAD for other in self.axes):
            return "another axis is divided among threads already"
        for store in self.ast.src:
            loops = [loop for loop in store.ranges if loop.arg.kind in OUTPUT_KINDS]
            if axis not in loops or min(loops, key=lambda loop: loop.arg.id) is not axis:
                return "the axis is not the outermost loop of every store"
        return None

    def next_id(self) -> int:
        return max((axis.arg.id for axis in self.axes), default=-1) + 1

    def split_output(self, axis: UOp, opt: Opt) -> dict[UOp, UOp]:
        """What stands for `axis` after the split: outer * amount + inner, the last block so that it ends at the end.

        An axis of such blocks is split into blocks of them, which end there too: only the blocks of blocks overlap.
        """
        if not axis.is_static:
            return {axis: self.split_symbolic(axis, opt)}
        size, amount = axis.size, opt.amount
        inner = UOp.range(amount, Axis(self.next_id(), _INNER_KIND[opt.op]))
        if size == amount:
            return {axis: inner}
        blocks = ragged_blocks(axis, self.nodes)
        if blocks is not None:
            place, step, end = blocks
            wide = step * amount
            if end >= wide:
                outer = UOp.range(-(-end // wide), axis.arg)
                start = _clamped(outer * index_const(wide), outer.size * wide, end - wide)
                return {place: start + inner * index_const(step)}
        outer = UOp.range(-(-size // amount), axis.arg)
        return {axis: _clamped(outer * index_const(amount), outer.size * amount, size - amount) + inner}

    def split_symbolic(self, axis: UOp, opt: Opt) -> UOp:
        """The index that stands for an axis of symbolic size after the split.

        Where the size may be less than the amount, a last block cannot begin earlier: then the steps of a tile stay
        at the last place, and lanes past it are masked (`with_edge`).
        """
        end, amount = simplified(axis.src[0]), opt.amount
        inner = UOp.range(amount, Axis(self.next_id(), _INNER_KIND[opt.op]))
        blocks = simplified((end + (amount - 1)) // amount)
        start = index_const(0) if blocks == 1 else UOp.range(blocks, axis.arg) * index_const(amount)
        if simplified(end % amount) == 0:
            return start + inner
        last = as_size(simplified(end - amount))
        if bounds(last)[0] >= 0:
            return start.minimum(last) + inner
        return start + inner if opt.op is OptOps.VECTOR else (start + inner).minimum(as_size(simplified(end - 1)))

    def with_edge(self, axis: UOp, opt: Opt) -> UOp:
        """The ast as the lanes of a vector need it, which may stand past a symbolic end of `axis`.

        Neighbours in memory are masked; where each lane reads by itself, it reads the last place once more.
        """
        end = axis.src[0]
        may_be_short = opt.op is OptOps.VECTOR and bounds(end)[0] < opt.amount
        if axis.is_static or not may_be_short or simplified(end % opt.amount) == 0:
            return self.ast
        stored = {store.src[0] for store in self.ast.src}
        changes: dict[UOp, UOp] = {}
        for node in self.nodes:
            if node.op is not Ops.INDEX or axis not in node.ranges:
                continue
            pointer, idx, *valid = (src.substitute(changes) for src in node.src)
            inside = axis < end
            if node in stored or linear_terms(node.src[1])[0].get(axis) == 1:
                changes[node] = pointer.index(idx, valid[0] & inside if valid else inside)
            else:
                there = {axis: axis.minimum(as_size(simplified(end - 1)))}
                changes[node] = pointer.index(*(part.substitute(there) for part in (idx, *valid)))
        return substitute_told(self.ast, changes, f"{opt}, no further than {text(end)}")

    def split_reduce(self, axis: UOp, opt: Opt) -> UOp:
        """Every REDUCE over `axis` done in blocks; what is left over in a REDUCE of its own."""
        end, amount = simplified(axis.src[0]), opt.amount
        inner = UOp.range(amount, Axis(self.next_id(), _INNER_KIND[opt.op]))
        blocks, left = simplified(end // amount), simplified(end % amount)
        if blocks == 1:
            loops: tuple[UOp, ...] = (inner,)
            place = inner
        else:
            outer = UOp.range(blocks, axis.arg)
            loops = (outer, inner)
            place = outer * index_const(amount) + inner
        changes: dict[UOp, UOp] = {}
        for reduce in self.reduces:
            if axis not in reduce.src[1:]:
                continue
            others = tuple(loop for loop in reduce.src[1:] if loop is not axis)
            body = substitute_told(reduce.src[0], {**changes, axis: place}, str(opt))
            if opt.op is OptOps.GROUP and len(loops) == 2:
                part = UOp(Ops.REDUCE, reduce.dtype, (body, inner), reduce.arg)
                after = UOp(Ops.REDUCE, reduce.dtype, (part, *others, outer), reduce.arg)
            else:
                after = UOp(Ops.REDUCE, reduce.dtype, (body, *others, *loops), reduce.arg)
            _tell(reduce, after, str(opt))
            if left != 0:
                rest = UOp.range(left, Axis(self.next_id() + 1, AxisKind.REDUCE))
                tail = rest + as_size(simplified(end - left))
                renamed = {axis: tail, **self.fresh_inner_loops(reduce.src[0], axis)}
                rest_body = substitute_told(reduce.src[0], {**changes, **renamed}, str(opt))
                remainder = UOp(Ops.REDUCE, reduce.dtype, (rest_body, *others, rest), reduce.arg)
                _tell(reduce, remainder, f"{opt}, what is left over")
                after = after.alu(reduce.arg, remainder)
            changes[reduce] = after
        return substitute_told(self.ast, changes, str(opt))

    def fresh_inner_loops(self, body: UOp, axis: UOp) -> dict[UOp, UOp]:
        """New axes for the reductions inside `body` that depend on `axis`: a copy of it is a nest of its own."""
        nested = [node for node in body.toposort() if node.op is Ops.REDUCE and axis in node.ranges]
        inside = {loop for node in nested for loop in node.src[1:]}
        own = sorted((loop for loop in inside if loop not in body.ranges), key=lambda loop: loop.arg.id)
        first = self.next_id() + 2
        return {loop: UOp.range(loop.src[0], Axis(first + n, loop.arg.kind)) for n, loop in enumerate(own)}


_INNER_KIND = {
    OptOps.VECTOR: AxisKind.VECTOR,
    OptOps.UPCAST: AxisKind.UPCAST,
    OptOps.UNROLL: AxisKind.UNROLL,
    OptOps.LOCAL: AxisKind.LOCAL,
    OptOps.GROUP: AxisKind.GROUP,
}


def ragged_blocks(axis: UOp, nodes: Iterable[UOp]) -> tuple[UOp, int, int] | None:
    """Where `axis` counts overlapping blocks: (the node of a block's start, steps a block, steps in all); else None."""
    users = [node for node in nodes if axis in node.src and node.op not in (Ops.REDUCE, Ops.BARRIER)]
    if len(users) != 1 or users[0].op is not Ops.MUL or users[0].src[1].op is not Ops.CONST:
        return None
    starts = [node for node in nodes if users[0] in node.src]
    if len(starts) != 1 or starts[0].op is not Ops.MIN or starts[0].src[1].op is not Ops.CONST:
        return None
    step, last = users[0].src[1].arg, starts[0].src[1].arg
    return (starts[0], step, last + step) if -(-(last + step) // step) == axis.size else None


def _clamped(start: UOp, end: int, last: int) -> UOp:
    """`start`, or `last` where the block would not end by then; `end`: where the last block ends without."""
    width = start.src[1].arg
    return start if end - width == last else start.minimum(index_const(last))


def _tell(before: UOp, after: UOp, how: str) -> None:
    recorder = active_recorder()
    if recorder is not None and before is not after:
        recorder.record(Derived(before, after, how))
