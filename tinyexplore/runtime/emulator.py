"""Emulates work-groups on the PYTHON device: runs a GPU's programs work-item by work-item and detects races.

Every work-item is a Python function, or with barriers a generator that stops at each. The work-items of a group run to
the next barrier one after the other. Memory is checked element by element. Two work-items race if both access an
element, one of them stores, and no barrier is between them, even if the result is correct here. All work-items of a
group must reach the same barrier. Barriers order accesses to shared memory; nothing orders accesses of work-items to
the buffers of a kernel. A tensor core takes operands from all lanes of a warp, which must reach the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.dtype import PtrDType
from tinyexplore.renderer.program import Launch, ProgramSpec, is_group_barrier, is_shared
from tinyexplore.renderer.python import memory_format
from tinyexplore.target import TENSOR_CORES
from tinyexplore.target.tensor_cores import multiply
from tinyexplore.uop import Ops

SEVERAL = -1  # numbers of the readers
Stop = Any  # a barrier, by its line; or (line, core, A, B, C) if a tensor core needs the operands of a lane
WorkItem = Generator[Stop, Any, None]


class RaceError(RuntimeError):
    """Raised if two work-items access one element of memory without synchronization, and one of them stores."""


class DivergenceError(RuntimeError):
    """Raised if some work-items of a group wait at a barrier, or at a tensor core, that others do not reach."""


class WorkItems:
    """The work-items of a launch, by number. `current` is the running one."""

    def __init__(self, kernel: str, grid: tuple[int, ...], group: tuple[int, ...] | None) -> None:
        self.kernel = kernel
        self.grid = grid
        self.group = group
        self.size = prod(group or ())
        self.current = 0

    def name(self, number: int) -> str:
        """Returns the name of a work-item: its indices in the program."""
        outer, inner = divmod(number, self.size)
        names = [f"{'idx' if self.group is None else 'gidx'}{axis}" for axis in range(len(self.grid))]
        numbers = [*_split_number(outer, self.grid), *_split_number(inner, self.group or ())]
        names += [f"lidx{axis}" for axis in range(len(self.group or ()))]
        return ", ".join(f"{name}={value}" for name, value in zip(names, numbers))


class RaceCheckedMemory:
    """Memory that work-items share. It records all readers and writers until `forget`."""

    def __init__(self, view: memoryview, name: str, items: WorkItems) -> None:
        self.view = view
        self.name = name
        self.items = items
        self.stored: dict[int, int] = {}
        self.read: dict[int, int] = {}

    def forget(self) -> None:
        """Clears the records, at a barrier."""
        self.stored.clear()
        self.read.clear()

    def __getitem__(self, index: int) -> Any:
        item = self.items.current
        writer = self.stored.get(index, item)
        if writer != item:
            raise self.race(index, "reads", "stored", writer)
        if self.read.setdefault(index, item) != item:
            self.read[index] = SEVERAL
        return self.view[index]

    def __setitem__(self, index: int, value: Any) -> None:
        item = self.items.current
        writer = self.stored.setdefault(index, item)
        if writer != item:
            raise self.race(index, "stores to", "stored to", writer)
        writer = self.read.get(index, item)
        if writer != item:
            raise self.race(index, "stores to", "read", writer)
        self.view[index] = value

    def race(self, index: int, action: str, earlier_action: str, earlier_item: int) -> RaceError:
        """Returns the error for an access of the running work-item that conflicts with one of `earlier_item`."""
        name = self.items.name
        other_items = "others have" if earlier_item == SEVERAL else f"work-item {name(earlier_item)} has"
        element_text = f"{self.name}[{index}]"
        return RaceError(
            f"kernel {self.items.kernel}: work-item {name(self.items.current)} {action} {element_text}, which "
            f"{other_items} {earlier_action}; no barrier is between the two"
        )


class EmulatedGroups:
    """A GPU program for the interpreter. `function`: the code of one work-item."""

    def __init__(self, spec: ProgramSpec, function: Callable[..., Any]) -> None:
        self.name = spec.name
        self.function = function
        self.launch = Launch.of(spec.uops)
        self.specials = [node.arg for node in spec.uops if node.op is Ops.SPECIAL]
        self.shared = [(str(node.arg), node.dtype) for node in spec.uops if is_shared(node)]
        cores = [TENSOR_CORES[node.arg] for node in spec.uops if node.op is Ops.WMMA]
        self.lanes = cores[0].lanes if cores else 1
        self.stops = bool(cores) or any(map(is_group_barrier, spec.uops))

    def run(self, views: Sequence[memoryview], values: Sequence[int]) -> None:
        """Runs every work-item, group by group."""
        grid, group = self.launch.sizes(values), self.launch.group
        items = WorkItems(self.name, grid, group)
        buffers = [RaceCheckedMemory(view, f"data{slot}", items) for slot, view in enumerate(views)]
        for number, coordinates in enumerate(coordinates_in(grid)):
            shared = [RaceCheckedMemory(new_shared_memory(dtype), name, items) for name, dtype in self.shared]
            at_work: dict[int, WorkItem] = {}
            for inner, local in enumerate(coordinates_in(group or ())):
                items.current = number * items.size + inner
                index_values = {f"{'idx' if group is None else 'gidx'}{d}": step for d, step in enumerate(coordinates)}
                index_values |= {f"lidx{d}": step for d, step in enumerate(local)}
                started = self.function(*buffers, *values, *shared, *[index_values[name] for name in self.specials])
                if self.stops:
                    at_work[items.current] = started
            while at_work:
                at_work = step_to_barrier(items, at_work, self.lanes)
                for memory in shared:
                    memory.forget()


def step_to_barrier(items: WorkItems, at_work: dict[int, WorkItem], lanes: int) -> dict[int, WorkItem]:
    """Runs the work-items of a group to their next barrier, which must be the same for all.

    Returns the running work-items: all, or none if all have ended. Raises DivergenceError if their barriers differ.
    lanes: the number of work-items that share a tensor core.
    """
    first_at_stop: dict[int | None, int] = {}  # the first work-item at each barrier, by its line; None: the end
    numbers = list(at_work)
    for start in range(0, len(numbers), lanes):
        warp = {number: at_work[number] for number in numbers[start : start + lanes]}
        for number, stop in run_past_cores(items, warp, lanes).items():
            first_at_stop.setdefault(stop, number)
    if len(first_at_stop) > 1:
        (line, waiting_item), (_, other_item) = sorted(first_at_stop.items(), key=lambda entry: entry[0] is None)[:2]
        other_state = "has ended" if None in first_at_stop else "waits at another one"
        raise DivergenceError(
            f"kernel {items.kernel}: work-item {items.name(waiting_item)} waits at the barrier of line {line}, "
            f"and work-item {items.name(other_item)} of its group {other_state}"
        )
    return {} if None in first_at_stop else at_work


def run_past_cores(items: WorkItems, warp: dict[int, WorkItem], lanes: int) -> dict[int, Stop]:
    """Runs the lanes of a warp to their next barrier or end, and multiplies at each tensor core in between.

    All lanes pass their operands to a tensor core. Returns the stop of each lane. Raises DivergenceError if lanes reach
    different tensor cores.
    """
    products: dict[int, Any] = dict.fromkeys(warp)
    while True:
        stops: dict[int, Stop] = {}
        for number, item in warp.items():
            items.current = number
            try:
                stops[number] = item.send(products[number])
            except StopIteration:
                stops[number] = None
        at_core = {number: stop for number, stop in stops.items() if isinstance(stop, tuple)}
        if not at_core:
            return stops
        first_lane, (line, name, *_) = next(iter(at_core.items()))
        absent = [number for number in warp if number not in at_core or at_core[number][0] != line]
        if absent or len(warp) != lanes:
            difference = (
                f"lane {items.name(absent[0])} of its warp has not reached it"
                if absent
                else f"its warp has {len(warp)} lanes"
            )
            raise DivergenceError(
                f"kernel {items.kernel}: work-item {items.name(first_lane)} passes operands to {name} in line {line}, "
                f"but {difference}"
            )
        a, b, c = ([stop[field_number] for stop in at_core.values()] for field_number in (2, 3, 4))
        products = dict(zip(warp, multiply(TENSOR_CORES[name], a, b, c)))


def new_shared_memory(dtype: PtrDType) -> memoryview:
    """Allocates shared memory for a group, filled with values that expose wrong reads (NaN for floats)."""
    return memoryview(bytearray(b"\xff" * (dtype.size * dtype.base.itemsize))).cast(memory_format(dtype.base))  # type: ignore[call-overload,no-any-return]


def bind(program: EmulatedGroups, buffers: Sequence[Buffer], values: Sequence[int]) -> Callable[[int, int], None]:
    """Returns a function that runs `program` on `buffers`."""
    views = [
        buffer.allocate().memoryview().cast(memory_format(buffer.dtype))  # type: ignore[call-overload]
        for buffer in buffers
    ]

    def run(start: int, stop: int) -> None:
        program.run(views, values)

    return run


def coordinates_in(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yields every index of a grid, first dimension fastest."""
    for coordinates in product(*map(range, reversed(sizes))):
        yield coordinates[::-1]


def _split_number(number: int, sizes: Sequence[int]) -> Iterator[int]:
    for size in sizes:
        number, digit = divmod(number, size)
        yield digit


__all__ = [
    "DivergenceError",
    "EmulatedGroups",
    "WorkItems",
    "RaceError",
    "Stop",
    "RaceCheckedMemory",
    "bind",
    "new_shared_memory",
    "run_past_cores",
    "coordinates_in",
]
