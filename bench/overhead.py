"""The costs of the compiler and of Python: imports, lazy operations, replays, recording, compile times."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import median
from typing import Any

import numpy as np

from bench.cases import Arrays, Case, Results
from bench.harness import MACHINE, ROOT, Harness, PeerProcess, Settings, WorkerLost, python_of
from bench.peers import PEERS
from bench.peers.tensors import permuted_address
from bench.report import Figures
from bench.rewriting import GRAPHS

Entry = dict[str, Any]
MIXED_OPS = 8  # operations in a call of py_mixed
REPLAYED = 100  # kernels in a call of py_jit_100
SIMPLIFIED = 20  # expressions in a call of py_simplify
REWRITERS = ("tinyexplore", "tinygrad")
MIN_REWRITES = 100_000.0  # per second
RECORDED = (("add", "ew_add_1K"), ("matmul 512", "matmul_512"), ("MLP training step", "mlp_adam_128"))
# label, case, upper limit of the compile time in ms, lower limit of the rewrites per second
COMPILED: tuple[tuple[str, str, float | None, float | None], ...] = (
    ("add", "ew_add_1K", 10.0, None),
    ("matmul 512", "matmul_512", 50.0, None),
    ("MLP training step", "mlp_adam_128", None, None),
    ("transformer block, forward and backward", "block_fwdbwd_4x256x512", 1500.0, 100_000.0),
)

_IMPORT = """
import sys, time
def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096 / 2**20
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = resident()
start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
print(seconds, resident() - before)
"""


@dataclass(frozen=True)
class PythonCase:
    """A call that is all overhead.

    case: the case that is timed.
    per: operations or kernels in one call.
    target_us: upper limit of the time of each, in µs; None: no limit.
    """

    case: Case
    per: int
    target_us: float | None


def _mixed(x: Arrays) -> Results:
    """Return the result of the peers' `py_mixed`."""
    t = np.maximum((x["a"] * 2 + x["b"]).reshape(2, 2).T, 0)
    return (np.broadcast_to(np.exp(t).sum(1, keepdims=True), (2, 3)),)


def python_cases() -> tuple[PythonCase, ...]:
    """Return the rows of Python costs. Each peer implements them as `make_py_…`."""

    def inputs(rng: np.random.Generator) -> Arrays:
        return {name: rng.standard_normal(4, dtype=np.float32) for name in "ab"}

    def add(x: Arrays) -> Results:
        return (x["a"] + x["b"],)

    def indices(rng: np.random.Generator) -> Arrays:
        orders = np.stack([[rng.permutation(4) for _ in range(2)] for _ in range(SIMPLIFIED)])
        return {"dims": np.array([6, 4, 8, 3]), "at": np.array([5, 2, 6, 1]), "orders": orders}

    def places(x: Arrays) -> Results:
        positions, dims = x["at"].tolist(), x["dims"].tolist()
        return tuple(np.array(permuted_address(positions, dims, order, 0)) for order in x["orders"].tolist())

    def many(x: Arrays) -> Results:
        return (x["a"] + REPLAYED * x["b"],)

    two = (inputs, add)
    rows: tuple[tuple[str, str, Callable[..., Arrays], Callable[[Arrays], Results], int, float | None], ...] = (
        ("py_lazy_add", "a + b, not realized where lazy", *two, 1, 3.0),
        ("py_mixed", f"{MIXED_OPS} mixed operations, not realized where lazy, each", inputs, _mixed, MIXED_OPS, 3.0),
        ("py_realize", "a + b built and realized, its kernel compiled before", *two, 1, 30.0),
        ("py_jit", "a call of a jitted function, one kernel", *two, 1, 3.5),
        ("py_jit_given", "a call of a jitted function, one kernel, two tensors given", *two, 1, 3.5),
        ("py_jit_100", f"a replay of {REPLAYED} kernels, each", inputs, many, REPLAYED, 0.25),
        ("py_simplify", "an index through two reshaped permutations, simplified", indices, places, SIMPLIFIED, None),
    )
    return tuple(
        PythonCase(Case(name, name, what, make, reference, 0, 0, 0, atol=1e-5, group="python"), per, target)
        for name, what, make, reference, per, target in rows
    )


def measure_overhead(settings: Settings, peers: Sequence[str], rounds: int, say: Callable[[str], None]) -> list[Entry]:
    """Return every row of the overhead table. A measurement that fails becomes a row with the reason."""
    parts = {
        "import": lambda: _imports(settings, peers, rounds),
        "Python": lambda: _python_overhead(settings, peers, say),
        "rewriting": lambda: _rewriting(settings, peers, rounds),
        "recording": lambda: _recording(settings, rounds),
        "compiling": lambda: _compile_times(settings, rounds),
    }
    entries: list[Entry] = []
    for area, part in parts.items():
        try:
            for entry in part():  # rows before a failure count
                entries.append(
                    {"area": area, **entry, "date": datetime.now(timezone.utc).isoformat(timespec="seconds")}
                )
        except WorkerLost as lost:
            entries.append({"area": area, **_entry(area, "tinyexplore", "FAILED", "", None, str(lost))})
        say(f"overhead: {area} done")
    return entries


