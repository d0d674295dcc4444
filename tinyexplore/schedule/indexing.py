"""Movement ops as index arithmetic: maps an element of the result to its element of the source."""

from __future__ import annotations

from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.divmod import divide, from_terms, linear_terms
from tinyexplore.uop.symbolic import as_size, greatest, product, simplified, sint

Index = tuple[UOp, ...]
Conditions = tuple[UOp, ...]  # all conditions must hold

ZERO = index_const(0)
ONE = index_const(1)


def source_index(node: LazyBuffer, idxs: Index) -> tuple[Index, Conditions]:
    """Maps element `idxs` of the movement `node` to the index of its source element, and the conditions for its
    existence."""
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
            return tuple(_add_offset(idx, start) for idx, (start, _) in zip(idxs, node.arg)), ()
        case Ops.FLIP:
            return tuple(
                _mirror_index(idx, source.shape[a]) if a in node.arg else idx for a, idx in enumerate(idxs)
            ), ()
        case Ops.PAD:
            return _unpad_index(source.shape, node.arg, idxs)
        case Ops.WINDOW:
            axis, _, stride, dilation = node.arg
            source_position = from_terms_of((idxs[axis], stride), (idxs[-1], dilation))
            return (*idxs[:axis], source_position, *idxs[axis + 1 : -1]), ()
        case Ops.DIAGONAL:
            first_axis, second_axis = node.arg
            return (*idxs[:second_axis], idxs[first_axis], *idxs[second_axis:]), ()
    raise ValueError(f"{node.op.name} is not a movement operation")


def from_terms_of(*products: tuple[UOp, sint]) -> UOp:
    """Returns the sum of index * factor over `products`. Collects like terms and recombines split indices."""
    terms: dict[UOp, int] = {}
    constant = 0
    for idx, factor in products:
        if isinstance(factor, UOp):
            idx, factor = _scale_index(idx, factor), 1
        if factor == 0:
            continue
        linear, offset = linear_terms(idx)
        constant += offset * factor
        for node, inner in linear.items():
            terms[node] = terms.get(node, 0) + inner * factor
    remainders = [node for node in terms if node.op is Ops.MOD]
    while remainders:
        node = remainders.pop()
        dividend, divisor = node.src
        quotient = dividend.alu(Ops.IDIV, divisor)
        if (
            divisor.op is not Ops.CONST
            or terms.get(quotient, 0) != terms.get(node, 0) * divisor.arg
            or node not in terms
        ):
            continue
        factor = terms.pop(node)
        del terms[quotient]
        linear, offset = linear_terms(dividend)
        constant += offset * factor
        for term, inner in linear.items():
            terms[term] = terms.get(term, 0) + inner * factor
        remainders = [term for term in terms if term.op is Ops.MOD]
    return from_terms(terms, constant)


def _scale_index(idx: UOp, factor: UOp) -> UOp:
    """Returns idx * factor, expanded to one term for each pair of terms."""
    index_terms, constant = linear_terms(idx)
    factor_terms, offset = linear_terms(factor)
    terms: dict[UOp, int] = {term: term_factor * offset for term, term_factor in index_terms.items() if offset}
    for size, times in factor_terms.items():
        for term, term_factor in index_terms.items():
            terms[term * size] = terms.get(term * size, 0) + term_factor * times
        terms[size] = terms.get(size, 0) + constant * times
    return from_terms(terms, constant * offset)


def flat_index(shape: tuple[sint, ...], idxs: Index) -> UOp:
    """Returns the row-major position of element `idxs`."""
    products = []
    stride: sint = 1
    for idx, size in zip(reversed(idxs), reversed(shape)):
        products.append((idx, stride if size != 1 else 0))
        stride = simplified(stride * size)
    return from_terms_of(*reversed(products))


