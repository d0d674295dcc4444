"""Runs one process per peer and times them alternately in many short slices, so that noise affects all of them."""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases import Case
from bench.limits import peer_limits
from bench.peers import PEERS
from bench.references import STEPS

ROOT = Path(__file__).resolve().parent.parent
SHORTEST = 30e-6  # the least seconds of one sample; shorter calls are repeated within a sample
MACHINE = "machine"


@dataclass(frozen=True)
class Settings:
    """The settings of a run. Times are in seconds.

    Each peer gets `rounds` slices of `slice_seconds` per case, fewer if one call takes longer than a slice. Before each
    slice the machine rests for `rest_seconds`, because the threads of some peers spin for a while after work.

    threads: threads of each peer; 0: one per core.
    rounds: slices of each peer and case.
    slice_seconds: time of a slice.
    warm_seconds: time of untimed calls before a slice.
    rest_seconds: pause before a slice.
    setup_timeout: limit of the time for a peer's imports, preparation and first call.
    pythons: the interpreter of each peer ("" for all others).
    """

    threads: int = 0
    rounds: int = 10
    slice_seconds: float = 0.03
    warm_seconds: float = 0.003
    rest_seconds: float = 0.02
    setup_timeout: float = 120.0
    pythons: dict[str, str] = field(default_factory=dict)

    @property
    def thread_count(self) -> int:
        return self.threads or os.cpu_count() or 1


@dataclass
class Timing:
    """The result of one peer on one case: the seconds of every sample, or the reason why there are none.

    samples: seconds of each sample.
    error: the largest difference from the reference, as a share of the tolerance.
    note: the method that the peer chose.
    failure: None, or "unsupported", "error", "wrong", "died" or "timeout".
    reason: the message of the failure.
    """

    samples: list[float] = field(default_factory=list)
    error: float = math.nan
    note: str = ""
    failure: str | None = None
    reason: str = ""

    def fail(self, kind: str, reason: str) -> None:
        self.failure, self.reason = kind, reason
        self.samples = []