def _entry(name: str, who: str, value: Any, unit: str, target: float | None, detail: str = "") -> Entry:
    return {"name": name, "who": who, "value": value, "unit": unit, "target": target, "detail": detail}


# *** imports ***


def _imports(settings: Settings, peers: Sequence[str], rounds: int) -> Iterator[Entry]:
    """Yield the import times and the memory of each module: the shortest of several fresh processes."""
    modules = {"tinyexplore": "tinyexplore", "numpy": "numpy", MACHINE: "llvmlite"}
    modules.update({name: PEERS[name].needs for name in peers if name == PEERS[name].module and name not in modules})
    statements = [(name, module) for name, module in modules.items() if name in peers]
    if "tinyexplore" in peers:
        statements.insert(1, ("tinyexplore", "tinyexplore; tinyexplore.Tensor"))
    for name, module in statements:
        seconds, megabytes = [], []
        for _ in range(max(2, min(rounds, 5))):
            process = subprocess.run(
                [python_of(name, settings), "-c", _IMPORT.format(module=module)],
                capture_output=True,
                text=True,
                cwd=ROOT,
            )
            if process.returncode:
                break
            first, second = process.stdout.split()
            seconds.append(float(first))
            megabytes.append(float(second))
        if not seconds:
            continue  # the harness has reported the missing peer
        is_ours = module == "tinyexplore"
        yield _entry("import", module, min(seconds) * 1e3, "ms", 100.0 if is_ours else None)
        yield _entry("import, memory", module, min(megabytes), "MB", 40.0 if is_ours else None)


# *** the costs of Python ***


def _python_overhead(settings: Settings, peers: Sequence[str], say: Callable[[str], None]) -> Iterator[Entry]:
    names = [name for name in peers if name not in (MACHINE, "numba", "torch.max")]
    with Harness(names, settings, say=say) as harness:
        for row in python_cases():
            for name, timing in harness.run(row.case).items():
                label = row.case.what
                if name == MACHINE:
                    continue
                if timing.samples:
                    figures = Figures.of([seconds / row.per * 1e6 for seconds in timing.samples])
                    detail = f"median {figures.median:.3g}, {figures.samples} samples"
                    is_ours = name.startswith("tinyexplore")
                    yield _entry(label, name, figures.minimum, "µs", row.target_us if is_ours else None, detail)
                elif timing.failure != "unsupported":
                    yield _entry(label, name, f"{timing.failure}".upper(), "", None, timing.reason)


# *** the rewriter ***


def _rewriting(settings: Settings, peers: Sequence[str], rounds: int) -> Iterator[Entry]:
    """Yield the rewrites per second of each engine, without compilation.

    The value is the median over several graphs, each with its median round. Each engine counts its own rewrites, so the
    row also has the time for the same graphs.
    """
    for name in [name for name in REWRITERS if name in peers]:
        process = PeerProcess(name, settings, "bench.rewriting")
        try:
            by_graphs: dict[str, dict[str, Any]] = {}
            for graphs in GRAPHS:
                reply = process.ask(settings.setup_timeout, do="simplify", graphs=graphs, rounds=max(20, 5 * rounds))
                if not reply["ok"]:
                    raise WorkerLost("error", reply["reason"])
                by_graphs[graphs] = reply
        finally:
            process.close()
        for way, label in (("alone", "of the rewriter"), ("recorded", "of the rewriter, recorded")):
            seconds = {graphs: median(reply[way]) for graphs, reply in by_graphs.items() if reply[way]}
            if not seconds:
                continue
            rates = {graphs: by_graphs[graphs]["rewrites"] / seconds_taken for graphs, seconds_taken in seconds.items()}
            parts = [f"{graphs} {rate:,.0f} ({seconds[graphs] * 1e3:.3g} ms)" for graphs, rate in rates.items()]
            target = MIN_REWRITES if name == "tinyexplore" and way == "alone" else None
            row = _entry(f"rewrites a second {label}: index arithmetic", name, median(rates.values()), "/s", target)
            yield {**row, "at_least": True, "detail": ", ".join(parts)}


# *** the recorder, and compile times ***


