"""From LazyBuffers to an ordered list of kernels and copies."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.device import Buffer
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.ast import build_item
from tinyexplore.schedule.fusion import Fusion
from tinyexplore.schedule.item import Requirement, ScheduleItem
from tinyexplore.trace import staged
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import bind_together
from tinyexplore.util import toposort


def create_schedule(outputs: Sequence[LazyBuffer]) -> tuple[ScheduleItem, ...]:
    """What must be done, in order, so that every one of `outputs` lies in memory. Nothing is computed or changed.

    Every item's outputs have got Buffers that nothing has been written to yet.
    """
    wanted = [node for node in dict.fromkeys(outputs) if node.buffer is None and node.size]
    if not wanted:
        return ()
    return staged("schedule", tuple(wanted), lambda: _schedule(wanted))


def _schedule(outputs: Sequence[LazyBuffer]) -> tuple[ScheduleItem, ...]:
    fusion = Fusion(outputs)
    memory = {node: node.buffer for node in fusion.order if node.buffer is not None}
    realized = (node for node in fusion.order if node in fusion.realized)  # in the graph's order: the same every time
    for node in realized:
        size = memory[node.src[0]].size if node.op is Ops.COPY and node.src[0] in memory else node.size
        memory[node] = Buffer(node.device, size, node.dtype)
    items = [build_item(plan, memory) for plan in fusion.plans]
    for copy in fusion.copies:
        pair = (memory[copy], memory[copy.src[0]])
        items.append(ScheduleItem(copy.device, None, pair, (copy,), (copy,)))
    bound: dict[UOp, int] = {}
    for item in items:
        for variable, value in item.bound.items():
            bind_together(bound, variable, value)
    return _in_order(items)


def _in_order(items: list[ScheduleItem]) -> tuple[ScheduleItem, ...]:
    """Writers before readers."""
    writer = {buffer: item for item in items for buffer in item.buffers[: len(item.outputs)]}
    items = sorted(items, key=lambda item: min(buffer.id for buffer in item.buffers[: len(item.outputs)]))

    def needs(item: ScheduleItem) -> list[ScheduleItem]:
        return [writer[buffer] for buffer in item.buffers[len(item.outputs) :] if buffer in writer]

    return tuple(toposort(items, needs))


__all__ = ["Requirement", "ScheduleItem", "create_schedule"]
