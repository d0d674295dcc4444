"""What stands against an Opt, in words: every rule of what is legal on a loop nest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.cut import SPLITS, cut_obstacle
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.pipe import SHORTEST_BLOCK, find_piped
from tinyexplore.kernel.rows import is_after_copy, kept_along
from tinyexplore.kernel.stage import collect_obstacle, stage_obstacle
from tinyexplore.kernel.strides import strides_of
from tinyexplore.kernel.words import words_obstacle
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

OUTPUT_KINDS = (AxisKind.GLOBAL, AxisKind.THREAD, AxisKind.LOCAL)
WRITTEN_OUT = (AxisKind.VECTOR, AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.COPY)
SPLITS_AXIS = SPLITS | {OptOps.MERGE, OptOps.TC}
LOOP_KINDS = (AxisKind.GLOBAL, AxisKind.LOCAL)


def obstacle(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """What stands against `opt`, in words; None where it is legal."""
    kind, size = axis.arg.kind, axis.size
    if any(done.op is OptOps.CUT for done in kernel.applied):
        return "loops end at a place that depends on others by now: CUT comes last"
    if any(done.op is OptOps.PIPE for done in kernel.applied):
        return "results are stored in the step after their own by now: PIPE comes last"
    if opt.op is OptOps.CUT:
        return cut_obstacle(kernel, axis)
    if kernel.result_copies and (found := scatter_obstacle(kernel, opt, axis)) is not None:
        return found
    if opt.op is OptOps.AHEAD:
        return ahead_obstacle(kernel, axis, opt.amount)
    if opt.op is OptOps.PIPE:
        return pipe_obstacle(kernel, axis, opt.amount)
    if opt.op in SPLITS_AXIS and (axis.arg.ahead or opt.op is OptOps.MERGE and kernel.axis(opt.amount).arg.ahead):
        return "the axis looks ahead by so many of the steps that it has: do this before AHEAD"
    if opt.op is OptOps.THREAD:
        return thread_obstacle(kernel, axis)
    if opt.op is OptOps.SWAP:
        return swap_obstacle(kernel, axis, kernel.axis(opt.amount))
    if opt.op is OptOps.MERGE:
        return merge_obstacle(kernel, axis, kernel.axis(opt.amount))
    if opt.op is OptOps.STAGE:
        return stage_obstacle(kernel, axis)
    if opt.op is OptOps.COLLECT:
        return collect_obstacle(kernel, axis)
    if opt.op is OptOps.TC:
        return words_obstacle(kernel, axis, opt.amount)
    if axis in kernel.copied_along:
        return "what is staged is copied once for each step of it: do this before STAGE"
    if opt.amount < 2 or opt.amount > size:
        return f"the axis has size {size}; choose an amount from 2 to {size}"
    if opt.op in (OptOps.UNROLL, OptOps.GROUP):
        return None if kind is AxisKind.REDUCE else f"the axis is {kind.value}, and only reduce axes do this"
    if opt.op is OptOps.VECTOR:
        return vector_obstacle(kernel, opt, axis)
    if opt.op in (OptOps.LOCAL, OptOps.GROUP) and not axis.is_static:
        return f"the axis has size {text(axis.src[0])}, and a workgroup has the same size in every call"
    if kind not in LOOP_KINDS and (kind is not AxisKind.ROW or opt.op is not OptOps.UPCAST):
        return f"the axis is {kind.value}, and only output axes that are still loops do this"
    if opt.op is OptOps.LOCAL and any(other.arg.kind is AxisKind.SCAN for other in kernel.axes):
        return "the loop of a scan must stay innermost"
    if opt.op is OptOps.LOCAL and size == opt.amount:
        return f"the axis has size {size}: a block of all of it changes nothing"
    return None


def scatter_obstacle(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """A scatter adds to what stands in its result by then: no step may come twice, or before the copy."""
    if opt.op in (OptOps.SWAP, OptOps.MERGE, OptOps.LOCAL, OptOps.STAGE, OptOps.COLLECT):
        return "the steps of a scatter come in order, after the copy of what they write into"
    if opt.op is OptOps.THREAD and is_after_copy(kernel, axis):
        return "each thread would copy all that the others scatter into"
    if opt.op in (OptOps.VECTOR, OptOps.UPCAST) and axis in kernel.output_axes:
        if not axis.is_static or axis.size % max(1, opt.amount):
            return f"the last block of an axis of size {text(axis.src[0])} would be scattered twice in part"
    return None


def vector_obstacle(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    if axis.arg.kind is AxisKind.SCAN:
        if (found := scan_obstacle(kernel, axis)) is not None:
            return found
    elif axis.arg.kind not in (*LOOP_KINDS, AxisKind.REDUCE, AxisKind.ROW):
        return f"the axis is {axis.arg.kind.value}, and only loops become vectors"
    if opt.amount & (opt.amount - 1) or opt.amount > max(1, kernel.lanes):
        have = f"a vector of {kernel.target.name} has {kernel.lanes} lanes of {kernel.vector_dtype.name}"
        return f"{have}; choose a power of two up to that"
    if kept_along(kernel, axis):
        return "along this axis rows are kept in scratch memory, one after the other: lanes would need all at once"
    if axis in kernel.gathered_along:
        return "along this axis addresses depend on loaded values: each lane would load by itself"
    taken = [other for other in kernel.axes if other.arg.kind is AxisKind.VECTOR]
    if not taken:
        return None
    together = [node.ranges for node in kernel.nodes]
    together += [reduce.src[0].ranges.union(reduce.src[1:]) for reduce in kernel.reduces]  # lanes that nothing reads
    for other in taken:
        if any(axis in ranges and other in ranges for ranges in together):
            return f"axis {other.arg.id} is a vector already, and a value has lanes along one axis only"
    return None


def scan_obstacle(kernel: Kernel, axis: UOp) -> str | None:
    """Lanes of a running result are combined with each other first: only where that comes to the same."""
    for node in kernel.find(Ops.SCAN):
        if node.src[-1] is axis:
            if node.arg is Ops.MULACC:
                return "each step multiplies what the one before left: lanes would need it first"
            if node.arg is Ops.MUL and not dtypes.is_int(node.dtype):
                return "of lanes multiplied with each other first some may overflow, where a zero before them says 0"
            return None
    return "steps of a scatter come in order"


def swap_obstacle(kernel: Kernel, axis: UOp, other: UOp) -> str | None:
    for one in (axis, other):
        if one.arg.kind not in LOOP_KINDS:
            return f"axis {one.arg.id} is {one.arg.kind.value}, and only output axes that are still loops do this"
    if axis is other:
        return "an axis has nothing to change places with but another"
    if kernel.find(Ops.BARRIER):
        return "what is staged was staged for the order that the loops have"
    return None


def merge_obstacle(kernel: Kernel, outer: UOp, inner: UOp) -> str | None:
    for axis, kinds in ((outer, (AxisKind.GLOBAL, AxisKind.UPCAST)), (inner, (AxisKind.GLOBAL,))):
        if axis.arg.kind not in kinds or axis not in kernel.output_axes:
            what = "output axes that are still loops" + (", or a tile of one," if axis is outer else "")
            return f"axis {axis.arg.id} is {axis.arg.kind.value}, and only {what} do this"
    if outer is inner:
        return "an axis has nothing to merge with but another"
    if kernel.find(Ops.BARRIER) or kernel.find(Ops.SCAN):
        return "what is staged, or runs on from step to step, needs the loops as they are"
    for store in kernel.ast.src:
        terms, _ = linear_terms(store.src[0].src[1])
        rest = [term for term in terms if term not in (outer, inner)]
        as_one = inner.is_static and inner in terms and terms.get(outer) == terms[inner] * inner.size
        if not as_one or any(term.ranges & {outer, inner} for term in rest):
            return "the result does not walk the two as one"
    return None


def ahead_obstacle(kernel: Kernel, axis: UOp, steps: int) -> str | None:
    if axis.arg.kind in WRITTEN_OUT:
        return f"the axis is {axis.arg.kind.value}, and only loops do this"
    if any(other.arg.ahead for other in kernel.axes):
        return "a loop looks ahead already"
    if not 1 <= steps < axis.size:
        return f"the axis has size {axis.size}; choose steps from 1 to {axis.size - 1}"
    for node in kernel.find(Ops.LOAD):
        if len(node.src) == 1 and node.src[0].src[0].op is Ops.DEFINE_GLOBAL:
            if strides_of(node.src[0].src[1]).get(axis):
                return None
    return "no address that is read moves by the same distance with each step of it"


def pipe_obstacle(kernel: Kernel, axis: UOp, steps: int) -> str | None:
    found = find_piped(kernel, axis)
    if isinstance(found, str):
        return found
    if not SHORTEST_BLOCK <= steps <= axis.size // 2:
        return f"the axis has size {axis.size}; choose blocks of {SHORTEST_BLOCK} to half of that"
    return None


def thread_obstacle(kernel: Kernel, axis: UOp) -> str | None:
    if kernel.target.threads < 2:
        return f"{kernel.target.name} has one thread"
    if axis.arg.kind is not AxisKind.GLOBAL:
        return f"the axis is {axis.arg.kind.value}, and only a global axis is divided among threads"
    if any(other.arg.kind is AxisKind.THREAD for other in kernel.axes):
        return "another axis is divided among threads already"
    for store in kernel.ast.src:
        loops = [loop for loop in store.ranges if loop.arg.kind in OUTPUT_KINDS]
        if axis not in loops or min(loops, key=lambda loop: loop.arg.id) is not axis:
            return "the axis is not the outermost loop of every store"
    return None
