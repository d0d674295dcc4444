"""Movement ops as index arithmetic: where in its source does an element of the result lie?"""

from __future__ import annotations

from math import prod

from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.divmod import divide, from_terms, linear_terms

Index = tuple[UOp, ...]
Conditions = tuple[UOp, ...]  # all must hold

ZERO = index_const(0)


def source_index(node: LazyBuffer, idxs: Index) -> tuple[Index, Conditions]:
    """For element `idxs` of the movement `node`: the element of its source, and when there is one."""
    source = node.src[0]
    match node.op:
        case Ops.RESHAPE:
            return reshape_index(source.shape, node.shape, idxs), ()
        case Ops.EXPAND:
            return tuple(ZERO if size == 1 else idx for idx, size in zip(idxs, source.shape)), ()
        case Ops.PERMUTE:
            order = node.arg
            return tuple(idxs[order.index(axis)] for axis in range(len(order))), ()
        case Ops.SHRINK:
            return tuple(_plus(idx, start) for idx, (start, _) in zip(idxs, node.arg)), ()
        case Ops.FLIP:
            return tuple(_mirrored(idx, source.shape[a]) if a in node.arg else idx for a, idx in enumerate(idxs)), ()
        case Ops.PAD:
            return _padded(source.shape, node.arg, idxs)
        case Ops.WINDOW:
            axis, _, stride, dilation = node.arg
            inside = from_terms_of((idxs[axis], stride), (idxs[-1], dilation))
            return (*idxs[:axis], inside, *idxs[axis + 1 : -1]), ()
        case Ops.DIAGONAL:
            first, second = node.arg
            return (*idxs[:second], idxs[first], *idxs[second:]), ()
    raise ValueError(f"{node.op.name} is not a movement")


def from_terms_of(*products: tuple[UOp, int]) -> UOp:
    """The sum of index * factor over `products`, like terms collected."""
    terms: dict[UOp, int] = {}
    constant = 0
    for idx, factor in products:
        if factor == 0:
            continue
        found, offset = linear_terms(idx)
        constant += offset * factor
        for node, inner in found.items():
            terms[node] = terms.get(node, 0) + inner * factor
    return from_terms(terms, constant)


def flat_index(shape: tuple[int, ...], idxs: Index) -> UOp:
    """The row-major position of element `idxs`."""
    products = []
    stride = 1
    for idx, size in zip(reversed(idxs), reversed(shape)):
        products.append((idx, stride if size != 1 else 0))
        stride *= size
    return from_terms_of(*reversed(products))


def reshape_index(source: tuple[int, ...], shape: tuple[int, ...], idxs: Index) -> Index:
    """Element `idxs` of `shape` as an element of `source`; axes that did not change pass as they are."""
    if prod(source) == 0:
        return (ZERO,) * len(source)
    result: list[UOp] = [ZERO] * len(source)
    a = b = 0
    while a < len(source) or b < len(shape):
        first_a, first_b = a, b
        left = right = 1
        if a < len(source):
            left, a = source[a], a + 1
        if b < len(shape):
            right, b = shape[b], b + 1
        while left != right:
            if left < right:
                left, a = left * source[a], a + 1
            else:
                right, b = right * shape[b], b + 1
        inner = [axis for axis in range(first_a, a) if source[axis] != 1]
        if not inner:
            continue
        rest = flat_index(shape[first_b:b], idxs[first_b:b])
        for axis in reversed(inner[1:]):
            rest, result[axis] = divide(rest, source[axis])
        result[inner[0]] = rest
    return tuple(result)


def _plus(idx: UOp, offset: int) -> UOp:
    return idx if offset == 0 else from_terms_of((idx, 1), (index_const(offset), 1))


def _mirrored(idx: UOp, size: int) -> UOp:
    return from_terms_of((idx, -1), (index_const(size - 1), 1))


def _padded(shape: tuple[int, ...], amounts: tuple[tuple[int, int], ...], idxs: Index) -> tuple[Index, Conditions]:
    result = []
    conditions = []
    for idx, size, (before, after) in zip(idxs, shape, amounts):
        if not before and not after:
            result.append(idx)
            continue
        low, high = bounds(idx)
        if before and low < before:
            conditions.append(index_const(before - 1) < idx)
        if after and high >= before + size:
            conditions.append(idx < index_const(before + size))
        result.append(_plus(idx, -before))
    return tuple(result), tuple(conditions)