def reshape_index(source: tuple[sint, ...], shape: tuple[sint, ...], idxs: Index) -> Index:
    """Maps element `idxs` of `shape` to the element of `source` at the same row-major position. Unchanged axes keep
    their index."""
    if product(source) == 0:
        return (ZERO,) * len(source)
    result: list[UOp] = [ZERO] * len(source)
    a = b = 0
    while a < len(source) or b < len(shape):
        first_a, first_b = a, b
        remaining: sint = 1
        remaining_shape: sint = 1
        if a < len(source):
            remaining, a = source[a], a + 1
        if b < len(shape):
            remaining_shape, b = shape[b], b + 1
        while remaining != remaining_shape and (a < len(source) or b < len(shape)):
            if b == len(shape) or (a < len(source) and greatest(remaining) < greatest(remaining_shape)):
                remaining, a = simplified(remaining * source[a]), a + 1
            else:
                remaining_shape, b = simplified(remaining_shape * shape[b]), b + 1
        inner = [axis for axis in range(first_a, a) if source[axis] != 1]
        if not inner:
            continue
        position = flat_index(shape[first_b:b], idxs[first_b:b])
        for axis in reversed(inner[1:]):
            position, result[axis] = divide_index(position, source[axis])
        result[inner[0]] = position
    return tuple(result)


def divide_index(idx: UOp, divisor: sint) -> tuple[UOp, UOp]:
    """Returns quotient and remainder of an index divided by the size of an axis."""
    if isinstance(divisor, int):
        return divide(idx, divisor)
    terms, constant = linear_terms(idx)
    multiples = [term for term in terms if term.op is Ops.MUL and term.src[1] is divisor]
    quotient_terms = {term.src[0]: terms[term] for term in multiples}
    remainder_terms = {term: factor for term, factor in terms.items() if term not in multiples and term is not divisor}
    if divisor in terms and _is_negative(remainder_terms, constant):
        remainder_terms[divisor] = terms[divisor]
    elif divisor in terms:
        quotient_terms[ONE] = terms[divisor]
    if _is_negative(
        remainder_terms, constant
    ):  # truncated division differs for negative numbers, so no term is taken out
        quotient_terms, remainder_terms = {}, terms
    quotient, index_remainder = from_terms_of(*quotient_terms.items()), from_terms(remainder_terms, constant)
    if (
        index_remainder.op is Ops.RANGE
        and index_remainder.src[0] is divisor
        or bounds(index_remainder)[0] >= 0
        and bounds(index_remainder)[1] < bounds(divisor)[0]
    ):
        return quotient, index_remainder
    return from_terms_of((quotient, 1), (index_remainder.alu(Ops.IDIV, divisor), 1)), index_remainder.alu(
        Ops.MOD, divisor
    )


def _is_negative(terms: dict[UOp, int], constant: int) -> bool:
    """Whether the sum may be negative."""
    return bounds(from_terms(terms, constant))[0] < 0


def _add_offset(idx: UOp, offset: sint) -> UOp:
    return idx if offset == 0 else from_terms_of((idx, 1), (as_size(offset), 1))


def _mirror_index(idx: UOp, size: sint) -> UOp:
    return from_terms_of((idx, -1), (as_size(simplified(size - 1)), 1))


def _unpad_index(
    shape: tuple[sint, ...], amounts: tuple[tuple[sint, sint], ...], idxs: Index
) -> tuple[Index, Conditions]:
    """Returns the index in the unpadded source, and the conditions under which it is inside."""
    result = []
    conditions = []
    for idx, size, (before, after) in zip(idxs, shape, amounts):
        if before == 0 and after == 0:
            result.append(idx)
            continue
        low, high = bounds(idx)
        stop = simplified(before + size)
        if before != 0 and low < greatest(before):
            conditions.append(as_size(simplified(before - 1)) < idx)
        if after != 0 and not (isinstance(stop, int) and high < stop):
            conditions.append(idx < as_size(stop))
        result.append(_add_offset(idx, simplified(-before)))
    return tuple(result), tuple(conditions)
