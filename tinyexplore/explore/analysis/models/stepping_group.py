"""Steps one work-item of a GPU program; the others of its group follow to each barrier.

Each work-item is a generator over watched memory, as in the emulator (`runtime/emulator.py`). The stepped one yields an
event for each UOp. When it reaches a barrier, the others run to the same barrier. Their stores are an Event of the
barrier, which can be undone and repeated. Other groups do not run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tinyexplore.explore.analysis.models.stepping_program import Event, SteppingProgram, SteppingWriter
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.renderer.program import Launch, is_group_barrier, is_shared
from tinyexplore.renderer.python import WorkItemWriter
from tinyexplore.runtime.emulator import (
    DivergenceError,
    RaceCheckedMemory,
    Stop,
    WorkItems,
    coordinates_in,
    new_shared_memory,
    run_past_cores,
)
from tinyexplore.target import TENSOR_CORES
from tinyexplore.target.tensor_cores import multiply
from tinyexplore.uop import Ops, UOp

# memory, element, old value, new value
Note = tuple[memoryview, int, Any, Any]
Stepped = Generator[Event, Any, None]


def is_collective(node: UOp) -> bool:
    """Whether a UOp involves several work-items: a barrier or a tensor core."""
    return node.op is Ops.WMMA or is_group_barrier(node)


class SteppingItemWriter(SteppingWriter, WorkItemWriter):
    """Writes one work-item as a generator of Events and of stops.

    A stop is the position at which it waits for others; before a tensor core it also has (the core, A, B, C).
    """

    def write_node(self, node: UOp) -> None:
        if is_group_barrier(node):
            self.line(f"yield ({self.places[node]},)")
        elif node.op is Ops.WMMA:
            operands = ", ".join(self.operand(src) for src in node.src)
            self.line(f"{self.variable(node)} = yield {self.places[node]}, {node.arg!r}, {operands}")
            self.line(f"yield {', '.join([str(self.places[node]), *self.event_fields(node)])}")
        else:
            super().write_node(node)

    def view(self, memory: UOp) -> str:
        is_watched = memory.op is Ops.DEFINE_GLOBAL or is_shared(memory)
        return f"{self.operand(memory)}.view" if is_watched else self.operand(memory)

    def event_fields(self, node: UOp) -> list[str]:
        return [self.view(node)] if node.op is Ops.DEFINE_LOCAL else super().event_fields(node)


class RecordingMemory(RaceCheckedMemory):
    """Memory that records the stores of work-items other than `followed`."""

    def __init__(self, view: memoryview, name: str, items: WorkItems, followed: int, notes: list[Note]) -> None:
        super().__init__(view, name, items)
        self.followed = followed
        self.notes = notes

    def __setitem__(self, index: int, value: Any) -> None:
        if self.items.current == self.followed:
            super().__setitem__(index, value)
            return
        before = self.view[index]
        super().__setitem__(index, value)
        self.notes.append((self.view, index, before, self.view[index]))


class SteppingGroup(SteppingProgram):
    """A program from the view of one work-item, `item`: its indices by the names of SPECIALs; missing ones are 0."""

    writer = SteppingItemWriter

    def __init__(self, name: str, uops: Sequence[UOp], item: Mapping[str, int]) -> None:
        super().__init__(name, uops)
        self.name = name
        self.item = item
        self.launch = Launch.of(self.uops)
        self.shared = [node for node in self.uops if is_shared(node)]
        self.specials = [node.arg for node in self.uops if node.op is Ops.SPECIAL]
        cores = [TENSOR_CORES[node.arg] for node in self.uops if node.op is Ops.WMMA]
        self.lanes = cores[0].lanes if cores else 1

    def start(
        self, views: Sequence[memoryview], values: Sequence[int] = (), start: int = 0, stop: int = 0
    ) -> Iterator[Event]:
        """Starts the program of this work-item on these buffers.

        Raises:
            RaceError, DivergenceError: the emulator found this error among the work-items of this group.
        """
        return _WorkGroup(self, views, values).events()


class _WorkGroup:
    """A running group, one of whose work-items is followed."""

    def __init__(self, program: SteppingGroup, views: Sequence[memoryview], values: Sequence[int]) -> None:
        self.program = program
        grid, group = program.launch.sizes(values), program.launch.group
        self.items = items = WorkItems(program.name, grid, group)
        outer = _compute_linear_index(program.item, "idx" if group is None else "gidx", grid)
        self.followed = outer * items.size + _compute_linear_index(program.item, "lidx", group or ())
        self.notes: list[Note] = []
        buffers = [self._watch_memory(view, f"data{number}") for number, view in enumerate(views)]
        self.shared = [self._watch_memory(new_shared_memory(node.dtype), str(node.arg)) for node in program.shared]
        self.unfinished: dict[int, Stepped] = {}
        for inner, local in enumerate(coordinates_in(group or ())):
            indices = {**program.item, **{f"lidx{axis}": step for axis, step in enumerate(local)}}
            numbers = [indices.get(name, 0) for name in program.specials]
            self.unfinished[outer * items.size + inner] = program.function(*buffers, *values, *self.shared, *numbers)
        self.ahead: dict[int, Stop] = {}  # lanes that continued after a tensor core, and their next stops

    def _watch_memory(self, view: memoryview, name: str) -> RecordingMemory:
        return RecordingMemory(view, name, self.items, self.followed, self.notes)

    def events(self) -> Iterator[Event]:
        """Yields the events of the followed work-item. When it waits, the others run to the same stop first."""
        followed_events, sent = self.unfinished.pop(self.followed), None
        others = {number: self._stops_of(item) for number, item in self.unfinished.items()}
        first = self.followed - self.followed % self.items.size
        warp = first + (self.followed - first) // self.program.lanes * self.program.lanes
        lanes = range(warp, warp + self.program.lanes)
        while True:
            self.items.current = self.followed
            try:
                event = followed_events.send(sent)
            except StopIteration:
                return
            sent = None
            if (
                not is_collective(self.program.uops[event[0]]) or len(event) == 2
            ):  # the result of a core is recorded like any other value
                yield event
            elif len(event) == 1:
                self._run_to_barrier(event[0], others, lanes)
                for memory in self.shared:
                    memory.forget()
                yield event[0], f"with {count_text(len(others), 'other')}", self._take_notes()
            else:
                results = self._multiply(event, {number: others[number] for number in lanes if number in others}, lanes)
                self.items.current = self.followed
                line_number, value = followed_events.send(results[lanes.index(self.followed)])
                yield line_number, value, self._take_notes()

    def _take_notes(self) -> list[Note]:
        notes = list(self.notes)
        self.notes.clear()
        return notes

    def _stops_of(self, item: Stepped) -> Generator[Stop, Any, None]:
        """Yields only the stops of a work-item, without its events."""
        sent = None
        while True:
            try:
                event = item.send(sent)
            except StopIteration:
                return
            sent = None
            if is_collective(self.program.uops[event[0]]) and len(event) != 2:
                sent = yield event[0] if len(event) == 1 else event

    def _run_to_next_stop(self, number: int, item: Generator[Stop, Any, None], sent: Any = None) -> Stop:
        """Returns the next barrier or tensor core of a work-item; None if it has ended.

        sent: the result of a tensor core.
        """
        if sent is None and number in self.ahead:
            return self.ahead.pop(number)
        self.items.current = number
        try:
            return item.send(sent)
        except StopIteration:
            return None

    def _run_to_barrier(self, line_number: int, others: dict[int, Generator[Stop, Any, None]], lanes: range) -> None:
        """Runs all work-items to the barrier at `line_number`."""
        stops = {number: self._run_to_next_stop(number, item) for number, item in others.items() if number in lanes}
        unmasked = [number for number in others if number not in lanes]
        for start in range(0, len(unmasked), self.program.lanes):
            warp = {number: others[number] for number in unmasked[start : start + self.program.lanes]}
            stops |= run_past_cores(self.items, warp, self.program.lanes)
        self._check_same_line(line_number, stops)

    def _multiply(self, event: Event, others: dict[int, Generator[Stop, Any, None]], lanes: range) -> list[Any]:
        """Returns the result of the tensor core in each lane of the warp. All lanes but the followed one continue."""
        stops = {number: self._run_to_next_stop(number, item) for number, item in others.items()}
        line_of = {number: stop[0] if isinstance(stop, tuple) else stop for number, stop in stops.items()}
        self._check_same_line(event[0], line_of)
        stops[self.followed] = event
        a, b, c = ([stops[number][part] for number in lanes] for part in (2, 3, 4))
        results: list[Any] = multiply(TENSOR_CORES[event[1]], a, b, c)
        for number, item in others.items():
            self.ahead[number] = self._run_to_next_stop(number, item, results[lanes.index(number)])
        return results

    def _check_same_line(self, line_number: int, stops: Mapping[int, Stop]) -> None:
        """Checks that all `stops` are at `line_number`, else raise DivergenceError."""
        for number, stop in stops.items():
            if stop != line_number:
                does = "has ended" if stop is None else "waits elsewhere"
                name = self.items.name
                raise DivergenceError(
                    f"kernel {self.program.name}: work-item {name(self.followed)} waits in line {line_number}, and "
                    f"work-item {name(number)} of its group {does}"
                )


def _compute_linear_index(item: Mapping[str, int], name: str, sizes: Sequence[int]) -> int:
    """Returns the linear index of a work-item or group in the grid. Its first dimension varies fastest."""
    return sum(item.get(f"{name}{axis}", 0) * prod(sizes[:axis]) for axis in range(len(sizes)))


__all__ = ["Note", "SteppingGroup", "is_collective"]
