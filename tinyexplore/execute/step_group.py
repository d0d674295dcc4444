"""The steps of a plan: kernels and copies over numbered slots, and groups of steps that are one native call."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tinyexplore.device import Buffer, Device, Memory
from tinyexplore.dtype import DType
from tinyexplore.execute.memory import LiveRange, align, place_live_ranges
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.threads import current_instance, parts_for, thread_count
from tinyexplore.runtime.native import BoundProgram, NativeProgram
from tinyexplore.runtime.pool import NativePool, find_native_pool
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import value_of

T = TypeVar("T")
G = TypeVar("G")

# most bytes of buffers that a group fills: larger buffers are freed after their last reader, step by step
MAX_BYTES = 1 << 20
MAX_STEPS = 128  # most steps of a group


NO_NODE = -1  # for a value that splitting introduced, which no node of the user has


@dataclass(frozen=True, eq=False, slots=True)
class StepOutput:
    """A buffer that a step fills.

    slot: its slot in the plan.
    node: the number of the node whose value it holds, or NO_NODE.
    device: its device.
    size: the number of elements.
    dtype: the dtype of the elements.
    is_new: whether it is allocated for the step; otherwise the step stores into a part of an existing buffer.
    """

    slot: int
    node: int
    device: str
    size: int
    dtype: DType
    is_new: bool

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, eq=False, slots=True)
class PlanStep:
    """One kernel, or one copy, over numbered slots.

    runner: the compiled kernel; None for a copy.
    slots: the slots of its buffers.
    outputs: the buffers that it fills.
    done: slots whose last use this step is.
    variables: the integer arguments of the kernel.
    starts: values of the Variables that are the same in each call.
    """

    runner: Runner | None
    slots: tuple[int, ...]
    outputs: tuple[StepOutput, ...]
    done: tuple[int, ...]
    variables: tuple[UOp, ...]
    starts: Mapping[UOp, int]

    def run(self, memory: list[Buffer | None], values: dict[UOp, int]) -> None:
        """Runs the step on the buffers in `memory`. Adds the buffers that it fills."""
        for output in self.outputs:
            if output.is_new:
                memory[output.slot] = Buffer(output.device, output.size, output.dtype)
        buffers = [_require_buffer(memory[slot]) for slot in self.slots]
        if self.runner is None:
            (output,), source = self.outputs, buffers[1]
            if source.size != output.size:  # the size is symbolic, so it is that of the source buffer
                buffers[0] = memory[output.slot] = Buffer(output.device, source.size, output.dtype)
            buffers[0].allocate().copyin(source.memoryview())
        elif self.variables:
            numbers = self.numbers(values)
            self.runner.run(self.runner.program.bind(buffers, numbers), numbers)
        else:
            self.runner.run(self.runner.program.bind(buffers))

    def numbers(self, values: Mapping[UOp, int]) -> tuple[int, ...]:
        """Returns the integer arguments for the values of the Variables in a call."""
        bound = {**values, **self.starts} if self.starts else values
        return tuple([value_of(variable, bound) for variable in self.variables])


def _require_buffer(buffer: Buffer | None) -> Buffer:
    assert buffer is not None
    return buffer


AddressPositions = list[tuple["array[int]", int]]


class StepGroup:
    """Neighboring machine-code steps as one native call, which needs only the addresses of its buffers.

    A value that only steps of the group use may get an offset in shared memory instead of a buffer (`omit_buffers`).
    The group's other fields are as in a PlanStep. A concurrent run cannot use its tables (`Plan.running`).
    """

    def __init__(self, steps: Sequence[PlanStep], pool: NativePool) -> None:
        uses_of: dict[int, AddressPositions] = {}
        calls = []
        for step in steps:
            assert step.runner is not None and isinstance(step.runner.program, NativeProgram)
            numbers = step.numbers({})
            table = array("Q", [*[0] * len(step.slots), *numbers] or [0])
            for number, slot in enumerate(step.slots):
                uses_of.setdefault(slot, []).append((table, number))
            calls.append(native_call(BoundProgram(step.runner.program, [], table), step.runner, numbers))
        self._call = pool.prepare(calls)
        self._every = [output for step in steps for output in step.outputs]
        self._done = [slot for step in steps for slot in step.done]
        filled = {output.slot for output in self._every}
        self._given = [(slot, uses) for slot, uses in uses_of.items() if slot not in filled]
        self._address_positions = {slot: uses for slot, uses in uses_of.items() if slot in filled}
        self.offsets, self._shared_bytes = self._lay_out(steps)
        self.omit_buffers(frozenset())

    def _lay_out(self, steps: Sequence[PlanStep]) -> tuple[dict[int, int], int]:
        """Returns the offset in shared memory of each slot that needs no separate buffer, and the total size."""
        last_step = {slot: time for time, step in enumerate(steps) for slot in step.done}
        ranges = {
            output.slot: LiveRange(align(output.nbytes), time, last_step[output.slot])
            for time, step in enumerate(steps)
            for output in step.outputs
            if last_step.get(output.slot, -1) > time or (output.slot in last_step and len(step.outputs) > 1)
        }
        plan = place_live_ranges(list(ranges.values()))
        return dict(zip(ranges, plan.offsets)), plan.peak_bytes

    def omit_buffers(self, unneeded: Collection[int]) -> None:
        """Gives the slots in `unneeded` that have an offset in shared memory no buffers, from now on."""
        shared_slots = [
            (self._address_positions[slot], offset) for slot, offset in self.offsets.items() if slot in unneeded
        ]
        self.outputs = tuple(
            [output for output in self._every if output.slot not in self.offsets or output.slot not in unneeded]
        )
        self.done = tuple([slot for slot in self._done if slot not in self.offsets or slot not in unneeded])
        self._inside = [(table, index, offset) for uses, offset in shared_slots for table, index in uses]
        self._shared_at = -1
        self._own = [
            (
                output.slot,
                output.device,
                output.size,
                output.dtype,
                output.nbytes,
                _get_allocate(output.device),
                self._address_positions[output.slot],
            )
            for output in self.outputs
        ]

    def run(self, memory: list[Buffer | None], values: dict[UOp, int]) -> None:
        """Runs the group like `PlanStep.run`."""
        for slot, device, size, dtype, nbytes, allocate, uses in self._own:
            shared_memory = allocate(nbytes)
            memory[slot] = Buffer(device, size, dtype, shared_memory)
            for table, index in uses:
                table[index] = shared_memory.address
        for slot, uses in self._given:
            address = _require_buffer(memory[slot]).allocate().address
            for table, index in uses:
                table[index] = address
        if self._inside:
            shared = _get_allocate(self._every[0].device)(self._shared_bytes)
            if shared.address != self._shared_at:
                self._shared_at = shared_address = shared.address
                for table, index, offset in self._inside:
                    table[index] = shared_address + offset
        self._call()


def _get_allocate(device: str) -> Callable[[int], Memory]:
    return Device.allocator(device).allocate


def group_native(
    items: Sequence[T],
    is_native: Callable[[T], bool],
    made_of: Callable[[list[T], NativePool], G],
    nbytes: Callable[[T], int] = lambda item: 0,
    most_items: int = MAX_STEPS,
) -> list[T | G]:
    """Returns `items`, in order, with neighboring native calls combined by `made_of`. Unchanged without a native thread
    pool.

    nbytes: the bytes that an item fills; a group has at most MAX_BYTES.
    most_items: the most items of a group.
    """
    pool = find_native_pool(thread_count(), current_instance.get())
    if pool is None:
        return list(items)
    units: list[T | G] = []
    waiting: list[T] = []
    filled = 0

    def flush() -> None:
        nonlocal filled
        if waiting:
            units.append(made_of(list(waiting), pool))
        waiting.clear()
        filled = 0

    for item in items:
        if not is_native(item):
            flush()
            units.append(item)
            continue
        item_bytes = nbytes(item)
        if len(waiting) == most_items or filled + item_bytes > MAX_BYTES:
            flush()
        waiting.append(item)
        filled += item_bytes
    flush()
    return units


def group_steps(steps: Sequence[PlanStep]) -> list[PlanStep | StepGroup]:
    """Returns `steps`, in order, with machine-code steps combined to groups."""
    return group_native(
        steps, _needs_only_addresses, StepGroup, lambda step: sum([output.nbytes for output in step.outputs])
    )


def native_call(bound: BoundProgram, runner: Runner, values: Sequence[int]) -> tuple[BoundProgram, int | None, int]:
    """Returns the arguments of the native thread pool to run `bound`: the extent of its THREAD axis, and the number
    of parts."""
    extent = runner.spec.extent(values)
    return bound, extent, parts_for(extent, runner.work_ns(values), thread_count())


def _needs_only_addresses(step: PlanStep) -> bool:
    """Whether a step needs only addresses, so that it can be part of a group.

    That excludes a copy, Variables of the user, a device without machine code, a write into an existing buffer, and the
    caller's buffers that must be aligned.
    """
    if (
        step.runner is None
        or len(step.variables) > len(step.starts)
        or not isinstance(step.runner.program, NativeProgram)
    ):
        return False
    spec = step.runner.spec
    new_slots = [output.slot for output in step.outputs if output.is_new]
    if len(step.slots) != spec.n_buffers or len(new_slots) != len(step.outputs):
        return False
    return all([step.slots[number] in new_slots for number in (*spec.aligned, *spec.writes)])


__all__ = ["NO_NODE", "StepGroup", "StepOutput", "PlanStep", "group_steps", "group_native", "native_call"]
