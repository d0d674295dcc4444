"""Realizes values: schedules, compiles and runs their graph. Also reads values back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock

from tinyexplore.compile.compiler import compile_item, compile_many, run_item
from tinyexplore.compile.lowering import compile_optimized, further_listings
from tinyexplore.compile.reuse import cache_scope_variable, current_cache_scope, step_by_step
from tinyexplore.compile.search import Executor, measuring_on
from tinyexplore.compile.warm_up import make_ready
from tinyexplore.device import Buffer, Device
from tinyexplore.execute.batch import give_values, prepare_batch
from tinyexplore.execute.capture import ExecutionCapture, active_capture, capture_variable, capturing
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.execute.graph import record_launches
from tinyexplore.execute.liveness import is_alone, writes_now
from tinyexplore.execute.memory import (
    MemoryPlan,
    live_ranges,
    outputs_of,
    plan_memory,
    share_memory,
    with_other_buffers,
)
from tinyexplore.execute.plan import NumberedGraph, Plan, walk
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.sampling import Sampling, sampling
from tinyexplore.lazy import (
    LazyBuffer,
    ShardedBuffer,
    SourceNumberBound,
    forget_sources,
    note_source_bound,
    parts_of,
    smallest_number_behind,
)
from tinyexplore.schedule import NO_OVERRIDES, NO_WRITES, Overrides, ScheduleItem, WritePlan, schedule_graph
from tinyexplore.target import Target
from tinyexplore.trace import MemoryPlanned, active_recorder, console_recorder, recording_if_no_recorder
from tinyexplore.uop import Ops
from tinyexplore.uop.semantics import to_bits
from tinyexplore.uop.symbolic import is_symbolic, product, value_of
from tinyexplore.util import config
from tinyexplore.util.locks import new_in_children


def schedule(outputs: Sequence[LazyBuffer]) -> tuple[ScheduleItem, ...]:
    """Returns the kernels and copies that `realize(outputs)` would run, in order."""
    unrealized = [_to_realize(output) for output in parts_of_outputs(outputs)]
    if active_capture() is None:
        unrealized = [node for node in unrealized if not _is_constant(node)]
    return create_schedule(unrealized, writes_now(unrealized))


def create_schedule(
    outputs: Sequence[LazyBuffer], writes: WritePlan = NO_WRITES, overrides: Overrides = NO_OVERRIDES
) -> tuple[ScheduleItem, ...]:
    """Calls `schedule_graph` with the targets of the devices of `outputs` and their sources."""
    return schedule_graph(outputs, target_of, writes, overrides)


def target_of(device: str) -> Target:
    """Returns the target that the device of this name compiles for. Opens the device."""
    return Device[device].target


def parts_of_outputs(outputs: Sequence[LazyBuffer]) -> Sequence[LazyBuffer]:
    """Returns the outputs, with each value on several devices replaced by its parts."""
    for output in outputs:
        if isinstance(output, ShardedBuffer):
            break
    else:
        return outputs
    return [part for output in outputs for part in parts_of(output)]


def realize(outputs: Sequence[LazyBuffer]) -> None:
    """Computes each of `outputs`, or the base of a view, stores it in memory, and opens its device."""
    unrealized = []
    for output in parts_of_outputs(outputs):
        if output.buffer is not None:
            make_ready(output.device)
            continue
        if output.size == 0:
            output.buffer = Buffer(output.device, 0, output.dtype).allocate()
        else:
            unrealized.append(_to_realize(output))
    if unrealized:
        constants = [] if active_capture() is not None else [node for node in unrealized if _is_constant(node)]
        _compute([node for node in unrealized if node not in constants] if constants else unrealized)
        for node in constants:  # last, so that kernels that use a constant contain it, and need not read it from memory
            _fill(node)
        forget_sources(outputs)


def realize_in_own_memory(outputs: Sequence[LazyBuffer]) -> None:
    """Computes `outputs` like `realize`, but also stores a view in its own memory."""
    unrealized = [output for output in parts_of_outputs(outputs) if output.buffer is None and output.size]
    if unrealized:
        _compute(unrealized)


def _is_constant(node: LazyBuffer) -> bool:
    """Whether `node` is one number in each element. `_fill` stores such a node without a kernel."""
    return node.op is Ops.CONST and node.buffer is None and not is_symbolic((*node.shape, node.arg))


def _fill(node: LazyBuffer) -> None:
    """Allocates the memory of a constant and fills it. Not in a capture: there, each replay computes its constants."""
    if node.buffer is None:
        element = to_bits(node.arg, node.dtype).to_bytes(node.dtype.itemsize, "little")
        node.buffer = Buffer(node.device, node.size, node.dtype).fill(element)
        node.note = None


class _ComputeLock:
    """A lock: one thread computes at a time, because graphs share nodes, and computing a node changes it."""

    def __init__(self) -> None:
        self.lock = RLock()


_computing = _ComputeLock()
new_in_children(_computing, "lock")


def _compute(outputs: Sequence[LazyBuffer]) -> None:
    """Computes `outputs` and stores them in memory."""
    with _computing.lock:
        unrealized = [node for node in dict.fromkeys(outputs) if node.buffer is None and node.size]
        if unrealized:
            _compute_alone(unrealized)


def _compute_alone(unrealized: Sequence[LazyBuffer]) -> None:
    """Computes `unrealized` by a cached plan, or kernel by kernel where plans do not apply."""
    scope = current_cache_scope()
    if scope.plans is None or active_capture() is not None:
        _compute_each(unrealized)
        return
    graph = walk(unrealized)
    if graph is None:
        _compute_each(unrealized)
        return
    plan = scope.plans.find(graph)
    if plan is None:
        plan = _make_plan(unrealized, graph)
        scope.plans.keep(graph, plan)
    plan.run(graph)


def _make_plan(unrealized: Sequence[LazyBuffer], graph: NumberedGraph) -> Plan:
    """Schedules and compiles a graph."""
    items = create_schedule(unrealized, graph.writes)
    return Plan.of(items, [compiled.runner for compiled in compile_many(items)], graph)


def _compute_each(unrealized: Sequence[LazyBuffer]) -> None:
    """Computes `unrealized` kernel by kernel: for recorders, captures, and graphs too large for a plan."""
    first_number = smallest_number_behind(unrealized) if active_capture() is None else 0
    with console():
        items = list(create_schedule(unrealized, writes_now(unrealized)))
        record_memory(items, unrealized)
        ready = compile_many(items)
        items.clear()  # consumed, so that a buffer is freed after its last reader
        run_each(ready, SourceNumberBound(first_number) if first_number else None)


def run_each(items: list[ExecItem], since: SourceNumberBound | None = None) -> None:
    """Runs the items in order, one at a time.

    Empties `items` as it goes: an intermediate is freed after its last reader, so later items reuse its memory.
    `since`: a note on the age of the items' sources, set on each result; None if the age is unknown.
    """
    capture = active_capture()
    items.reverse()
    while items:
        finished_item = run_item(items.pop())
        if capture is not None:
            capture.add(finished_item)
        for node, buffer in zip(finished_item.item.outputs, finished_item.buffers):
            node.buffer = buffer
            node.src = ()
            if since is not None:
                note_source_bound(node, since)


def record_memory(items: Sequence[ScheduleItem], outputs: Sequence[LazyBuffer]) -> None:
    """Records the memory plan of the intermediates if a recorder is attached."""
    if recorder := active_recorder():
        persistent = [buffer for item in items for node, buffer in zip(item.outputs, item.buffers) if node in outputs]
        plan = plan_memory(items, persistent)
        if plan.live_ranges:
            recorder.record(MemoryPlanned(plan))


def console() -> AbstractContextManager[object]:
    """Attaches the console's recorder in a block if DEBUG, PROFILE or GRAPH is set and no recorder is attached."""
    return recording_if_no_recorder(console_recorder()) if config().uses_console_recorder else nullcontext()


