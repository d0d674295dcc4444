"""Causal masks: finds values that are constant wherever a column is past a row, as in causal attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.divmod import linear_terms


@dataclass(frozen=True)
class CausalMask:
    """A value that is constant above a diagonal: wherever column > row + ahead.

    constant: the value there.
    row: the RANGE of the rows.
    column: the RANGE of the columns.
    ahead: offset of the diagonal.
    weight: whether the value is an exponential.
    """

    constant: float
    row: UOp
    column: UOp
    ahead: int
    weight: bool = False


def causal_mask(node: UOp) -> CausalMask | None:
    """Returns the causal mask of `node`, a value of an ast before any Opt; None if it has none."""
    if node.op is Ops.WHERE:
        condition, yes, no = node.src
        if no.op is Ops.CONST:
            return mask_unless(condition, no.arg)
        return mask_unless(condition.ne(True), yes.arg) if yes.op is Ops.CONST else None
    if node.op is Ops.EXP:
        mask = causal_mask(node.src[0])
        return replace(mask, constant=0.0, weight=True) if mask and mask.constant == -inf else None
    if node.op is Ops.FDIV:
        mask = causal_mask(node.src[0])
        return mask if mask and mask.weight else None
    if node.op in (Ops.MUL, Ops.ADD):
        for src in node.src:
            mask = causal_mask(src)
            if mask and (mask.weight if node.op is Ops.MUL else mask.constant == -inf):
                return mask
        return None
    if node.op is Ops.LOAD and len(node.src) == 2:
        return mask_of_row_buffer(node)
    return None


def mask_of_row_buffer(load: UOp) -> CausalMask | None:
    """Returns the causal mask of a load from a row buffer: the mask of the value that filled the buffer."""
    index, barrier = load.src
    filled_at, value = barrier.src[0].src
    mask = causal_mask(value)
    if mask is None or filled_at.src[1] is not mask.column or index.src[1].op is not Ops.RANGE:
        return None
    return replace(mask, column=index.src[1])


def mask_unless(condition: UOp, masked: float) -> CausalMask | None:
    """Returns the mask of a value that is `masked` unless `condition` holds, if this means `row + ahead >= column`;
    else None."""
    holds = True
    while True:
        if condition.op is Ops.WHERE and [src.op for src in condition.src[1:]] == [Ops.CONST] * 2:
            holds = holds if condition.src[1].arg else not holds
            condition = condition.src[0]
        elif condition.op is Ops.CMPNE and condition.src[1].op is Ops.CONST and dtypes.is_bool(condition.src[0].dtype):
            holds = not holds if condition.src[1].arg else holds
            condition = condition.src[0]
        else:
            break
    if condition.op not in (Ops.CMPLT, Ops.CMPLE):
        return None
    smaller, larger = (strip_casts(src) for src in condition.src)
    if dtypes.is_float(smaller.dtype):
        return None
    strict = condition.op is Ops.CMPLT
    if not holds:  # not a < b is b <= a
        smaller, larger, strict = larger, smaller, not strict
    terms, constant = linear_terms(larger)
    for term, factor in linear_terms(smaller)[0].items():
        terms[term] = terms.get(term, 0) - factor
    constant -= linear_terms(smaller)[1]
    rows = [term for term, factor in terms.items() if factor == 1]
    columns = [term for term, factor in terms.items() if factor == -1]
    if len(terms) != 2 or not rows or not columns or any(term.op is not Ops.RANGE for term in terms):
        return None
    return CausalMask(masked, rows[0], columns[0], constant - strict)


def strip_casts(node: UOp) -> UOp:
    """Returns an index without its casts to integer dtypes."""
    while node.op is Ops.CAST and dtypes.is_int(node.dtype) and not dtypes.is_float(node.src[0].dtype):
        node = node.src[0]
    return node
