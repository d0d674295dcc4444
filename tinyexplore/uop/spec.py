"""One spec per stage: what a UOp may look like there. A verifier that names the node and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop.ops import Axis, AxisKind, Group, Ops
from tinyexplore.uop.uop import UOp

Check = Callable[[UOp], bool]


class SpecError(AssertionError):
    """A UOp that its stage does not allow."""


def _alu(node: UOp) -> bool:
    values = node.src[1:] if node.op is Ops.WHERE else node.src
    if node.op in (Ops.CAST, Ops.BITCAST):
        return len(node.src) == 1 and node.src[0].dtype.count == node.dtype.count
    if node.op in Group.DOT:
        words = dtypes.uint32.vec(node.dtype.count)
        return node.src[0].dtype is node.src[1].dtype is words and node.src[2].dtype is node.dtype
    if any(src.dtype is not values[0].dtype for src in values):
        return False
    if node.op is Ops.WHERE and node.src[0].dtype is not dtypes.bool.vec(node.dtype.count):
        return False
    if node.op in Group.COMPARE:
        return node.dtype is dtypes.bool.vec(values[0].dtype.count)
    return node.dtype is values[0].dtype


def _index(node: UOp) -> bool:
    if len(node.src) not in (2, 3) or not isinstance(node.src[0].dtype, PtrDType):
        return False
    if len(node.src) == 3 and node.src[2].dtype.scalar is not dtypes.bool:
        return False
    return node.src[1].dtype is dtypes.index and node.dtype == node.src[0].dtype


def _load(node: UOp) -> bool:
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


def _comes_after(what: tuple[UOp, ...]) -> bool:
    """Memory that is filled first; then a loop of which each step sees what the ones before stored."""
    return [src.op for src in what] in ([], [Ops.BARRIER], [Ops.BARRIER, Ops.RANGE])


def _store(node: UOp) -> bool:
    place, value, *after = node.src
    if not _comes_after(tuple(after)) or place.op is not Ops.INDEX or not isinstance(place.dtype, PtrDType):
        return False
    return value.dtype.scalar is place.dtype.base and _mask_fits(place, value.dtype.count)


def _mask_fits(place: UOp, count: int) -> bool:
    return len(place.src) == 2 or place.src[2].dtype.count in (1, count)


def _range(node: UOp) -> bool:
    return isinstance(node.arg, Axis) and node.dtype is dtypes.index and node.src[0].dtype is dtypes.index


def _vectorize(node: UOp) -> bool:
    return len(node.src) == node.dtype.count and all(src.dtype is node.dtype.scalar for src in node.src)


def _gep(node: UOp) -> bool:
    return node.dtype is node.src[0].dtype.scalar and 0 <= node.arg < node.src[0].dtype.count


def _table(node: UOp) -> bool:
    (index,) = node.src
    index_type = dtypes.int64 if node.dtype.itemsize == 8 else dtypes.int32
    return len(node.arg) & (len(node.arg) - 1) == 0 and index.dtype is index_type.vec(node.dtype.count)


def _pointer(node: UOp) -> bool:
    return isinstance(node.dtype, PtrDType) and not node.src


def _scan(node: UOp) -> bool:
    values, loops = node.src[: node.value_count], node.src[node.value_count :]
    in_order = 1 <= len(loops) <= 2 and all(loop.op is Ops.RANGE for loop in loops)
    return in_order and all(value.dtype is node.dtype for value in values)


_COMMON: dict[Ops, Check] = {
    **dict.fromkeys(Group.ALU, _alu),
    Ops.CONST: lambda node: isinstance(node.dtype, DType) and not node.src,
    Ops.DEFINE_GLOBAL: _pointer,
    Ops.DEFINE_LOCAL: _pointer,
    Ops.DEFINE_VAR: lambda node: node.dtype is dtypes.index and len(node.arg) == 3,
    Ops.RANGE: _range,
    Ops.INDEX: _index,
    Ops.BARRIER: lambda node: node.src[0].op is Ops.STORE and all(src.op in (Ops.STORE, Ops.RANGE) for src in node.src),
    Ops.LOAD: _load,
    Ops.STORE: _store,
}

AST_SPEC: dict[Ops, Check] = {
    **_COMMON,
    Ops.SCAN: _scan,
    Ops.REDUCE: lambda node: node.dtype is node.src[0].dtype and all(src.op is Ops.RANGE for src in node.src[1:]),
    Ops.SINK: lambda node: all(src.op is Ops.STORE for src in node.src),
}

LINEAR_SPEC: dict[Ops, Check] = {
    **_COMMON,
    Ops.RANGE: lambda node: _range(node) and node.arg.kind not in (AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.VECTOR),
    Ops.PREFETCH: _prefetch,
    Ops.ENDRANGE: lambda node: node.src[0].op is Ops.RANGE,
    Ops.DEFINE_ACC: lambda node: node.src[0].dtype is node.dtype,
    Ops.ASSIGN: lambda node: node.src[0].op is Ops.DEFINE_ACC and node.src[1].dtype is node.dtype,
    Ops.RESULT: lambda node: node.src[0].op is Ops.DEFINE_ACC and node.src[1].op is Ops.ASSIGN,
    Ops.VECTORIZE: _vectorize,
    Ops.GEP: _gep,
    Ops.TABLE: _table,
    Ops.HREDUCE: lambda node: (
        node.dtype is node.src[0].dtype.scalar.vec(len(node.src))
        and all(src.dtype is node.src[0].dtype for src in node.src)
    ),
}


def verify(nodes: Iterable[UOp], spec: dict[Ops, Check], stage: str) -> None:
    """SpecError at the first node that `spec` does not allow, or that stands before one of its sources."""
    seen: set[UOp] = set()
    for node in nodes:
        check = spec.get(node.op)
        if check is None:
            raise SpecError(f"{stage}: {node!r} does not belong here")
        if not check(node):
            sources = ", ".join(repr(src) for src in node.src)
            raise SpecError(f"{stage}: {node!r} is malformed; its sources are {sources}")
        if any(src not in seen for src in node.src):
            raise SpecError(f"{stage}: {node!r} stands before one of its sources")
        seen.add(node)
