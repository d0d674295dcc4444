"""Measures the gain of each trick that exists for speed alone: `python -m bench.tricks [NAME...]`.

The same work runs with and without the trick, alternately in one process. Fresh processes are used for tricks that
act once per process. CPU time of all threads is compared if a trick saves work; other processes do not change it.
Wall time is compared if a trick saves waiting; only the shortest time counts, and the machine must be quiet.

A gain below 5 % of a time that a person notices is not worth the code (STYLE, habit 19).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Literal

import numpy as np

from bench.compile_worker import clear_caches
from bench.harness import ROOT

Work = Callable[[], Any]
Clock = Literal["CPU", "wall"]
CLOCKS: dict[Clock, Callable[[], float]] = {"CPU": time.process_time, "wall": time.perf_counter}
WORTH = 1.05  # time without the trick / time with it


@contextmanager
def replace_attributes(*places: tuple[Any, str, Any]) -> Iterator[None]:
    """Set attributes to other values inside the block: (owner, name, value)."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    try:
        for owner, name, value in places:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@dataclass(frozen=True)
class Trick:
    """A trick, and the work that shows its gain.

    name: in the table.
    noticed: what a person waits for.
    clock: CPU or wall time.
    work: makes the function that is timed.
    without: a context without the trick.
    calls: the number of calls in one sample.
    """

    name: str
    noticed: str
    clock: Clock
    work: Callable[[], Work]
    without: Callable[[], Any]
    calls: int = 1


@dataclass(frozen=True)
class Once:
    """A trick that acts once per process.

    name: in the table.
    noticed: what a person waits for.
    clock: CPU or wall time.
    program: prints milliseconds of CPU time and of wall time.
    without: code that runs before the program and disables the trick.
    """

    name: str
    noticed: str
    clock: Clock
    program: str
    without: str


# *** work with and without a trick ***


def call_that_compiles(case: str) -> Callable[[], Work]:
    """Return a maker of a call that chooses opts, lowers and compiles every kernel of a case again."""

    def made() -> Work:
        from tinyexplore import Context

        call = prepared(case)

        def anew() -> None:
            clear_caches()
            with Context(CACHELEVEL=0):
                call()

        return anew

    return made


def prepared(case: str, variant: str = "") -> Work:
    from bench.cases import choose_cases
    from bench.peers.tinyexplore import Engine

    (case_found,) = choose_cases([case])
    call = Engine(variant, os.cpu_count() or 1).prepare(case_found.family, case_found.make_inputs())
    call()
    call()
    return call


def compiled_call(case: str, variant: str = "") -> Callable[[], Work]:
    """Return a maker of a call of a case that is compiled already."""
    return lambda: prepared(case, variant)


def call_that_loads(case: str) -> Callable[[], Work]:
    """Return a maker as `call_that_compiles` does, for a process that finds the files of an earlier process on disk."""

    def made() -> Work:
        call = prepared(case)

        def anew() -> None:
            clear_caches()
            call()

        anew()
        return anew

    return made


def chain_of_buffers() -> Work:
    """Return a function that realizes a graph of many kernels, whose intermediate values have no other references."""
    from tinyexplore import Tensor

    x = Tensor(np.ones((64, 256), np.float32)).realize()

    def run() -> None:
        y = x
        for _ in range(24):
            y = (y + 1).contiguous()
        y.realize()

    return run


def writing_a_part() -> Work:
    """Return a function that writes two rows into 4 MiB, as a cache of keys and values does."""
    from tinyexplore import Tensor

    cache = Tensor.zeros(4096, 256).contiguous().realize()
    row = Tensor(np.ones((2, 256), np.float32)).realize()

    def run() -> None:
        cache[7:9] = row
        cache.realize()

    return run


def stepping() -> Work:
    """Return a function that records and runs a small training step without TinyJit."""
    from tinyexplore import Tensor
    from tinyexplore.nn.optim import SGD

    weights = [Tensor(np.ones((16, 16), np.float32) / 16, requires_grad=True) for _ in range(4)]
    optimizer = SGD(weights, lr=0.01)
    x = Tensor(np.ones((8, 16), np.float32)).realize()

    def run() -> None:
        with Tensor.train():
            optimizer.zero_grad()
            y = x
            for weight in weights:
                y = (y @ weight).relu()
            y.sum().backward()
            optimizer.step()

    for _ in range(3):
        run()
    return run


