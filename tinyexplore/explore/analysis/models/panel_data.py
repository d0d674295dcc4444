"""The data of the debugger's panel and of the panel of caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tinyexplore.explore.analysis.models.address_stream import DataDependentAddress
from tinyexplore.explore.analysis.models.caches import CacheModel, CachesData, TileData
from tinyexplore.explore.analysis.models.debugger import Debugger, value_text
from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
from tinyexplore.explore.tracefile.model import Node
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.uop import Ops, UOp

CELLS = 256  # most elements of a tensor that are shown
MAX_ROW_ELEMENTS = 64

Opts = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class TensorData(DisplayableRow):
    """A buffer as the panel of the debugger draws it: rows around the last access."""

    name: str
    """Name of the buffer."""
    size: int
    """Number of its elements."""
    width: int
    """Number of elements in a row."""
    first: int
    """Index of the first visible element."""
    cells: tuple[str, ...]
    """Values from there on, as text."""
    lit: tuple[int, ...]
    """Elements that the last step accessed."""
    recent: tuple[int, ...]
    """Elements that the last steps accessed."""
    stored: bool
    """Whether the last step stored them."""


@dataclass(frozen=True, repr=False)
class DebuggerState(DisplayableRow):
    """A debugger as its panel draws it. `reason` also has the error of a failed kernel."""

    name: str
    """Name of the kernel."""
    note: str
    """Remarks about the inputs."""
    listing: tuple[str, ...]
    """The lines of the kernel."""
    lanes: int
    """Number of lanes of the widest vector."""
    nest: tuple[tuple[str, tuple[str, ...]], ...]
    """Each loop, with the loops around it."""
    values: tuple[tuple[int, str], ...]
    """Values of registers, by line."""
    tensors: tuple[TensorData, ...]
    """The buffers."""
    position: int
    """Number of executed steps."""
    place: int | None
    """Line of the last step."""
    ended: bool
    """Whether the kernel has ended."""
    reason: str
    """Why it stopped here."""
    loops: tuple[tuple[str, int], ...]
    """Counters of the loops around the line."""
    accesses: tuple[tuple[str, bool, tuple[int | None, ...], str], ...]
    """Buffer, whether it stored, elements of the lanes, and value, for each access of the last step."""


def debugger_data(
    debugger: Debugger, widths: Mapping[str, int] | None = None, lane: int | None = None
) -> DebuggerState:
    """Returns the state of a debugger, its listing, and the tensors around its last access, in rows of `widths`.

    With `lane`, vectors show only this lane.
    """
    state = debugger.state(lane)
    values: dict[int, str] = {}
    for number, _, text in state["registers"]:
        values[number] = text
    if debugger.place is not None and not isinstance(debugger.value, memoryview):
        value = debugger.value
        is_lane = lane is not None and isinstance(value, list) and lane < len(value)
        values[debugger.place] = value_text(value[lane] if is_lane else value)
    return DebuggerState(
        name=debugger.name,
        note=debugger.note,
        listing=tuple([line.text for line in debugger.listing]),
        lanes=debugger.lanes,
        nest=tuple([(name, tuple(around)) for name, around in debugger.nest.items()]),
        values=tuple(sorted(values.items())),
        tensors=tuple([tensor_data(debugger, name, (widths or {}).get(name), lane) for name in debugger.buffers]),
        position=debugger.position,
        place=debugger.place,
        ended=debugger.ended,
        reason=debugger.reason,
        loops=tuple(debugger.loops.items()),
        accesses=tuple(
            [(access.buffer, access.stored, access.index, value_text(access.value)) for access in debugger.accesses]
        ),
    )


def tensor_data(debugger: Debugger, name: str, width: int | None = None, lane: int | None = None) -> TensorData:
    """Returns a buffer as a grid: the rows around the last access, of `width` elements or as its indices suggest."""
    size = debugger.buffers[name]
    recent = [access for access in debugger.recent_accesses(64) if access.buffer == name]
    accesses = [access for access in debugger.accesses if access.buffer == name]
    last = next((index for access in recent for index in access.index if index is not None), 0)
    width = width or row_width(debugger.uops, name, size)
    rows = max(1, CELLS // width)
    first = max(0, min(last // width - rows // 2, -(-size // width) - rows)) * width
    numbers = debugger.read(name, first, rows * width)
    cells = [value_text(float(f"{value:.3g}")) if isinstance(value, float) else str(value) for value in numbers]
    lit = [index for access in accesses for index in _index_of_lane(access.index, lane) if index is not None]
    near = sorted({index for access in recent for index in access.index if index is not None})
    stored = any(access.stored for access in accesses)
    return TensorData(name, size, width, first, tuple(cells), tuple(lit), tuple(near), stored)


def _index_of_lane(index: tuple[int | None, ...], lane: int | None) -> tuple[int | None, ...]:
    """Returns the element of one lane; all elements if the value does not have that lane."""
    return index if lane is None or lane >= len(index) else index[lane : lane + 1]


def row_widths(trace: Trace, kernel: int) -> dict[str, int]:
    """Returns the row width of each buffer: the last axis of its tensor in Python, if known and short enough."""
    info = trace.kernels[kernel]
    inside = [trace.nodes[node] for node in info.nodes]
    near = [
        *(trace.nodes[node] for node in info.roots),
        *inside,
        *(trace.nodes[src] for node in inside for src in node.src),
    ]
    widths: dict[str, int] = {}
    for position, number in enumerate(info.buffers):
        buffer = trace.buffers[number]
        for node in near:
            sizes = sizes_of(node)
            if sizes and prod(sizes) == buffer.size and (node.name == buffer.name or node.id in info.roots):
                width = next((size for size in reversed(sizes) if size > 1), 1)
                if width <= MAX_ROW_ELEMENTS:
                    widths.setdefault(f"data{position}", width)
    return widths


def sizes_of(node: Node) -> tuple[int, ...] | None:
    """Returns the shape of a LazyBuffer; None if it has symbolic sizes."""
    sizes = tuple(size for size in node.shape or () if isinstance(size, int))
    return sizes if sizes and len(sizes) == len(node.shape or ()) else None


def row_width(uops: tuple[UOp, ...], name: str, size: int) -> int:
    """Returns the number of elements in a drawn row: the longest index stride that divides the buffer, at most 64."""
    strides = []
    for node in uops:
        if node.op is Ops.INDEX and name == (f"data{node.src[0].arg}" if node.src[0].op is Ops.DEFINE_GLOBAL else name):
            strides += [
                part.src[1].arg
                for part in node.src[1].toposort()
                if part.op is Ops.MUL and part.src[1].op is Ops.CONST and 1 < part.src[1].arg <= MAX_ROW_ELEMENTS
            ]
    fitting = [stride for stride in strides if size % stride == 0]
    return max(fitting, default=min(size, 16) or 1)


def caches_data(
    analyses: KernelAnalyses, kernel: int, before: Opts | None = (), after: Opts | None = None
) -> CachesData:
    """Returns the caches of a kernel with the opts `before` and `after` (None: as captured), and the lines of one tile.

    If both are the same, the result has only one side.
    """
    later = analyses.cache_model(kernel, after)
    if before == after or (before is not None and tuple(before) == later.opts):
        return CachesData(replace(later.as_data(), tile=tile_data(later)))
    earlier = analyses.cache_model(kernel, before)
    comparison = earlier.compare(later).as_data()
    first, second = (replace(model.as_data(), tile=tile_data(model)) for model in (earlier, later))
    return CachesData(second, first, comparison.rows)


def tile_data(model: CacheModel) -> TileData | None:
    """Returns the cache lines of one pass of the innermost loop, with the outer loops at their middle iteration."""
    loops = max((access.loops for access in model.accesses), key=len, default=())
    around = loops[:-1]
    if not around:
        return None
    ends = {name: model.stream.uops[number].src[0] for number, name in model.stream.loop_names.items()}
    counters = {name: int(ends[name].arg) // 2 for name in around if ends[name].op is Ops.CONST}
    try:
        counts = model.lines_of(**counters)
    except DataDependentAddress:
        return None
    line = model.caches[0].line_bytes
    buffers = tuple([(name, tuple(lines), -(-model.footprint[name] // line)) for name, lines in counts.items()])
    return TileData(tuple(counters.items()), buffers)


__all__ = ["DebuggerState", "TensorData", "caches_data", "debugger_data", "row_widths"]
