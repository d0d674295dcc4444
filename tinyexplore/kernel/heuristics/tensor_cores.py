"""Proposes a GPU's tensor cores for sums of products."""

from __future__ import annotations

from math import prod

from tinyexplore.kernel.analysis.tensor_cores import CoreMatch, find_core_match
from tinyexplore.kernel.analysis.work_groups import grid_axes
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches, record_scores
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import Ops, UOp
from tinyexplore.util import config

MAX_WARP_TILES = 4  # most tiles of a warp along rows, and along columns
ACCUMULATORS = 64  # most registers of a lane for results: with as many for factors, a second warp still fits
MIN_WARPS = 256  # fewer warps leave some multiprocessors of a large GPU idle
WARPS = 2  # warps of a group along rows, and along columns: a cache serves their common reads


def use_tensor_cores(kernel: Kernel) -> Proposals:
    """Proposes TC for a sum of products whose factors fit a tensor core without conversion.

    UPCAST follows, so that each loaded factor serves several products, and LOCAL, for warps that read the same factor.

    TC_OPT=0: only if rows, columns and steps fill the cores. TC_OPT=1: also otherwise. If a core reads only a part of a
    float32's fraction, ALLOW_TF32=1 is needed, because results change.
    """
    loops = [loop for reduce in kernel.reduces for loop in reduce.src[1:]]
    sizes = dict.fromkeys(core.dims[2] for core in kernel.target.cores)
    matches = [
        fit for loop in loops for size in sizes if isinstance(fit := find_core_match(kernel, loop, size), CoreMatch)
    ]
    if not matches:
        return
    order = list(kernel.target.cores)
    fit = min(matches, key=lambda fit: (fit.work_done, order.index(fit.core)))
    if (
        exceeds("remainder: rows, columns and iterations outside tensor cores", fit.left_over, 0)
        and not config().TC_OPT
    ):
        return
    m, n, k = fit.core.dims
    work_by_core = {
        f"{candidate.core.name} along {candidate.steps.arg.name}": candidate.work_done for candidate in matches
    }
    record_scores(
        "computed / needed multiply-adds, by tensor core",
        work_by_core,
        f"{fit.core.name} along {fit.steps.arg.name}",
        least=True,
    )
    reason = f"one {fit.core.name} instruction of a warp does {m} × {n} × {k} multiply-adds of {fit.core.factor.name}"
    kernel = yield Proposal(Opt(OptOps.TC, fit.steps.arg.id, k), reason)
    if kernel.find(Ops.WMMA):
        yield from give_tiles(kernel, fit)


def give_tiles(kernel: Kernel, fit: CoreMatch) -> Proposals:
    """Proposes UPCAST of the blocks of rows and columns, and LOCAL of the blocks that remain."""
    axis_ids = (fit.columns.arg.id, fit.rows.arg.id)
    registers = fit.core.c.registers
    for axis_id in axis_ids:
        axis = axis_of(kernel, axis_id)
        if axis is None:
            continue
        room = min(MAX_WARP_TILES, ACCUMULATORS // registers)
        amount = next((tiles for tiles in (4, 2) if tiles <= room and axis.size % tiles == 0), 1)
        if amount > 1 and reaches("warps in the grid after this opt", warps_of(kernel) // amount, MIN_WARPS):
            reason = f"register tile: each loaded block of a factor is used for {amount} products"
            kernel = yield Proposal(Opt(OptOps.UPCAST, axis_id, amount), reason)
            registers *= amount
    for axis_id in axis_ids:
        axis = axis_of(kernel, axis_id)
        if axis is not None and axis.size % WARPS == 0:
            kernel = yield Proposal(
                Opt(OptOps.LOCAL, axis_id, WARPS), f"{WARPS} warps of a work-group read the same factor from a cache"
            )


def axis_of(kernel: Kernel, axis_id: int) -> UOp | None:
    """Returns the axis with this id; None if one block covers it."""
    return next((axis for axis in kernel.axes if axis.arg.id == axis_id), None)


def warps_of(kernel: Kernel) -> int:
    """Returns the number of warps of the grid."""
    return prod(axis.size for axis in grid_axes(kernel.ast))
