"""Nested calls of one TinyJit, and calls from several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from tinyexplore import Tensor, TinyJit
from tinyexplore.jit.slots import BufferUses, Slot


def scaled(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Results in a dict are put together by Python, so no call is done by machine code alone."""
    return {"found": (x * 10 + y).realize()}


class Midway:
    """Calls `what` before each of the next calls of a method, as a finalizer does that the interpreter runs there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, what: Callable[[], None]) -> None:
        self.left = 0
        method = getattr(kind, name)

        def finalize() -> None:
            left, self.left = self.left - 1, 0  # one at a time
            if left >= 0:
                what()
                self.left = left

        def called(*args: object) -> object:
            finalize()
            found = method(*args)
            finalize()
            return found

        monkeypatch.setattr(kind, name, called)


@pytest.mark.parametrize("place", [(Slot, "take"), (BufferUses, "take"), (BufferUses, "put")])
def test_a_nested_call_does_not_change_the_outer_one(monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]) -> None:
    jit = TinyJit(scaled)
    heard: list[float] = []

    def finalizer() -> None:
        heard.append(jit(Tensor([7.0]), Tensor([float(len(heard))]))["found"].item())

    midway = Midway(monkeypatch, *place, finalizer)
    for call in range(8):
        x, y = Tensor([float(call)]), Tensor([1.0])
        midway.left = 4 if call > 2 else 0
        assert jit(x, y)["found"].tolist() == [10.0 * call + 1]
    assert heard == [70.0 + number for number in range(len(heard))] and len(heard) > 8


def test_a_function_may_call_its_own_jit() -> None:
    def power(x: Tensor, times: int) -> Tensor:
        return x if times == 0 else (jit(x, times - 1) * 2).realize()

    jit = TinyJit(power)
    for value in (1.0, 2.0, 3.0, 4.0):
        assert jit(Tensor([value]), 3).tolist() == [8 * value]


def test_threads_write_to_their_own_arguments_through_one_jit() -> None:
    def push(cache: Tensor, row: Tensor) -> Tensor:
        cache[1:3] = cache[1:3] * 2 + row
        return (cache.sum() + row.sum()).realize()

    jit = TinyJit(push)
    start = np.arange(12, dtype=np.float32).reshape(4, 3)
    for _ in range(3):
        jit(Tensor(start.copy()), Tensor([1.0, 1.0, 1.0]))
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            cache, expected = Tensor(start + number).contiguous().realize(), start + number
            for turn in range(30):
                kept, before = cache.detach(), expected.copy()
                row = np.full(3, float(turn % 3 - number), np.float32)
                jit(cache, Tensor(row))
                expected[1:3] = expected[1:3] * 2 + row
                expected %= 64
                if not np.array_equal(cache.numpy() % 64, expected) or not np.array_equal(kept.numpy(), before):
                    wrong.append((number, turn))
                cache.assign(cache % 64).realize()
        except Exception as error:  # noqa: BLE001
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
