"""Computes a sum of products on tensor cores: the elements that each lane of a warp loads, passes to the core, and
stores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.tensor_cores import CoreMatch, find_core_match
from tinyexplore.kernel.transforms.split import mask_edge
from tinyexplore.kernel.transforms.substitute import record_derived
from tinyexplore.target import FragmentLayout
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt


def compute_on_cores(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Computes the sum of products on the core that takes `opt.amount` steps of `axis` at a time. Returns the AST.

    If the last block of rows, columns or steps is incomplete, missing elements are read as zero and not stored.
    """
    fit = find_core_match(kernel, axis, opt.amount)
    assert isinstance(fit, CoreMatch)
    for loop, amount in fit.axes:
        kernel = replace(kernel, ast=mask_edge(kernel, loop, replace(opt, amount=amount), AxisKind.WARP))
    masked = find_core_match(kernel, axis, opt.amount)
    assert isinstance(masked, CoreMatch)
    return _compute_by_cores(kernel, masked, str(opt))


def _compute_by_cores(kernel: Kernel, fit: CoreMatch, how: str) -> UOp:
    """Returns the AST in which tensor cores compute the sum of products, block by block, one element per register."""
    core = fit.core
    lane = UOp.range(core.lanes, Axis(kernel.next_id(), AxisKind.WARP))
    starts = {loop: block(loop, amount) for loop, amount in fit.axes}
    record_derived([(loop, start) for loop, start in starts.items()], how)

    def element_indices(layout: FragmentLayout, register: int, rows: UOp, columns: UOp) -> dict[UOp, UOp]:
        """Returns the indices of two axes for the element that a lane holds in a register."""
        bits = zip((rows, columns), (layout.rows, layout.columns))
        return {loop: starts[loop] + coordinate(names, lane, register) for loop, names in bits}

    def register_elements(factor: UOp, layout: FragmentLayout, rows: UOp, columns: UOp) -> UOp:
        """Returns the elements of a factor in the registers of a lane."""
        masked_factor = zero_past_end(factor, fit)
        elements = [
            masked_factor.substitute(element_indices(layout, register, rows, columns), how=how)
            for register in range(layout.registers)
        ]
        return UOp(Ops.VECTORIZE, core.factor.vec(layout.registers), tuple(elements))

    a, b = (
        register_elements(fit.a, core.a, fit.rows, fit.steps),
        register_elements(fit.b, core.b, fit.steps, fit.columns),
    )
    accumulator_dtype = core.accumulator.vec(core.c.registers)
    tile = UOp(Ops.WMMA, accumulator_dtype, (a, b, UOp.const(accumulator_dtype, 0)), core.name)
    other_loops = [loop for loop in fit.reduce.src[1:] if loop is not fit.steps]
    loops = (*other_loops, *(loop for loop in starts[fit.steps].ranges))
    summed = UOp(Ops.REDUCE, accumulator_dtype, (tile, *loops), Ops.ADD) if loops else tile
    record_derived([(fit.reduce, summed)], how)
    stores = []
    for store in kernel.ast.src:
        for register in range(core.c.registers):
            result = UOp(Ops.GEP, core.accumulator, (summed,), register)
            coordinates = element_indices(core.c, register, fit.rows, fit.columns)
            stores.append(store.substitute({fit.reduce: result, **coordinates}, how=how))
    return UOp.sink(*stores)


def block(axis: UOp, amount: int) -> UOp:
    """Returns the start of the block of `amount` steps of an axis that a warp computes."""
    blocks = -(-axis.size // amount)
    return index_const(0) if blocks == 1 else UOp.range(blocks, axis.arg) * index_const(amount)


def coordinate(bits: tuple[str, ...], lane: UOp, register: int) -> UOp:
    """Returns the coordinate that `bits` of a lane and a register form (`target/tensor_cores.py`).

    Adjacent bits are one field.
    """
    total, constant = index_const(0), 0
    bit = 0
    while bit < len(bits):
        lane_bit = int(bits[bit][1:])
        if bits[bit][0] == "r":
            constant += (register >> lane_bit & 1) << bit
            bit += 1
            continue
        width = 1
        while bit + width < len(bits) and bits[bit + width] == f"L{lane_bit + width}":
            width += 1
        field = lane // (1 << lane_bit) if lane_bit else lane
        if 1 << (lane_bit + width) < lane.size:
            field = field % (1 << width)
        total = total + (field * (1 << bit) if bit else field)
        bit += width
    return total + constant if constant else total


def zero_past_end(factor: UOp, fit: CoreMatch) -> UOp:
    """Returns `factor`, with zeros past the end of the sum. A loaded factor already is zero there."""
    if factor.op is Ops.LOAD or fit.steps.size % fit.core.dims[2] == 0:
        return factor
    return (fit.steps < fit.steps.src[0]).where(factor, UOp.const(factor.dtype, 0))


__all__ = ["compute_on_cores"]