class _Compilers:
    """Processes of `bench.compile_worker`, as a context manager that closes them."""

    def __init__(self, settings: Settings, *ways: str) -> None:
        self.settings = settings
        self.processes = {way: PeerProcess(way, settings, "bench.compile_worker") for way in ways}

    def __enter__(self) -> _Compilers:
        for way in self.processes:
            self.ask(way, do="hello")
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes.values():
            process.close()

    def ask(self, way: str, **request: Any) -> dict[str, Any]:
        reply = self.processes[way].ask(self.settings.setup_timeout, **request)
        if not reply["ok"]:
            raise WorkerLost("error", reply["reason"])
        return reply


def _recording(settings: Settings, rounds: int) -> Iterator[Entry]:
    """Yield the cost of the recorder: switched off over code without hooks, and switched on over off.

    Every call compiles everything again. The ways alternate, and CPU time counts.
    """
    with _Compilers(settings, "plain", "stripped") as compilers:
        for label, case in RECORDED:
            repeats = {"ew_add_1K": 10, "matmul_512": 3}.get(case, 1)  # short ones vary more
            for way in compilers.processes:
                compilers.ask(way, do="prepare", case=case)
            times: dict[str, list[float]] = {}
            events = 0
            turns = [("stripped", "off"), ("plain", "off"), ("plain", "on"), ("plain", "trace")]
            for number in range(max(rounds, 3)):
                for way, recording in turns[number % 4 :] + turns[: number % 4]:
                    for _ in range(repeats):
                        reply = compilers.ask(way, do="cold", recording=recording)
                        times.setdefault(f"{way} {recording}", []).append(reply["cpu_seconds"])
                    events = reply["events"] if recording == "on" else events
            figures = {key: Figures.of(samples) for key, samples in times.items()}
            seconds_off = figures["plain off"]
            for name, top, bottom, target in (
                ("recorder off / no hooks", seconds_off, figures["stripped off"], 1.01),
                ("recording / off", figures["plain on"], seconds_off, 1.10),
                ("recording and building the Trace / off", figures["plain trace"], seconds_off, None),
            ):
                median = f"medians {top.median / bottom.median:.3f}, {top.samples} interleaved samples"
                detail = f"{median}; {top.minimum * 1e3:.2f} and {bottom.minimum * 1e3:.2f} ms"
                if "off / no" not in name and "Trace" not in name:
                    detail += f", {events} events"
                yield _entry(f"{name}: {label}", "tinyexplore", top.minimum / bottom.minimum, "×", target, detail)


def _compile_times(settings: Settings, rounds: int) -> Iterator[Entry]:
    """Yield the compile time of the first call of a fresh process that has compiled one small kernel; then that of each
    stage.

    Compile time is the time of such a call, less the time of the kernels in a later call. No recorder is attached.
    """
    for label, case, aim_ms, aim_rate in COMPILED:
        fresh, warm, parts = [], [], {}
        for _ in range(max(2, min(rounds, 3))):
            with _Compilers(settings, "plain") as compilers:
                compilers.ask("plain", do="prepare", case=case, warm=False)
                cold_s = compilers.ask("plain", do="cold", recording="off")["seconds"]
                running = compilers.ask("plain", do="running")["seconds"]
                fresh.append(cold_s - running)
                for _ in range(2):
                    warm.append(compilers.ask("plain", do="cold", recording="off")["seconds"] - running)
                stages = compilers.ask("plain", do="stages")
                if not parts or stages["lowering_seconds"] < parts["lowering_seconds"]:
                    parts = stages  # of the fastest run, as the other figures
        detail = f"{parts['kernels']} kernels; of the call, {running * 1e3:.3g} ms were spent in them"
        yield _entry(f"compile, first: {label}", "tinyexplore", min(fresh) * 1e3, "ms", aim_ms, detail)
        yield _entry(f"compile, again: {label}", "tinyexplore", min(warm) * 1e3, "ms", None)
        name = f"rewrites a second: {label}"
        rate = _entry(name, "tinyexplore", parts["firings"] / parts["lowering_seconds"], "/s", aim_rate)
        firing_rate = parts["firings"] / parts["rewriting_seconds"] if parts["rewriting_seconds"] else 0.0
        within = f"{parts['lowering_seconds'] * 1e3:.3g} ms from the schedule to the source"
        detail = f"{parts['firings']} rewrites, recorded, in {within}; {firing_rate:,.0f} a second of the passes alone"
        yield {**rate, "at_least": True, "detail": detail}
        for stage, seconds in sorted(parts["stages"].items(), key=lambda item: -item[1]):
            if seconds >= 5e-5:
                row = _entry(f"  {label}: {stage}", "tinyexplore", seconds * 1e3, "ms", None, "while recording")
                yield {**row, "area": "stages", "stage": stage, "program": label}
