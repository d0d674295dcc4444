"""Captures one call: the kernels that ran, the inputs that may change, and the results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tinyexplore import engine
from tinyexplore.device import Buffer
from tinyexplore.engine import ExecItem, ExecutionCapture
from tinyexplore.jit.arguments import (
    Arguments,
    JitError,
    buffers_of,
    extract_tensors,
    insert_tensors,
    is_packed,
    own_buffers,
    realize_packed,
)
from tinyexplore.jit.prune import prune
from tinyexplore.jit.replay import CallOutput, CallReplay, CallState, CapturedCall, written_by
from tinyexplore.jit.slots import mark_sources_unknown
from tinyexplore.lazy import LazyBuffer, parts_of
from tinyexplore.schedule import Requirement
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.change_log import ChangeLog, undo_on_error
from tinyexplore.tensor.live_tensors import live_tensors
from tinyexplore.trace import MemoryPlanned, active_recorder
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.symbolic import call_guarded, is_symbolic, variables
from tinyexplore.util.interpreter import collect_young, collecting_later

if TYPE_CHECKING:
    from tinyexplore.tensor.base import TensorBase


class CaptureDeferred(JitError):
    """Raised if this call cannot be replayed, but a later call can be captured. This call is complete, as without
    TinyJit.

    It assigned to tensors that the call before did not assign to and that had no memory of their own. A later call
    starts with their memory allocated.

    result: the result of this call.
    changed: the tensors that it assigned to.
    in_part: the tensors of which it wrote parts.
    """

    def __init__(self, problem: str, result: Any, changed: list[Tensor], in_part: list[Tensor]) -> None:
        super().__init__(problem)
        self.result, self.changed, self.in_part = result, changed, in_part


def capture(
    fxn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[Tensor],
    in_part: list[Tensor],
    is_pruned: bool = False,
) -> tuple[CallReplay, Any]:
    """Calls `fxn`. Returns the replay of this call, and its result.

    tensors: the tensors that earlier calls assigned to.
    in_part: those among them of which earlier calls wrote parts.
    is_pruned: leaves out work whose result is the same in every call.

    Raises:
        CaptureDeferred: the call assigns to tensors that must be known before, and are not.
    """
    executed = ExecutionCapture()
    with collecting_later():
        call, tensors_given = _capture_call(executed, fxn, args, kwargs, tensors, in_part)
        collect_young()  # frees values in reference cycles; all objects of the call are still young
    _share_memory(call, executed, prune(call) if is_pruned else set())
    replay = CallReplay(call)
    replay.hand_over(tensors_given, call.values)
    return replay, insert_tensors(
        call.structure, lambda number: call.outputs[number].tensor_of(tensors_given, call.values), call.values
    )


def _share_memory(call: CapturedCall, executed: ExecutionCapture, read_only: set[Buffer]) -> None:
    """Lets intermediates without references share memory from the first replay on, after the end of the call.

    read_only: the intermediates that replays only read.
    """
    persistent = {*executed.find_owned(), *call.keys, *read_only}
    for state in call.states:
        persistent.update((*state.before, *state.buffers[0], *state.buffers[1]))
    assigned_values = [value for _, value in call.assigned]
    for values in (assigned_values, [output.value for output in call.outputs], call.argument_values):
        for value in values:
            persistent.update(buffer for buffer in (() if value is None else buffers_of(value)) if buffer is not None)
    call.items, call.memory, call.shared = engine.share_memory(call.items, persistent)
    with engine.console():
        if recorder := active_recorder():
            for plan in call.memory:
                recorder.record(MemoryPlanned(plan))


def _capture_call(
    executed: ExecutionCapture,
    fxn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[Tensor],
    in_part: list[Tensor],
) -> tuple[CapturedCall, list[Tensor]]:
    """Calls `fxn`. Returns the captured call and the tensors among the arguments.

    The call's intermediates have no references afterwards, so the caller can free them.
    """
    arguments = Arguments(args, kwargs)
    argument_tensors = [tensor for _, tensor in arguments.tensors]
    realize_packed(argument_tensors)
    realize_packed(tensors)
    values_before = {id(tensor): (tensor, tensor.lazydata) for tensor in live_tensors()}
    _make_private([*tensors, *argument_tensors], values_before)
    notes = ChangeLog(about_to_change=partial(_bring_into_memory, values_before=values_before, executed=executed))
    executed.private_buffers = _copy_to_own_memory(in_part, values_before, notes)
    conditions: list[UOp] = []
    run = partial(
        _call_and_realize,
        executed,
        notes,
        values_before,
        lambda: call_guarded(conditions, partial(fxn, *args, **kwargs)),
    )
    result, names, changed, values = undo_on_error(notes, lambda: engine.capturing(executed, run))
    if not executed.items:
        raise JitError(
            f"{getattr(fxn, '__qualname__', fxn)} realized nothing: TinyJit replays kernels, so a function must "
            "compute tensors (and return them, assign them, or call .realize())"
        )
    written_buffers = written_by(executed.items)
    numbers = {id(tensor): number for number, tensor in reversed(list(enumerate(argument_tensors)))}
    changed_state = [(tensor, old) for tensor, old in changed if id(tensor) not in numbers]
    _check_state(changed_state, written_buffers - executed.private_buffers, values_before, notes, result)
    structure = extract_tensors(result, "result", [])
    handled = {id(tensor) for tensor, _ in changed} | numbers.keys()
    watched_pairs = [pair for key, pair in values_before.items() if key not in handled]
    _check_variables(executed.items, arguments)
    call = CapturedCall(
        arguments,
        [values_before[id(tensor)][1] for tensor in argument_tensors],
        executed.items,
        [CallState(tensor, old, tensor.lazydata) for tensor, old in changed_state],
        _find_assigned_arguments(changed, numbers, values_before),
        notes.keys,
        structure,
        [_describe_output(tensor, numbers, values_before, values) for _, tensor in names],
        watched_pairs,
        [(tensor, old) for tensor, old in watched_pairs if _is_baked(old, executed, written_buffers)],
        [
            number
            for key, number in numbers.items()
            if not written_buffers.isdisjoint(own_buffers(values_before[key][1]))
        ],
    )
    call.requirements = _make_requirements(conditions, arguments)
    return call, argument_tensors


def _check_state(
    changed_state: list[tuple[Tensor, LazyBuffer]],
    written_buffers: set[Buffer],
    values_before: dict[int, tuple[Tensor, LazyBuffer]],
    notes: ChangeLog,
    result: Any,
) -> None:
    """Raises CaptureDeferred if a changed tensor that is not an argument cannot become state of the replay.

    changed_state: the changed tensors that are not arguments, each with its value before the call.
    """
    for tensor, old in changed_state:
        if problem := _find_state_problem(tensor, old, written_buffers, values_before):
            tensors = [changed_tensor for changed_tensor, _ in changed_state]
            raise CaptureDeferred(
                problem,
                result,
                tensors,
                [changed_tensor for changed_tensor in tensors if id(changed_tensor) in notes.in_part],
            )


def _find_assigned_arguments(
    changed: list[tuple[Tensor, LazyBuffer]],
    numbers: dict[int, int],
    values_before: dict[int, tuple[Tensor, LazyBuffer]],
) -> list[tuple[int, LazyBuffer]]:
    """Returns the numbers of the arguments to which the call gave new memory, with their new values."""
    return [
        (numbers[id(tensor)], tensor.lazydata)
        for tensor, _ in changed
        if id(tensor) in numbers and own_buffers(tensor.lazydata) != own_buffers(values_before[id(tensor)][1])
    ]


def _describe_output(
    tensor: Tensor,
    numbers: dict[int, int],
    values_before: dict[int, tuple[Tensor, LazyBuffer]],
    values: dict[int, LazyBuffer],
) -> CallOutput:
    """Describes a tensor of the result: an existing tensor, or the value of a new one."""
    if id(tensor) in values_before:
        return CallOutput(numbers.get(id(tensor)), tensor, None)
    return CallOutput(None, None, values[id(tensor)])


def _make_requirements(conditions: list[UOp], arguments: Arguments) -> list[Requirement]:
    """Returns the conditions on the arguments' Variables. A Variable that `fxn` binds counts as a constant."""
    return [
        Requirement(condition, None, "what was captured")
        for condition in dict.fromkeys(conditions)
        if variables(condition) <= arguments.values.keys()
    ]


