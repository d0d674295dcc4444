"""Finds sums of products that a dot instruction of the target computes: several small numbers in a word of 32 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.target import Target
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.util import config

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

DOTS = {(dtypes.bfloat16, dtypes.float32): Ops.DOT_BF16, (dtypes.int8, dtypes.int32): Ops.DOT_I8}
VALUES_PER_WORD = {Ops.DOT_BF16: 2, Ops.DOT_I8: 4}
EMULATED = 2  # TC=2: also if the target has no such instruction


def dot_of(kernel: Kernel, reduce: UOp) -> Ops | None:
    """Returns the dot operation for the sum `reduce` of products of two loaded values; None if the target has none."""
    value = reduce.src[0]
    if reduce.arg is not Ops.ADD or value.op is not Ops.MUL or not config().TC:
        return None
    sources = [factor.src[0] for factor in value.src if factor.op is Ops.CAST and factor.src[0].op is Ops.LOAD]
    if len(sources) < 2 or sources[0].dtype is not sources[1].dtype:
        return None
    op = DOTS.get((sources[0].dtype, reduce.dtype))
    return op if op is not None and has_dot(kernel.target, op) else None


def has_dot(target: Target, op: Ops) -> bool:
    """Whether kernels for `target` may use `op`."""
    return config().TC > 0 and (op in target.dots or config().TC >= EMULATED)


def first_load(word: UOp) -> UOp:
    """Returns the load of the first value in a word. Returns a load itself."""
    return word if word.op is Ops.LOAD else next(node for node in word.toposort() if node.op is Ops.LOAD)


def words_in(value: UOp) -> list[UOp]:
    """Returns the words, as `TC` made them, that are multiplied in a summed value; [] if there are none.

    For tiles, these are the words that fill the tiles.
    """
    if value.op is Ops.WMMA:
        return [tile.src[0] for tile in value.src[:2] if tile.op is Ops.TILE]
    return list(value.src[:2]) if value.op in OpGroups.DOT else []
