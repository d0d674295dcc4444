"""Analyzes a GPU kernel: its grid and groups, the memory requests of a warp at each load and store, and the occupancy.

`warps.py` simulates every warp of one group in the middle of the grid, in the first and the middle iteration of the
loops around an access. The view shows one of these warps, lane by lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tinyexplore.explore.analysis.models.gpu_picture import gpu_svg
from tinyexplore.explore.analysis.models.occupancy import Occupancy, OccupancyData, compute_occupancy, shared_memory
from tinyexplore.explore.analysis.models.warp_accesses import WarpAccess, WarpAccessData
from tinyexplore.explore.analysis.models.warps import DataDependentWarp, WarpRequest, Warps, find_enclosing_loops
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.recording.descriptions import operand_name, uops_listing
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.target import GPUS, GPUTarget
from tinyexplore.uop import Ops, UOp

MAX_WARPS = 8  # most warps of a group that are simulated


@dataclass(frozen=True, repr=False)
class GPUData(DisplayableRow):
    """A GPU kernel, as the panel of warps draws it."""

    kernel: str
    """Name of the kernel."""
    target: str
    """The GPU."""
    warp: int
    """Number of lanes of a warp."""
    grid: tuple[int, ...]
    """Number of work-groups by dimension, the fastest first."""
    group: tuple[int, ...] | None
    """Number of work-items of a group by dimension; None if the runtime chooses."""
    at: tuple[int, ...]
    """Indices of the group whose accesses are shown."""
    says: str
    """The grid, as text."""
    accesses: tuple[WarpAccessData, ...]
    """Loads and stores in the order of the listing."""
    shared_bytes: int
    """Shared memory of a group, in bytes."""
    occupancy: OccupancyData | None
    """Number of groups that a multiprocessor holds; None if unknown."""
    why: str
    """Why the occupancy is unknown, "" if it is known."""


@dataclass(frozen=True, repr=False)
class GPUView(DisplayableRow):
    """A kernel on a GPU. Dimensions are in the order of the grid, the fastest first.

    name: the name of the kernel.
    target: the GPU.
    warp: the number of work-items of a warp.
    grid: the number of groups in each dimension.
    group: the number of work-items of a group in each dimension; None if the runtime chooses.
    at: the indices of the group that is shown.
    accesses: the LOADs and STOREs, each for one warp.
    shared_bytes: the shared memory of a group, in bytes.
    occupancy: the occupancy, None if unknown.
    why: why the occupancy is unknown, "" if it is known.
    warps: the simulated warps, None without a simulation.
    """

    name: str
    target: str
    warp: int
    grid: tuple[int, ...]
    group: tuple[int, ...] | None
    at: tuple[int, ...]
    accesses: tuple[WarpAccess, ...]
    shared_bytes: int
    occupancy: Occupancy | None = None
    why: str = ""
    warps: Warps | None = field(default=None, repr=False)

    @property
    def items(self) -> int:
        """The number of work-items of a group, or of a warp if the runtime chooses the groups."""
        return prod(self.group) if self.group is not None else self.warp

    @property
    def says(self) -> str:
        """The grid as text."""
        if self.group is None:
            return f"{_product_text(self.grid)} work-items, in groups that the runtime makes"
        warps = -(-self.items // self.warp)
        idle = warps * self.warp - self.items
        left = f", {count_text(idle, 'lane')} of the last idle" if idle else ""
        groups = f"{_product_text(self.grid)} group{'s' if prod(self.grid) != 1 else ''}"
        in_each = f"{count_text(warps, 'warp')} of {self.warp} in each{left}"
        return f"{groups} of {_product_text(self.group)} work-items: {in_each}"

    @property
    def rows(self) -> list[tuple[WarpAccess, int]]:
        """The distinct accesses with their counts; copies in an unrolled loop are counted together."""
        alike_accesses: dict[tuple[Any, ...], list[WarpAccess]] = {}
        for access in self.accesses:
            alike_accesses.setdefault(
                (access.stored, access.buffer, access.loops, *access.figures, access.says), []
            ).append(access)
        return [(alike[0], len(alike)) for alike in alike_accesses.values()]

    def request(self, number: int, group: Sequence[int] = (), warp: int = 0, **counters: int) -> WarpRequest:
        """Returns the addresses of any warp at the access in line `number` of the listing.

        counters: the iterations of the loops around the access (`r2=5`); the default is iteration 0.
        """
        if self.warps is None:
            raise ValueError("a page has this result as data only; call view.kernels[i].gpu() in a notebook")
        around = {line: (node, loops) for line, node, loops in find_enclosing_loops(self.warps.uops)}
        if number not in around:
            raise ValueError(
                f"line {number} is not a load or store; the loads and stores are {', '.join(map(str, around))}"
            )
        node, loops = around[number]
        loop_of = {operand_name(loop, 0): loop for loop in loops}
        unknown = sorted(counters.keys() - loop_of.keys())
        if unknown:
            raise ValueError(
                f"no loop {', '.join(unknown)} around line {number}; available: {', '.join(loop_of) or 'none'}"
            )
        counters_by_node = {loop_of[name]: value for name, value in counters.items()}
        return self.warps.request(node, group or self.at, warp, counters_by_node)

    def as_data(self) -> GPUData:
        """Returns the data that the panel draws."""
        occupancy = None if self.occupancy is None else self.occupancy.as_data()
        accesses = tuple([access.as_data() for access in self.accesses])
        return GPUData(
            kernel=self.name,
            target=self.target,
            warp=self.warp,
            grid=self.grid,
            group=self.group,
            at=self.at,
            says=self.says,
            accesses=accesses,
            shared_bytes=self.shared_bytes,
            occupancy=occupancy,
            why=self.why,
        )

    def svg(self) -> str:
        """Returns the analysis as a static picture."""
        return gpu_svg(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}

    def _repr_html_(self) -> str:
        return self.svg()  # a notebook prefers HTML to pictures: HTML with the text would hide the picture

    def __str__(self) -> str:
        """Returns the grid, a line for each distinct access, and the occupancy, as text."""
        rows = [("line", "", "of", "", "segments", "bytes used", "banks", "a warp")]
        for access, count in self.rows:
            times = f"× {count}" if count > 1 else ""
            kind = "store" if access.stored else "load"
            rows.append((str(access.place), kind, access.buffer, times, *access.figures, access.says))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        last = self.why if self.occupancy is None else self.occupancy.says
        occupancy = self.occupancy
        about = "" if occupancy is None or occupancy.known else "about "
        register_note = "" if occupancy is None else f" ({about}{occupancy.registers} registers a work-item)"
        return "\n".join([f"{self.name} on {self.target}: {self.says}", *lines, f"{last}{register_note}"])


def _product_text(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))


def gpu_view(captured: CapturedKernel, registers: int | None = None) -> GPUView:
    """Returns the GPU view of a captured kernel.

    registers: the registers of a work-item that a compiler reported; None for an estimate.

    Raises:
        ValueError: this is a CPU kernel.
    """
    target = captured.spec.target
    if not target.has_local:
        raise ValueError(
            f"kernel {captured.number} ({captured.spec.name}) is for a CPU ({target.cpu}), which has no work-groups. "
            'Capture it for a GPU, for example with explore(f, target="sm_80")'
        )
    uops = captured.uops
    values: Mapping[UOp, int] = dict(zip(captured.spec.variables, captured.values))
    warps = Warps(uops, target.warp, values, captured.contents)
    at = tuple(size // 2 if warps.group is not None else 0 for size in warps.grid)
    lines = source_lines(captured)
    accesses = tuple(_yield_accesses(warps, at, lines))
    gpu = GPUS.get(target.cpu)
    occupancy_found = (
        compute_occupancy(uops, warps.items, gpu, registers) if gpu is not None and warps.group is not None else None
    )
    why = "" if occupancy_found is not None else _explain_no_occupancy(gpu, warps.group)
    shared = shared_memory(uops)
    target_text = target.cpu if gpu is None else f"{target.cpu} ({gpu.description})"
    return GPUView(
        captured.spec.name,
        target_text,
        target.warp,
        warps.grid,
        warps.group,
        at,
        accesses,
        shared,
        occupancy_found,
        why,
        warps,
    )


def _explain_no_occupancy(gpu: GPUTarget | None, group: Sequence[int] | None) -> str:
    if group is None:
        return "no occupancy: the runtime chooses the groups"
    named = "this device" if gpu is None else gpu.description
    return f"no occupancy: the resources of a multiprocessor of {named} are unknown; TARGET=sm_80, say, names a GPU"


def source_lines(captured: CapturedKernel) -> dict[UOp, str]:
    """Returns the last program line of each load and store."""
    texts: dict[UOp, str] = {}
    for line in captured.spec.lines:
        for node in line.uops:
            if node.op in (Ops.LOAD, Ops.STORE):
                texts[node] = line.text.strip()
    return texts


def _yield_accesses(warps: Warps, at: Sequence[int], lines: Mapping[UOp, str]) -> Iterator[WarpAccess]:
    """Yields the accesses to memory with the traffic of a group's warps, one for each load and store."""
    listing = uops_listing(warps.uops)
    for number, node, loops in find_enclosing_loops(warps.uops):
        memory = node.src[0].src[0]
        dtype = node.dtype if node.op is Ops.LOAD else node.src[1].dtype
        space = "shared" if memory.op is Ops.DEFINE_LOCAL else "global"
        facts: dict[str, Any] = {
            "place": number,
            "text": listing[number].text.split(None, 1)[1],
            "source": lines.get(node, ""),
            "buffer": operand_name(memory, 0),
            "space": space,
            "stored": node.op is Ops.STORE,
            "nbytes": dtype.count * dtype.scalar.itemsize,
            "loops": tuple(operand_name(loop, 0) for loop in loops),
        }
        try:
            requests = list(_yield_requests(warps, at, node, loops))
        except DataDependentWarp as error:
            yield WarpAccess(**facts, shown=None, note=str(error))
            continue
        regular = [request for request in requests if request.active]
        yield WarpAccess(
            **facts,
            shown=(regular or requests)[0],
            requests=len(regular),
            segments=sum(access.segments for access in regular),
            least=sum(access.least for access in regular),
            used_bytes=sum(access.used_bytes for access in regular),
            degree=max((access.degree for access in regular if access.shared), default=1),
        )


def _yield_requests(warps: Warps, at: Sequence[int], node: UOp, loops: Sequence[UOp]) -> Iterator[WarpRequest]:
    """Yields the memory requests of a group's warps, in the first and the middle iterations of the loops."""
    middle = {loop: loop.size // 2 for loop in loops}
    for counters in ({}, middle) if any(middle.values()) else ({},):
        for warp in range(min(MAX_WARPS, warps.warps)):
            yield warps.request(node, at, warp, counters)


__all__ = ["GPUView", "WarpAccess", "gpu_view"]