def _call_and_realize(
    executed: ExecutionCapture,
    notes: ChangeLog,
    values_before: dict[int, tuple[Tensor, LazyBuffer]],
    call: Callable[[], Any],
) -> tuple[Any, list[tuple[str, Tensor]], list[tuple[Tensor, LazyBuffer]], dict[int, LazyBuffer]]:
    """Calls the function and realizes its result and the tensors that it changed.

    Returns:
        The result, the tensors in it with their names, the changed tensors with their values before the call, and the
        values of new tensors by `id`.
    """
    result = call()
    names: list[tuple[str, Tensor]] = []
    extract_tensors(result, "result", names)
    changed = [
        (tensor, old)
        for tensor, old in notes.changed.values()
        if id(tensor) in values_before and tensor.lazydata is not old and isinstance(tensor, Tensor)
    ]
    new_tensors = [tensor for _, tensor in names if id(tensor) not in values_before]
    engine.realize([tensor.lazydata for tensor in (*(tensor for tensor, _ in changed), *new_tensors)])
    written_buffers = written_by(executed.items)
    used_buffers: set[Buffer] = set()
    for tensor, old in changed:
        is_in_place = buffers_of(tensor.lazydata) == buffers_of(old)
        # memory written in place stays with its tensor
        unavailable = used_buffers if is_in_place else used_buffers | executed.private_buffers
        if not is_packed(tensor.lazydata) or not _is_free(tensor.lazydata, written_buffers, unavailable):
            tensor.lazydata = tensor.lazydata.packed()
            engine.realize([tensor.lazydata])
        used_buffers.update(own_buffers(tensor.lazydata))
    values: dict[int, LazyBuffer] = {}
    for tensor in new_tensors:
        value = in_memory(tensor.lazydata)
        if not _is_free(value, written_buffers, used_buffers | executed.private_buffers) or is_symbolic_view(value):
            value = value.packed()
            engine.realize([value])
        values[id(tensor)] = value
    for value in (*values.values(), *[tensor.lazydata for tensor, _ in changed]):
        mark_sources_unknown(value)
    return result, names, changed, values


