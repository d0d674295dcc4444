"""The kernel debugger: it runs a kernel's linear program UOp by UOp on the reference interpreter, in both directions.

A log records the last steps. From it, `back` restores registers and memory. To go back further, the debugger runs the
program again from the start, since each run is identical.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.explore.analysis.models.conditions import Condition, lanes_of, read_condition
from tinyexplore.explore.analysis.models.stepping_group import Note, SteppingGroup, is_collective
from tinyexplore.explore.analysis.models.stepping_program import Event, SteppingProgram, element_view
from tinyexplore.explore.recording.descriptions import operand_name, uops_listing
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.renderer.program import global_buffers, variable_arguments
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.semantics import from_bits
from tinyexplore.uop.symbolic import value_of

LOG = 50_000  # steps that `back` can undo without running the program again
AROUND = 7  # lines of the listing on each side of the current one, in text


class DebuggerError(ValueError):
    """A request to a debugger is invalid. The message lists the valid ones."""


@dataclass(frozen=True)
class StepAccess:
    """The memory that a step accesses.

    buffer: the name of the buffer.
    stored: whether the step writes.
    index: the element for each lane, None for a masked lane.
    value: the value that was read or written.
    """

    buffer: str
    stored: bool
    index: tuple[int | None, ...]
    value: Any

    def __repr__(self) -> str:
        indices = [index for index in self.index if index is not None]
        text = "nothing" if not indices else str(indices[0]) if len(indices) == 1 else f"{indices[0]}…{indices[-1]}"
        return f"{self.buffer}[{text}] {'←' if self.stored else '→'} {value_text(self.value)}"


class Debugger:
    """One run of a kernel that can stop anywhere.

    position: the number of executed steps. A step is a UOp that computes, loads, stores, or begins an iteration.
    place: the listing line of the last executed UOp; None at the start.
    reason: why it stopped.
    note: remarks about the inputs.
    """

    def __init__(
        self,
        name: str,
        uops: Sequence[UOp],
        contents: Sequence[Any],
        values: Sequence[int] = (),
        *,
        log: int = LOG,
        lines: Sequence[SourceLine] = (),
        note: str = "",
        item: Mapping[str, int] | None = None,
    ) -> None:
        """Prepares a run.

        Args:
            name: the name of the kernel.
            uops: its linear program.
            contents: the bytes of each buffer before the run; None for zeros.
            values: the values of its Variables.
            log: the number of steps that the log holds.
            lines: the source, for `run_to(line=…)`.
            note: remarks about the inputs.
            item: for a GPU program, the work-item to follow: `{"gidx0": 1, "lidx0": 3}`; missing indices are 0. None
                for a CPU program.
        """
        self.name = name
        self.uops = tuple(uops)
        self._note = note
        self.most_steps: int | None = None  # limit of one request, so that a view does not wait for long
        self.values = tuple(values)
        self.listing = uops_listing(self.uops)
        self.source = tuple(lines)
        self.item = None if item is None else self._complete_item(item)
        self._program = self._make_program()
        self._buffers = global_buffers(self.uops)
        self._memory = [self._fill_memory(node, content) for node, content in _pair_contents(self._buffers, contents)]
        self._initial = [bytes(memory) for memory in self._memory]
        bases = [_find_element_type(node) for node in self._buffers]
        self._views = [element_view(memory, base) for memory, base in zip(self._memory, bases)]
        number_of = {node: number for number, node in enumerate(self.uops)}
        assigned = {number: number_of[node.src[0]] for number, node in enumerate(self.uops) if node.op is Ops.ASSIGN}
        self._slots = [assigned.get(number, number) for number in range(len(self.uops))]
        self._around = list(_yield_loops_around(self.uops))
        self.names = {
            operand_name(node, number): number
            for number, node in enumerate(self.uops)
            if node.op not in _NAMELESS and node.dtype is not dtypes.void
        }
        self._log: deque[tuple[Event, Any]] = deque(maxlen=max(1, log))
        # for each undone STORE, the values that it had stored; the last undone at the end
        self._undone: list[list[Any]] = []
        self._begin()

    @property
    def note(self) -> str:
        """The remarks about the followed work-item and the inputs."""
        if self.item is None:
            return self._note
        numbers = ", ".join(f"{name} = {number}" for name, number in self.item.items()) or "0"
        group = "the other work-items of its group run up to each barrier; other groups do not run"
        return "; ".join([f"work-item {numbers}", group, *([self._note] if self._note else [])])

    def _complete_item(self, item: Mapping[str, int]) -> dict[str, int]:
        """Returns all indices of a work-item, with 0 for missing ones.

        Raises:
            DebuggerError: there is no work-item with the indices in `item`.
        """
        bindings = dict(zip(variable_arguments(self.uops), self.values))
        ends = {node.arg: value_of(node.src[0], bindings) for node in self.uops if node.op is Ops.SPECIAL}
        choices = ", ".join(f"{name} (0 … {ends[name] - 1})" for name in sorted(ends)) or "none"
        for name, number in item.items():
            if not 0 <= number < ends.get(name, 0):
                raise DebuggerError(f"no work-item has {name} = {number}; the numbers of {self.name} are {choices}")
        return {name: item.get(name, 0) for name in sorted(ends)}

    def _make_program(self) -> SteppingProgram:
        if self.item is None:
            return SteppingProgram(self.name, self.uops)
        return SteppingGroup(self.name, self.uops, self.item)

    @staticmethod
    def _fill_memory(node: UOp, content: Any) -> bytearray:
        assert isinstance(node.dtype, PtrDType)
        nbytes = node.dtype.size * node.dtype.base.itemsize
        memory = bytearray(nbytes) if content is None else bytearray(memoryview(content).cast("B"))
        if len(memory) < nbytes:
            kind = f"{node.dtype.size} × {node.dtype.base.name}, {nbytes} bytes"
            raise DebuggerError(f"data{node.arg} is {kind}; {len(memory)} bytes were given")
        return memory

    def _begin(self) -> None:
        for memory, initial in zip(self._memory, self._initial):
            memory[:] = initial
        ranges = [node for node in self.uops if node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD]
        bindings = dict(zip(variable_arguments(self.uops), self.values))
        stop = value_of(ranges[0].src[0], bindings) if ranges else 0
        self._events: Iterator[Event] = self._program.start(self._views, self.values, 0, stop)
        self._registers: list[Any] = [None] * len(self.uops)
        for node, value in bindings.items():
            self._registers[self.uops.index(node)] = value
        self._log.clear()
        self._undone.clear()
        self.position = self._frontier = 0
        self._last: Event | None = None
        self.ended = False
        self.error = ""
        self.reason = "not started"

    # *** movement ***

    def step(self, count: int = 1) -> Debugger:
        """Goes `count` steps forwards."""
        self._run(None, None, count)
        return self

    def back(self, count: int = 1) -> Debugger:
        """Goes `count` steps backwards, at most to the start."""
        target = max(0, self.position - count)
        if self._frontier - target <= len(self._log):
            while self.position > target:
                self._undo()
        else:
            self._begin()
            self._run(None, None, target)
        self.reason = "back" if self.position else "at the start"
        return self

    def restart(self) -> Debugger:
        """Goes back to the start, before the first step."""
        self._begin()
        return self

    def finish(self) -> Debugger:
        """Runs to the end."""
        self._run(None, None, None)
        return self

    def run_to(self, target: UOp | int | None = None, *, line: int | None = None) -> Debugger:
        """Runs forwards until a UOp was executed.

        target: a UOp, or its line in the listing. For a UOp that is no step, the next step counts.
        line: a line of the source, from 1; any of its UOps counts.
        """
        stops = {self._find_next_reported_line(number) for number in self._places_of(target, line)}
        self._run(frozenset(stops), None, None, f"at line {min(stops)}")
        return self

    def run_until(self, condition: str | Callable[[Debugger], bool]) -> Debugger:
        """Runs forwards until a condition holds: a text (see `conditions.py`), or a function of this Debugger."""
        if isinstance(condition, str):
            stop_condition = read_condition(condition, self.uops, self.names)
            self._run(stop_condition.stops, stop_condition, None, stop_condition.text)
            return self
        while not self.ended:
            self._run(None, None, 1)
            if not self.ended and condition(self):
                self.reason = getattr(condition, "__name__", "the condition holds")
                break
        return self

    def iteration(self, **counters: int) -> Debugger:
        """Goes to the first step at which loops have these counters: `iteration(g0=3, r2=5)`.

        An index of a work-item selects the work-item to follow, from its start: `iteration(gidx0=1, r2=5)`.
        """
        if self.item is not None and (chosen := {name: counters.pop(name) for name in self.item if name in counters}):
            self.item = self._complete_item({**self.item, **chosen})
            self._program = self._make_program()
            self._begin()
            if not counters:
                return self
        loops = {operand_name(node, number): number for number, node in enumerate(self.uops) if node.op is Ops.RANGE}
        if unknown := [name for name in counters if name not in loops]:
            raise DebuggerError(f"no loop {', '.join(unknown)}; available: {', '.join(loops) or 'none'}")
        if not counters:
            raise DebuggerError(f"iteration(): give the value of a loop counter ({', '.join(loops)})")
        counter_values = sorted((loops[name], value) for name, value in counters.items())
        innermost = counter_values[-1][0]
        if stray := [name for name in counters if loops[name] not in (*self._around[innermost], innermost)]:
            raise DebuggerError(f"loop {stray[0]} does not enclose {operand_name(self.uops[innermost], innermost)}")
        if not self._is_ahead([number for number, _ in counter_values], [value for _, value in counter_values]):
            self._begin()

        def test(_: Event, registers: Sequence[Any]) -> bool:
            return all(registers[number] == value for number, value in counter_values)

        text = ", ".join(f"{name}={value}" for name, value in counters.items())
        self._run(frozenset({innermost}), Condition(text, frozenset(), test), None, text)
        return self

    def _is_ahead(self, line_numbers: list[int], values: list[int]) -> bool:
        chain = [*self._around[line_numbers[-1]], line_numbers[-1]]
        counters = [self._registers[number] for number in line_numbers]
        return line_numbers == chain and (self.position == 0 or (None not in counters and counters < values))

    def _find_next_reported_line(self, number: int) -> int:
        reported = [line for line in range(number, len(self.uops)) if not _is_silent(self.uops[line])]
        if not reported:
            last = max((line for line, uop in enumerate(self.uops) if not _is_silent(uop)), default=None)
            raise DebuggerError(f"no operation is at or after line {number}; the last line with an operation is {last}")
        return reported[0]

    def _places_of(self, target: UOp | int | None, line: int | None) -> list[int]:
        if (target is None) == (line is None):
            raise DebuggerError("run_to: give a UOp, its line in the listing, or line= of the source")
        if line is not None:
            uops_of_line = self.source[line - 1].uops if 0 < line <= len(self.source) else ()
            if not uops_of_line:
                raise DebuggerError(f"line {line} of the source has no UOp; the source has {len(self.source)} lines")
            return [self.uops.index(uops_of_line[0])]
        if isinstance(target, int):
            if not 0 <= target < len(self.uops):
                raise DebuggerError(f"line {target}: this program has lines 0 … {len(self.uops) - 1}")
            return [target]
        if target not in self.uops:
            raise DebuggerError(f"{target!r} is not in this program; its UOps are in the attribute uops")
        return [self.uops.index(target)]

    def events(self) -> Iterator[Event]:
        """Yields the events of a whole run from the start. Afterwards the debugger is at the start."""
        self._begin()
        yield from self._events
        self._begin()

    # *** the run loop ***

    def _run(
        self, stops: frozenset[int] | None, condition: Condition | None, max_steps: int | None, why: str = ""
    ) -> None:
        """Runs forwards to an event at `stops` for which `condition` holds (None: any), at most `max_steps` steps."""
        test = None if condition is None else condition.test
        is_bounded = max_steps is None and self.most_steps is not None
        max_steps = self.most_steps if is_bounded else max_steps
        goal = math.inf if max_steps is None else self.position + max_steps
        while self.position < self._frontier:  # steps that were undone before
            if self.position >= goal:
                self.reason = "step"
                return
            event = self._redo()
            if stops is not None and event[0] in stops and (test is None or test(event, self._registers)):
                self.reason = why
                return
        self.reason = why or "step"
        if self.ended or self.position >= goal:
            self.reason = "step" if not self.ended else self.error or "at the end"
            return
        self._run_new_events(stops, test, goal)
        if is_bounded and not self.ended and self.position >= goal:
            self.reason = f"paused after {count_text(max_steps or 0, 'step')}; call it again to continue"

    def _run_new_events(self, stops: frozenset[int] | None, test: Any, goal: float) -> None:
        registers, slots, keep = self._registers, self._slots, self._log.append
        count, event = self._frontier, self._last
        stops_at: Sequence[bool] = [stops is not None and number in stops for number in range(len(slots))]
        try:
            for event in self._events:
                slot = slots[event[0]]
                keep((event, registers[slot]))
                registers[slot] = event[1]
                count += 1
                if stops_at[event[0]] and (test is None or test(event, registers)):
                    return
                if count >= goal:
                    return
            self.ended, self.reason = True, "at the end"
        except Exception as error:
            self.ended = True
            self.error = self.reason = f"{type(error).__name__} in line {self._place_of(error)}: {error}"
        finally:
            self.position = self._frontier = count
            self._last = event

    def _place_of(self, error: BaseException) -> int | None:
        tb = error.__traceback__
        while tb is not None:
            if tb.tb_frame.f_code.co_filename == self._program.file:
                return self._program.place_of_line(tb.tb_lineno)
            tb = tb.tb_next
        return None

    def _read_log_entry(self, position: int) -> tuple[Event, Any]:
        return self._log[position - self._frontier]

    def _undo(self) -> None:
        event, before = self._read_log_entry(self.position - 1)
        if self.uops[event[0]].op is Ops.STORE:
            view = self._view_of(event)
            lanes = [lane for lane in range(len(event[4])) if event[4][lane] is not None]
            self._undone.append([(event[2] + lane, view[event[2] + lane]) for lane in lanes])
            for lane in lanes:
                view[event[2] + lane] = event[4][lane]
        for memory, index, old, _ in reversed(_list_notes_of_others(event)):
            memory[index] = old
        self._registers[self._slots[event[0]]] = before
        self.position -= 1
        self._last = (
            self._read_log_entry(self.position - 1)[0] if self._frontier - self.position < len(self._log) else None
        )
        if self._last is None and self.position:  # the log ends here
            target = self.position
            self._begin()
            self._run(None, None, target)

    def _redo(self) -> Event:
        event, _ = self._read_log_entry(self.position)
        self._registers[self._slots[event[0]]] = event[1]
        if self.uops[event[0]].op is Ops.STORE:
            view = self._view_of(event)
            for index, value in self._undone.pop():
                view[index] = value
        for memory, index, _, new in _list_notes_of_others(event):
            memory[index] = new
        self.position += 1
        self._last = event
        return event

    def _view_of(self, event: Event) -> memoryview:
        base = self.uops[event[0]].src[0].src[0]
        if base.op is Ops.DEFINE_LOCAL:
            scratch: memoryview = self._registers[self.uops.index(base)]
            return scratch
        return self._views[self._buffers.index(base)]

    # *** state ***

    @property
    def place(self) -> int | None:
        """The listing line of the last executed UOp."""
        return None if self._last is None else self._last[0]

    @property
    def uop(self) -> UOp | None:
        """The last executed UOp."""
        return None if self._last is None else self.uops[self._last[0]]

    @property
    def slot(self) -> int | None:
        """The listing line whose value the step set: its own, or for an ASSIGN that of the accumulator."""
        return None if self._last is None else self._slots[self._last[0]]

    @property
    def nest(self) -> dict[str, tuple[str, ...]]:
        """All loops of the program in order, each with those around it, outermost first.

        For a GPU program, the indices of its work-items come first.
        """
        ranges = [number for number, node in enumerate(self.uops) if node.op is Ops.RANGE]
        names = {number: operand_name(self.uops[number], number) for number in ranges}
        return {name: () for name in self.item or ()} | {
            names[number]: tuple(names[outer] for outer in self._around[number]) for number in ranges
        }

    @property
    def lanes(self) -> int:
        """The number of lanes of the program's widest vector."""
        return max((node.dtype.count for node in self.uops if isinstance(node.dtype, DType)), default=1)

    @property
    def value(self) -> Any:
        """The value of the last UOp: a number, a list of lanes, or for a STORE the stored value."""
        return None if self._last is None else self._last[1]

    @property
    def loops(self) -> dict[str, int]:
        """The indices of the followed work-item, if any, and the counters of the loops around the current line."""
        item = dict(self.item or {})
        if self._last is None:
            return item
        number = self._last[0]
        open_now = [*self._around[number], *([number] if self.uops[number].op is Ops.RANGE else [])]
        return item | {operand_name(self.uops[line], line): self._registers[line] for line in open_now}

    @property
    def registers(self) -> dict[str, Any]:
        """The current value of each name of the listing; values that were not computed yet are missing."""
        values_by_name = {name: self._registers[number] for name, number in self.names.items()}
        return {name: value for name, value in values_by_name.items() if value is not None}

    def lane(self, lane: int) -> dict[str, Any]:
        """Returns one lane of every register that has it."""
        vectors = {name: value for name, value in self.registers.items() if isinstance(value, list)}
        return {name: value[lane] for name, value in vectors.items() if lane < len(value)}

    @property
    def accesses(self) -> tuple[StepAccess, ...]:
        """The memory access of the current step: none or one."""
        return () if self._last is None else tuple(self._yield_accesses(self._last))

    def recent_accesses(self, count: int = 20) -> tuple[StepAccess, ...]:
        """Returns the last `count` accesses, as far as the log reaches, the last one first."""
        accesses: list[StepAccess] = []
        position = self.position - 1
        while position >= 0 and self._frontier - position <= len(self._log) and len(accesses) < count:
            accesses += self._yield_accesses(self._read_log_entry(position)[0])
            position -= 1
        return tuple(accesses)

    def _yield_accesses(self, event: Event) -> Iterator[StepAccess]:
        node = self.uops[event[0]]
        if notes := _list_notes_of_others(event):
            yield from self._yield_stores_of_others(notes)
        if node.op not in (Ops.LOAD, Ops.STORE):
            return
        base = node.src[0].src[0]
        mask, lanes = event[3], range(lanes_of(node))
        valid = mask if isinstance(mask, list) else [True if mask is None else mask] * len(lanes)
        index = tuple(event[2] + lane if valid[lane] else None for lane in lanes)
        yield StepAccess(operand_name(base, 0), node.op is Ops.STORE, index, event[1])

    def _yield_stores_of_others(self, notes: Sequence[Note]) -> Iterator[StepAccess]:
        """Yields the stores of other work-items before the barrier, merged into one access for each memory."""
        for name, (view, dtype) in self._list_views_by_name().items():
            stored = {offset: value for memory, offset, _, value in notes if memory is view}
            if stored:
                index, values = tuple(sorted(stored)), [stored[position] for position in sorted(stored)]
                yield StepAccess(name, True, index, numbers_of(values, dtype))

    @property
    def buffers(self) -> dict[str, int]:
        """The existing buffers and scratch memory, with the number of elements of each."""
        return {name: len(view) for name, (view, _) in self._list_views_by_name().items()}

    def _list_views_by_name(self) -> dict[str, tuple[memoryview, DType]]:
        views = {
            operand_name(node, 0): (view, _find_element_type(node)) for node, view in zip(self._buffers, self._views)
        }
        for number, node in enumerate(self.uops):
            if node.op is Ops.DEFINE_LOCAL and self._registers[number] is not None:
                views[operand_name(node, number)] = (self._registers[number], _find_element_type(node))
        return views

    def read(self, buffer: str, start: int = 0, count: int | None = None) -> list[Any]:
        """Returns the current content of a buffer as numbers: `read("data1", 0, 8)`."""
        views = self._list_views_by_name()
        if buffer not in views:
            raise DebuggerError(f"no buffer {buffer!r} now; available: {', '.join(views)}")
        view, dtype = views[buffer]
        return numbers_of(view[start : None if count is None else start + count].tolist(), dtype)

    def memory(self, buffer: str) -> bytes:
        """Returns the current content of a buffer as bytes."""
        views = self._list_views_by_name()
        if buffer not in views:
            raise DebuggerError(f"no buffer {buffer!r} now; available: {', '.join(views)}")
        return views[buffer][0].tobytes()

    # *** display ***

    def state(self, lane: int | None = None) -> dict[str, Any]:
        """Returns the debugger's state as plain data for a view. With `lane`, vectors show only this lane."""

        def value_of_item(value: Any) -> Any:
            return value[lane] if isinstance(value, list) and lane is not None and lane < len(value) else value

        return {
            "position": self.position,
            "place": self.place,
            "ended": self.ended,
            "reason": self.reason,
            "error": self.error,
            "loops": [[name, value] for name, value in self.loops.items()],
            "registers": [
                [self.names[name], name, value_text(value_of_item(value))] for name, value in self.registers.items()
            ],
            "accesses": [
                [access.buffer, access.stored, list(access.index), value_text(access.value)] for access in self.accesses
            ],
        }

    def __repr__(self) -> str:
        counters = " ".join(f"{name}={value}" for name, value in self.loops.items())
        head = f"{self.name} · step {self.position:,} · {counters or 'no loop'} · {self.reason}"
        current = self.place
        first = max(0, (current or 0) - AROUND)
        shown = range(first, min(len(self.listing), first + 2 * AROUND + 1))
        width = min(64, max((len(self.listing[number].text) for number in shown), default=0))
        lines = [head, *([self.note] if self.note else [])]
        for number in shown:
            mark = "▶" if number == current else " "
            value = self._registers[number] if self.uops[number].dtype is not dtypes.void else None
            if number == current:
                value = self.value
            text = "" if value is None or isinstance(value, memoryview) else f"  = {value_text(value)}"
            lines.append(f"{mark} {self.listing[number].text:<{width}}{text}".rstrip())
        lines += [f"  {access!r}" for access in self.accesses]
        return "\n".join(lines)


