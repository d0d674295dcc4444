"""The specs of UOp graphs after each pass, and a verifier that reports the invalid node and the reason.

Between two passes a kernel has one of these forms, named after the lowering so far:

    AST        the scheduled kernel, with or without opts: loops of every kind, scalars (and operands of tensor cores).
    LOADED     a CPU's tiles are loaded from scratch memory, and stored there
    TILES      VECTOR axes that only walk memory are vectors
    LOOPS      no UPCAST axes: tiles are unrolled
    UNROLLED   no UNROLL axes: reductions are unrolled
    LANES      accesses along a VECTOR axis are vectors, the arithmetic between them is still that of one lane
    VECTORS    no VECTOR axes: all values are scalars and vectors
    FUSED      some reductions are registers that loops change
    REGISTERS  no REDUCE and no SCAN: all are registers
    LINEAR     an ordered list
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop.ops import Axis, AxisKind, OpGroups, Ops
from tinyexplore.uop.uop import UOp

Check = Callable[[UOp], bool]


@dataclass(frozen=True, eq=False)
class Spec:
    """A form of kernels: the operations that it allows, and the check of each.

    name: the name that errors of the verifier give.
    checks: the check by operation; an operation without a check is not allowed.
    """

    name: str
    checks: dict[Ops, Check]


class SpecError(AssertionError):
    """Raised for a UOp that the spec of its stage does not allow."""


def _is_valid_alu(node: UOp) -> bool:
    values = node.src[1:] if node.op is Ops.WHERE else node.src
    if node.op in (Ops.CAST, Ops.BITCAST):
        return len(node.src) == 1 and node.src[0].dtype.count == node.dtype.count
    if node.op in OpGroups.DOT:
        words = dtypes.uint32.vec(node.dtype.count)
        return node.src[0].dtype is node.src[1].dtype is words and node.src[2].dtype is node.dtype
    if any(src.dtype is not values[0].dtype for src in values):
        return False
    if node.op is Ops.WHERE and node.src[0].dtype is not dtypes.bool.vec(node.dtype.count):
        return False
    if node.op in OpGroups.COMPARE:
        return node.dtype is dtypes.bool.vec(values[0].dtype.count)
    return node.dtype is values[0].dtype


def _is_valid_index(node: UOp) -> bool:
    if len(node.src) not in (2, 3) or not isinstance(node.src[0].dtype, PtrDType):
        return False
    if len(node.src) == 3 and node.src[2].dtype.scalar is not dtypes.bool:
        return False
    return node.src[1].dtype is dtypes.index and node.dtype == node.src[0].dtype


def _is_valid_load(node: UOp) -> bool:
    pointer = node.src[0].dtype
    if node.src[0].op is not Ops.INDEX or not isinstance(pointer, PtrDType) or not isinstance(node.dtype, DType):
        return False
    return (
        (_comes_after(node.src[1:]) or [src.op for src in node.src[1:]] == [Ops.PREFETCH])
        and node.dtype.scalar is pointer.base
        and _mask_fits(node.src[0], node.dtype.count)
    )


def _prefetch(node: UOp) -> bool:
    return node.dtype is dtypes.void and [src.op for src in node.src] == [Ops.INDEX] and len(node.src[0].src) == 2


def _comes_after(dependences: tuple[UOp, ...]) -> bool:
    """Whether further sources of a store are valid: none, a BARRIER, or a BARRIER and the RANGE of a loop."""
    return [src.op for src in dependences] in ([], [Ops.BARRIER], [Ops.BARRIER, Ops.RANGE])


def _is_valid_store(node: UOp) -> bool:
    index, value, *order_sources = node.src
    if not _comes_after(tuple(order_sources)) or index.op is not Ops.INDEX or not isinstance(index.dtype, PtrDType):
        return False
    return value.dtype.scalar is index.dtype.base and _mask_fits(index, value.dtype.count)


def _mask_fits(index: UOp, count: int) -> bool:
    return len(index.src) == 2 or index.src[2].dtype.count in (1, count)


def _is_valid_range(node: UOp) -> bool:
    return isinstance(node.arg, Axis) and node.dtype is dtypes.index and node.src[0].dtype is dtypes.index


def _vectorize(node: UOp) -> bool:
    return len(node.src) == node.dtype.count and all(src.dtype is node.dtype.scalar for src in node.src)


def _is_valid_gep(node: UOp) -> bool:
    return node.dtype is node.src[0].dtype.scalar and 0 <= node.arg < node.src[0].dtype.count


def _is_valid_table(node: UOp) -> bool:
    (index,) = node.src
    index_type = dtypes.int64 if node.dtype.itemsize == 8 else dtypes.int32
    return len(node.arg) & (len(node.arg) - 1) == 0 and index.dtype is index_type.vec(node.dtype.count)


def _is_valid_wmma(node: UOp) -> bool:
    """Whether the sources are the registers of A, B and C in each lane of a warp, for the core that `arg` names.

    The result has the dtype of C.
    """
    a, b, c = node.src
    return isinstance(node.arg, str) and a.dtype.scalar is b.dtype.scalar and c.dtype is node.dtype


def _is_valid_tile(node: UOp) -> bool:
    """Whether `node` is a word for each row and column of a matrix, whose rows and columns are loops."""
    value, rows, columns = node.src
    loop_kinds = [loop.op is Ops.RANGE and loop.arg.kind for loop in (rows, columns)]
    return loop_kinds == [AxisKind.TILE, AxisKind.VECTOR] and node.dtype is value.dtype.vec(rows.size * columns.size)


def _is_valid_element(node: UOp) -> bool:
    """Whether `node` is a lane, by its number, or an element of a tile, by its row and its column."""
    if len(node.src) == 1:
        return _is_valid_gep(node)
    tile, *position = node.src
    return node.arg is None and len(position) == 2 and node.dtype is tile.dtype.scalar


def _is_valid_pointer(node: UOp) -> bool:
    return isinstance(node.dtype, PtrDType) and not node.src


def _is_valid_scan(node: UOp) -> bool:
    values, loops = node.src[: node.value_count], node.src[node.value_count :]
    in_order = 1 <= len(loops) <= 2 and all(loop.op is Ops.RANGE for loop in loops)
    return in_order and all(value.dtype is node.dtype for value in values)


_COMMON: dict[Ops, Check] = {
    **dict.fromkeys(OpGroups.ALU, _is_valid_alu),
    Ops.CONST: lambda node: isinstance(node.dtype, DType) and not node.src,
    Ops.DEFINE_GLOBAL: _is_valid_pointer,
    Ops.DEFINE_LOCAL: _is_valid_pointer,
    Ops.DEFINE_VAR: lambda node: node.dtype is dtypes.index and len(node.arg) == 3,
    Ops.RANGE: _is_valid_range,
    Ops.SPECIAL: lambda node: isinstance(node.arg, str) and node.dtype is dtypes.index is node.src[0].dtype,
    Ops.INDEX: _is_valid_index,
    Ops.BARRIER: lambda node: node.src[0].op is Ops.STORE and all(src.op in (Ops.STORE, Ops.RANGE) for src in node.src),
    Ops.LOAD: _is_valid_load,
    Ops.STORE: _is_valid_store,
    Ops.WMMA: _is_valid_wmma,
}


def _check_range_except(*kinds: AxisKind) -> Check:
    """Returns a check for a RANGE that is of none of these kinds."""
    return lambda node: _is_valid_range(node) and node.arg.kind not in kinds


def _reduce(node: UOp) -> bool:
    return node.dtype is node.src[0].dtype and all(src.op is Ops.RANGE for src in node.src[1:])


def _sink(node: UOp) -> bool:
    return all(src.op is Ops.STORE for src in node.src)


def _is_valid_lane(node: UOp) -> bool:
    """Whether `node` is a lane by its number, or the lane that an UPCAST axis names (once that is unrolled: a
    constant)."""
    if len(node.src) == 1:
        return _is_valid_gep(node)
    vector, lane = node.src
    return node.dtype is vector.dtype.scalar and lane.dtype is dtypes.index and node.arg is None


def _has_sources_of_one_lane(node: UOp) -> bool:
    """Whether `node` is arithmetic on sources of one lane or of all lanes: some may already be vectors."""
    if len({src.dtype.count for src in node.src if src.dtype.count > 1}) > 1:
        return False
    source_dtypes = [src.dtype.scalar for src in node.src]
    if node.op in (Ops.CAST, Ops.BITCAST):
        return len(source_dtypes) == 1
    if node.op in OpGroups.DOT:
        return source_dtypes == [dtypes.uint32, dtypes.uint32, node.dtype.scalar]
    if node.op is Ops.WHERE and source_dtypes.pop(0) is not dtypes.bool:
        return False
    return set(source_dtypes) == {source_dtypes[0]} and node.dtype.scalar is (
        dtypes.bool if node.op in OpGroups.COMPARE else source_dtypes[0]
    )


def _is_reduction_of_one_lane(node: UOp) -> bool:
    """Whether `node` is a REDUCE, SCAN or HREDUCE over a VECTOR axis, of values that may already be vectors."""
    count = 1 if node.op is Ops.HREDUCE else node.value_count
    values, loops = node.src[:count], node.src[count:]
    if node.op is Ops.HREDUCE and [loop.op is Ops.RANGE and loop.arg.kind for loop in loops] != [AxisKind.VECTOR]:
        return False
    same_type = all(value.dtype.scalar is node.dtype.scalar for value in values)
    return same_type and all(loop.op is Ops.RANGE for loop in loops)


def _is_store_of_lanes(node: UOp) -> bool:
    """Whether `node` is a store of `arg` lanes, of one lane, or to an address in each lane."""
    index, value, *order_sources = node.src
    if not _comes_after(tuple(order_sources)) or index.op not in (Ops.INDEX, Ops.VECTORIZE):
        return False
    pointer = (index if index.op is Ops.INDEX else index.src[0]).dtype
    return isinstance(pointer, PtrDType) and value.dtype.scalar is pointer.base


def _is_vector_or_addresses(node: UOp) -> bool:
    """Whether `node` is a vector of scalars, or, for a store, a vector of INDEXes: an address for each lane."""
    return _vectorize(node) or (node.dtype is dtypes.void and all(src.op is Ops.INDEX for src in node.src))


def _is_scan_of_vectors(node: UOp) -> bool:
    """Whether `node` is a SCAN whose last loop, if it is along the lanes, is the vector of their indices."""
    values, loops = node.src[: node.value_count], node.src[node.value_count :]
    numbers = dtypes.index.vec(node.dtype.count)
    in_order = 1 <= len(loops) <= 2 and all(loop.op is Ops.RANGE or loop.dtype is numbers for loop in loops)
    return in_order and all(value.dtype is node.dtype for value in values)


def _is_valid_hreduce(node: UOp) -> bool:
    """Whether `node` combines the lanes of one vector to a scalar, or the lanes of several vectors to one lane each."""
    vector_dtype = node.src[0].dtype
    return node.dtype is vector_dtype.scalar.vec(len(node.src)) and all(src.dtype is vector_dtype for src in node.src)


_REGISTERS: dict[Ops, Check] = {
    Ops.DEFINE_ACC: lambda node: node.src[0].dtype is node.dtype,
    Ops.ASSIGN: lambda node: node.src[0].op is Ops.DEFINE_ACC and node.src[1].dtype is node.dtype,
    Ops.RESULT: lambda node: node.src[0].op is Ops.DEFINE_ACC and node.src[1].op is Ops.ASSIGN,
}
_VECTORS: dict[Ops, Check] = {
    **_COMMON,
    Ops.RANGE: _check_range_except(AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.VECTOR),
    Ops.VECTORIZE: _vectorize,
    Ops.GEP: _is_valid_gep,
    Ops.TABLE: _is_valid_table,
    Ops.HREDUCE: _is_valid_hreduce,
}

# in an ast: the registers of a tensor core's operands, and a CPU's tiles before they are loaded and stored
_HELD = {Ops.VECTORIZE: _vectorize, Ops.GEP: _is_valid_gep}
_OF_TILES = {Ops.GEP: _is_valid_element, Ops.TILE: _is_valid_tile}
AST_SPEC = Spec(
    "ast", {**_COMMON, **_HELD, **_OF_TILES, Ops.SCAN: _is_valid_scan, Ops.REDUCE: _reduce, Ops.SINK: _sink}
)
LOADED_SPEC = Spec("loaded", {op: check for op, check in {**AST_SPEC.checks, **_HELD}.items() if op is not Ops.TILE})
TILES_SPEC = Spec("tiles", {**LOADED_SPEC.checks, Ops.GEP: _is_valid_lane})
LOOPS_SPEC = Spec("loops", {**TILES_SPEC.checks, Ops.RANGE: _check_range_except(AxisKind.UPCAST)})
UNROLLED_SPEC = Spec(
    "unrolled", {**TILES_SPEC.checks, Ops.RANGE: _check_range_except(AxisKind.UPCAST, AxisKind.UNROLL)}
)
LANES_SPEC = Spec(
    "lanes",
    {
        **UNROLLED_SPEC.checks,
        **dict.fromkeys(OpGroups.ALU, _has_sources_of_one_lane),
        **dict.fromkeys((Ops.REDUCE, Ops.SCAN, Ops.HREDUCE), _is_reduction_of_one_lane),
        Ops.GEP: _is_valid_gep,
        Ops.VECTORIZE: _is_vector_or_addresses,
        Ops.STORE: _is_store_of_lanes,
    },
)
VECTORS_SPEC = Spec("vectors", {**_VECTORS, Ops.SINK: _sink, Ops.REDUCE: _reduce, Ops.SCAN: _is_scan_of_vectors})
FUSED_SPEC = Spec("fused", {**VECTORS_SPEC.checks, **_REGISTERS})
REGISTERS_SPEC = Spec("registers", {**_VECTORS, **_REGISTERS, Ops.SINK: _sink, Ops.PREFETCH: _prefetch})
LINEAR_SPEC = Spec(
    "linear program",
    {
        **_VECTORS,
        **_REGISTERS,
        Ops.PREFETCH: _prefetch,
        Ops.ENDRANGE: lambda node: node.src[0].op is Ops.RANGE,
        Ops.BARRIER: lambda node: {src.op for src in node.src} <= {Ops.STORE, Ops.RANGE},
    },
)


def verify(nodes: Iterable[UOp], spec: Spec, made_by: str = "") -> None:
    """Raises SpecError for the first node that `spec` does not allow, or that precedes one of its sources.

    made_by: the pass that made the nodes, for the error message.
    """
    where = f"{spec.name}, made by {made_by!r}" if made_by else spec.name
    earlier_nodes: set[UOp] = set()
    for node in nodes:
        check = spec.checks.get(node.op)
        if check is None:
            raise SpecError(f"{where}: {node!r} does not belong here")
        if not check(node):
            sources = ", ".join(repr(src) for src in node.src)
            raise SpecError(f"{where}: {node!r} is malformed; its sources are {sources}")
        if any(src not in earlier_nodes for src in node.src):
            raise SpecError(f"{where}: {node!r} stands before one of its sources")
        earlier_nodes.add(node)