def _is_free(value: LazyBuffer, written_buffers: set[Buffer], unavailable: set[Buffer]) -> bool:
    """Whether all of the value is in memory that the captured kernels write and that nothing else uses."""
    return all(
        buffer is not None and buffer in written_buffers and buffer not in unavailable for buffer in buffers_of(value)
    )


def _is_baked(value: LazyBuffer, executed: ExecutionCapture, written_buffers: set[Buffer]) -> bool:
    """Whether the captured kernels contain the value as a constant, or compute it: a replay does not read it again."""
    return any(
        part in executed.used and (part.buffer is None or part.buffer in written_buffers) for part in parts_of(value)
    )


def in_memory(value: LazyBuffer) -> LazyBuffer:
    """Returns a realized value of symbolic shape as a node of its memory, without reshapes in between."""
    base = value
    while base.op is Ops.RESHAPE and base.buffer is None:
        base = base.src[0]
    if base is value or base.buffer is None or not is_symbolic(value.shape):
        return value
    return LazyBuffer.from_buffer(base.buffer, value.shape)


def is_symbolic_view(value: LazyBuffer) -> bool:
    """Whether the shape or the offset of a view depends on a Variable."""
    while value.op in OpGroups.MOVEMENT and value.buffer is None:
        if is_symbolic(value.shape) or is_symbolic(value.arg):
            return True
        value = value.src[0]
    return False


