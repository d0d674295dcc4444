"""The parts of `python -m bench.gpu`.

Each writes rows, one JSON object per line, as soon as they are measured.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = "tests.support.stand_in"
ROUNDS, SLICE_S = 9, 0.02  # slices of each engine, and about how many seconds one lasts
SMALL_KERNELS = 24  # in the program that is launched as a graph
SEQUENCES, SMALL_SEQUENCES = 200, 3  # sequences of opts
SMALL_PROGRAMS = 3  # of the programs that are timed
TESTS, SMALL_TESTS = "tests/ops", "tests/ops/test_reduction.py"
Row = dict[str, Any]


class Rows:
    """The output of a part. `ends`: the time at which it should end."""

    def __init__(self, file: Path, seconds: float, *, small: bool, stand_in: bool) -> None:
        self.file, self.ends, self.small, self.stand_in = file, time.monotonic() + seconds, small, stand_in

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return self.ends - time.monotonic()

    def add(self, name: str, **values: Any) -> None:
        with self.file.open("a") as file:
            file.write(json.dumps({"name": name, **values}) + "\n")


def run(part: str, file: Path, seconds: float, *, small: bool, stand_in: bool) -> int:
    """Run one part in this process."""
    if stand_in:
        importlib.import_module(STAND_IN).install()
    PARTS[part](Rows(file, seconds, small=small, stand_in=stand_in))
    return 0


def machine(rows: Rows) -> None:
    """Report the card, the driver and the versions."""
    from tinyexplore import Device
    from tinyexplore.runtime.cuda import get_cuda

    rows.add("gpu", **{"is": get_cuda(0).name})
    rows.add("target", **{"is": Device["CUDA"].target.describe()})
    rows.add("compiler", **{"is": get_cuda(0).compiler})
    query = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit"
    rows.add("driver", **{"is": command_output(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])})
    rows.add("commit", **{"is": command_output(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"])})
    rows.add("host", **{"is": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"})
    try:
        torch = importlib.import_module("torch")
        rows.add("PyTorch", **{"is": f"{torch.__version__}, CUDA {torch.version.cuda}"})
    except ImportError:
        rows.add("PyTorch", **{"is": "not installed: no ratios"})


def command_output(command: list[str]) -> str:
    """Return the output of a program, or the reason of its failure."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip() or "no answer"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no answer ({type(error).__name__})"


# *** speed ***