class WorkerLost(RuntimeError):
    """The process of a peer ended, or sent no result in time. `kind` is "died" or "timeout"."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class PeerProcess:
    """A worker process and the conversation with it. `root`: the checkout whose code it runs."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        module: str = "bench.worker",
        variables: Mapping[str, str] | None = None,
        root: Path = ROOT,
    ) -> None:
        self.name = name
        python = python_of(name, settings) if name in PEERS else sys.executable
        self._errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            [python, "-m", module, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=root,
            env={**environment(settings.thread_count, root), **(variables or {})},
        )
        self._replies: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._replies.put(line)
        self._replies.put("")

    def ask(self, timeout: float, **request: Any) -> dict[str, Any]:
        """Send a request and return the reply. Raise WorkerLost if there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._replies.get(timeout=timeout)
        except queue.Empty:
            self.close()
            raise WorkerLost("timeout", f"no answer to {request['do']!r} within {timeout:g} s") from None
        except OSError:
            line = ""
        if not line:
            self._process.wait()
            last = " | ".join(self.errors().strip().splitlines()[-3:])
            raise WorkerLost("died", f"the process ended with status {self._process.returncode}: {last[-500:]}")
        return json.loads(line)

    def errors(self) -> str:
        """Return the process's output on stderr."""
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """End the process: by a request, then by a signal."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write('{"do": "bye"}\n')
            self._process.stdin.close()
            self._process.wait(2)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def python_of(name: str, settings: Settings) -> str:
    """Return the interpreter of a peer: the one named for it, the one for other engines, or this one."""
    python = settings.pythons.get(name) or settings.pythons.get(name.split(".")[0])
    if python is not None:
        return python
    # tinyexplore, NumPy and the probes of the machine need only the packages of this environment
    foreign = PEERS[name].module not in ("tinyexplore", "machine", "numpy")
    return (settings.pythons.get("") if foreign else None) or sys.executable


def environment(threads: int, root: Path = ROOT) -> dict[str, str]:
    """Return an environment in which each peer is at its best.

    All have the same number of threads, libraries detect the CPU, and freed memory stays mapped.
    """
    env = dict(os.environ)
    env.pop("OPENBLAS_CORETYPE", None)
    # else Python would compile the modules of this checkout again in each process
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC", "THREADS"):
        env[name] = str(threads)
    # large results come from the heap, which stays mapped, on huge pages; else each result would cost page faults
    env["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1"
    env["MALLOC_TRIM_THRESHOLD_"] = env["MALLOC_TOP_PAD_"] = str(1 << 30)
    env["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    env["JAX_PLATFORMS"] = "cpu"
    return {**env, **peer_limits()}


class Harness:
    """The processes of all peers, as a context manager. `left_out`: missing peers, each with the reason."""

    def __init__(self, peers: Sequence[str], settings: Settings, say: Callable[[str], None] = print) -> None:
        if unknown := [name for name in peers if name not in PEERS]:
            raise ValueError(f"unknown peers {', '.join(unknown)}; known: {', '.join(PEERS)}")
        self.names = list(dict.fromkeys([*peers, MACHINE]))
        self.settings = settings
        self.say = say
        self.versions: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.peak_flops = 0.0  # the highest measured rate of the machine, per second
        self._processes: dict[str, PeerProcess] = {}

    def __enter__(self) -> Harness:
        for name in self.names:
            try:
                self._start(name)
            except WorkerLost as lost:
                self._leave_out(name, str(lost))
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _start(self, name: str) -> None:
        process = self._process(name)
        reply = process.ask(self.settings.setup_timeout, do="hello", threads=self.settings.thread_count)
        if not reply["ok"]:
            process.close()
            self._leave_out(name, reply["reason"])
            return
        self._processes[name] = process
        self.versions[name] = f"{reply['version']} (Python {reply['python']})"

    def _process(self, name: str) -> PeerProcess:
        return PeerProcess(name, self.settings)

    def _leave_out(self, name: str, reason: str) -> None:
        self.left_out[name] = reason
        hint = ""
        if "ModuleNotFoundError" in reason and name in PEERS and PEERS[name].needs not in ("numpy", "llvmlite"):
            hint = "; install it with: pip install '.[bench]', or name an interpreter: --python PATH"
        self.say(f"!! {name} is LEFT OUT: {reason}{hint}")

    @property
    def peers(self) -> list[str]:
        """Return the peers that run, without the machine."""
        return [name for name in self._processes if name != MACHINE]

    def probes(self) -> list[tuple[str, int, float, str]]:
        """Return the probes of the machine; none if its process fails."""
        if MACHINE not in self._processes:
            return []
        reply = self._processes[MACHINE].ask(120, do="probes")
        if not reply["ok"]:
            self.say(f"!! the machine's probes failed: {reply['reason']}")
            return []
        probes = [(str(name), int(threads), float(value), str(unit)) for name, threads, value, unit in reply["probes"]]
        peaks = [value * 1e9 for name, threads, value, _ in probes if name == "fma_float32"]
        self.peak_flops = max(self.peak_flops, *peaks)
        return probes

    def run(self, case: Case) -> dict[str, Timing]:
        """Run every peer on `case`. The Timing of a peer that fails has the reason."""
        timings = {name: Timing() for name in self._processes}
        with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-") as folder:
            estimates = self._set_up(case, Path(folder), timings)
        self._take_turns(timings, estimates)
        for name in estimates:
            if timings[name].failure is None:
                self._ask(name, timings[name], self.settings.setup_timeout, do="check")
        for name in timings:
            if name in self._processes:
                self._ask(name, Timing(), 60, do="drop")
        return timings

    def _set_up(self, case: Case, folder: Path, timings: dict[str, Timing]) -> dict[str, float]:
        """Set up `case` in each peer. Return the estimated seconds of one call, for the peers that are ready."""
        request = {
            "do": "setup",
            **store_case(case, folder),
            "traffic": [case.read_bytes, case.write_bytes],
            "steps": STEPS if case.stateful else 0,
        }

        def prepare(name: str) -> dict[str, Any] | None:
            return self._ask(name, timings[name], self.settings.setup_timeout, **request)

        # several peers compile at once, since that time is not measured; the machine's probe runs after them
        names = list(self._processes)
        with ThreadPoolExecutor(max(2, self.settings.thread_count)) as pool:
            replies = dict(zip(names, pool.map(lambda name: prepare(name) if name != MACHINE else None, names)))
        if MACHINE in names:
            replies[MACHINE] = prepare(MACHINE)
        estimates = {}
        for name, reply in replies.items():
            if reply is not None:
                estimates[name] = reply["seconds"]
                timings[name].note, timings[name].error = reply["note"], reply["error"]
        return estimates

    def _ask(self, name: str, timing: Timing, timeout: float, **request: Any) -> dict[str, Any] | None:
        """Return the reply, or None.

        On None, `timing` has the reason, and a new process has replaced a lost one.
        """
        try:
            reply = self._processes[name].ask(timeout, **request)
        except WorkerLost as lost:
            timing.fail(lost.kind, str(lost))
            del self._processes[name]
            self._start(name)
            return None
        if not reply["ok"]:
            timing.fail(reply["kind"], reply["reason"])
            return None
        return reply

    def _take_turns(self, timings: dict[str, Timing], estimates: dict[str, float]) -> None:
        settings = self.settings
        for number, names in enumerate(rounds_of_peers(estimates, settings)):
            # the order of the peers changes from round to round
            for name in names[number % len(names) :] + names[: number % len(names)] if names else []:
                timing = timings[name]
                if timing.failure is not None:
                    continue
                time.sleep(settings.rest_seconds)
                times = {"slice_seconds": settings.slice_seconds, "warm_seconds": settings.warm_seconds}
                reply = self._ask(name, timing, settings.setup_timeout, do="time", shortest=SHORTEST, **times)
                if reply is not None:
                    timing.samples.extend(reply["seconds"])
                    self.peak_flops = max(self.peak_flops, reply.get("peak_flops", 0.0))


def store_case(case: Case, folder: Path) -> dict[str, Any]:
    """Store the inputs of a case and NumPy's results in `folder`.

    Return the fields of a request that refer to them.
    """
    arrays = case.make_inputs()
    np.savez(folder / "inputs.npz", **arrays)  # type: ignore[arg-type]
    np.savez(folder / "reference.npz", *(np.asarray(value) for value in case.reference(arrays)))
    return {
        "family": case.family,
        "inputs": str(folder / "inputs.npz"),
        "reference": str(folder / "reference.npz"),
        "rtol": case.rtol,
        "atol": case.atol,
    }


def rounds_of_peers(estimates: dict[str, float], settings: Settings) -> list[list[str]]:
    """Return the peers of each round. A slow peer takes part in fewer rounds.

    A peer whose call takes longer than a slice gets as many rounds as fit its share of the time, at least two. They are
    spread evenly.
    """
    rounds: list[list[str]] = [[] for _ in range(settings.rounds)]
    budget = settings.rounds * settings.slice_seconds
    for name, seconds in estimates.items():
        count = settings.rounds
        if seconds > settings.slice_seconds:
            count = min(settings.rounds, max(2, int(3 * budget / seconds)))
        for place in range(count):
            rounds[place * settings.rounds // count].append(name)
    return rounds
