"""Pass "prefetch": lets a loop that looks ahead prefetch the data of its reads some steps earlier.

For an address with a constant stride, a PREFETCH requests the address several steps ahead. It may be past the end,
because a prefetch never fails. Of several loads from one cache line, only one is prefetched. If the kernel stores to
loaded addresses, only those addresses are prefetched.
"""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.rewrites.simplify import simplified
from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.strides import strides_of
from tinyexplore.uop import AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_terms


def prefetch_ahead(sink: UOp, lowering: Lowering) -> UOp:
    """Puts a PREFETCH of data that is read some steps later before each load in a loop that looks ahead.

        for k: s += x[16*k]  →  for k: prefetch x[16*(k + 8)]; s += x[16*k]

    In a kernel with a row buffer, only the loop that fills it prefetches: its arithmetic hides the latency.
    """
    if lowering.target.has_local or not any([axis.arg.ahead for axis in sink.find(Ops.RANGE)]):
        return sink  # on a GPU, the pass "double buffering" loads ahead
    loads = [load for load in sink.find(Ops.LOAD) if is_plain(load)]
    prefetching = {load: axis for load in loads if (axis := prefetching_loop(load)) is not None}
    if loads_ahead := find_loads_ahead(sink):
        return sink.substitute(loads_ahead, how="requested ahead")
    row_buffers = {load.src[0].src[0] for load in prefetching if fills_row(load)}
    prefetched: set[object] = set()
    changes: dict[UOp, UOp] = {}
    for load, axis in prefetching.items():
        pointer, idx = load.src[0].src[:2]
        distance = strides_of(idx).get(axis, 0)
        if not distance or (pointer in row_buffers and not fills_row(load)):
            continue
        terms, offset = linear_terms(idx)
        line = (pointer, frozenset(terms.items()), offset * load.dtype.itemsize // lowering.target.line_bytes)
        if line in prefetched:
            continue
        prefetched.add(line)
        index = pointer.index(simplified(idx + index_const(axis.arg.ahead * distance)))
        changes[load] = load.replace(src=(load.src[0], UOp(Ops.PREFETCH, dtypes.void, (index,))))
    return sink.substitute(changes, how="requested ahead")


def find_loads_ahead(sink: UOp) -> dict[UOp, UOp]:
    """Returns for each load in the index of a store the load with a PREFETCH of the address to which a later step
    stores.

    The later step is at most the last one.
    """
    ahead = {}
    for store in sink.src:
        pointer, idx = store.src[0].src[:2]
        loads = idx.find(Ops.LOAD)
        if not all([load.ranges <= idx.ranges for load in loads]):
            continue  # a reduction computes the index: it would run twice, and its loop would wait for itself
        for load in loads:
            if is_plain(load) and (axis := prefetching_loop(load)) is not None:
                later = axis.alu(Ops.ADD, index_const(axis.arg.ahead)).minimum(index_const(axis.size - 1))
                index = pointer.index(simplified(idx.substitute({axis: later})))
                ahead[load] = load.replace(src=(load.src[0], UOp(Ops.PREFETCH, dtypes.void, (index,))))
    return ahead


def is_plain(load: UOp) -> bool:
    """Whether a load reads memory that is complete before the kernel runs."""
    return len(load.src) == 1 and load.src[0].src[0].op is Ops.DEFINE_GLOBAL


def prefetching_loop(load: UOp) -> UOp | None:
    """Finds the loop around `load` that prefetches later steps; None if there is none."""
    return next((axis for axis in load.src[0].src[1].ranges if axis.arg.ahead), None)


def fills_row(load: UOp) -> bool:
    """Whether a load is in a loop that computes a row into scratch memory."""
    return any(axis.arg.kind is AxisKind.ROW for axis in load.ranges)


__all__ = ["prefetch_ahead"]