def speed(rows: Rows) -> None:
    """Time each program, replayed by TinyJit, alternately with the PyTorch program on the same inputs."""
    from bench.gpu.programs import PROGRAMS

    programs = PROGRAMS[:: len(PROGRAMS) // SMALL_PROGRAMS] if rows.small else PROGRAMS
    for place, program in enumerate(programs):
        if rows.left < 1:
            rows.add(program.name, skipped="no time was left")
            continue
        share = rows.left / (len(programs) - place)
        try:
            rows.add(program.name, **compare_times(program, rows, share))
        except Exception as error:  # the row reports its failure, and the other programs are measured
            rows.add(program.name, wrong=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")


def compare_times(program: Any, rows: Rows, seconds: float) -> Row:
    """Return the median times of tinyexplore and PyTorch, in µs, and the largest difference of the results."""
    rng = np.random.default_rng(zlib.crc32(program.name.encode()))
    shapes = program.small if rows.small else program.shapes
    arrays = [rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5) for shape in shapes]
    began = time.monotonic()
    ours, kernels = our_calls(program, arrays)
    calls = [ours]
    if (theirs := their_calls(program, arrays, rows)) is not None:
        calls.append(theirs)
    first = time.monotonic() - began
    values = [call[1]() for call in calls]
    row: Row = {"kernels": kernels, "first_s": round(first, 2)}
    if rows.small:
        row["inputs"] = [list(shape) for shape in shapes]  # sizes other than those of the name, so no rate
    else:
        row |= {"flops": program.flops, "moved": program.moved}
    if len(values) == 2:
        row["apart"] = max(largest_difference(actual, other) for actual, other in zip(*values, strict=True))
        if not row["apart"] < 20 * program.rounding:
            row["wrong"] = f"the results are {row['apart']:.2g} of their size apart"
    rounds = 2 if rows.small else ROUNDS
    slice_s = min(SLICE_S, max(1e-3, seconds / (4 * rounds)))
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        for side in range(len(calls))[:: 1 if turn % 2 else -1]:
            samples[side].append(slice_seconds(calls[side][0], calls[side][2], slice_s))
    for side, name in zip(samples, ("", "theirs_")):
        low, middle, high = quantiles(side, n=4, method="inclusive")
        row |= {f"{name}us": middle * 1e6, f"{name}low_us": low * 1e6, f"{name}high_us": high * 1e6}
    return row


def slice_seconds(call: Callable[[], Any], wait: Callable[[], Any], seconds: float) -> float:
    """Return the seconds of one call, as a mean over the calls that fit into `seconds`.

    Only the last call is waited for.
    """
    start = time.perf_counter()
    call()
    wait()
    times = max(1, round(seconds / (time.perf_counter() - start)))
    start = time.perf_counter()
    for _ in range(times):
        call()
    wait()
    return (time.perf_counter() - start) / times


def largest_difference(actual: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference over the root mean square of the values."""
    size = float(np.sqrt(np.mean(np.square(other, dtype=np.float64)))) or 1.0
    difference = float(np.abs(actual.reshape(other.shape).astype(np.float64) - other).max())
    return difference / size if np.isfinite(difference) else float("inf")


Calls = tuple[Callable[[], Any], Callable[[], list[np.ndarray]], Callable[[], Any]]  # run, values, wait


def our_calls(program: Any, arrays: list[np.ndarray]) -> tuple[Calls, int]:
    """Return a replay of the program on CUDA, and the number of its kernels."""
    from tinyexplore import Context, Device, Tensor, TinyJit

    settings = Context(DEVICE="CUDA", ALLOW_TF32=int(program.tf32))
    with settings:
        inputs = [Tensor(array, device="CUDA").cast(program.dtype).contiguous().realize() for array in arrays]
        leaves = [inputs[place].requires_grad_() for place in program.gradients]

        def compute() -> tuple[Tensor, ...]:
            result = program.ours(*inputs)
            results = tuple(result.square().sum().gradient(*leaves)) if leaves else (result,)
            results[0].realize(*results[1:])
            return results

        jitted = TinyJit(compute)
        for _ in range(3):
            last = jitted()
    captured: Any = jitted.captured
    values = [tensor.cast("float32").numpy() for tensor in last]

    def call() -> None:
        with Context(DEVICE="CUDA", ALLOW_TF32=int(program.tf32)):
            jitted()

    return (call, lambda: values, Device["CUDA"].synchronize), len(captured.items)


def their_calls(program: Any, arrays: list[np.ndarray], rows: Rows) -> Calls | None:
    """Return the program on PyTorch, or None without a PyTorch for GPUs.

    With the stand-in driver, it runs on the CPU.
    """
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None
    device = "cpu" if rows.stand_in else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = program.tf32
    inputs = [torch.from_numpy(array).to(device, getattr(torch, program.dtype)) for array in arrays]
    leaves = [inputs[place].requires_grad_() for place in program.gradients]
    function = program.theirs or program.ours

    def call() -> Any:
        if leaves:
            return torch.autograd.grad(function(*inputs).square().sum(), leaves)
        with torch.inference_mode():
            return (function(*inputs),)

    def values() -> list[np.ndarray]:
        return [tensor.detach().float().cpu().numpy() for tensor in call()]

    return call, values, torch.cuda.synchronize if device == "cuda" else lambda: None


def graphs(rows: Rows) -> None:
    """Time a sequence of small kernels: launched one by one, as one CUDA graph, and as a CUDA graph of PyTorch."""
    from tinyexplore import Context, Device, Tensor, TinyJit

    x = Tensor(np.ones((16, 16), np.float32), device="CUDA").contiguous().realize()

    def steps() -> Tensor:
        value = x
        for _ in range(SMALL_KERNELS):
            value = (value * 0.5 + 1).realize()
        return value

    slice_s = 1e-3 if rows.small else SLICE_S
    wait = Device["CUDA"].synchronize
    jitted = TinyJit(steps)
    with Context(DEVICE="CUDA"):
        expected = steps().numpy()
        results = [jitted() for _ in range(3)]
        for name, call in (("one by one", steps), ("a graph", jitted)):
            samples = sorted(slice_seconds(call, wait, slice_s) for _ in range(2 if rows.small else ROUNDS))
            rows.add(f"{SMALL_KERNELS} kernels, {name}", us=samples[len(samples) // 2] * 1e6)
    if not np.array_equal(results[-1].numpy(), expected):
        rows.add("a graph's result", wrong="differs from that of its kernels")
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return
    if torch.cuda.is_available():
        samples = sorted(their_graph(torch, slice_s))
        rows.add(f"{SMALL_KERNELS} kernels, PyTorch's graph", us=samples[len(samples) // 2] * 1e6)


def their_graph(torch: Any, slice_s: float) -> list[float]:
    """Return the seconds of replays of PyTorch's graph with the same number of kernels."""
    x = torch.ones(16, 16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = x
        for _ in range(SMALL_KERNELS):
            value = torch.add(1, value, alpha=0.5)
    return [slice_seconds(graph.replay, torch.cuda.synchronize, slice_s) for _ in range(ROUNDS)]


# *** correctness ***


def backends(rows: Rows) -> None:
    """Run the tests of every operation on CUDA, within the time limit."""
    chosen, keyword = (SMALL_TESTS, "layernorm and CUDA") if rows.small else (TESTS, "CUDA")
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=line", chosen, "-k", keyword]
    words += ["-p", STAND_IN] if rows.stand_in else []
    environment = dict(os.environ, OPS_ON="CUDA", COLUMNS="400")
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    counts: Counter[str] = Counter()
    assert process.stdout is not None
    ended = False
    for line in process.stdout:
        if match := re.search(r"(tests/\S+.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL)", line):
            counts[match[2].lower()] += 1
            if match[2] in ("FAILED", "ERROR"):
                rows.add(match[1], wrong=match[2].lower())
        elif line.startswith("/") or "Error" in line:
            print(line.rstrip()[:300], flush=True)
        ended = ended or bool(re.search(r"=+ .*(passed|failed).* in ", line))
        if rows.left < 0:
            process.kill()
    process.wait()
    rows.add("tests" if ended else "tests, until the time was up", counts=dict(counts))
    if not counts:
        rows.add("tests", wrong="none ran")


def fuzz(rows: Rows) -> None:
    """Run random programs under random legal opts on CUDA, and compare the results with NumPy's."""
    from tests.fuzz.gpu import run_case
    from tests.fuzz.opts import Mismatch, Tried

    tried, wrong = Tried(), 0
    for number in count(500_000):
        if tried.sequences >= (SMALL_SEQUENCES if rows.small else SEQUENCES) or rows.left < 1:
            break
        try:
            run_case(number, tried, device="CUDA")
        except Mismatch as error:
            wrong += 1
            rows.add(f"case {number}", wrong=" ".join(str(error).split())[:700])
    rows.add("sequences of opts", counts={"tried": tried.sequences, "wrong": wrong})
    rows.add("kinds of opts", counts=dict(tried.kinds))


PARTS: dict[str, Callable[[Rows], None]] = {
    "machine": machine,
    "speed": speed,
    "graphs": graphs,
    "backends": backends,
    "fuzz": fuzz,
}

__all__ = ["PARTS", "run"]
