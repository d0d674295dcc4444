"""Proposes register tiles for reductions: rows and columns that share loads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from tinyexplore.kernel.analysis.access import is_outer_of, outer_row_axis, shares_loads
from tinyexplore.kernel.analysis.memory import buffer_bytes, is_read_once, step_bytes
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, block_of
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, UOp

SHORTEST_STREAM_BYTES = 512  # bytes of a row: reading a shorter one takes less time than the sum over its lanes
UNKNOWN_ROWS = 4  # rows of a symbolic axis in a tile: if its size is 1, all rows of the tile compute the same


@dataclass(frozen=True)
class VectorizedReductions:
    """A vectorized kernel with reductions, and the loops along which its operands can be shared.

    kernel: the kernel.
    lanes: the vectorized axis.
    loads: strides of the operands' INDEXes.
    shared: output loops along which some operand does not change.
    """

    kernel: Kernel
    lanes: UOp
    loads: list[IndexStrides]
    shared: list[UOp]

    @property
    def lanes_are_results(self) -> bool:
        return self.lanes in self.kernel.output_axes

    @property
    def shares(self) -> bool:
        """Whether a tile of rows and columns would share loads."""
        return len(self.loads) >= 2 and (bool(self.shared) or not self.lanes_are_results)


def find_reduced(kernel: Kernel) -> VectorizedReductions | None:
    """Returns the vectorized reductions of a kernel. None without reductions or lanes, or if a row is reduced and
    read again."""
    lanes = next((axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR), None)
    if not kernel.reduces or lanes is None or any(outer_row_axis(kernel, axis) for axis in kernel.output_axes):
        return None
    summed = {axis for reduce in kernel.reduces for axis in reduce.src[1:]}
    loads = [access for access in kernel.accesses if not access.is_store and access.node.ranges & summed]
    outputs = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL]
    return VectorizedReductions(kernel, lanes, loads, [axis for axis in outputs if shares_loads(axis, loads)])


def tile_registers(kernel: Kernel) -> Proposals:
    """Proposes UPCAST of rows and columns that share loads in a reduction: as many accumulators as the registers hold.

    If the lanes are along the reduction, SWAP may then move the loop over a large operand outside.
    """
    reduced = find_reduced(kernel)
    if reduced is None or not reduced.shares:
        return
    if reduced.lanes_are_results:
        yield from propose_vector_tile(reduced)
    else:
        tiled = yield from propose_sum_tile(reduced)
        yield from propose_large_operand_outside(tiled)


def propose_vector_tile(reduced: VectorizedReductions) -> Proposals:
    """Proposes a tile of vectors of columns by rows, for lanes along the results."""
    kernel, loads = reduced.kernel, reduced.loads
    columns = next((axis for axis in reduced.shared if is_outer_of(axis, reduced.lanes, kernel.accesses)), None)
    rows = row_loop(reduced, columns)
    registers = kernel.target.vector_registers
    rows_are_neighbors = rows is not None and any(load.stride(rows) == 1 for load in loads)
    widest = 4 if registers >= 32 and not rows_are_neighbors else 2
    vector_count = block_of("vectors of columns", columns.size, widest, widest) if columns is not None else 1
    if columns is not None and vector_count > 1:
        reason = f"register tile: each loaded value of a row is used for {vector_count} vectors"
        yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, vector_count), reason)
    if rows is None:
        return
    # separate rows are separate streams: few, because streams a power of two apart share one set of the L1 cache;
    # neighboring rows: one cache line of elements
    is_widest = vector_count == widest and not rows_are_neighbors
    limit = 6 if is_widest else 14
    row_count = block_of(
        "rows", rows.size, max(2, (registers - 4) // vector_count), limit if rows.is_static else UNKNOWN_ROWS
    )
    if row_count > 1:
        reason = f"register tile: each loaded vector is used for {row_count} rows"
        yield Proposal(Opt(OptOps.UPCAST, rows.arg.id, row_count), reason)


def propose_sum_tile(reduced: VectorizedReductions) -> Generator[Proposal, Kernel, Kernel]:
    """Proposes a tile of rows by columns, each with a vector of sums, for lanes along the reduction. Returns the new
    kernel."""
    kernel = reduced.kernel
    rows = row_loop(reduced, None)
    most_rows, most_columns = sums_in_registers(kernel.target)
    if rows is not None:
        is_one_row = len(reduced.shared) == 1 and rows_are_streamed(kernel, rows, reduced.loads)
        row_count = 1 if is_one_row else block_of("rows", rows.size, most_rows, most_rows)
        if row_count > 1:
            reason = f"register tile: each loaded vector is used for {row_count} rows"
            kernel = yield Proposal(Opt(OptOps.UPCAST, rows.arg.id, row_count), reason)
    if len(reduced.shared) > 1:
        columns = max((axis for axis in reduced.shared if axis is not rows), key=lambda axis: axis.size)
        column_count = block_of("columns", columns.size, most_columns, most_columns)
        if column_count > 1:
            reason = f"register tile: each loaded vector is used for {column_count} columns"
            kernel = yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, column_count), reason)
    return kernel


def propose_large_operand_outside(kernel: Kernel) -> Proposals:
    """Proposes SWAP of the loops over tiles if the inner loop reads an operand past the L2 cache and the outer one does
    not.

    The product of a few rows with a large matrix then reads the matrix once, and reads the rows repeatedly from a
    cache.
    """
    loops = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL]
    if len(loops) != 2 or len(kernel.reduces) != 1:
        return
    outer, inner = sorted(loops, key=lambda axis: axis.arg.id)
    walked = {axis: bytes_along(kernel, axis) for axis in loops}
    if walked[inner] > kernel.target.l2_bytes and walked[outer] <= kernel.target.private_cache_bytes:
        reason = "the kernel reads the large operand once and the small operand repeatedly from a cache"
        yield Proposal(Opt(OptOps.SWAP, outer.arg.id, inner.arg.id), reason)


def bytes_along(kernel: Kernel, axis: UOp) -> int:
    """Returns the bytes of the buffers that the kernel reads at indices that change along `axis`."""
    loads = [access for access in kernel.accesses if not access.is_store and axis in access.node.ranges]
    return sum(buffer_bytes(pointer) for pointer in {load.node.src[0] for load in loads})


def sums_in_registers(target: Target) -> tuple[int, int]:
    """Returns the rows and columns of a tile whose sums have one vector register each, with registers left for loads.

    With 16 registers, 4 × 4 sums would leave none, and each multiply-add would spill one sum and reload another.
    """
    return (4, 4) if target.vector_registers >= 32 else (4, 2)


def row_loop(reduced: VectorizedReductions, columns: UOp | None) -> UOp | None:
    """Returns the loop for the rows of a tile: the longest of those that share the most expensive loads.

    A shared vector load precedes a shared scalar load (a convolution's filters before its images).
    """
    vectors = [load for load in reduced.loads if reduced.lanes in load.node.ranges]
    row_candidates = [axis for axis in reduced.shared if axis is not columns]
    return max(row_candidates, key=lambda axis: (shares_loads(axis, vectors), axis.size), default=None)


def rows_are_streamed(kernel: Kernel, rows: UOp, loads: Sequence[IndexStrides]) -> bool:
    """Whether the rows of a matrix past L2 are read once, sequentially, and their shared operand stays in L1.

    Example: a matrix times a vector. Hardware prefetchers follow one row better than several, and the wait for memory
    hides the loads that a tile would save.
    """
    for load in loads:
        nbytes = buffer_bytes(load.node.src[0])
        if rows not in load.node.ranges:
            fits = nbytes <= kernel.target.l1_bytes // 2
        else:
            fits = (
                nbytes > kernel.target.l2_bytes
                and step_bytes(load, rows) >= SHORTEST_STREAM_BYTES
                and is_read_once(kernel, load)
            )
        if not fits:
            return False
    return True
