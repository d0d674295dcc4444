"""Replays captured kernels with new inputs, advances the state, and draws new random keys."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, cast

from tinyexplore import engine
from tinyexplore.device import Buffer
from tinyexplore.engine import ExecItem, MemoryPlan, give_values, outputs_of, prepare_batch
from tinyexplore.jit.arguments import Arguments, JitError, Leaf, buffers_of, insert_tensors, is_packed, own_buffers
from tinyexplore.jit.slots import (
    BufferUses,
    Slot,
    allocate_like,
    copy_bytes,
    describe,
    is_alike,
    mark_sources_unknown,
)
from tinyexplore.lazy import LazyBuffer, parts_of
from tinyexplore.runtime.pool import Batch
from tinyexplore.schedule import Requirement
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.change_log import Epoch
from tinyexplore.tensor.random import generator
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import SymbolicError, is_symbolic, rebound, simplified, value_of
from tinyexplore.util import GlobalCounters
from tinyexplore.util.uninterrupted import run_uninterrupted

Exchange = tuple[list[partial[Any]], list[Tensor], str, list[LazyBuffer]]  # in the format of `run_uninterrupted`


class CallState:
    """A tensor that each call assigns to. It has two buffers, which calls read and write alternately.

    A sharded tensor has two buffers for each part. Raises JitError if it was divided differently before.
    is_in_place: whether only parts of it are written, in its single buffer.
    """

    def __init__(self, tensor: Tensor, old_value: LazyBuffer, new_value: LazyBuffer) -> None:
        if not is_alike(old_value, new_value):
            raise JitError(
                f"{tensor!r} was {describe(old_value)} before the captured call and is {describe(new_value)} after it: "
                "its sharding must not change between calls; shard it before the first call"
            )
        self.tensor, self.before = tensor, own_buffers(old_value)
        self.is_in_place = own_buffers(new_value) == self.before
        second_value = new_value if self.is_in_place else allocate_like(new_value)
        self.values = (new_value, second_value)  # (buffers read in turn 0, buffers read in turn 1)
        self.buffers = (own_buffers(new_value), own_buffers(second_value))


@dataclass(eq=False)
class CallOutput:
    """One tensor of a captured call's result: an argument, an existing tensor, or a new one.

    number: the number of the argument, or None.
    tensor: the existing tensor, or None.
    value: the value of a new tensor, or None.
    """

    number: int | None
    tensor: Tensor | None
    value: LazyBuffer | None

    def tensor_of(self, arguments: list[Tensor], values: Mapping[UOp, int]) -> Tensor:
        if self.value is not None:
            return Tensor._wrap(rebound_shape(self.value, values) if values else self.value)
        if self.number is not None:
            return arguments[self.number]
        assert self.tensor is not None
        return self.tensor


@dataclass(eq=False)
class CapturedCall:
    """The parts of one captured call.

    arguments: the structure of its arguments.
    argument_values: the values of the tensor arguments.
    items: the kernels and copies, in order.
    states: the state that it changes beside its arguments.
    assigned: (argument number, new value) of each argument that it assigned.
    keys: the random keys drawn, each with the count of numbers drawn from it.
    structure: the structure of its result.
    outputs: the tensors of the result.
    others: tensors that it neither received nor changed, with their values before it.
    baked: those of `others` whose values are constants in the kernels.
    in_place: numbers of the arguments that it wrote a part of.
    memory: how the intermediates share memory, by device.
    shared: the buffers of these intermediates.
    requirements: conditions on Variables that the function's Python code depended on.
    """

    arguments: Arguments
    argument_values: list[LazyBuffer]
    items: list[ExecItem]
    states: list[CallState]
    assigned: list[tuple[int, LazyBuffer]]
    keys: dict[Buffer, int]
    structure: Any
    outputs: list[CallOutput]
    others: list[tuple[Tensor, LazyBuffer]]
    baked: list[tuple[Tensor, LazyBuffer]]
    in_place: list[int] = field(default_factory=list)
    memory: list[MemoryPlan] = field(default_factory=list)
    shared: list[Buffer] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state to pickle: of other tensors only those that kernels read, of intermediates only their
        existence."""
        read_buffers = read_by(self.items)
        read_pairs = [
            (tensor, value) for tensor, value in self.others if not read_buffers.isdisjoint(buffers_of(value))
        ]
        empty = {buffer: Buffer(buffer.device, buffer.size, buffer.dtype) for buffer in self.shared}
        items = engine.with_other_buffers(self.items, empty)
        return {**vars(self), "others": read_pairs, "items": items, "memory": [], "shared": list(empty.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        buffers = {buffer for item in self.items for buffer in item.buffers} - set(self.shared)
        self.items, self.memory, self.shared = engine.share_memory(self.items, buffers)

    @property
    def values(self) -> dict[UOp, int]:
        """The values that the Variables among the arguments were bound to."""
        return self.arguments.values


def rebound_shape(value: LazyBuffer, values: Mapping[UOp, int]) -> LazyBuffer:
    """Returns a value in memory of symbolic shape, with the Variables bound to `values`."""
    if value.buffer is None or not is_symbolic(value.shape):
        return value
    rebound_value = LazyBuffer.from_buffer(value.buffer, rebound(value.shape, values))
    mark_sources_unknown(rebound_value)
    return rebound_value


def written_by(items: Iterable[ExecItem]) -> set[Buffer]:
    """Returns the buffers that any of `items` writes."""
    return {buffer for item in items for buffer in item.buffers[: outputs_of(item)]}


def read_by(items: Iterable[ExecItem]) -> set[Buffer]:
    """Returns the buffers that any of `items` reads."""
    return {buffer for item in items for buffer in item.buffers[outputs_of(item) :]}


def _sum_costs(items: list[ExecItem]) -> tuple[int, Any, Any]:
    """Returns the number of launches, floating-point operations and bytes moved of one replay."""
    flops = sum(0 if item.runner is None else item.runner.flops for item in items)
    moved_bytes = sum(item.bytes_moved if item.runner is None else item.runner.bytes_moved for item in items)
    return len(items), simplified(flops), simplified(moved_bytes)


class CallReplay:
    """Repeats a captured call. If the call has state, there are two lists of items, which alternate."""

    def __init__(self, captured: CapturedCall) -> None:
        self.captured, self.states, self.assigned, self.keys = (
            captured,
            captured.states,
            captured.assigned,
            captured.keys,
        )
        self.training = Tensor.training
        self.values = captured.values
        self.epoch = Epoch.count[0]
        self.is_known = False  # whether TinyJit has checked that machine code can run the calls
        self._bind_kernels()
        all_items = list({id(item): item for items in self.turns for item in items}.values())
        self._bind_arguments(all_items)
        self._plan_state_exchange()
        self._free_arguments(all_items)
        self.watched, self.fixed = self._find_watched(all_items)
        self._classify_call()

    def _bind_kernels(self) -> None:
        """Builds the list of kernels for each turn, its launch steps and its costs."""
        self.next_turn_cell = [0]  # one number, in a list that the exchange changes without Python code
        self.alternates = any(not state.is_in_place for state in self.states)
        self.turns = [
            _exchange_buffers(self.captured.items, self.states, turn) for turn in ((0, 1) if self.alternates else (0,))
        ]
        self.steps: list[list[Callable[[], None]]] = [prepare_batch(items) for items in self.turns]
        with engine.console():
            engine.record_launches(self.turns[0])
        self.is_native = all(isinstance(step, Batch) for steps in self.steps for step in steps)
        self.costs = _sum_costs(self.items)
        # The values of Variables that the kernels of each turn have; None: the other turn may have changed them.
        self.bound_values: list[dict[UOp, int] | None] = [self.captured.values for _ in self.turns]

    def _bind_arguments(self, all_items: list[ExecItem]) -> None:
        """Finds the kernel operands (in all kernels, `all_items`) that each argument and each new result fills."""
        captured = self.captured
        self.slots = self._make_argument_slots(all_items)
        self.in_place = [(number, self.slots[number]) for number in captured.in_place]
        lent = {captured.argument_values[number].buffer for number in captured.in_place}
        self.written = frozenset(buffer.address for buffer in written_by(all_items) - lent)
        self.assigned_uses = [
            (number, value, [BufferUses(buffer, all_items) for buffer in own_buffers(value)])
            for number, value in self.assigned
        ]
        self.changed_arguments = sorted({*captured.in_place, *[number for number, _ in self.assigned]})
        tensors = [tensor for _, tensor in captured.arguments.tensors]
        self.aliased_arguments = {  # (changed argument, argument) that were one tensor when captured
            (number, result_number)
            for number in self.changed_arguments
            for result_number, tensor in enumerate(tensors)
            if tensor is tensors[number]
        }

    def _plan_state_exchange(self) -> None:
        """Prepares the calls and values that advance the state after the kernels of each turn have run."""
        self.has_side_effects = bool(self.states or self.assigned or self.in_place)
        self.tensors = [state.tensor for state in self.states]
        self.epochs_at_exchange: list[int] = []  # the epoch before and after the last change of state
        record_epoch = partial(self.epochs_at_exchange.extend, Epoch.count)
        self.exchanges: list[list[partial[Any]]] = []
        self.after: list[list[LazyBuffer]] = []  # the values of the states after each turn
        self.overwritten: list[list[Buffer]] = []  # the buffers that each turn both reads as state and writes
        for turn, items in enumerate(self.turns):
            following = len(self.turns) - 1 - turn
            self.exchanges.append(
                [
                    partial(self.epochs_at_exchange.clear),
                    record_epoch,
                    Epoch.advance,
                    record_epoch,
                    partial(self.next_turn_cell.__setitem__, 0, following),
                ]
            )
            self.after.append([state.values[following] for state in self.states])
            written_buffers = written_by(items)
            state_buffers = [buffer for state in self.states for buffer in state.buffers[turn]]
            self.overwritten.append([buffer for buffer in state_buffers if buffer in written_buffers])

    def _classify_call(self) -> None:
        """Decides whether calls need not unpack their arguments (`plain`) and need not build a nested result
        (`single`)."""
        structure = list(self.captured.arguments.structure.values())
        only_tensors = all(isinstance(leaf, Leaf) for leaf in structure)
        self.plain = self.captured.arguments.positional and only_tensors and not self.captured.values
        self.count = len(structure)
        is_single = self.captured.structure == Leaf(0) and not self.captured.values
        self.single = self.captured.outputs[0].value if is_single else None

    def __reduce__(self) -> tuple[Any, ...]:
        for slot in (*self.slots, *[slot for _, slot in self.watched]):
            # these kernels have other buffers than when they were captured
            if any(uses.others for uses in slot.buffer_uses):
                slot.empty()
                self.epoch = -1
        return _replay_again, (self.captured, self.training, self.next_turn)

    def __repr__(self) -> str:
        return f"Replay({len(self.items)} kernels, {len(self.slots)} tensor arguments, {len(self.states)} states)"

    @property
    def next_turn(self) -> int:
        """The index in `turns` of the next list of items. It determines which of its two buffers each state is in."""
        return self.next_turn_cell[0]

    @property
    def memory(self) -> list[MemoryPlan]:
        """The memory plans of the intermediates, one for each device."""
        return self.captured.memory

    @property
    def items(self) -> list[ExecItem]:
        """The kernels and copies of the next replay."""
        return self.turns[self.next_turn]

    @property
    def jit_cache(self) -> list[ExecItem]:
        """`items`, under TinyJit's name for them."""
        return self.items

    def _make_argument_slots(self, all_items: list[ExecItem]) -> list[Slot]:
        """Returns one slot for each tensor argument. A tensor that is given twice has uses only in its first slot."""
        slots: list[Slot] = []
        # pairs of (argument, part of it) with the same buffer
        self.same: list[tuple[tuple[int, int], tuple[int, int]]] = []
        first_position: dict[Buffer, tuple[int, int]] = {}
        pairs = zip(self.captured.arguments.tensors, self.captured.argument_values)
        for number, ((name, _), value) in enumerate(pairs):
            new_buffers = set()
            for part_number, buffer in enumerate(own_buffers(value)):
                if buffer in first_position:
                    self.same.append((first_position[buffer], (number, part_number)))
                else:
                    first_position[buffer] = (number, part_number)
                    new_buffers.add(buffer)
            slots.append(Slot(name, value, new_buffers, all_items))
        tensors = [tensor for _, tensor in self.captured.arguments.tensors]
        for number in self.captured.in_place:
            for slot, tensor in zip(slots, tensors):
                slot.is_written = slot.is_written or tensor is tensors[number]
        return slots

    def _free_arguments(self, all_items: list[ExecItem]) -> None:
        """Removes the conditions on the arguments' buffers, because the next call brings other buffers."""
        argument_buffers = {buffer for value in self.captured.argument_values for buffer in own_buffers(value)}
        for item in all_items:
            requirements = tuple(node for node in item.item.requires if node.buffer not in argument_buffers)
            if len(requirements) < len(item.item.requires):
                item.item = replace(item.item, requires=requirements)

    def _find_watched(
        self, all_items: list[ExecItem]
    ) -> tuple[list[tuple[Tensor, Slot]], list[tuple[Tensor, LazyBuffer]]]:
        """Finds the tensors that kernels read but that are neither arguments nor state.

        Returns those that may get another buffer between calls, each with its slot, and those that may not, with their
        values. A tensor may not if another tensor has the same buffer, if it is a view, or if a value is a constant in
        the kernels.
        """
        argument_buffers = {buffer for value in self.captured.argument_values for buffer in own_buffers(value)}
        argument_buffers.update(buffer for state in self.states for buffer in state.before)
        outer_buffers = read_by(self.captured.items) - written_by(self.captured.items) - argument_buffers
        sharers: dict[Buffer | None, int] = {}
        readers = [
            (tensor, value) for tensor, value in self.captured.others if not outer_buffers.isdisjoint(buffers_of(value))
        ]
        for _, value in readers:
            for buffer in buffers_of(value):
                sharers[buffer] = sharers.get(buffer, 0) + 1
        watched: list[tuple[Tensor, Slot]] = []
        fixed = list(self.captured.baked)
        for tensor, value in readers:
            shared = any(sharers[buffer] > 1 for buffer in buffers_of(value))
            if shared or not is_packed(value) or self.captured.baked:
                fixed.append((tensor, value))
                continue
            slot = Slot("a tensor read", value, own_buffers(value), all_items)
            slot.last = value
            watched.append((tensor, slot))
        return watched, fixed

    # *** before a replay ***

    def ready(self) -> bool:
        """Updates the slots after assignments outside the replay. Returns False if they require a new capture."""
        epoch = Epoch.count[0]
        if epoch == self.epoch:
            return True
        for tensor, value in self.fixed:
            if tensor.lazydata is not value:
                return False
        moved_states = []
        for state in self.states:
            value, expected = state.tensor.lazydata, state.values[self.next_turn]
            if value is not expected:
                if not is_alike(value, expected):
                    return False
                engine.realize([value])
                moved_states.append((state, [engine.read(part).copyout() for part in parts_of(value)]))
        for tensor, slot in self.watched:
            if tensor.lazydata is not slot.last:
                if not is_alike(tensor.lazydata, slot.like):
                    return False
                slot.take(tensor.lazydata, self.written)
        copies: list[partial[Any]] = []  # all sources have been read: tensors may have exchanged values
        for state, content in moved_states:
            for buffer, data in zip(state.buffers[self.next_turn], content):
                buffer.memory.wait_for_kernels()
                copies.append(partial(ctypes.memmove, buffer.address, data, len(data)))
        tensors, values = (
            [state.tensor for state, _ in moved_states],
            [state.values[self.next_turn] for state, _ in moved_states],
        )
        values_alive = [tensor.lazydata for tensor in tensors]
        run_uninterrupted(copies, tensors, "lazydata", values)
        del values_alive
        self.epoch = epoch
        return True

    def _check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        arguments = Arguments(args, kwargs)
        arguments.check(self.captured.arguments)
        if self.captured.values:
            missing_names = [variable.arg[0] for variable in self.captured.values if variable not in arguments.values]
            if missing_names:
                raise JitError(
                    f"captured with a value for the Variable {missing_names[0]!r}, called without one: pass it bound"
                )
            self.values = arguments.values
        return [tensor for _, tensor in arguments.tensors]

    def _give_values(self) -> None:
        """Sets the Variables of this turn's kernels to the values of this call."""
        if self.bound_values[self.next_turn] == self.values:
            return
        self.bound_values = [None for _ in self.turns]
        try:
            for requirement in self.captured.requirements:
                requirement.check(self.values)
            for item in self.items:
                if item.item.free_variables or item.item.requires:
                    give_values(item, item.item.arguments(self.values))
            self.bound_values[self.next_turn] = self.values
        except SymbolicError as error:
            raise JitError(f"this call cannot be replayed: {error}; use a separate TinyJit, or reset()") from None

    # *** replay ***

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the kernels again, for these arguments."""
        if Tensor.training is not self.training:
            raise JitError(
                f"captured while Tensor.training was {self.training}, called while it is {Tensor.training}: "
                "use a separate TinyJit for each, or reset()"
            )
        arguments: Any = args
        if kwargs or not self.plain or len(args) != self.count:
            arguments = self._check(args, kwargs)
        try:
            for slot, tensor in zip(self.slots, arguments):
                if tensor.lazydata is not slot.last:
                    slot.take(tensor.lazydata, self.written)
        except AttributeError:  # an argument is not a tensor
            self._check(args, kwargs)
            raise
        if self.same:
            self._check_same(arguments)
        if self.values:
            self._give_values()
        if not self.has_side_effects:
            self._run(None, [])
        else:
            self._run_changing(arguments)
        if self.single is not None:
            return Tensor._wrap(self.single)
        outputs = self.captured.outputs
        values = self.values
        return insert_tensors(
            self.captured.structure, lambda number: outputs[number].tensor_of(arguments, values), values
        )

    def _run(self, exchange: Exchange | None, overwritten: list[Buffer]) -> None:
        """Runs the kernels, then `exchange` in one step.

        If an interrupt comes before that, the values in `overwritten` stay as before: machine code runs in one step,
        otherwise there is a copy.
        """
        for key, size in self.keys.items():
            generator.fill(key, size)
        is_stepwise = engine.current_cache_scope().plans is None
        steps = self.steps[self.next_turn]
        if overwritten and exchange is not None:
            if is_stepwise or not self.is_native:
                return self._run_with_copies(exchange, overwritten)
            exchange = ([*cast("list[partial[Any]]", steps), *exchange[0]], *exchange[1:])
            steps = []
        if is_stepwise:
            with engine.console():
                for item in self.items:
                    item.run()
            if exchange is not None:
                run_uninterrupted(*exchange)
            return
        began = perf_counter()
        for step in steps:
            step()
        if exchange is not None:
            run_uninterrupted(*exchange)
        kernels, flops, moved_bytes = self.costs
        if self.values:
            flops, moved_bytes = value_of(flops, self.values), value_of(moved_bytes, self.values)
        GlobalCounters.add(kernels, flops, moved_bytes, perf_counter() - began)

    def _run_with_copies(self, exchange: Exchange, overwritten: list[Buffer]) -> None:
        copies = [(buffer.address, buffer.copyout()) for buffer in overwritten]
        undo = [partial(ctypes.memmove, address, content, len(content)) for address, content in copies]
        has_run: list[bool] = []
        try:
            self._run(([*exchange[0], partial(has_run.append, True)], *exchange[1:]), [])
        except BaseException:
            if not has_run:
                for buffer in overwritten:  # launched kernels still write there
                    buffer.memory.wait_for_kernels()
                run_uninterrupted(undo)
            raise

    def _run_changing(self, arguments: list[Tensor]) -> None:
        """Runs kernels that write parts of arguments in place, and allocates new memory for arguments that are
        assigned to."""
        self._check_changed(arguments)
        turn = self.next_turn_cell[0]
        exchange: Exchange = self.exchanges[turn], self.tensors, "lazydata", self.after[turn]
        if not (self.assigned or self.in_place):
            self._run(exchange, self.overwritten[turn])
        else:
            self._run_giving(arguments, exchange)
        epoch_before, epoch_after = self.epochs_at_exchange
        if epoch_before == self.epoch:
            self.epoch = epoch_after

    def _run_giving(self, arguments: list[Tensor], exchange: Exchange) -> None:
        new_values = [allocate_like(value) for _, value, _ in self.assigned_uses]
        assigned = [arguments[number] for number, _ in self.assigned]
        values_alive = [tensor.lazydata for tensor in assigned]  # keeps the values alive until the exchange is complete
        calls, tensors, name, values = exchange
        results = [rebound_shape(value, self.values) for value in new_values]
        try:
            for number, slot in self.in_place:
                slot.lend(arguments[number])
            for value, (_, _, all_uses) in zip(new_values, self.assigned_uses):
                for uses, buffer in zip(all_uses, own_buffers(value)):
                    uses.put(buffer)
            lent = [buffer for number, _ in self.in_place for buffer in own_buffers(arguments[number].lazydata)]
            self._run(
                (calls, [*tensors, *assigned], name, [*values, *results]),
                self.overwritten[self.next_turn_cell[0]] + lent,
            )
        finally:
            for _, slot in self.in_place:
                slot.buffer_uses[0].return_buffer()
            for _, _, all_uses in self.assigned_uses:
                for uses in all_uses:
                    uses.return_buffer()
        del values_alive

    def _check_changed(self, arguments: list[Tensor]) -> None:
        """Raises JitError if a tensor that the call changes is also another argument, unless it was when captured."""
        for number in self.changed_arguments:
            for other_number, tensor in enumerate(arguments):
                if (
                    tensor is arguments[number]
                    and other_number != number
                    and (number, other_number) not in self.aliased_arguments
                ):
                    raise JitError(
                        f"{self.slots[number].name}, to which the captured call assigned, is the same tensor as "
                        f"{self.slots[other_number].name}; they were two tensors when captured: "
                        "capture with one tensor for both"
                    )

    def _check_same(self, arguments: list[Tensor]) -> None:
        for (first_number, first_part), (second_number, second_part) in self.same:
            if (
                parts_of(arguments[first_number].lazydata)[first_part]
                is not parts_of(arguments[second_number].lazydata)[second_part]
            ):
                names = self.slots[second_number].name, self.slots[first_number].name
                raise JitError(
                    f"{names[0]} and {names[1]} are two tensors; they were one tensor when captured: "
                    "capture with two tensors"
                )

    def hand_over(self, arguments: list[Tensor], values: Mapping[UOp, int]) -> None:
        """Gives arguments that the captured call assigned to copies of their new values, in separate memory."""
        for number, value in self.assigned:
            copy = allocate_like(value)
            for target, source in zip(own_buffers(copy), own_buffers(value)):
                copy_bytes(target, source)
            arguments[number].lazydata = rebound_shape(copy, values)


def _replay_again(captured: CapturedCall, training: bool, turn: int) -> CallReplay:
    replay = CallReplay(captured)
    replay.training, replay.next_turn_cell[0] = training, turn
    replay.epoch = -1  # the first call follows assignments between capturing and pickling
    return replay


def _exchange_buffers(items: list[ExecItem], states: list[CallState], turn: int) -> list[ExecItem]:
    """Returns `items` that read the state from its buffer `turn` and write it to the other one."""
    replacements: dict[Buffer, Buffer] = {}
    for state in states:
        replacements.update(zip(state.before, state.buffers[turn]))
        replacements.update(zip(state.buffers[0], state.buffers[1 - turn]))
    pairs = []
    for item in items:
        buffers = tuple(replacements.get(buffer, buffer) for buffer in item.buffers)
        pairs.append(
            item if buffers == item.buffers else ExecItem(item.item, item.runner, None, buffers, values=item.values)
        )
    return pairs
