"""Pieces that occur again: the schedule is the one in which each was decided on by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.engine import schedule
from tinyexplore.schedule import ScheduleItem, fusion


def chain(x: Tensor, step: Callable[[Tensor], Tensor], count: int = 5) -> Tensor:
    for _ in range(count):
        x = step(x).contiguous()
    return x


def with_others(x: Tensor) -> Tensor:
    """Pieces alike, some of which read one memory twice; one more reads the middle of the first."""
    middle = x.flip(0) * 2
    first = (middle + x).contiguous()
    second = (first.flip(0) * 2 + first).contiguous()
    third = (first.flip(0) * 2 + second).contiguous()
    return (third.flip(0) * 2 + third).contiguous() + middle.flip(1)


def signed_zeros(x: Tensor) -> Tensor:
    return chain(x, lambda y: (y.flip(0) > 0).where(0.0, y)) + chain(x, lambda y: (y.flip(0) > 0).where(-0.0, y))


def read_in_place_too(x: Tensor) -> Tensor:
    """What one piece mirrors another kernel reads at its own place, and could store."""
    steps = chain(x, lambda y: y.flip(0) + 1, 2)
    return (steps.flip(0) + 1).contiguous() + steps * 3


GRAPHS: dict[str, Callable[[Tensor], Tensor]] = {
    "mirrored": lambda x: chain(x, lambda y: y.flip(0) + y),
    "at its own place": lambda x: chain(x, lambda y: y * 2 + 1),
    "transposed": lambda x: chain(x, lambda y: (y.T + y.exp()).reshape(x.shape)),
    "with more kernels inside": lambda x: chain(x, lambda y: y.sum(0, keepdim=True) + y.flip(1)),
    "with others": with_others,
    "signed zeros": signed_zeros,
    "read in place too": read_in_place_too,
    "a network": lambda x: x.reshape((1, -1)).expand((70, -1)).reshape((-1,)).repeat((40,)).argsort(),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_schedule_is_the_one_in_which_each_piece_is_decided_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(np.arange(36, dtype=np.float32).reshape((6, 6))).realize()
    output = GRAPHS[name](x).lazydata
    taken_over = schedule([output])
    monkeypatch.setattr(fusion, "repeated_pieces", lambda *_: {})
    assert shown(taken_over) == shown(schedule([output]))


def shown(items: tuple[ScheduleItem, ...]) -> list[object]:
    """All that makes a schedule, its buffers numbered as they come."""
    number: dict[object, int] = {}
    return [
        (
            item.ast,
            [number.setdefault(buffer, len(number)) for buffer in item.buffers],
            item.outputs,
            set(item.members),
            set(item.reads),
        )
        for item in items
    ]


def test_what_occurs_again_is_decided_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = []
    place = fusion.Fusion.place
    monkeypatch.setattr(fusion.Fusion, "place", lambda self, node: (placed.append(node), place(self, node))[1])
    output = chain(Tensor(np.ones((6, 6), np.float32)).realize(), lambda y: y.flip(0) + y * 2, 40)
    assert len(schedule([output.lazydata])) == 40
    assert len(placed) < 40 + 10  # the others' insides are left out