def _check_variables(items: list[ExecItem], arguments: Arguments) -> None:
    """Raises JitError if a kernel needs a Variable whose value is not among the arguments."""
    for item in items:
        for variable in (*item.item.free_variables, *item.item.bound):
            if variable not in arguments.values:
                raise JitError(
                    f"the captured kernels need the Variable {variable.arg[0]!r}, which is not among the arguments, so "
                    "a replay has no value for it; pass it bound, or a tensor with it in its shape"
                )


def _make_private(tensors: list[Tensor], values_before: dict[int, tuple[Tensor, LazyBuffer]]) -> None:
    """Copies each tensor that shares memory with another one, so that a replay can distinguish reads of the two.

    tensors: those that the call assigns to, and the arguments.
    """
    owners: dict[Buffer, int] = {}
    for _, value in values_before.values():
        for buffer in buffers_of(value):
            if buffer is not None:
                owners[buffer] = owners.get(buffer, 0) + 1
    for tensor in tensors:
        if any(owners.get(part.buffer, 0) > 1 for part in parts_of(tensor.lazydata) if part.buffer is not None):
            tensor.lazydata = tensor.lazydata.packed()
            engine.realize([tensor.lazydata])
            values_before[id(tensor)] = (tensor, tensor.lazydata)


def _bring_into_memory(
    tensor: TensorBase, values_before: dict[int, tuple[Tensor, LazyBuffer]], executed: ExecutionCapture
) -> None:
    """Realizes the old value of `tensor`, which the call is about to change, outside of the capture.

    Example: a lazy gradient of an earlier call. If captured kernels have already used the value, nothing is done.
    """
    old_tensor, value = values_before.get(id(tensor), (None, None))
    if old_tensor is None or value is None or tensor.lazydata is not value or is_packed(value):
        return
    if not any(part in executed.used for part in parts_of(value)):
        # for a view, too, because its memory belongs to another tensor
        engine.capturing(ExecutionCapture(), lambda: engine.realize_in_own_memory([value]))


def _copy_to_own_memory(
    in_part: list[Tensor], values_before: dict[int, tuple[Tensor, LazyBuffer]], notes: ChangeLog
) -> set[Buffer]:
    """Copies the tensors `in_part` to new memory, to which nothing else refers. Returns that memory.

    Their old values are stored in `notes`.
    """
    overwritable: set[Buffer] = set()
    for tensor in {id(tensor): tensor for tensor in in_part}.values():
        if tensor.lazydata.buffer is None:
            continue
        notes.values_to_restore[id(tensor)] = tensor.lazydata
        tensor.lazydata = tensor.lazydata.packed()
        engine.realize([tensor.lazydata])
        values_before[id(tensor)] = (tensor, tensor.lazydata)
        assert tensor.lazydata.buffer is not None
        overwritable.add(tensor.lazydata.buffer)
    return overwritable


def _find_state_problem(
    tensor: Tensor, old: LazyBuffer, written_buffers: set[Buffer], values_before: dict[int, tuple[Tensor, LazyBuffer]]
) -> str | None:
    """Returns the reason why this capture cannot be replayed, or None.

    The captured call assigned to `tensor`. A replay finds the reads of its old value by their memory. So that value
    needs memory before the call, and no other tensor may use the same memory.
    """
    if not is_packed(old) or not written_buffers.isdisjoint(own_buffers(old)):
        return (
            f"{tensor!r} was assigned to, and its value did not lie in memory when the captured call began: "
            "realize() it before"
        )
    old_buffers = set(own_buffers(old))
    for other_tensor, value in values_before.values():
        if other_tensor is not tensor and not old_buffers.isdisjoint(
            buffer for buffer in buffers_of(value) if buffer is not None
        ):
            return (
                f"{tensor!r} was assigned to in the captured call, not in the one before, and shares its memory with "
                f"{other_tensor!r}: assign clones (.clone().realize()), so that reads of the two can be distinguished"
            )
    return None
