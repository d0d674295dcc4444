"""Times one program on both engines, alternately, each in its own process.

Each process is forked from a parent that has imported both engines but has run neither. So a first call is that of a
fresh process, and no program reuses code that another program compiled.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import numpy as np

from bench.cliffs.programs import Program
from bench.peers import as_input
from bench.worker import compare

Call = Callable[[], tuple[Any, ...]]
SHORTEST = 30e-6  # seconds of one sample; shorter calls are repeated within a sample
ESTIMATE = 10e-3  # seconds: the length of the first estimate of a program's time
LONGEST = 1.5  # seconds of all samples of one engine; slow programs get fewer rounds


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement.

    threads: number of threads of each engine.
    rounds: slices of each engine.
    slice_seconds: length of a slice.
    rest_seconds: pause before a slice, in which the threads of the other engine go to sleep.
    compiles: PyTorch runs through torch.compile instead of eagerly.
    short: seconds; TinyJit replays a program that takes PyTorch less.
    cpu_time: samples are CPU time of the process, with one thread, which other processes do not change.
    """

    threads: int = 2
    rounds: int = 8
    slice_seconds: float = 0.01
    rest_seconds: float = 0.008
    compiles: bool = False
    short: float = 1e-3
    cpu_time: bool = False


@dataclass
class Measured:
    """The result of one program.

    name: of the program.
    group: the group of programs in the table.
    counts: whether the aims apply to the program.
    ours: median seconds of a call in tinyexplore.
    theirs: median seconds of a call in PyTorch.
    first: seconds of tinyexplore's first call, compilation included.
    is_replayed: TinyJit replayed the program.
    failure: the reason why there is no ratio, or "".
    samples: the number of samples, of tinyexplore and of PyTorch.
    """

    name: str
    group: str
    counts: bool
    ours: float = 0.0
    theirs: float = 0.0
    first: float = 0.0
    is_replayed: bool = False
    failure: str = ""
    samples: tuple[int, int] = field(default=(0, 0))

    @property
    def ratio(self) -> float:
        """Return tinyexplore's time over PyTorch's, or infinity if the program failed."""
        return self.ours / self.theirs if not self.failure else float("inf")


class Failed(RuntimeError):
    """The process of an engine raised an exception; the text is its message."""


class Engine:
    """The process that runs one program on one engine."""

    def __init__(self, kind: str, program: Program, settings: Settings) -> None:
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, kind, program, settings))
        self._process.start()
        theirs.close()

    def ask(self, *question: Any) -> Any:
        """Send a question to the process and return its answer. Raise Failed if the process raised or died."""
        self._ours.send(question)
        try:
            answer = self._ours.recv()
        except EOFError:
            self._process.join()
            raise Failed(f"the process ended with {self._process.exitcode}") from None
        if isinstance(answer, Failed):
            raise answer
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._ours.close()


def measure(program: Program, settings: Settings) -> Measured:
    """Time `program`. Compare its results with those of PyTorch before and after the measurement."""
    with tempfile.TemporaryDirectory(prefix="tinyexplore-cliffs-") as folder:
        # the processes of the engines inherit it: no first run finds compiled code
        os.environ["XDG_CACHE_HOME"] = folder
        return _measure(program, settings)


def _measure(program: Program, settings: Settings) -> Measured:
    row = Measured(program.name, program.group, program.counts)
    engines = []
    try:
        for kind in ("theirs", "ours"):
            engines.append(Engine(kind, program, settings))
        theirs, ours = engines
        theirs.ask("first")
        expected = theirs.ask("result")
        row.first = ours.ask("first")
        compare(ours.ask("result"), expected, 1e-4, program.atol)
        row.is_replayed = program.replayed and theirs.ask("estimate") < settings.short
        if row.is_replayed:
            ours.ask("replay")
        samples = _alternate_slices(ours, theirs, settings)
        compare(ours.ask("result"), expected, 1e-4, program.atol)
    except (Failed, ArithmeticError) as error:
        row.failure = str(error).strip().splitlines()[-1][:200] or type(error).__name__
    else:
        row.ours, row.theirs = (median(each) for each in samples)
        row.samples = (len(samples[0]), len(samples[1]))
    finally:
        for engine in engines:
            engine.close()
    return row


