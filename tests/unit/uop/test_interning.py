"""Equal content is one object, in every thread; what nobody holds is let go in the end."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.uop import _interned, _Table


def chain(first: int, length: int) -> UOp:
    """((first + 1) + 1) + …: no node of it in any other chain."""
    node = UOp(Ops.DEFINE_VAR, dtypes.index, (), (f"chain{first}", 0, 9))
    for _ in range(length):
        node = node + index_const(1)
    return node


def test_what_nobody_holds_leaves_the_table() -> None:
    kept = chain(0, 100)
    before = len(_interned)
    for first in range(1, 20):
        chain(first, _Table.least // 4)
    assert len(_interned) <= max(_Table.least, 2 * before) + 1
    assert kept is chain(0, 100)


def test_threads_that_make_the_same_nodes_get_the_same_objects() -> None:
    workers, rounds = 4, 60
    start = Barrier(workers)

    def work(_: int) -> list[UOp]:
        found = []
        for number in range(rounds):
            start.wait()
            found.append(chain(number, 300))
            chain(-1 - number % 3, 300)  # found dead, or swept, by another thread meanwhile
        return found

    interval, least = sys.getswitchinterval(), _Table.least
    sys.setswitchinterval(1e-5)
    _Table.least = _Table.limit = 500  # sweeps all the time
    try:
        with ThreadPoolExecutor(workers) as pool:
            lists = list(pool.map(work, range(workers)))
    finally:
        sys.setswitchinterval(interval)
        _Table.least = _Table.limit = least
    for made in zip(*lists):
        assert all(node is made[0] for node in made)
