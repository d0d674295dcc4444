"""The memory planner: intermediates whose live ranges do not overlap share memory.

A buffer is live from the item that writes it first to the last item that uses it. Assigning memory is the problem of
packing rectangles (lifetime × size) into a strip of minimal height. Largest first, each as low as it fits, works well
in practice (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyexplore.device import Buffer, Memory
from tinyexplore.device.allocator import ALIGNMENT
from tinyexplore.dtype import dtypes
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.schedule import ScheduleItem


@dataclass(frozen=True, slots=True)
class LiveRange:
    """The live range of a buffer.

    nbytes: its size in bytes.
    first: the first item that uses it.
    last: the last item that uses it, inclusive.
    """

    nbytes: int
    first: int
    last: int

    def interferes_with(self, other: LiveRange) -> bool:
        """Whether both are needed at the same time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The offsets of intermediates in shared memory.

    live_ranges: the live range of each intermediate.
    offsets: the offset of each intermediate in the shared memory, in bytes.
    total_bytes: bytes without sharing.
    bound_bytes: a lower bound: the most bytes live at one time.
    peak_bytes: bytes with these offsets.
    """

    live_ranges: tuple[LiveRange, ...]
    offsets: tuple[int, ...]

    @property
    def total_bytes(self) -> int:
        return sum(live_range.nbytes for live_range in self.live_ranges)

    @property
    def bound_bytes(self) -> int:
        return lower_bound(self.live_ranges)

    @property
    def peak_bytes(self) -> int:
        return _peak_bytes(self.live_ranges, self.offsets)

    def describe(self) -> str:
        """Returns a summary in one line."""
        return (
            f"{len(self.live_ranges)} intermediates of {_format_bytes(self.total_bytes)} in "
            f"{_format_bytes(self.peak_bytes)} (at least {_format_bytes(self.bound_bytes)} live at once)"
        )


def lower_bound(ranges: Iterable[LiveRange]) -> int:
    """Returns the most bytes that are live at one time."""
    changes: dict[int, int] = {}
    for live_range in ranges:
        changes[live_range.first] = changes.get(live_range.first, 0) + live_range.nbytes
        changes[live_range.last + 1] = changes.get(live_range.last + 1, 0) - live_range.nbytes
    live_bytes = most_bytes = 0
    for time in sorted(changes):
        live_bytes += changes[time]
        most_bytes = max(most_bytes, live_bytes)
    return most_bytes


def place_live_ranges(ranges: Sequence[LiveRange]) -> MemoryPlan:
    """Returns offsets for all of `ranges`, placed by size. If that wastes memory, also tries to place them by time."""
    plan = MemoryPlan(tuple(ranges), _place_all(ranges, lambda number: (-ranges[number].nbytes, ranges[number].first)))
    if plan.peak_bytes == plan.bound_bytes:
        return plan
    by_start = MemoryPlan(
        tuple(ranges), _place_all(ranges, lambda number: (ranges[number].first, -ranges[number].nbytes))
    )
    return min(plan, by_start, key=lambda candidate: candidate.peak_bytes)


def _place_all(ranges: Sequence[LiveRange], order: Callable[[int], tuple[int, int]]) -> tuple[int, ...]:
    """Places the ranges in `order`, each at the first offset without interference. Returns the offsets."""
    offsets = [0] * len(ranges)
    placed: list[int] = []  # sorted by offset
    for number in sorted(range(len(ranges)), key=order):
        live_range = ranges[number]
        offset = 0
        for placed_number in placed:
            if not live_range.interferes_with(ranges[placed_number]):
                continue
            if offsets[placed_number] - offset >= live_range.nbytes:
                break
            offset = max(offset, offsets[placed_number] + ranges[placed_number].nbytes)
        offsets[number] = offset
        position = next(
            (number for number, placed_number in enumerate(placed) if offsets[placed_number] > offset), len(placed)
        )
        placed.insert(position, number)
    return tuple(offsets)


def align(nbytes: int) -> int:
    """Rounds `nbytes` up to whole cache lines, so that the next buffer starts at one."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _peak_bytes(ranges: Sequence[LiveRange], offsets: Sequence[int]) -> int:
    return max((offset + live_range.nbytes for live_range, offset in zip(ranges, offsets)), default=0)


def _format_bytes(count: int) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.4g} GB"


# *** schedules and captures ***


def outputs_of(item: ExecItem | ScheduleItem) -> int:
    """Returns the number of buffers that `item` writes. These are its first buffers."""
    if isinstance(item, ScheduleItem):
        return len(item.outputs)
    return 1 if item.runner is None else len(item.runner.spec.writes)


def live_ranges(items: Sequence[ExecItem | ScheduleItem], persistent: Collection[Buffer]) -> dict[Buffer, LiveRange]:
    """Returns the live range of each buffer that `items` write before they read it, in order, except those in
    `persistent`."""
    first_step: dict[Buffer, int] = {}
    last_step: dict[Buffer, int] = {}
    excluded = set(persistent)
    for time, item in enumerate(items):
        schedule_item = item if isinstance(item, ScheduleItem) else item.item
        count = 0 if schedule_item.in_place else outputs_of(item)  # a buffer that is written in part has a value before
        for number, buffer in enumerate(item.buffers):
            if number >= count and buffer not in first_step:
                excluded.add(buffer)
            first_step.setdefault(buffer, time)
            last_step[buffer] = time
    return {
        buffer: LiveRange(align(buffer.nbytes), first_step[buffer], last_step[buffer])
        for buffer in first_step
        if buffer not in excluded and buffer.size
    }


def plan_memory(items: Sequence[ExecItem | ScheduleItem], live: Collection[Buffer] = ()) -> MemoryPlan:
    """Plans the memory of the intermediates of `items`. Buffers in `live` are not intermediates, because they live
    longer."""
    return place_live_ranges(list(live_ranges(items, live).values()))


def share_memory(
    items: Sequence[ExecItem], live: Collection[Buffer]
) -> tuple[list[ExecItem], list[MemoryPlan], list[Buffer]]:
    """Lets the intermediates of `items` share memory.

    Returns:
        The items with other buffers, the plan of each device (each has its own memory), and the buffers that share.
    """
    ranges = live_ranges(items, live)
    moved_buffers: dict[Buffer, Buffer] = {}
    plans = []
    for device in dict.fromkeys(buffer.device for buffer in ranges):
        device_buffers = [buffer for buffer in ranges if buffer.device == device]
        plan = place_live_ranges([ranges[buffer] for buffer in device_buffers])
        arena = Buffer(device, plan.peak_bytes, dtypes.uint8).allocate().memory
        for buffer, offset in zip(device_buffers, plan.offsets):
            buffer_memory = Memory(arena.address + offset, buffer.nbytes, arena)
            moved_buffers[buffer] = Buffer(device, buffer.size, buffer.dtype, buffer_memory)
        plans.append(plan)
    return with_other_buffers(items, moved_buffers), plans, list(moved_buffers.values())


def with_other_buffers(items: Sequence[ExecItem], replacements: Mapping[Buffer, Buffer]) -> list[ExecItem]:
    """Returns `items` with some buffers replaced."""
    rebound = []
    for item in items:
        buffers = tuple(replacements.get(buffer, buffer) for buffer in item.buffers)
        if buffers != item.buffers:
            item = ExecItem(replace(item.item, buffers=buffers), item.runner, item.kernel, buffers, values=item.values)
        rebound.append(item)
    return rebound
