"""Equal UOps are one object, in every thread; unreferenced ones are freed."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import pytest

from tests.support.patience import seconds
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.uop import _interned, _Table


def chain(first: int, length: int) -> UOp:
    """((first + 1) + 1) + …: no node of it in any other chain."""
    node = UOp(Ops.DEFINE_VAR, dtypes.index, (), (f"chain{first}", 0, 9))
    for _ in range(length):
        node = node + index_const(1)
    return node


def test_unreferenced_nodes_leave_the_table() -> None:
    kept = chain(0, 100)
    before = len(_interned)
    for first in range(1, 20):
        chain(first, _Table.least // 4)
    assert len(_interned) <= _Table.least + 2 * before
    assert kept is chain(0, 100)


@pytest.mark.parametrize("least", [500, 9000])
def test_threads_that_make_the_same_nodes_get_the_same_objects(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    workers, rounds = 4, 60
    start = Barrier(workers, timeout=seconds(60))

    def work(_: int) -> list[UOp]:
        found = []
        for number in range(rounds):
            start.wait()
            found.append(chain(number, 300))
            chain(-1 - number % 3, 300)  # found dead, or swept, by another thread meanwhile
        return found

    def elsewhere(phase: str, info: dict[str, int]) -> None:
        """A collection runs Python code, in which threads may change, in the midst of what looks like one step."""
        sleep(0)

    monkeypatch.setattr(_Table, "least", least)  # sweeps all the time
    monkeypatch.setattr(_Table, "limit", least)
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(50)
    gc.callbacks.append(elsewhere)
    try:
        with ThreadPoolExecutor(workers) as pool:
            lists = list(pool.map(work, range(workers)))
    finally:
        gc.callbacks.remove(elsewhere)
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    for made in zip(*lists):
        assert all(node is made[0] for node in made)