def _alternate_slices(ours: Engine, theirs: Engine, settings: Settings) -> tuple[list[float], list[float]]:
    """Return the seconds of the calls of both engines, measured alternately.

    The first engine of a round changes each round.
    """
    sides: list[tuple[Engine, list[float]]] = [(ours, []), (theirs, [])]
    spent = [0.0, 0.0]
    for number in range(settings.rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            engine, samples = sides[side]
            if samples and spent[side] + max(samples) > LONGEST:
                continue
            time.sleep(settings.rest_seconds)
            start = time.perf_counter()
            samples.extend(engine.ask("slice", settings.slice_seconds))
            spent[side] += time.perf_counter() - start
    return sides[0][1], sides[1][1]


# *** inside an engine's process ***


def _serve(connection: Connection, kind: str, program: Program, settings: Settings) -> None:
    """Answer questions until the parent kills the process."""
    try:
        side = (_Ours if kind == "ours" else _Theirs)(program, settings)
        side.clock = time.process_time if settings.cpu_time else time.perf_counter
        while True:
            name, *arguments = connection.recv()
            connection.send(getattr(side, name)(*arguments))
    except Exception:
        connection.send(Failed(traceback.format_exc()))


class _Side:
    """A program on one engine. `call` runs the program to its end, and `clock` times it."""

    call: Call
    clock: Callable[[], float]

    def first(self) -> float:
        """Return the seconds of the first call."""
        start = self.clock()
        self.call()
        return self.clock() - start

    def estimate(self) -> float:
        """Return the seconds of a later call: the shortest of several."""
        self.slice(ESTIMATE)
        return min(self.slice(ESTIMATE))

    def slice(self, seconds: float) -> list[float]:
        """Return samples of the seconds of a call, for about `seconds`, after one call that warms the caches."""
        clock = self.clock
        quickest = self.first()
        if quickest > seconds:
            return [quickest]
        inner = max(1, round(SHORTEST / quickest))
        samples = []
        end = clock() + seconds
        while clock() < end:
            start = clock()
            for _ in range(inner):
                self.call()
            samples.append((clock() - start) / inner)
        return samples

    def result(self) -> tuple[np.ndarray, ...]:
        """Return the values of the last call. The class of each engine overrides this method."""
        raise NotImplementedError


class _Theirs(_Side):
    def __init__(self, program: Program, settings: Settings) -> None:
        import torch

        torch.set_num_threads(settings.threads)
        inputs = {name: torch.from_numpy(as_input(value)) for name, value in program.draw().items()}
        inputs = {name: value.long() if value.dtype is torch.int32 else value for name, value in inputs.items()}
        function = program.theirs or program.ours
        if settings.compiles:
            function = torch.compile(function)
        *rest, last = inputs.values()
        arguments, given = (rest, last) if program.given else ([*rest, last], None)
        leaves = [inputs[name].requires_grad_() for name in program.gradients]

        def call() -> tuple[Any, ...]:
            if leaves:
                return tuple(torch.autograd.grad(function(*arguments), leaves, given))
            with torch.inference_mode():
                return _several(function(*arguments))

        self.call = call

    def result(self) -> tuple[np.ndarray, ...]:
        return tuple(np.array(value.detach()) for value in self.call())


class _Ours(_Side):
    def __init__(self, program: Program, settings: Settings) -> None:
        from tinyexplore import Tensor
        from tinyexplore.util import Context

        Context(THREADS=settings.threads).__enter__()  # never left: this process runs one program only
        inputs = {name: Tensor(value).contiguous().realize() for name, value in program.draw().items()}
        *rest, last = inputs.values()
        arguments, given = (rest, last) if program.given else ([*rest, last], None)
        leaves = [inputs[name].requires_grad_() for name in program.gradients]

        def call() -> tuple[Any, ...]:
            results = _several(program.ours(*arguments))
            if leaves:
                results = tuple(results[0].gradient(*leaves, gradient=given))
            results[0].realize(*results[1:])
            return results

        self.call = call

    def replay(self) -> None:
        """Capture the program, so that later calls are replays."""
        from tinyexplore.jit import TinyJit

        captured = TinyJit(self.call)
        captured()
        captured()
        self.call = captured

    def result(self) -> tuple[np.ndarray, ...]:
        return tuple(np.array(value.numpy()) for value in self.call())


def _several(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def import_engines() -> None:
    """Import both engines, so that forked processes have them.

    Neither runs, so that no threads exist before the fork.
    """
    import llvmlite.binding  # noqa: F401
    import torch  # noqa: F401

    import tinyexplore.jit  # noqa: F401
