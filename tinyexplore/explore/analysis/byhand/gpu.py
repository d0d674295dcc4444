"""A GPU's kernel by hand: its grid and groups, what a warp asks of memory at each load and store, and the occupancy.

Every warp of one group, in the middle of the grid, is looked at, in the first and the middle step of the loops around
an access (`warps.py`); one of them is shown, lane by lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tinyexplore.explore.analysis.byhand.gpu_picture import gpu_svg
from tinyexplore.explore.analysis.byhand.occupancy import Occupancy, OccupancyData, occupancy, shared_memory
from tinyexplore.explore.analysis.byhand.warp_accesses import WarpAccess, WarpAccessData
from tinyexplore.explore.analysis.byhand.warps import DataDependentWarp, WarpRequest, Warps, loops_around
from tinyexplore.explore.recording.describe import operand_name, uops_listing
from tinyexplore.explore.recording.kept import CapturedKernel
from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.readable import ReadableRow
from tinyexplore.target import GPUS, GPUTarget
from tinyexplore.uop import Ops, UOp

MOST_WARPS = 8  # of a group that are looked at


@dataclass(frozen=True, repr=False)
class GPUData(ReadableRow):
    """A GPU's kernel, as the panel of warps draws it."""

    kernel: str
    """Name of the kernel."""
    target: str
    """The GPU."""
    warp: int
    """Lanes of a warp."""
    grid: tuple[int, ...]
    """Work-groups by dimension, the fastest first."""
    group: tuple[int, ...] | None
    """Work-items of a group by dimension; None: the runtime chooses."""
    at: tuple[int, ...]
    """The group whose accesses are shown."""
    says: str
    """The grid, as text."""
    accesses: tuple[WarpAccessData, ...]
    """Loads and stores in the order of the listing."""
    shared_bytes: int
    """Shared memory of a group, in bytes."""
    occupancy: OccupancyData | None
    """How many groups a multiprocessor holds; None where that is not known."""
    why: str
    """Why the occupancy is not known."""


@dataclass(frozen=True, repr=False)
class GPUView(ReadableRow):
    """A kernel on a GPU. `grid`: how many groups, `group`: how many work-items of each (None: the runtime chooses), by
    dimension, the fastest first. `at`: the group that is looked at. `why`: why there is no occupancy, in words."""

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
        """The work-items of a group; of a warp, where the runtime makes the groups."""
        return prod(self.group) if self.group is not None else self.warp

    @property
    def says(self) -> str:
        """The grid in words."""
        if self.group is None:
            return f"{_times(self.grid)} work-items, in groups that the runtime makes"
        warps = -(-self.items // self.warp)
        idle = warps * self.warp - self.items
        left = f", {count_text(idle, 'lane')} of the last idle" if idle else ""
        groups = f"{_times(self.grid)} group{'s' if prod(self.grid) != 1 else ''}"
        return f"{groups} of {_times(self.group)} work-items: {count_text(warps, 'warp')} of {self.warp} in each{left}"

    @property
    def rows(self) -> list[tuple[WarpAccess, int]]:
        """The accesses, those that do the same (an unrolled loop has many) once, with how many they are."""
        found: dict[tuple[Any, ...], list[WarpAccess]] = {}
        for one in self.accesses:
            found.setdefault((one.stored, one.buffer, one.loops, *one.figures, one.says), []).append(one)
        return [(alike[0], len(alike)) for alike in found.values()]

    def request(self, place: int, group: Sequence[int] = (), warp: int = 0, **counters: int) -> WarpRequest:
        """What another warp asks at the access in this line of the listing, in other steps of the loops around it
        (`r2=5`; 0 where a loop is not named)."""
        if self.warps is None:
            raise ValueError("this is data of a page: ask the view, view.kernels[i].gpu()")
        around = {at: (node, loops) for at, node, loops in loops_around(self.warps.uops)}
        if place not in around:
            raise ValueError(f"line {place} is no load or store; those are {', '.join(map(str, around))}")
        node, loops = around[place]
        places = {operand_name(loop, 0): loop for loop in loops}
        unknown = sorted(counters.keys() - places.keys())
        if unknown:
            raise ValueError(
                f"no loop {', '.join(unknown)} around line {place}; there are {', '.join(places) or 'none'}"
            )
        known = {places[name]: value for name, value in counters.items()}
        return self.warps.request(node, group or self.at, warp, known)

    def as_data(self) -> GPUData:
        """What the panel draws."""
        occupancy = None if self.occupancy is None else self.occupancy.as_data()
        accesses = tuple([one.as_data() for one in self.accesses])
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
        """The whole as a static picture."""
        return gpu_svg(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}

    def __str__(self) -> str:
        """The grid, a line for the accesses that do the same, and the occupancy."""
        rows = [("line", "", "of", "", "segments", "bytes used", "banks", "a warp")]
        for one, count in self.rows:
            times = f"× {count}" if count > 1 else ""
            kind = "store" if one.stored else "load"
            rows.append((str(one.place), kind, one.buffer, times, *one.figures, one.says))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        last = self.why if self.occupancy is None else self.occupancy.says
        found = self.occupancy
        taken = "" if found is None else f" ({'' if found.known else 'about '}{found.registers} registers a work-item)"
        return "\n".join([f"{self.name} on {self.target}: {self.says}", *lines, f"{last}{taken}"])


def _times(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))