_NAMELESS = frozenset({Ops.CONST, Ops.INDEX, Ops.DEFINE_GLOBAL, Ops.ENDRANGE, Ops.BARRIER, Ops.PREFETCH})


def _is_silent(node: UOp) -> bool:
    """Whether a UOp is no step."""
    return node.op in _NAMELESS and not is_collective(node)


def _list_notes_of_others(event: Event) -> Sequence[Note]:
    """Returns the stores of other work-items before the barrier of this event."""
    return event[2] if len(event) == 3 else ()


def numbers_of(raw: list[Any], dtype: DType) -> list[Any]:
    """Converts elements from the interpreter's representation to numbers."""
    by_bits = dtype in dtypes.floats and isinstance(raw[0] if raw else 0.0, int) and dtype not in dtypes.fp8s
    return [from_bits(bits, dtype) for bits in raw] if by_bits else raw


def value_text(value: Any) -> str:
    """Returns a value as short text; for a vector its first lanes."""
    if isinstance(value, list):
        lanes = ", ".join(value_text(lane) for lane in value[:8])
        return f"[{lanes}{', …' if len(value) > 8 else ''}]"
    if isinstance(value, float):
        return f"{value:.7g}"
    return "scratch memory" if isinstance(value, memoryview) else str(value)


def _find_element_type(node: UOp) -> DType:
    assert isinstance(node.dtype, PtrDType)
    return node.dtype.base


def _pair_contents(buffers: Sequence[UOp], contents: Sequence[Any]) -> Iterator[tuple[UOp, Any]]:
    if len(contents) != len(buffers):
        raise DebuggerError(f"this program takes {len(buffers)} buffers; {len(contents)} were given")
    return zip(buffers, contents)


def _yield_loops_around(uops: Sequence[UOp]) -> Iterator[tuple[int, ...]]:
    """Yields the positions of the loops around each line, outermost first."""
    open_loops: list[int] = []
    for number, node in enumerate(uops):
        if node.op is Ops.ENDRANGE:
            open_loops.pop()
        yield tuple(open_loops)
        if node.op is Ops.RANGE:
            open_loops.append(number)


__all__ = ["StepAccess", "Debugger", "DebuggerError", "value_text"]
