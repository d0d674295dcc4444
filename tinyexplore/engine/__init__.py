"""Realising: schedule, compile, run; and reading values back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock

from tinyexplore.device import Buffer
from tinyexplore.engine.batch import give_values, prepare_batch
from tinyexplore.engine.compile import Runner, compile_optimised, further_listings
from tinyexplore.engine.memory import MemoryPlan, lives_of, outputs_of, plan_memory, share_memory, with_other_buffers
from tinyexplore.engine.plan import Plan, Walk, plans, walk
from tinyexplore.engine.ready import make_ready
from tinyexplore.engine.runner import (
    Capture,
    ExecItem,
    active_capture,
    capture_variable,
    capturing,
    compile_all,
    compile_item,
    compile_kernel,
    execute_all,
)
from tinyexplore.engine.search import Executor, measuring_on
from tinyexplore.engine.sight import is_alone, writes_now
from tinyexplore.lazy import LazyBuffer, ShardedBuffer, Since, first_made, forget_sources, parts_of
from tinyexplore.schedule import ScheduleItem, create_schedule
from tinyexplore.trace import Planned, active_recorder, console_recorder, recording
from tinyexplore.uop.symbolic import product, value_of
from tinyexplore.util import config
from tinyexplore.util.locks import new_in_children


def schedule(outputs: Sequence[LazyBuffer]) -> tuple[ScheduleItem, ...]:
    """What `realize(outputs)` would do, in order."""
    wanted = [_to_realize(output) for output in spread(outputs)]
    return create_schedule(wanted, writes_now(wanted))


def spread(outputs: Sequence[LazyBuffer]) -> Sequence[LazyBuffer]:
    """What lies on several devices in its parts."""
    for output in outputs:
        if isinstance(output, ShardedBuffer):
            break
    else:
        return outputs
    return [part for output in outputs for part in parts_of(output)]


def realize(outputs: Sequence[LazyBuffer]) -> None:
    """Afterwards every one of `outputs`, or the node that it is a view of, lies in memory, and its device is open."""
    wanted = []
    for output in spread(outputs):
        if output.buffer is not None:
            make_ready(output.device)
            continue
        if output.size == 0:
            output.buffer = Buffer(output.device, 0, output.dtype).allocate()
        else:
            wanted.append(_to_realize(output))
    if wanted:
        _compute(wanted)
        forget_sources(outputs)


class _Computing:
    """One thread computes at a time: graphs share nodes, and these change when they are computed."""

    def __init__(self) -> None:
        self.lock = RLock()


_computing = _Computing()
new_in_children(_computing, "lock")


def _compute(outputs: Sequence[LazyBuffer]) -> None:
    """Brings `outputs` into memory: by a plan made before, where there is one and nobody listens or captures."""
    with _computing.lock:
        wanted = [node for node in dict.fromkeys(outputs) if node.buffer is None and node.size]
        if wanted:
            _compute_alone(wanted)


def _compute_alone(wanted: Sequence[LazyBuffer]) -> None:
    graph = None if is_heard() or active_capture() is not None else walk(wanted)
    if graph is None:
        first = first_made(wanted) if active_capture() is None else 0
        since = Since(first) if first else None
        with console():
            told = list(create_schedule(wanted, writes_now(wanted)))
            tell_memory(told, wanted)
            execute_all(told, since)
        return
    plan = plans.find(graph)
    if plan is None:
        plan = _planned(wanted, graph)
        plans.keep(graph, plan)
    plan.run(graph)


def _planned(wanted: Sequence[LazyBuffer], graph: Walk) -> Plan:
    items = create_schedule(wanted, graph.writes)
    return Plan.of(items, compile_all(items), graph)


def tell_memory(items: Sequence[ScheduleItem], outputs: Sequence[LazyBuffer]) -> None:
    """Where somebody listens: what the intermediates need, which nobody asked for."""
    recorder = active_recorder()
    if recorder is None:
        return
    kept = [buffer for item in items for node, buffer in zip(item.outputs, item.buffers) if node in outputs]
    plan = plan_memory(items, kept)
    if plan.lives:
        recorder.record(Planned(plan))


def is_heard() -> bool:
    """True where somebody wants to be told of every kernel: a recorder, or the console for DEBUG or PROFILE."""
    settings = config()
    return active_recorder() is not None or settings.DEBUG > 0 or settings.PROFILE > 0


def console() -> AbstractContextManager[object]:
    """Where DEBUG or PROFILE ask for it and nobody else listens, the console does."""
    if active_recorder() is not None or not is_heard():
        return nullcontext()
    return recording(console_recorder())


def _to_realize(output: LazyBuffer) -> LazyBuffer:
    """A view realises what it is a view of, unless it shows only a part of it."""
    if output.buffer is not None:
        return output
    base = output.base
    if base is output or base.buffer is not None:
        return base
    return base if output.size >= base.size else output


def read(output: LazyBuffer) -> Buffer:
    """The values of `output`, row-major, in a Buffer of just its size; realised now if need be."""
    if active_capture() is not None:
        raise RuntimeError(
            "a function that TinyJit captures looks at a tensor's values (.item(), .numpy(), if, print): a replay runs "
            "kernels only and would go on with the values of today; return the tensor and look at it outside"
        )
    if output.buffer is None:
        realize([output])
    base = output.base
    if base.buffer is not None and (base is output or output.st.contiguous):
        return _beginning(base.buffer, value_of(product(output.shape)))
    packed = output.packed()
    _compute([packed])
    assert packed.buffer is not None
    return _beginning(packed.buffer, value_of(product(output.shape)))


def _beginning(buffer: Buffer, size: int) -> Buffer:
    """The first `size` elements: a copy, where there are more."""
    if buffer.size == size:
        return buffer
    return Buffer(buffer.device, size, buffer.dtype).copyin(buffer.memoryview()[: size * buffer.dtype.itemsize])


__all__ = [
    "Capture",
    "ExecItem",
    "Executor",
    "MemoryPlan",
    "Runner",
    "active_capture",
    "capture_variable",
    "capturing",
    "compile_all",
    "compile_item",
    "compile_kernel",
    "compile_optimised",
    "console",
    "further_listings",
    "give_values",
    "is_alone",
    "is_heard",
    "lives_of",
    "outputs_of",
    "plan_memory",
    "measuring_on",
    "prepare_batch",
    "read",
    "realize",
    "schedule",
    "share_memory",
    "spread",
    "with_other_buffers",
]
