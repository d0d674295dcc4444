"""The scheduler is a function of its input: it takes targets, and opens no device."""

from __future__ import annotations

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import schedule_graph
from tinyexplore.target import Target
from tinyexplore.uop import Ops

MACHINE = Target("TEST", "any", "any", "", 64, 32, 2, 32768, 1 << 20, frozenset(), ())


def test_a_graph_is_scheduled_for_a_device_that_does_not_exist() -> None:
    """A large sum and a softmax: splitting, row buffers and fusion all query the target, by the device's name."""
    asked: set[str] = set()

    def target_of(device: str) -> Target:
        asked.add(device)
        return MACHINE

    large, numbers = (LazyBuffer(Ops.IOTA, dtypes.float32, (n,), (), None, "NOWHERE") for n in (1 << 20, 64 * 512))
    large, rows = large.contiguous(), numbers.reshape((64, 512)).contiguous()
    highest = rows.reduce(Ops.MAX, (1,)).expand((64, 512))
    powers = rows.alu(Ops.MUL, highest).alu(Ops.EXP2)
    shares = powers.alu(Ops.FDIV, powers.reduce(Ops.ADD, (1,)).expand((64, 512)))
    items = schedule_graph([large.reduce(Ops.ADD, (0,)), shares], target_of)
    assert asked == {"NOWHERE"}
    assert {item.device for item in items} == {"NOWHERE"}