# *** removal of tricks ***


def replace_in_module(module: str, **values: Any) -> Callable[[], Any]:
    """Return a context maker that sets names of a module of the package to other values."""

    def without() -> Any:
        module_found = __import__(f"tinyexplore.{module}", fromlist=["*"])
        return replace_attributes(*[(module_found, name, value) for name, value in values.items()])

    return without


@contextmanager
def plan_again(*places: tuple[str, str, Any]) -> Iterator[None]:
    """Set attributes to other values inside the block.

    Plans from before and from inside the block are dropped.
    """
    from tinyexplore.execute.plan import plans

    with ExitStack() as stack:
        for module, name, value in places:
            stack.enter_context(replace_in_module(module, **{name: value})())
        plans.cache_clear()
        try:
            yield
        finally:
            plans.cache_clear()


def compiled_by_one() -> Any:
    from tinyexplore.compile.threads import CompilerThreads

    return replace_in_module("compile.compiler", CompilerThreads=lambda at_once: CompilerThreads(at_once=True))()


def keep_all_buffers(nodes: Any, chosen: Any) -> tuple[int, ...]:
    from tinyexplore.util.interpreter import UNKNOWN_REFERENCES

    return tuple([UNKNOWN_REFERENCES for _ in chosen(nodes)])


def without_plans() -> Any:
    from tinyexplore.compile.reuse import ReuseScope
    from tinyexplore.compile.runner_cache import runners

    return replace_in_module("compile.reuse", _process_caches=ReuseScope(runners, None))()


def replay_in_python() -> Any:
    """Return a context in which a new replay has no machine-code entry. The timed replay is made again."""
    return replace_in_module("jit.tinyjit", make_entry=lambda replay: None)()


TRICKS: tuple[Trick, ...] = (
    Trick(
        "LLVM without llvmlite's lock",
        "compiling an MLP's training step",
        "wall",
        call_that_compiles("mlp_adam_128"),
        replace_in_module("runtime.unlocked_llvm", TRICKS=False),
    ),
    Trick(
        "threads that compile ahead",
        "compiling an MLP's training step",
        "wall",
        call_that_compiles("mlp_adam_128"),
        compiled_by_one,
    ),
    Trick(
        "LLVM's effort by what is left to do",
        "compiling an MLP's training step",
        "CPU",
        call_that_compiles("mlp_adam_128"),
        lambda: replace_in_module("renderer.llvm.renderer", effort_for=lambda uops, width: _full_effort())(),
    ),
    Trick(
        "lowering kept on disk",
        "a second process's training step",
        "CPU",
        call_that_loads("mlp_adam_128"),
        replace_in_module("compile.lowering", find_facts=lambda key: None),
    ),
    Trick("plans", "a small training step", "CPU", stepping, without_plans, 10),
    Trick(
        "kernels in groups",
        "24 small kernels in a row",
        "CPU",
        chain_of_buffers,
        partial(plan_again, ("execute.plan", "group_steps", list)),
        20,
    ),
    Trick(
        "no buffers for unreferenced results",
        "24 small kernels in a row",
        "CPU",
        chain_of_buffers,
        partial(plan_again, ("execute.plan", "reference_counts", keep_all_buffers)),
        20,
    ),
    Trick(
        "parts written in place, by numbers of references",
        "two rows of 4 MiB written",
        "CPU",
        writing_a_part,
        partial(plan_again, ("execute.liveness", "TRICKS", False)),
        20,
    ),
)


def _full_effort() -> Any:
    from tinyexplore.renderer.program import Effort

    return Effort.FULL


