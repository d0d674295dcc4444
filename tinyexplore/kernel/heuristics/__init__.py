"""The default schedule: one list of heuristics for CPUs with vectors and caches, and one for GPUs.

A list runs from top to bottom. A heuristic is a function that proposes Opts, each with a reason, for the current
kernel. Its docstring says what it proposes, when and why. Several heuristics may decide the same aspect (which axis has
the lanes, what the register tile is). The first one that changes the kernel settles the aspect.
"""

from __future__ import annotations

from tinyexplore.kernel.heuristics.accumulators import add_accumulators
from tinyexplore.kernel.heuristics.column_reductions import block_columns
from tinyexplore.kernel.heuristics.dot_instructions import use_dot_instructions
from tinyexplore.kernel.heuristics.elementwise_vectors import take_several_vectors, take_several_vectors_of_rows
from tinyexplore.kernel.heuristics.heuristic import Heuristic, Proposal, ScheduleAspect, apply_heuristic
from tinyexplore.kernel.heuristics.lanes import choose_lanes
from tinyexplore.kernel.heuristics.prefetch import prefetch
from tinyexplore.kernel.heuristics.product_tile import tile_product
from tinyexplore.kernel.heuristics.register_tile import tile_registers
from tinyexplore.kernel.heuristics.row_buffers import pipeline_rows, tile_row_buffers
from tinyexplore.kernel.heuristics.row_reductions import stream_rows
from tinyexplore.kernel.heuristics.tensor_cores import use_tensor_cores
from tinyexplore.kernel.heuristics.threads import divide_among_threads
from tinyexplore.kernel.heuristics.tiles import use_amx_tiles
from tinyexplore.kernel.heuristics.transposition import tile_transposition
from tinyexplore.kernel.heuristics.trimmed_loops import trim_masked_loops
from tinyexplore.kernel.heuristics.work_groups import (
    divide_into_groups,
    share_reductions,
    take_vectors,
    tile_in_shared_memory,
    tile_items,
)
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.trace import HeuristicConsidered, active_recorder

LANES, TILE, WORDS = (
    frozenset({aspect}) for aspect in (ScheduleAspect.LANES, ScheduleAspect.TILE, ScheduleAspect.WORDS)
)

HEURISTICS = (
    Heuristic(use_amx_tiles, settles=LANES | TILE | WORDS),
    Heuristic(use_dot_instructions, settles=WORDS),
    Heuristic(tile_product, settles=LANES | TILE),
    Heuristic(choose_lanes, settles=LANES),
    Heuristic(tile_row_buffers),
    Heuristic(stream_rows, settles=TILE),
    Heuristic(block_columns, settles=TILE),
    Heuristic(tile_registers, settles=TILE),
    Heuristic(tile_transposition, settles=TILE),
    Heuristic(take_several_vectors, settles=TILE),
    Heuristic(take_several_vectors_of_rows, settles=TILE),
    Heuristic(add_accumulators),
    Heuristic(divide_among_threads),
    Heuristic(prefetch),
    Heuristic(pipeline_rows),
    Heuristic(trim_masked_loops),
)

GPU_HEURISTICS = (
    Heuristic(use_tensor_cores, settles=TILE),
    Heuristic(share_reductions),
    Heuristic(tile_in_shared_memory, settles=TILE),
    Heuristic(tile_items, settles=TILE),
    Heuristic(take_vectors, settles=TILE),
    Heuristic(divide_into_groups),
)


def apply_heuristics(kernel: Kernel, without: frozenset[str] = frozenset()) -> Kernel:
    """Applies the default schedule to `kernel`. `without`: names of heuristics to leave out."""
    kernel = with_merged_axes(with_split_axes(kernel))
    recorder = active_recorder()
    settled: dict[ScheduleAspect, str] = {}
    for heuristic in GPU_HEURISTICS if kernel.target.has_local else HEURISTICS:
        if heuristic.name in without:
            continue
        settled_by = next((settled[aspect] for aspect in heuristic.settles if aspect in settled), "")
        if recorder is not None:
            recorder.record(HeuristicConsidered(heuristic, settled_by))
        if not settled_by:
            new_kernel = apply_heuristic(kernel, heuristic)
            if new_kernel is not kernel:
                settled.update(dict.fromkeys(heuristic.settles, heuristic.name))
            kernel = new_kernel
    return kernel


__all__ = ["HEURISTICS", "GPU_HEURISTICS", "Proposal", "Heuristic", "ScheduleAspect", "apply_heuristics"]
