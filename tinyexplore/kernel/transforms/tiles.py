"""Computes a sum of products on the tile registers of a CPU: words of both factors fill tiles, and C is read from a
tile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.analysis.tensor_cores import CoreMatch, find_core_match
from tinyexplore.kernel.transforms.split import mask_edge
from tinyexplore.kernel.transforms.substitute import record_derived
from tinyexplore.kernel.transforms.tensor_cores import block
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt


def compute_on_tiles(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Computes the sum of products on the tiles that take `opt.amount` steps of `axis` at a time. Returns the AST.

    If the last block of rows, columns or steps is incomplete, missing elements are read as zero and not stored.
    """
    fit = find_core_match(kernel, axis, opt.amount)
    assert isinstance(fit, CoreMatch)
    for loop, amount in fit.axes:
        kernel = replace(kernel, ast=mask_edge(kernel, loop, replace(opt, amount=amount), AxisKind.TILE))
    masked = find_core_match(kernel, axis, opt.amount)
    assert isinstance(masked, CoreMatch)
    return _compute_by_tiles(kernel, masked, str(opt))


def _compute_by_tiles(kernel: Kernel, fit: CoreMatch, how: str) -> UOp:
    """Returns the AST in which tile registers of a CPU compute the sum of products, block by block."""
    core, first_id = fit.core, kernel.next_id()
    (rows, columns), words = core.c.shape, core.words
    word_count = core.dims[2] // words
    starts = {loop: block(loop, amount) for loop, amount in fit.axes}
    record_derived([(loop, start) for loop, start in starts.items()], how)
    row, row_word = (
        UOp.range(rows, Axis(first_id, AxisKind.TILE)),
        UOp.range(word_count, Axis(first_id + 1, AxisKind.VECTOR)),
    )
    column_word, column = (
        UOp.range(word_count, Axis(first_id + 2, AxisKind.TILE)),
        UOp.range(columns, Axis(first_id + 3, AxisKind.VECTOR)),
    )
    a = _load_tile_word(
        fit, fit.a, {fit.rows: starts[fit.rows] + row}, starts[fit.steps] + row_word * index_const(words), how
    )
    b = _load_tile_word(
        fit,
        fit.b,
        {fit.columns: starts[fit.columns] + column},
        starts[fit.steps] + column_word * index_const(words),
        how,
    )
    tile_a = UOp(Ops.TILE, a.dtype.vec(rows * word_count), (a, row, row_word))
    tile_b = UOp(Ops.TILE, b.dtype.vec(word_count * columns), (b, column_word, column))
    accumulator_dtype = core.accumulator.vec(rows * columns)
    product = UOp(Ops.WMMA, accumulator_dtype, (tile_a, tile_b, UOp.const(accumulator_dtype, 0)), core.name)
    other_loops = [loop for loop in fit.reduce.src[1:] if loop is not fit.steps]
    loops = (*other_loops, *starts[fit.steps].ranges)
    summed = UOp(Ops.REDUCE, accumulator_dtype, (product, *loops), Ops.ADD) if loops else product
    out_row = UOp.range(rows, Axis(first_id + 4, AxisKind.LOCAL))
    out_column = UOp.range(columns, Axis(first_id + 5, AxisKind.VECTOR))
    element = UOp(Ops.GEP, core.accumulator, (summed, out_row, out_column))
    record_derived([(fit.reduce, element)], how)
    coordinates = {fit.rows: starts[fit.rows] + out_row, fit.columns: starts[fit.columns] + out_column}
    return UOp.sink(*[store.substitute({fit.reduce: element, **coordinates}, how=how) for store in kernel.ast.src])


def _load_tile_word(fit: CoreMatch, load: UOp, axis_starts: dict[UOp, UOp], start: UOp, how: str) -> UOp:
    """Returns a word of a tile: the values that `load` reads at the step `start` and at the steps after it."""
    return word_of(load.substitute(axis_starts, how=how), fit.steps, start, fit.core.words)


def word_of(load: UOp, axis: UOp, start: UOp, amount: int) -> UOp:
    """Returns a word of `amount` loaded values, from step `start` of `axis` on, the first one lowest."""
    assert isinstance(load.dtype, DType)
    unsigned = {1: dtypes.uint8, 2: dtypes.uint16}[load.dtype.itemsize]
    word: UOp | None = None
    for step in range(amount):
        part_of_word = load.substitute({axis: start + index_const(step) if step else start}, how="a part of a word")
        shifted = part_of_word.bitcast(unsigned).cast(dtypes.uint32)
        shifted = shifted.alu(Ops.SHL, UOp.const(dtypes.uint32, step * load.dtype.bits)) if step else shifted
        word = shifted if word is None else word | shifted
    assert word is not None
    return word


__all__ = ["compute_on_tiles", "word_of"]