FIRST_KERNEL = """
import os, time
import numpy as np
from tinyexplore import Context, Tensor
with Context(CACHELEVEL={level}):
    a = Tensor(np.ones((64, 64), np.float32)).realize()
    cpu, wall = time.process_time(), time.perf_counter()
    (a @ a).relu().realize()
    print((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)
"""
REPLAYING = """
import time
import numpy as np
from tinyexplore import Tensor, TinyJit
f = TinyJit(lambda a, b: (a + b).realize())
a, b = [Tensor(np.ones(4, np.float32)).realize() for _ in range(2)]
for _ in range(5):
    f(a, b)
cpu, wall = time.process_time(), time.perf_counter()
for _ in range(100_000):
    f(a, b)
print((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)
"""
MAKING = """
import time
import numpy as np
from tinyexplore import Tensor
x = Tensor(np.ones(4, np.float32)).realize()
for _ in range(200):
    x + x
cpu, wall = time.process_time(), time.perf_counter()
for _ in range(50_000):
    x + x
print((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)
"""
ONCE: tuple[Once, ...] = (
    Once(
        "devices made ready when values are realized",
        "a process's first kernel, on disk",
        "wall",
        FIRST_KERNEL.format(level=1),
        "import tinyexplore.compile.warm_up as w\n"
        "w.is_as_written = w.engine_digest = w.wait_for_pool_ahead = lambda: None",
    ),
    Once(
        "who refers to a class",
        "an operation, recorded lazily",
        "CPU",
        MAKING,
        "import os; os.environ['INTERPRETER_TRICKS'] = '0'",
    ),
    Once(
        "replays that never enter Python",
        "a replay of one small kernel",
        "CPU",
        REPLAYING,
        "import tinyexplore.jit.tinyjit as t\nt.make_entry = lambda replay: None",
    ),
)


# *** measurement ***


@dataclass(frozen=True)
class TrickTimes:
    """The seconds of one trick, with it and without it.

    name: in the table.
    noticed: what a person waits for.
    clock: CPU or wall time.
    having: samples with the trick.
    lacking: samples without the trick.
    """

    name: str
    noticed: str
    clock: Clock
    having: tuple[float, ...]
    lacking: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Return how many times longer the work takes without the trick, by the shortest times (CPU time: by the
        medians).
        """
        return min(self.lacking) / min(self.having)

    def line(self) -> str:
        longest = median(self.lacking) / median(self.having)
        gain = "" if self.ratio >= WORTH else "less than 5 %"
        shortest = f"{min(self.having) * 1e3:.4g} | {min(self.lacking) * 1e3:.4g}"
        return (
            f"| {self.name} | {self.noticed} | {self.clock} | {shortest} | {self.ratio:.2f} | {longest:.2f} | {gain} |"
        )


def measure_trick(trick: Trick, rounds: int) -> TrickTimes:
    """Measure alternately in this process. The first call of each turn is not timed."""
    clock = CLOCKS[trick.clock]
    work = trick.work()
    having: list[float] = []
    lacking: list[float] = []

    def sample(samples: list[float]) -> None:
        if trick.calls > 1:
            work()
        start = clock()
        for _ in range(trick.calls):
            work()
        samples.append((clock() - start) / trick.calls)

    for turn in range(rounds):
        for is_there in (True, False) if turn % 2 else (False, True):
            if is_there:
                sample(having)
                continue
            with trick.without():
                sample(lacking)
    return TrickTimes(trick.name, trick.noticed, trick.clock, tuple(having), tuple(lacking))


def measure_once(trick: Once, rounds: int) -> TrickTimes:
    """Measure each sample in a fresh process. All but the first two find the files on disk."""
    samples: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-") as cache:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
        for turn in range(rounds + 1):
            for is_there in (True, False) if turn % 2 else (False, True):
                program = trick.program if is_there else f"{trick.without}\n{trick.program}"
                command = [sys.executable, "-W", "ignore", "-c", program]
                process = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
                cpu, wall = map(float, process.stdout.split())
                if turn:
                    samples[is_there].append((cpu if trick.clock == "CPU" else wall) / 1e3)
    return TrickTimes(trick.name, trick.noticed, trick.clock, tuple(samples[True]), tuple(samples[False]))


HEAD = """| trick | what a person notices | clock | with, ms | without, ms | ratio | of medians | |
|---|---|---|---:|---:|---:|---:|---|"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Return the exit status 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.tricks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names (default: all)")
    parser.add_argument("--rounds", type=int, default=8, help="samples with it and without it (8)")
    options = parser.parse_args(arguments)
    chosen = [
        trick
        for trick in (*TRICKS, *ONCE)
        if not options.names or any(name in trick.name for name in options.names)  # type: ignore[attr-defined]
    ]
    print(HEAD, flush=True)
    for trick in chosen:
        if isinstance(trick, Once):
            result = measure_once(trick, options.rounds)
        else:
            result = measure_trick(trick, options.rounds)
        print(result.line(), flush=True)
    if hasattr(os, "getloadavg"):
        print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
