"""One process for each peer, timed in turns in many short slices, so that whatever befalls the machine befalls all."""

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
SHORTEST = 30e-6  # seconds that one sample lasts at least: shorter calls are repeated inside it
MACHINE = "machine"


@dataclass(frozen=True)
class Settings:
    """`pythons`: which interpreter runs a peer ("" for all others). Times in seconds.

    A case gets `rounds` slices of `slice_seconds` for each peer, fewer where one call takes longer than that;
    before each slice the machine rests for `rest_seconds`: the threads of some peers spin for a while after work.
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
    """What one peer did on one case: seconds of every sample, or why there are none.

    `failure` is None, or "unsupported", "error", "wrong", "died" or "timeout".
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
    """A peer's process ended or did not answer in time; `kind` is "died" or "timeout"."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class PeerProcess:
    """A worker process and its conversation. `root`: the checkout whose code it runs."""

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
        """The reply; WorkerLost where there is none."""
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
        """What the process wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """Ends the process, patiently first."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write('{"do": "bye"}\n')
            self._process.stdin.close()
            self._process.wait(2)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def python_of(name: str, settings: Settings) -> str:
    """The interpreter of a peer: its own, or that of other engines, or this one."""
    python = settings.pythons.get(name) or settings.pythons.get(name.split(".")[0])
    if python is not None:
        return python
    # tinyexplore, NumPy and the machine's probes need nothing that this checkout's own environment lacks
    foreign = PEERS[name].module not in ("tinyexplore", "machine", "numpy")
    return (settings.pythons.get("") if foreign else None) or sys.executable


def environment(threads: int, root: Path = ROOT) -> dict[str, str]:
    """Peers at their best: as many threads each, libraries that look at the CPU themselves, memory that is kept."""
    env = dict(os.environ)
    env.pop("OPENBLAS_CORETYPE", None)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # else what pip installed is compiled already, and this checkout never
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC", "THREADS"):
        env[name] = str(threads)
    # big results come from the heap, which stays mapped, and on huge pages: else every one costs its page faults anew
    env["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1"
    env["MALLOC_TRIM_THRESHOLD_"] = env["MALLOC_TOP_PAD_"] = str(1 << 30)
    env["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    env["JAX_PLATFORMS"] = "cpu"
    return {**env, **peer_limits()}


class Harness:
    """The peers' processes. Use as a context manager; `left_out` says which peers are missing, and why."""

    def __init__(self, peers: Sequence[str], settings: Settings, say: Callable[[str], None] = print) -> None:
        if unknown := [name for name in peers if name not in PEERS]:
            raise ValueError(f"unknown peers {', '.join(unknown)}; known: {', '.join(PEERS)}")
        self.names = list(dict.fromkeys([*peers, MACHINE]))
        self.settings = settings
        self.say = say
        self.versions: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.peak_flops = 0.0  # the most that the machine was seen to do in a second
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
        """Those that run, the machine aside."""
        return [name for name in self._processes if name != MACHINE]

    def probes(self) -> list[tuple[str, int, float, str]]:
        """The machine's abilities; none where its process does not work."""
        if MACHINE not in self._processes:
            return []
        reply = self._processes[MACHINE].ask(120, do="probes")
        if not reply["ok"]:
            self.say(f"!! the machine's probes failed: {reply['reason']}")
            return []
        found = [(str(name), int(threads), float(value), str(unit)) for name, threads, value, unit in reply["probes"]]
        peaks = [value * 1e9 for name, threads, value, _ in found if name == "fma_float32"]
        self.peak_flops = max(self.peak_flops, *peaks)
        return found

    def run(self, case: Case) -> dict[str, Timing]:
        """Every peer on `case`; peers that fail have a Timing that says so."""
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
        """Seconds that one call takes about, for the peers that are ready."""
        request = {
            "do": "setup",
            **store(case, folder),
            "traffic": [case.read_bytes, case.write_bytes],
            "steps": STEPS if case.stateful else 0,
        }

        def prepare(name: str) -> dict[str, Any] | None:
            return self._ask(name, timings[name], self.settings.setup_timeout, **request)

        # compiling is not what is timed here: several at once; the machine itself, which is, when they are done
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
        """The reply, or None: then `timing` says what went wrong, and a lost process has a successor."""
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
        for number, names in enumerate(turns(estimates, settings)):
            # who follows whom changes from round to round
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


def store(case: Case, folder: Path) -> dict[str, Any]:
    """A case's inputs and its results by NumPy in `folder`; what a worker must be told to find and compare them."""
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


def turns(estimates: dict[str, float], settings: Settings) -> list[list[str]]:
    """Who takes part in which round: all in every one, but slow peers only in as many as their time allows.

    A peer whose call takes longer than a slice gets rounds enough for its share of the time, at least two,
    spread evenly.
    """
    rounds: list[list[str]] = [[] for _ in range(settings.rounds)]
    budget = settings.rounds * settings.slice_seconds
    for name, seconds in estimates.items():
        wanted = settings.rounds
        if seconds > settings.slice_seconds:
            wanted = min(settings.rounds, max(2, int(3 * budget / seconds)))
        for place in range(wanted):
            rounds[place * settings.rounds // wanted].append(name)
    return rounds
