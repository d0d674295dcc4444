"""Pass "horizontal reductions": combines the horizontal reductions of neighboring rows."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.transforms.coalescing import Address, Sum, address_of, neighbors_from, sum_of_index, vector_at
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.uop import ops_mask

LANEWISE_OPS = frozenset((Ops.ADD, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.MIN, Ops.NEG, Ops.SQRT, Ops.MULACC, Ops.CAST))
COMBINES_LANES = ops_mask((Ops.HREDUCE,))


def join_horizontal_reductions(sink: UOp, lowering: Lowering) -> UOp:
    """Joins horizontal reductions whose results are neighbors in memory into one over several vectors.

        out[0] = sum(lanes of v0); out[1] = sum(lanes of v1); …  →  out[0:n] = sums(lanes of v0, v1, …)

    Half of each of two vectors, combined, fills one vector again. Therefore eight sums of 16 lanes take 8 additions
    instead of 32, and one store. Operations on the sums, constants and neighbors in memory alone are computed for all
    rows together as well.
    """
    if not sink.mask & COMBINES_LANES:
        return sink
    reductions: dict[Address, dict[int, UOp]] = {}
    sums: dict[UOp, Sum] = {}
    for store in sink.src:
        if store.op is Ops.STORE and store.mask & COMBINES_LANES and len(store.src) == 2 and len(store.src[0].src) == 2:
            pointer, idx = store.src[0].src
            terms, offset = sum_of_index(idx, sums)
            reductions.setdefault((pointer, terms), {})[offset] = store
    joined: dict[UOp, UOp | None] = {}
    ends: dict[UOp, UOp] = {}
    for stores in reductions.values():
        offsets = sorted(stores)
        while offsets:
            size = neighbors_from(offsets)
            rows, offsets = [stores[offset] for offset in offsets[:size]], offsets[size:]
            of_these: dict[UOp, UOp] = {}
            value = _lift_to_vector([store.src[1] for store in rows], sums, of_these) if len(rows) > 1 else None
            if value is not None and of_these:
                ends |= of_these
                joined |= dict.fromkeys(rows)
                joined[rows[0]] = rows[0].replace(src=(rows[0].src[0], value))
    if not joined:
        return sink
    new_stores = [joined.get(store, store) for store in sink.src]
    return UOp.sink(*[store for store in new_stores if store is not None]).substitute(
        ends, how="found with its neighbors"
    )


def _lift_to_vector(values: list[UOp], sums: dict[UOp, Sum], ends: dict[UOp, UOp]) -> UOp | None:
    """Returns one vector of all these scalars, or None. `ends` gives the combined lanes of each row in it."""
    first, count = values[0], len(values)
    if all(value is first for value in values):
        return first.broadcast(count)
    dtype = first.dtype
    if dtype.count > 1 or dtypes.is_bool(dtype) or any(value.op is not first.op for value in values):
        return None
    if first.op is Ops.HREDUCE:
        return _combine_rows(values, ends)
    if first.op is Ops.LOAD:
        addresses = [address_of(value, sums) for value in values]
        steps = [address and (address[0], address[1] - step) for step, address in enumerate(addresses)]
        are_unmasked = all(len(value.src) == 1 for value in values)
        return vector_at(first, 0, count) if are_unmasked and steps[0] and steps.count(steps[0]) == count else None
    if first.op not in LANEWISE_OPS or any(value.dtype is not dtype for value in values):
        return None
    parts = []
    for sources in zip(*[value.src for value in values]):
        part = _lift_to_vector(list(sources), sums, ends)
        if part is None or part.dtype.scalar is not first.src[len(parts)].dtype:
            return None
        parts.append(part)
    return UOp(first.op, dtype.vec(count), tuple(parts), first.arg)


def _combine_rows(values: list[UOp], ends: dict[UOp, UOp]) -> UOp | None:
    """Returns the combined lanes of all rows in one vector; None if they depend on combined lanes themselves."""
    vectors = tuple([value.src[0] for value in values])
    vector_dtype = vectors[0].dtype
    assert isinstance(vector_dtype, DType)
    lanes, count = vector_dtype.count, len(values)
    if lanes & (lanes - 1) or count > lanes or any(value.arg is not values[0].arg for value in values):
        return None
    if any(vector.dtype is not vector_dtype or vector.mask & COMBINES_LANES for vector in vectors):
        return None
    combined = UOp(Ops.HREDUCE, vector_dtype.scalar.vec(count), vectors, values[0].arg)
    for row, value in enumerate(values):
        ends[value] = UOp(Ops.GEP, vector_dtype.scalar, (combined,), row)
    return combined


__all__ = ["join_horizontal_reductions"]
