"""Pass "argmax": finds the index of an extreme in the loop that finds the extreme."""

from __future__ import annotations

from collections.abc import Mapping

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.argextremes import ArgExtreme, find_argextremes
from tinyexplore.trace import active_recorder, node_derived
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.identity import reduce_identity


def fuse_argmax(sink: UOp, lowering: Lowering) -> UOp:
    """Fuses the loop that finds an extreme with the loop that finds its first index: the last step with a better value.

        for k: m = max(m, x[k]); for k: p = min(p, k if x[k] == m else none)  →  for k: if x[k] > m: m, p = x[k], k

    The first NaN is better than all values, and no value is better than NaN. If several extremes are found at the same
    time (in lanes, for example), only the indices of those count that equal the extreme of all.
    """
    argextremes = list(find_argextremes(sink.find(Ops.REDUCE)))
    if not argextremes:
        return sink
    extremes = {argextreme.extreme: register_of(argextreme.extreme, lowering) for argextreme in argextremes}
    changes = {extreme: value_after_loops(extreme, best, value) for extreme, (best, value) in extremes.items()}
    index_of = {
        argextreme.index_reduce: index_found(argextreme, extremes, changes, lowering) for argextreme in argextremes
    }
    recorder = active_recorder()
    if recorder is not None:
        for node, replacement in (*changes.items(), *index_of.items()):
            recorder.record(node_derived((node, replacement, "found in one loop")))
    return sink.substitute({**changes, **index_of}, how="found in one loop")


def register_of(extreme: UOp, lowering: Lowering) -> tuple[UOp, UOp]:
    """Returns the register of an extreme, and the value that a step assigns to it."""
    value = extreme.src[0]
    best = UOp(Ops.DEFINE_ACC, value.dtype, (reduce_identity(extreme.arg, value.dtype),), next(lowering.numbers))
    return best, is_new_extreme(value, best, extreme.arg).where(value, best)


def index_found(
    argextreme: ArgExtreme, extremes: Mapping[UOp, tuple[UOp, UOp]], changes: Mapping[UOp, UOp], lowering: Lowering
) -> UOp:
    """Returns the index that is kept along with its extreme, or the value for no index if another extreme is better."""
    _, at_step, none = argextreme.index_reduce.src[0].src
    first_index = at_step.substitute(dict.fromkeys(argextreme.loops, index_const(0)))
    index_register = UOp(Ops.DEFINE_ACC, at_step.dtype, (first_index,), next(lowering.numbers))
    is_better = extremes[argextreme.extreme][1].src[0]
    index = value_after_loops(
        argextreme.extreme, index_register, is_better.where(at_step.substitute(argextreme.loops), index_register)
    )
    extreme = changes[argextreme.extreme]
    counts = extreme.eq(argextreme.whole.substitute(changes))
    if argextreme.or_nan:
        counts = counts | extreme.ne(extreme)
    return counts.where(index, none)


def value_after_loops(reduce: UOp, register: UOp, changed: UOp) -> UOp:
    """Returns the value of a register after the loops of `reduce`."""
    assigned = UOp(Ops.ASSIGN, register.dtype, (register, changed))
    return UOp(Ops.RESULT, register.dtype, (register, assigned, *reduce.src[1:]))


def is_new_extreme(value: UOp, best: UOp, op: Ops) -> UOp:
    """Returns whether `value` is greater (less, for MIN) than `best`, or the first NaN."""
    smaller, larger = (best, value) if op is Ops.MAX else (value, best)
    if not dtypes.is_float(value.dtype):
        return smaller < larger
    return (larger <= smaller).alu(Ops.XOR, UOp.const(dtypes.bool.vec(value.dtype.count), True)) & best.eq(best)


__all__ = ["fuse_argmax"]