def _to_realize(output: LazyBuffer) -> LazyBuffer:
    """Returns the node to realize: the base of a view, unless the view has fewer elements."""
    if output.buffer is not None:
        return output
    base = output.base
    if base is output or base.buffer is not None:
        return base
    return base if output.size >= base.size else output


def read(output: LazyBuffer) -> Buffer:
    """Returns a Buffer with the elements of `output`, row-major, and no others. Realizes `output` if necessary."""
    if active_capture() is not None:
        raise RuntimeError(
            "a function that TinyJit captures reads a tensor's values (.item(), .numpy(), if, print): a replay runs "
            "kernels only, so it would use the values of the captured call; return the tensor and read it outside"
        )
    if output.buffer is None:
        realize([output])
    base = output.base
    if base.buffer is not None and (base is output or output.st.contiguous):
        return _take_first_elements(base.buffer, value_of(product(output.shape)))
    packed = output.packed()
    _compute([packed])
    assert packed.buffer is not None
    return _take_first_elements(packed.buffer, value_of(product(output.shape)))


def _take_first_elements(buffer: Buffer, size: int) -> Buffer:
    """Returns a Buffer with the first `size` elements: `buffer` itself if it has no more, else a copy."""
    if buffer.size == size:
        return buffer
    return Buffer(buffer.device, size, buffer.dtype).copyin(buffer.memoryview()[: size * buffer.dtype.itemsize])


__all__ = [
    "ExecutionCapture",
    "ExecItem",
    "Executor",
    "MemoryPlan",
    "Runner",
    "Sampling",
    "active_capture",
    "capture_variable",
    "capturing",
    "compile_item",
    "compile_many",
    "compile_optimized",
    "create_schedule",
    "console",
    "further_listings",
    "give_values",
    "is_alone",
    "current_cache_scope",
    "cache_scope_variable",
    "live_ranges",
    "outputs_of",
    "plan_memory",
    "measuring_on",
    "prepare_batch",
    "read",
    "realize",
    "realize_in_own_memory",
    "sampling",
    "schedule",
    "share_memory",
    "spread",
    "step_by_step",
    "target_of",
    "record_launches",
    "with_other_buffers",
]