def gpu_view(kept: CapturedKernel, registers: int | None = None) -> GPUView:
    """A kernel of a capture, as its GPU goes through it; ValueError for one of a CPU. registers: of a work-item, where
    a compiler told."""
    target = kept.spec.target
    if not target.has_local:
        raise ValueError(
            f"kernel {kept.number} ({kept.spec.name}) is a CPU's ({target.cpu}): it has no work-groups; capture it "
            'with explore(f, target="sm_80"), say'
        )
    uops = kept.uops
    values: Mapping[UOp, int] = dict(zip(kept.spec.variables, kept.values))
    warps = Warps(uops, target.warp, values, kept.contents)
    at = tuple(size // 2 if warps.group is not None else 0 for size in warps.grid)
    lines = source_lines(kept)
    accesses = tuple(_accesses(warps, at, lines))
    gpu = GPUS.get(target.cpu)
    held = occupancy(uops, warps.items, gpu, registers) if gpu is not None and warps.group is not None else None
    why = "" if held is not None else _why_not(gpu, warps.group)
    shared = shared_memory(uops)
    words = target.cpu if gpu is None else f"{target.cpu} ({gpu.words})"
    return GPUView(kept.spec.name, words, target.warp, warps.grid, warps.group, at, accesses, shared, held, why, warps)


def _why_not(gpu: GPUTarget | None, group: Sequence[int] | None) -> str:
    if group is None:
        return "no occupancy: the runtime chooses the groups"
    named = "this device" if gpu is None else gpu.words
    return f"no occupancy: nobody tells what a multiprocessor of {named} holds; TARGET=sm_80, say, names one"


def source_lines(kept: CapturedKernel) -> dict[UOp, str]:
    """For each load and store the line of the program that does it: the last that has it."""
    found: dict[UOp, str] = {}
    for line in kept.spec.lines:
        for node in line.uops:
            if node.op in (Ops.LOAD, Ops.STORE):
                found[node] = line.text.strip()
    return found


def _accesses(warps: Warps, at: Sequence[int], lines: Mapping[UOp, str]) -> Iterator[WarpAccess]:
    listing = uops_listing(warps.uops)
    for place, node, loops in loops_around(warps.uops):
        memory = node.src[0].src[0]
        dtype = node.dtype if node.op is Ops.LOAD else node.src[1].dtype
        space = "shared" if memory.op is Ops.DEFINE_LOCAL else "global"
        facts: dict[str, Any] = {
            "place": place,
            "text": listing[place].text.split(None, 1)[1],
            "source": lines.get(node, ""),
            "buffer": operand_name(memory, 0),
            "space": space,
            "stored": node.op is Ops.STORE,
            "nbytes": dtype.count * dtype.scalar.itemsize,
            "loops": tuple(operand_name(loop, 0) for loop in loops),
        }
        try:
            asked = list(_requests(warps, at, node, loops))
        except DataDependentWarp as error:
            yield WarpAccess(**facts, shown=None, note=str(error))
            continue
        known = [one for one in asked if one.asked]
        yield WarpAccess(
            **facts,
            shown=(known or asked)[0],
            requests=len(known),
            segments=sum(one.segments for one in known),
            least=sum(one.least for one in known),
            wanted=sum(one.wanted for one in known),
            degree=max((one.degree for one in known if one.shared), default=1),
        )


def _requests(warps: Warps, at: Sequence[int], node: UOp, loops: Sequence[UOp]) -> Iterator[WarpRequest]:
    """What the warps of a group ask in the first and the middle steps of the loops."""
    middle = {loop: loop.size // 2 for loop in loops}
    for counters in ({}, middle) if any(middle.values()) else ({},):
        for warp in range(min(MOST_WARPS, warps.warps)):
            yield warps.request(node, at, warp, counters)


__all__ = ["GPUView", "WarpAccess", "gpu_view"]
