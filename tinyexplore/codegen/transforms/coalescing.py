"""Pass "coalesce accesses": turns scalar loads and stores of neighbors in memory into vector loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_form

Terms = frozenset[tuple[UOp, int]]
Sum = tuple[Terms, int]  # an index: nodes with their factors, and a constant
Address = tuple[UOp, Terms]  # a buffer, and the terms of an address in it without the constant
MAX_STRETCHES = 6  # most stretches of memory that make up a vector, each loaded separately
MIN_REPLACED_SCALARS = 4  # fewest scalars that one vector load must replace


def coalesce_accesses(sink: UOp, lowering: Lowering) -> UOp:
    """Merges scalar accesses to neighbors in memory into vector accesses.

        v = (x[0], x[2], …, x[14])               →  w = x[0:8], x[7:15]; v = lanes of w
        out[0] = v0[0]; out[1] = v1[0]; …        →  out[0:8] = (v0[0], v1[0], …)

    A transposition then runs in registers: 16 × 16 gathered scalars become 16 vector loads.
    """
    if lowering.target.has_local:
        return sink  # each work-item is a lane, and the vectors are registers of a tensor core
    return store_neighbors_together(load_neighbors_together(sink))


def load_neighbors_together(sink: UOp) -> UOp:
    """Loads the scalars of a vector that are near each other in memory as vectors, and extracts their lanes.

    Every second element (a pool's window) comes from two vectors, as does the end of a row with the start of the next.
    Nothing is loaded before the first or after the last element that is needed.
    """
    gathered: dict[Address, dict[int, UOp]] = {}
    changes: dict[UOp, UOp] = {}
    widest = 0
    sums: dict[UOp, Sum] = {}
    for node in sink.find(Ops.VECTORIZE):
        if node.src[0] is node.src[-1]:
            continue
        addresses = [address_of(load, sums) for load in node.src]
        if reads_stretches(addresses):
            changes[node] = join_stretches(node.src, [offset for _, offset in addresses])
            continue
        for address, load in zip(addresses, node.src):
            if address is not None:
                gathered.setdefault(address[0], {})[address[1]] = load
                widest = max(widest, node.dtype.count)
    for loads in gathered.values():
        changes.update(load_neighbors(loads, widest))
    return sink.substitute(changes, how="loaded with its neighbors") if changes else sink


def sum_of_index(idx: UOp, sums: dict[UOp, Sum]) -> Sum:
    """Returns `idx` as a sum. `sums` caches results, because many indices differ only by a constant."""
    if idx.op is Ops.ADD and idx.src[1].op is Ops.CONST:
        terms, constant = sum_of_index(idx.src[0], sums)
        return terms, constant + idx.src[1].arg
    cached = sums.get(idx)
    if cached is None:
        terms_of, constant, _ = linear_form(idx)
        cached = sums[idx] = frozenset(terms_of.items()), constant
    return cached


def address_of(load: UOp, sums: dict[UOp, Sum]) -> tuple[Address, int] | None:
    """Returns the Place and the offset of a plain load of one element. Loads whose addresses differ by a constant
    share a Place."""
    if load.op is not Ops.LOAD or load.dtype.count > 1 or len(load.src[0].src) == 3:
        return None
    pointer, idx = load.src[0].src
    terms, offset = sum_of_index(idx, sums)
    return (pointer, terms), offset


def reads_stretches(addresses: list[tuple[Address, int] | None]) -> TypeGuard[list[tuple[Address, int]]]:
    """Whether the lanes read a few stretches of neighbors, in ascending order."""
    first_address = addresses[0]
    if first_address is None or any(address is None or address[0] != first_address[0] for address in addresses):
        return False
    steps = [
        following[1] - previous[1] for previous, following in zip(addresses, addresses[1:]) if previous and following
    ]
    return min(steps) >= 1 and sum(step > 1 for step in steps) < MAX_STRETCHES


def join_stretches(loads: Sequence[UOp], offsets: list[int]) -> UOp:
    """Returns the vector, combined from one vector per stretch that has its elements in their final lanes."""
    starts = [offset - lane for lane, offset in enumerate(offsets)]
    joined = vector_at(loads[0], 0, len(loads))
    for start in sorted(set(starts))[1:]:
        mask = tuple(UOp.const(dtypes.bool, stretch_start >= start) for stretch_start in starts)
        later = vector_at(loads[0], start - starts[0], len(loads))
        joined = UOp(Ops.VECTORIZE, dtypes.bool.vec(len(loads)), mask).where(later, joined)
    return joined


def vector_at(load: UOp, distance: int, count: int) -> UOp:
    """Returns the load of `count` neighbors, starting `distance` elements after the address of `load`."""
    pointer, idx = load.src[0].src
    assert isinstance(load.dtype, DType)
    index = pointer.index(idx + index_const(distance)) if distance else load.src[0]
    return UOp(Ops.LOAD, load.dtype.vec(count), (index, *load.src[1:]))


def load_neighbors(loads: dict[int, UOp], count: int) -> dict[UOp, UOp]:
    """Returns lanes of vectors of `count` neighbors that replace the loads at these offsets, with the fewest
    vectors."""
    changes: dict[UOp, UOp] = {}
    offsets = sorted(loads)
    if not offsets or offsets[-1] - offsets[0] < count - 1:
        return changes
    first_load = loads[offsets[0]]
    pointer, idx = first_load.src[0].src
    remaining = offsets
    while remaining:
        start = min(remaining[0], offsets[-1] - count + 1)
        covered = [offset for offset in remaining if offset < start + count]
        remaining = remaining[len(covered) :]
        if len(covered) < MIN_REPLACED_SCALARS:
            continue
        vector = vector_at(first_load, start - offsets[0], count)
        for offset in covered:
            changes[loads[offset]] = UOp(Ops.GEP, first_load.dtype, (vector,), offset - start)
    return changes


def store_neighbors_together(sink: UOp) -> UOp:
    """Stores lanes that go to neighbors in memory as vectors: interleaves or repeats them in registers."""
    scattered: dict[tuple[Address, tuple[UOp, ...]], dict[int, UOp]] = {}
    sums: dict[UOp, Sum] = {}
    for store in sink.src:
        if store.op is Ops.STORE and store.src[1].op is Ops.GEP and len(store.src[0].src) == 2:
            pointer, idx = store.src[0].src
            terms, offset = sum_of_index(idx, sums)
            scattered.setdefault(((pointer, terms), store.src[2:]), {})[offset] = store
    joined: dict[UOp, UOp | None] = {}
    for stores in scattered.values():
        for run in runs_of(stores):
            if len(run) >= MIN_REPLACED_SCALARS:
                joined.update(dict.fromkeys(run))
                joined[run[0]] = store_run(run)
    if not joined:
        return sink
    new_stores = [joined.get(store, store) for store in sink.src]
    return UOp.sink(*(store for store in new_stores if store is not None))


def runs_of(stores: dict[int, UOp]) -> list[list[UOp]]:
    """Returns sequences of neighbors in memory, in order, each as long as a vector or a smaller power of two."""
    runs: list[list[UOp]] = []
    offsets = sorted(stores)
    while offsets:
        size = min(stores[offsets[0]].src[1].src[0].dtype.count, neighbors_from(offsets))
        runs.append([stores[offset] for offset in offsets[:size]])
        offsets = offsets[size:]
    return runs


def neighbors_from(offsets: list[int]) -> int:
    """Returns the greatest power of two of these offsets, from the first on, that are neighbors in order."""
    count = next((n for n, offset in enumerate(offsets) if offset != offsets[0] + n), len(offsets))
    return 1 << count.bit_length() - 1


def store_run(run: list[UOp]) -> UOp:
    """Returns one store of the values of all these stores, in order. It waits for everything that they wait for."""
    dtype = run[0].src[1].dtype
    assert isinstance(dtype, DType)
    value = UOp(Ops.VECTORIZE, dtype.vec(len(run)), tuple(store.src[1] for store in run))
    return UOp(Ops.STORE, dtypes.void, (run[0].src[0], value, *run[0].src[2:]))


__all__ = ["Address", "Sum", "coalesce_accesses", "neighbors_from", "address_of", "sum_of_index", "vector_at"]
