"""The programs of `python -m tests.fuzz.growth`: memory that a program no longer uses is freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.fuzz.growth import WORKS, Memory
from tinyexplore.compile.runner_cache import runners
from tinyexplore.device import Device
from tinyexplore.execute.plan import plans
from tinyexplore.uop.uop import _Table
from tinyexplore.util import Context

MB = 1 << 20
# how often each is done before the first look (caches are full then, and what is made once is made) and until the last
COUNTS = {"captures": (80, 160), "kernels": (100, 200), "listings": (20, 60), "explorers": (16, 24)}


@pytest.fixture(autouse=True)
def without_what_other_tests_left() -> Iterator[None]:
    """A capture asks which objects hold tensors: not the millions that a whole run of the suite keeps."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", COUNTS)
def test_memory_does_not_grow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Device["LLVM"]
    monkeypatch.setattr(_Table, "least", 1 << 12)  # nodes let go at once, else 25 MB of them come and go
    warm_up, count = COUNTS[name]
    with Context(CACHELEVEL=0, KERNEL_MB=1, EXPLORER_MB=0):
        for number in range(warm_up):
            WORKS[name](number)
            if number == 0:
                Memory.now()  # sweeps the nodes, which sets their new limit
        before, kept = Memory.now(), len(runners)
        for number in range(warm_up, warm_up + count):
            WORKS[name](number)
        after = Memory.now()
        assert len(runners) <= kept + 12, "a mebibyte of kernels"
        # each of them is there once, and nothing else was loaded
        assert after.libraries - before.libraries == len(runners) - kept
    more = after.objects - before.objects
    assert more < 15 * count + 1_000, "a few for each, in caches of thousands of small entries"
    assert after.in_malloc - before.in_malloc < 2 * MB
    assert after.resident - before.resident < 12 * MB


def test_clearing_caches_unloads_all_programs() -> None:
    assert Device["LLVM"]
    plans.cache_clear()
    runners.cache_clear()
    before = Memory.now().libraries
    with Context(CACHELEVEL=0):
        for number in range(16):
            WORKS["kernels"](number)
            WORKS["captures"](8 * number)
    plans.cache_clear()
    runners.cache_clear()
    assert Memory.now().libraries <= before + 1, "that of the calls of captured functions is made once"
