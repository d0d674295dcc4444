"""Memory after thousands of captures, kernels, listings and explorers: no growth.

    python -m tests.fuzz.growth --captures 10000 --kernels 10000

Each number is a program that was not there before (its shapes are), used and let go. The report has the memory of the
process after each tenth: resident pages, bytes allocated by malloc, Python's objects, libraries of machine code. What
caches may hold (`KERNEL_MB`) is set so low that they are full long before the end; `--kernel-mb` takes another limit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.support.kernels import compile_all
from tests.support.memory import malloc_bytes, object_count, resident_bytes
from tinyexplore import Tensor, TinyJit
from tinyexplore.device import Device
from tinyexplore.engine import further_listings, schedule
from tinyexplore.explore import explore
from tinyexplore.runtime.linking import loaded_libraries
from tinyexplore.uop.uop import forget_unheld
from tinyexplore.util import Context

KERNEL_MB = 16


@dataclass(frozen=True)
class Memory:
    """Of this process: `resident` and `in_malloc` in bytes, `objects` of Python, `libraries` of machine code."""

    resident: int
    in_malloc: int
    objects: int
    libraries: int

    @staticmethod
    def now() -> Memory:
        object_count()  # loop variables are in their own set of loop variables: only a search finds them
        forget_unheld()  # frees ten thousands of nodes
        objects = object_count()
        libraries = loaded_libraries()
        return Memory(resident_bytes() or 0, malloc_bytes() or 0, objects, libraries)

    def __str__(self) -> str:
        return (
            f"{self.resident / 1e6:8.1f} MB resident {self.in_malloc / 1e6:8.1f} MB in malloc "
            f"{self.objects:9,} objects {self.libraries:5,} libraries"
        )


def sizes(number: int) -> tuple[int, int]:
    """Two axes that no other number has."""
    return 2 + number // 61, 3 + number % 61


def captured(number: int) -> None:
    """A TinyJit of a step with two kernels: called, captured, replayed, let go. Every eighth has kernels of its own."""
    rows, columns = sizes(number // 8)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (x * 2 + 1).relu().sum().realize()

    for _ in range(3):
        step(Tensor.ones(rows, columns).contiguous().realize())


def computed(number: int) -> None:
    """A kernel that was never compiled before: elements one by one, a sum of rows, or (with all of LLVM's passes, for
    want of whole vectors) a product."""
    rows, columns = sizes(number)
    x = Tensor.empty(rows, columns).realize()
    match number % 4:
        case 0:
            (x @ x.transpose(0, 1)).realize()
        case 1 | 2:
            (x * 3).sum(1).realize()
        case _:
            (x + 1).realize()


def listed(number: int) -> None:
    """C, LLVM IR after its passes and assembly of a kernel of one shape in ten."""
    rows, columns = sizes(number % 10)
    x = Tensor.empty(rows, columns).realize()
    for runner in compile_all(schedule([(x @ x.transpose(0, 1)).lazydata])):
        assert runner is not None and further_listings(runner.spec)


def explored(number: int) -> None:
    """An explorer, shown in a notebook, whose cell was run again."""
    rows, columns = sizes(number % 10)
    view = explore(lambda: (Tensor.ones(rows, columns).contiguous() * 2).sum())
    view._repr_mimebundle_()


WORKS: dict[str, Callable[[int], None]] = {
    "captures": captured,
    "kernels": computed,
    "listings": listed,
    "explorers": explored,
}


def grown(work: Callable[[int], None], count: int, reports: int) -> Iterator[tuple[int, Memory, float]]:
    """The memory after each part of `count` times `work`, of `reports`, and the seconds of CPU time that it took."""
    begun = time.process_time()
    for number in range(count):
        work(number)
        if (number + 1) % max(1, count // reports) == 0:
            yield number + 1, Memory.now(), time.process_time() - begun
            begun = time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=(__doc__ or "").split("\n")[0])
    for name in WORKS:
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=f"how many {name}")
    parser.add_argument("--kernel-mb", type=int, default=KERNEL_MB, metavar="MB", help="the limit of the caches")
    parser.add_argument("--reports", type=int, default=10, metavar="N", help="how often memory is measured")
    options = parser.parse_args()
    assert Device["LLVM"]
    with Context(CACHELEVEL=0, KERNEL_MB=options.kernel_mb):
        for name, work in WORKS.items():
            count = getattr(options, name)
            if count:
                print(f"{name:10s}{0:7,}: {Memory.now()}", flush=True)
            for done, memory, seconds in grown(work, count, options.reports):
                print(f"{name:10s}{done:7,}: {memory} {seconds:7.1f} s", flush=True)


if __name__ == "__main__":
    main()
