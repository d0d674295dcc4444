"""Evaluates UOps at one point of their loops by the reference semantics: values, addresses and stores.

An `Evaluator` chooses every input value when it is first needed: memory contents, Variables, steps of open loops, and
`cut` nodes, of which only type and bounds matter. An invalid operation (integer division by zero, a read out of bounds)
is a fault. A shift by the full width has no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.identity import reduce_identity
from tinyexplore.uop.semantics import scalar_function, to_dtype_range

MAX_COMPUTED_NODES = 60_000  # most nodes computed for one sample; a larger graph is a program, not a rule

Lanes = tuple[Any, ...]
Point = dict[UOp, Any]  # loops and registers with the values of their lanes
Effects = dict[tuple[UOp, int], Any]


class EvaluationError(Exception):
    """A value cannot be computed here. The message has the reason."""


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """Stands for an unknown value.

    reason: why the value is unknown.
    """

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Address:
    """Elements of a buffer.

    pointer: the buffer.
    idx: the element for each lane.
    valid: whether each lane is valid, None if all are.
    """

    pointer: UOp
    idx: Lanes
    valid: Lanes | None


@dataclass(frozen=True, slots=True)
class InputRequirement:
    """An input value to choose for a check.

    node: the UOp with this value at one step of its loops, or the memory that contains it.
    dtype: the element type.
    low: the smallest value.
    high: the largest value.
    place: the element of the memory, None for other UOps.
    lane: the lane of a vector.
    """

    node: UOp
    dtype: DType
    low: int
    high: int
    place: int | None = None
    lane: int = 0


class Evaluator:
    """One assignment of all input values. `choose` returns each value, `chosen` has the values so far.

    loaded: values for lanes of loads. They determine memory contents that are not chosen yet.
    """

    def __init__(
        self,
        choose: Callable[[InputRequirement], Any],
        cut: frozenset[UOp] = frozenset(),
        loaded: Mapping[tuple[UOp, int], Any] | None = None,
    ) -> None:
        self.choose = choose
        self.cut = cut
        self.loaded = loaded or {}
        self.chosen: dict[InputRequirement, Any] = {}
        self.values: dict[Any, Lanes] = {}
        self.memory: Effects = {}
        self.faults: list[str] = []
        self.greatest = 1.0  # the largest finite float so far, to which rounding is relative
        self.steps = 0

    # *** evaluation ***

    def lanes(self, root: UOp, loop_point: Point | None = None) -> Any:
        """Returns the lanes of `root`, or its Address."""
        values: dict[UOp, Any] = dict(loop_point or {})
        point = dict(values)
        for part in self._list_needed(root, values):
            self.steps += 1
            if self.steps > MAX_COMPUTED_NODES:
                raise EvaluationError(
                    f"more than {MAX_COMPUTED_NODES:,} operations for one sample; check a smaller graph"
                )
            values[part] = self._compute(part, values, point)
        return values[root]

    def effects(self, root: UOp, loops: Sequence[UOp] = ()) -> Effects:
        """Returns the memory contents after `root` (one or several STOREs), over all iterations of `loops`."""
        written: Effects = {}
        for loop_point in self._yield_points(_sort_loops(loops), {}):
            self._store_all(root, loop_point, written)
        return written

    def element(self, pointer: UOp, index: int) -> Any:
        """Returns the content of a memory element before any store."""
        if (pointer, index) not in self.memory:
            kind = pointer.dtype.base
            self.memory[pointer, index] = self._choose(InputRequirement(pointer, kind, *_limits_of(kind), index))
        return self.memory[pointer, index]

    # *** input values ***

    def _choose(self, requirement: InputRequirement) -> Any:
        chosen_value = self.chosen[requirement] = self.choose(requirement)
        return chosen_value

    def _evaluate_input(self, node: UOp, loop_point: Point) -> Lanes:
        """Returns the value of a free variable within its bounds. It is equal at equal steps of its loops."""
        around = tuple([(loop, loop_point[loop]) for loop in _sort_loops(node.ranges) if loop in loop_point])
        key = (node, around)
        if key not in self.values:
            low, high = bounds(node) if not dtypes.is_float(node.dtype) else (0, 0)
            count = lane_count(node)
            scalar = node.dtype.scalar
            lanes = [
                self._choose(InputRequirement(node, scalar, low, high, len(self.values), lane)) for lane in range(count)
            ]
            self.values[key] = tuple(lanes)
        return self.values[key]

    def _list_needed(self, root: UOp, values: Point) -> list[UOp]:
        """Returns the nodes that `root` needs at this point and that have no value yet, sources first."""
        needed: dict[UOp, None] = {}
        stack = [root]
        while stack:
            node = stack[-1]
            if node in values or node in needed:
                stack.pop()
                continue
            missing = [src for src in self._list_sources(node) if src not in values and src not in needed]
            if missing:
                stack.extend(missing)
                continue
            needed[stack.pop()] = None
        return list(needed)

    def _list_sources(self, node: UOp) -> tuple[UOp, ...]:
        if node in self.cut or node.op in _OWN_SOURCES:
            return ()
        if node.op is Ops.LOAD:
            return node.src[:1]  # the other sources are barriers after the stores to this memory
        if node.op is Ops.INDEX:
            return node.src[1:]
        if node.op is Ops.HREDUCE:
            return node.src[: node.dtype.count]
        return node.src

    # *** operations ***

    def _evaluate_lanes(self, node: UOp, values: Point) -> Any:
        """Returns the lanes of an operation on whole vectors."""
        match node.op:
            case Ops.HREDUCE:
                return self._reduce_lanes(node, values)
            case Ops.VECTORIZE if node.dtype is dtypes.void:
                return tuple([values[src] for src in node.src])
            case Ops.VECTORIZE:
                return tuple([values[src][0] for src in node.src])
            case Ops.GEP:
                row, *lane = (values[src] for src in node.src)
                return tuple([row[step] for step in lane[0]]) if lane else (row[node.arg],)
        return tuple([self._look_up(node, index) for index in values[node.src[0]]])

    def _compute(self, node: UOp, values: Point, loop_point: Point) -> Any:
        if node in self.cut:
            return self._evaluate_input(node, loop_point)
        match node.op:
            case Ops.CONST:
                value = node.arg
                return (to_dtype_range(value, node.dtype) if type(value) is float else value,) * node.dtype.count
            case Ops.RANGE if node.arg.kind is AxisKind.VECTOR:
                return tuple(range(node.size))
            case Ops.RANGE | Ops.DEFINE_VAR | Ops.DEFINE_ACC:
                return self._evaluate_input(node, {})
            case Ops.BIND:
                return self._evaluate_input(node.src[0], {})
            case Ops.INDEX:
                valid = values[node.src[2]] if len(node.src) > 2 else None
                return Address(node.src[0], values[node.src[1]], valid)
            case Ops.LOAD:
                return self._load(node, values[node.src[0]])
            case Ops.REDUCE:
                return self._reduce(node, loop_point)
            case Ops.SCAN:
                return self._evaluate_scan(node, loop_point)
            case Ops.RESULT:
                return self._evaluate_result(node, loop_point)
            case Ops.HREDUCE | Ops.VECTORIZE | Ops.GEP | Ops.TABLE:
                return self._evaluate_lanes(node, values)
        if node.op not in OpGroups.ALU:
            raise EvaluationError(
                f"{node.op.name} computes no value; only values, addresses and stores can be evaluated"
            )
        return self._evaluate_alu(node.op, node.dtype, node.src, [values[src] for src in node.src])

    def _reduce_lanes(self, node: UOp, values: Point) -> Lanes:
        """Returns the lanes of an HREDUCE: each row of lanes is reduced to one lane, by halves."""
        rows = [values[src] for src in node.src[: node.dtype.count]]
        if len(node.src) > len(rows):  # the axis of the lanes, or its steps
            axis = node.src[-1]
            count = axis.size if axis.op is Ops.RANGE else axis.dtype.count
            rows = [row * count if len(row) == 1 else row for row in rows]
        return tuple([self._reduce_halves(node.arg, node.dtype.scalar, row) for row in rows])

    def _evaluate_alu(self, op: Ops, dtype: DType, src: Sequence[UOp], sources: Sequence[Lanes]) -> Lanes:
        kinds = tuple([source.dtype.scalar for source in src])
        count = max(map(len, sources))
        wide = [lanes * count if len(lanes) == 1 else lanes for lanes in sources]
        return tuple([self._evaluate_scalar(op, dtype.scalar, kinds, values) for values in zip(*wide, strict=True)])

    def _evaluate_scalar(self, op: Ops, dtype: DType, kinds: tuple[DType, ...], values: Sequence[Any]) -> Any:
        for value in values:
            if type(value) is UnknownValue:
                if op is Ops.WHERE and value is not values[0]:
                    return values[1] if values[0] else values[2]
                return value
        if op in _INTEGER_DIVISION and type(values[1]) is int and values[1] == 0:
            return self._make_fault(f"{values[0]} divided by 0")
        if op in _SHIFTS and not 0 <= values[1] < dtype.bits:
            return UnknownValue(f"a shift of {dtype.bits} bits by {values[1]}")
        try:
            scalar = scalar_function(op, dtype, kinds)(*values)
        except (ArithmeticError, ValueError) as error:
            raise EvaluationError(f"{op.name} of {values} cannot be computed: {error}") from error
        if type(scalar) is float and self.greatest < abs(scalar) < math.inf:
            self.greatest = abs(scalar)
        return scalar

    def _look_up(self, node: UOp, index: Any) -> Any:
        return (
            index if type(index) is UnknownValue else to_dtype_range(node.arg[index & (len(node.arg) - 1)], node.dtype)
        )

    def _make_fault(self, reason: str) -> UnknownValue:
        self.faults.append(reason)
        return UnknownValue(reason)

    def _fold(self, op: Ops, dtype: DType, first: Lanes, second: Lanes) -> Lanes:
        count = max(len(first), len(second))
        wide = [lanes * count if len(lanes) == 1 else lanes for lanes in (first, second)]
        return tuple(
            [self._evaluate_scalar(op, dtype.scalar, (dtype.scalar,) * 2, pair) for pair in zip(*wide, strict=True)]
        )

    def _reduce_halves(self, op: Ops, dtype: DType, row: Lanes) -> Any:
        return reduce(lambda x, y: self._evaluate_scalar(op, dtype, (dtype, dtype), (x, y)), row)

    # *** memory ***

    def _list_elements(self, address: Address, count: int, does: str) -> list[int | UnknownValue | None]:
        """Returns the elements of `count` lanes; None for a lane that is not valid."""
        idx, valid = address.idx, address.valid
        if len(idx) == 1:
            (start,) = idx
            idx = tuple([start if type(start) is UnknownValue else start + lane for lane in range(count)])
        allowed = (True,) * len(idx) if valid is None else valid * len(idx) if len(valid) == 1 else valid
        return [
            self._find_element(address.pointer, index, is_allowed, does)
            for index, is_allowed in zip(idx, allowed, strict=True)
        ]

    def _find_element(self, pointer: UOp, index: Any, valid: Any, does: str) -> int | UnknownValue | None:
        if type(valid) is UnknownValue or (valid and type(index) is UnknownValue):
            return valid if type(valid) is UnknownValue else index
        if not valid:
            return None
        size = pointer.dtype.size
        if not 0 <= index < size:
            return self._make_fault(f"{does} element {index} of {memory_name(pointer)}, which has {size}")
        return int(index)

    def _load(self, node: UOp, address: Address) -> Lanes:
        count = node.dtype.count
        if count == 1:
            count = max(len(address.idx), len(address.valid or ()))
        zero = reduce_identity(Ops.ADD, node.dtype.scalar).arg
        values: list[Any] = []
        for index in self._list_elements(address, count, "reads"):
            if isinstance(index, int):
                self._set_initial_content(address.pointer, index, self.loaded.get((node, len(values))))
                values.append(self.element(address.pointer, index))
            else:
                values.append(zero if index is None else index)
        return tuple(values)

    def _set_initial_content(self, pointer: UOp, index: int, value: Any) -> None:
        """Sets the content of a memory element, if a value is given and none was chosen yet."""
        if value is not None and (pointer, index) not in self.memory:
            kind = pointer.dtype.base
            self.memory[pointer, index] = self.chosen[InputRequirement(pointer, kind, *_limits_of(kind), index)] = value

    def _store_all(self, root: UOp, loop_point: Point, written: Effects) -> None:
        match root.op:
            case Ops.STORE:
                self._store(root, loop_point, written)
            case Ops.SINK:
                for src in root.src:
                    self._store_all(src, loop_point, written)
            case Ops.BARRIER:
                loops = [src for src in root.src if src.op is Ops.RANGE and is_loop(src) and src not in loop_point]
                for inside in self._yield_points(_sort_loops(loops), loop_point):
                    for src in root.src:
                        if src.op in (Ops.STORE, Ops.SINK):
                            self._store_all(src, inside, written)
            case _:
                raise EvaluationError(f"{root.op.name} stores nothing; expected STORE, SINK or BARRIER")

    def _store(self, store: UOp, loop_point: Point, written: Effects) -> None:
        address, value = store.src[:2]
        values = self.lanes(value, loop_point)
        elements = self.lanes(address, loop_point)
        if address.op is Ops.VECTORIZE:
            for lane, lane_address in enumerate(elements):
                self._write_lanes(lane_address, (values[lane % len(values)],), written)
            return
        count = max(store.arg or value.dtype.count, len(values), len(elements.idx), len(elements.valid or ()))
        self._write_lanes(elements, values * count if len(values) == 1 else values, written)

    def _write_lanes(self, address: Address, values: Lanes, written: Effects) -> None:
        indices = self._list_elements(address, len(values), "stores into")
        for index, value in zip(indices, values, strict=True):
            if type(index) is int:
                self.element(address.pointer, index)
                written[address.pointer, index] = value
            elif index is not None:
                self._make_fault(f"stores where {index}")

    # *** loops ***

    def _yield_points(self, loops: Sequence[UOp], loop_point: Point) -> Iterator[Point]:
        """Yields `loop_point` with every combination of steps of `loops`. A size may depend on outer loops."""
        if not loops:
            yield loop_point
            return
        first, *rest = loops
        (end,) = self.lanes(first.src[0], loop_point)
        if type(end) is UnknownValue:
            raise EvaluationError(f"the size of loop {first.arg.name} is unknown: {end}")
        for step in range(end):
            yield from self._yield_points(rest, {**loop_point, first: (step,)})

    def _reduce(self, node: UOp, loop_point: Point) -> Lanes:
        loops = [axis for axis in node.src[1:] if is_loop(axis)]
        lanes = next((axis for axis in node.src[1:] if not is_loop(axis)), None)
        total: Lanes = (reduce_identity(node.arg, node.dtype.scalar).arg,)
        for inside in self._yield_points(loops, loop_point):
            total = self._fold(node.arg, node.dtype, total, self.lanes(node.src[0], inside))
        if lanes is None:
            return total
        row = total * lanes.size if len(total) == 1 else total
        return (self._reduce_halves(node.arg, node.dtype.scalar, row),)

    def _evaluate_scan(self, node: UOp, loop_point: Point) -> Lanes:
        *factor, last = node.src[1:]
        if last.op is not Ops.RANGE or not is_loop(last):
            return self._scan_lanes(node, loop_point)
        if any(part.op is Ops.RANGE for part in factor):
            raise EvaluationError("SCAN along two loops; only a SCAN along one loop can be evaluated")
        (carried,) = loop_point.get(last) or self._evaluate_input(last, {})
        start = reduce_identity(Ops.ADD if factor else node.arg, node.dtype.scalar)
        total: Lanes = (start.arg,)
        for step in range(carried + 1):
            inside = {**loop_point, last: (step,)}
            value = self.lanes(node.src[0], inside)
            if factor:
                total = self._evaluate_alu(
                    Ops.MULACC, node.dtype, (node,) * 3, (total, self.lanes(factor[0], inside), value)
                )
            else:
                total = self._fold(node.arg, node.dtype, total, value)
        return total

    def _scan_lanes(self, node: UOp, loop_point: Point) -> Lanes:
        """Returns the lanes of a scan along lanes: each lane is combined with all lanes before it."""
        *loops, lanes = node.src[1:]
        if len(loops) > 1 or any(loop.op is not Ops.RANGE for loop in loops):
            raise EvaluationError(
                "SCAN with a factor along lanes; only a SCAN without a factor can be evaluated along lanes"
            )
        points = [loop_point]
        if loops:
            (carried,) = loop_point.get(loops[0]) or self._evaluate_input(loops[0], {})
            points = [{**loop_point, loops[0]: (step,)} for step in range(carried + 1)]
        count = lanes.size if lanes.op is Ops.RANGE else lanes.dtype.count
        total: Lanes = (reduce_identity(node.arg, node.dtype.scalar).arg,)
        row: list[Any] = []
        for inside in points:
            all_lanes = self.lanes(node.src[0], inside)
            row = []
            for value in all_lanes * count if len(all_lanes) == 1 else all_lanes:
                total = self._fold(node.arg, node.dtype, total, (value,))
                row += total
        return tuple(row)

    def _evaluate_result(self, node: UOp, loop_point: Point) -> Lanes:
        register, assign, *axes = node.src
        if register in self.cut or assign in self.cut:
            return self._evaluate_input(assign, loop_point)
        value, *steps = assign.src[1:]
        if any(
            open_register not in loop_point and open_register not in self.cut
            for open_register in _open_registers(value)
            if open_register is not register
        ):
            raise EvaluationError(
                "RESULT of registers that depend on each other; only independent registers can be evaluated"
            )
        carried = self.lanes(register.src[0], loop_point)
        if steps:
            (loop,) = steps
            if loop.op is not Ops.RANGE:
                raise EvaluationError("RESULT of a scan along lanes; only a scan along a loop can be evaluated")
            (initial,) = loop_point.get(loop) or self._evaluate_input(loop, {})
            for step in range(initial + 1):
                carried = self.lanes(value, {**loop_point, loop: (step,), register: carried})
            return carried  # type: ignore[no-any-return]
        for inside in self._yield_points([axis for axis in axes if is_loop(axis)], loop_point):
            carried = self.lanes(value, {**inside, register: carried})
        return carried  # type: ignore[no-any-return]


_OWN_SOURCES = frozenset({Ops.REDUCE, Ops.RESULT, Ops.SCAN, Ops.RANGE, Ops.BIND, Ops.DEFINE_ACC, Ops.DEFINE_VAR})
_INTEGER_DIVISION = frozenset({Ops.IDIV, Ops.MOD})
_SHIFTS = frozenset({Ops.SHL, Ops.SHR})


def _open_registers(root: UOp) -> set[UOp]:
    """Returns the registers that a value reads, except those of loops inside it."""
    registers, stack, visited = set[UOp](), [root], set[UOp]()
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        if node.op is Ops.DEFINE_ACC:
            registers.add(node)
        elif node.op is not Ops.RESULT:
            stack.extend(node.src)
    return registers


def is_loop(axis: UOp) -> bool:
    """Whether an axis is a loop. The steps of a VECTOR axis are lanes."""
    return axis.arg.kind is not AxisKind.VECTOR


def lane_count(node: UOp) -> int:
    """Returns the number of lanes of a node: from its type, or from the VECTOR axis on which it depends."""
    count: int = node.dtype.count
    if count > 1:
        return count
    return next((axis.size for axis in node.ranges if not is_loop(axis)), 1)


def memory_name(pointer: UOp) -> str:
    return f"data{pointer.arg}" if pointer.op is Ops.DEFINE_GLOBAL else str(pointer.arg)


def is_value(node: UOp) -> bool:
    """Whether a node has a value, not an address or an effect."""
    return isinstance(node.dtype, DType) and node.dtype is not dtypes.void


def _limits_of(dtype: DType) -> tuple[int, int]:
    if dtypes.is_float(dtype):
        return 0, 0
    return int(dtypes.min(dtype)), int(dtypes.max(dtype))


def _sort_loops(loops: Sequence[UOp] | frozenset[UOp]) -> list[UOp]:
    return sorted((loop for loop in loops if is_loop(loop)), key=lambda axis: axis.arg.id)


__all__ = [
    "Address",
    "Effects",
    "Lanes",
    "UnknownValue",
    "EvaluationError",
    "InputRequirement",
    "Evaluator",
    "is_loop",
    "is_value",
    "lane_count",
    "memory_name",
]
