"""One peer in one process: JSON lines in both directions. The harness starts `python -m bench.worker PEER`.

Requests: {"do": "hello", "threads"} · {"do": "load", "threads"}, which asks for no version ·
{"do": "setup", "family", "inputs", "reference" (.npz files), "rtol", "atol",
"traffic" (bytes read and written at least), "steps"} ·
{"do": "first", "family", "inputs", "reference", "rtol", "atol"} ·
{"do": "time", "slice_seconds", "warm_seconds", "shortest"} · {"do": "check"} · {"do": "drop"} · {"do": "bye"}.

A reply has "ok". If it is false, "reason" has the message and "kind" the class: the peer does not implement the
family ("unsupported"), raised ("error"), or its result differs from the reference ("wrong").
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import sys
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from bench.conversation import error_reply, serve
from bench.peers import PEERS, Engine, Unsupported, as_input

PATIENCE = 1.0  # seconds; a longer call is not repeated for a better estimate


class WrongResult(ArithmeticError):
    """The result of a peer differs from the reference."""


def compare(actual: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...], rtol: float, atol: float) -> float:
    """Return the largest error as a share of the allowed error: rtol of each value plus atol of the root mean square.

    Raise WrongResult if it exceeds 1, if shapes differ, or if a value is not a number.
    """
    if len(actual) != len(expected):
        raise WrongResult(f"{len(actual)} results; the reference has {len(expected)}")
    worst = 0.0
    for place, (result, want) in enumerate(zip(actual, expected)):
        if result.shape != want.shape:
            raise WrongResult(f"result {place} has shape {result.shape}; the reference has {want.shape}")
        size = np.abs(want)
        scale = float(np.sqrt(np.mean(np.square(size, dtype=np.float64)))) if size.size else 0.0
        allowed = rtol * size + atol * scale
        distance = np.abs(result.astype(want.dtype) - want)
        if np.isnan(distance).any():
            raise WrongResult(f"result {place} has values that are not numbers")
        is_over = distance > allowed
        if is_over.any():
            worst_index = np.unravel_index(int(np.argmax(distance - allowed)), distance.shape)
            spot = [int(index) for index in worst_index]
            raise WrongResult(
                f"result {place} at {spot} is {float(result[worst_index]):.9g}; "
                f"the reference has {float(want[worst_index]):.9g} "
                f"({int(is_over.sum())} of {is_over.size} values stray too far)"
            )
        if (positive := allowed > 0).any():
            worst = max(worst, float((distance[positive] / allowed[positive]).max()))
    return worst


def load_inputs(path: str) -> dict[str, np.ndarray]:
    """Return the inputs of a case, with the same alignment for every peer."""
    with np.load(path) as stored:
        return {name: as_input(stored[name]) for name in stored.files}


class Worker:
    """One peer, and the case that it has prepared."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.engine: Engine | None = None
        self.call: Callable[[], Any] | None = None
        self.wanted: tuple[np.ndarray, ...] = ()
        self.rtol = self.atol = 0.0
        self.first_loss: float | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request. An exception becomes a reply too."""
        try:
            return {"ok": True, **getattr(self, f"do_{request.pop('do')}")(**request)}
        except Unsupported as reason:
            return {"ok": False, "kind": "unsupported", "reason": str(reason)}
        except WrongResult as reason:
            return {"ok": False, "kind": "wrong", "reason": str(reason)}
        except Exception as error:
            return error_reply(error)

    def do_load(self, threads: int) -> dict[str, Any]:
        """Import the peer only. A device that the peer opens at the first use of a value stays closed."""
        peer = PEERS[self.name]
        start = time.perf_counter()
        self.engine = importlib.import_module(f"bench.peers.{peer.module}").Engine(peer.variant, threads)
        return {"seconds": time.perf_counter() - start}

    def do_hello(self, threads: int) -> dict[str, Any]:
        self.do_load(threads)
        assert self.engine is not None
        return {"version": self.engine.version, "python": sys.version.split()[0], "pid": os.getpid()}

    def do_setup(
        self, family: str, inputs: str, reference: str, rtol: float, atol: float, traffic: tuple[int, int], steps: int
    ) -> dict[str, Any]:
        """Prepare the case, call it once, check the result, and call it once or twice more for an estimate.

        `steps`: for a training case, the number of calls whose losses are compared; else 0.
        """
        engine = self._engine()
        self.do_drop()
        arrays = load_inputs(inputs)
        with np.load(reference) as stored:
            self.wanted = tuple(stored[name] for name in stored.files)
        self.rtol, self.atol = rtol, atol
        self.call = engine.prepare(family, arrays)
        results = engine.to_numpy(self.call())
        self.first_loss = float(results[0]) if steps else None
        if steps:
            later = [engine.to_numpy(self.call())[0] for _ in range(steps - 1)]
            results = (*results, np.array([results[0], *later]))
        error = compare(results, self.wanted, rtol, atol)
        seconds = self._timed(self.call, 1)
        if seconds < PATIENCE:
            seconds = min(seconds, self._timed(self.call, 1))
        return {"seconds": seconds, "error": error, "note": engine.note}

    def do_first(self, family: str, inputs: str, reference: str, rtol: float, atol: float) -> dict[str, Any]:
        """Return the seconds of the first call in this process, compilation included, from inputs in memory.

        The result must be correct.
        """
        engine = self._engine()
        arrays = load_inputs(inputs)
        start = time.perf_counter()
        call = engine.prepare(family, arrays)
        ready = time.perf_counter()
        result = call()
        first = time.perf_counter() - ready
        results = engine.to_numpy(result)
        with np.load(reference) as stored:
            expected = tuple(stored[name] for name in stored.files)
        # of a training case: the loss and the parameters, without the losses of later steps
        compare(results, expected[: len(results)], rtol, atol)
        return {"seconds": first, "ready_seconds": ready - start}

    def do_time(self, slice_seconds: float, warm_seconds: float, shortest: float) -> dict[str, Any]:
        """Return samples for about `slice_seconds`, after a warm-up, since other peers have used the caches.

        A call shorter than `shortest` is repeated until a sample lasts that long. The sample is the mean.
        """
        call = self._prepared()
        clock = time.perf_counter
        start = clock()
        quickest = self._timed(call, 1)
        while clock() - start < warm_seconds:
            quickest = min(quickest, self._timed(call, 1))
        if quickest > slice_seconds:
            return {"seconds": [quickest]}  # longer than any cache takes to fill
        inner = max(1, math.ceil(shortest / max(quickest, 1e-9)))
        start = clock()
        samples = [self._timed(call, inner)]
        while clock() - start < slice_seconds:
            samples.append(self._timed(call, inner))
        return {"seconds": samples}

    def do_check(self) -> dict[str, Any]:
        """Check that the timed calls were correct. The result is overwritten first, so that a call without effect is
        found.

        The loss of a training case must have decreased.
        """
        engine, call = self._engine(), self._prepared()
        if self.first_loss is not None:
            loss = float(engine.to_numpy(call())[0])
            if not loss < self.first_loss:
                raise WrongResult(f"after all steps the loss is {loss:.6g}; it began at {self.first_loss:.6g}")
            return {"error": 0.0}
        engine.spoil(call())
        return {"error": compare(engine.to_numpy(call()), self.wanted, self.rtol, self.atol)}

    def do_drop(self) -> dict[str, Any]:
        self.call, self.wanted = None, ()
        self._engine().drop()
        gc.collect()
        return {}

    def _timed(self, call: Callable[[], Any], inner: int) -> float:
        clock = time.perf_counter
        if inner == 1:
            start = clock()
            call()
            return clock() - start
        turns = repeat(None, inner)
        start = clock()
        for _ in turns:
            call()
        return (clock() - start) / inner

    def _engine(self) -> Engine:
        if self.engine is None:
            raise RuntimeError("load the peer first")
        return self.engine

    def _prepared(self) -> Callable[[], Any]:
        if self.call is None:
            raise RuntimeError("no case is set up")
        return self.call


class MachineWorker(Worker):
    """The machine as a peer: a call moves the bytes that a case must move at least, and computes nothing."""

    def do_hello(self, threads: int) -> dict[str, Any]:
        from bench.probes import Prober

        self.prober = Prober(threads)
        return {"version": self.prober.loops.cpu, "python": sys.version.split()[0], "pid": os.getpid()}

    def do_setup(self, traffic: tuple[int, int], **_: Any) -> dict[str, Any]:  # type: ignore[override]
        self.traffic = traffic
        seconds = self.prober.best_stream_seconds(*traffic)
        return {"seconds": max(seconds, 0.002), "error": 0.0, "note": ""}

    def do_time(self, slice_seconds: float, warm_seconds: float, shortest: float) -> dict[str, Any]:
        start = time.perf_counter()
        samples = [self.prober.best_stream_seconds(*self.traffic)]
        while time.perf_counter() - start < slice_seconds:
            samples.append(self.prober.best_stream_seconds(*self.traffic))
        return {"seconds": samples, "peak_flops": self.prober.fma_flops_per_second(self.prober.threads, rounds=3)}

    def do_check(self) -> dict[str, Any]:
        return {"error": 0.0}

    def do_drop(self) -> dict[str, Any]:
        return {}

    def do_probes(self) -> dict[str, Any]:
        """Return all measurements of `bench.probes`."""
        return {"probes": [[probe.name, probe.threads, probe.value, probe.unit] for probe in self.prober.all()]}


def run(name: str) -> None:
    """Serve requests for that peer, then exit at once.

    Some peers would wait forever for their threads at exit.
    """
    worker = MachineWorker(name) if name == "machine" else Worker(name)
    serve(worker.answer)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    run(sys.argv[1])
