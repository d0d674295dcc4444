"""A guard on ratios: each kernel on one core, compared with NumPy in one process. `python -m bench.guard [CASE...]`

It measures the CPU time of one thread, alternately, and every case fits the L2 cache of one core. So other processes
hardly matter. On the CPU of `usual`, no case may take 1.9 times its usual share of NumPy's time. At loads of 1 to 7 on
2 cores, 13 of the 20 cases stayed within 5 % of it in six runs. The others did so in most runs; the placement of memory
can change a time by half. When kernels become faster, `usual` must be lowered, or a later loss would stay
unseen; the command reports this.

On any other CPU, and for any other TARGET, the limit is 1.9 times NumPy's time, with NumPy restricted to that TARGET.
Opts must also gain at least as much as `gain` says.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import cases
from bench.cases import Case
from bench.harness import ROOT, environment
from tinyexplore.target import current_choice

MEASURED_ON = "znver4"  # the CPU of `usual`: AVX-512, OpenBLAS 0.3.31
ROUNDS = 15
ATTEMPTS = 3
SAMPLE_SECONDS = 0.0005


@dataclass(frozen=True)
class Guard:
    """A guarded case.

    case: the case of `bench.cases`.
    usual: how many times NumPy's time the case takes on the CPU named above.
    gain: how many times longer it must take without opts, on any CPU.

    `gain` is half of the least value seen with vectors of 128, 256 and 512 bits. It is 0 if LLVM vectorizes the
    case without opts.
    """

    case: Case
    usual: float
    gain: float

    @property
    def bound(self) -> float:
        """Return how many times NumPy's time is too slow."""
        return 1.9 * (self.usual if is_measured_here() else 1.0)


GUARDS = (
    Guard(cases.ew_add("add", 1 << 15), 0.97, 0),
    Guard(cases.ew_chain("chain", 1 << 14), 0.185, 0),
    Guard(cases.ew_gelu("gelu", 1 << 15), 0.0046, 0),
    Guard(cases.full_sum("sum", 1 << 16), 0.29, 6),
    Guard(cases.over_rows("colsum", "colsum", 256, 256, "sums of the columns"), 0.36, 5),
    Guard(cases.over_rows("rowmax", "rowmax", 256, 256, "maxima of the rows"), 0.2, 0),
    Guard(cases.over_rows("argmax", "argmax", 256, 256, "places of the rows' maxima"), 1.1, 2),
    Guard(cases.over_rows("softmax", "softmax", 128, 256, "softmax of the rows"), 0.205, 1.2),
    Guard(cases.over_rows("layernorm", "layernorm", 128, 256, "layernorm of the rows"), 0.118, 2.5),
    Guard(cases.over_rows("cumsum", "cumsum", 128, 256, "running sums of the rows"), 0.062, 1.2),
    Guard(cases.matmul("matmul", "matmul", 256, 256, 256, "256 × 256 times 256 × 256"), 0.91, 6),
    Guard(cases.matmul("matmul_nt", "matmul_nt", 256, 256, 256, "a @ b.T, 256"), 0.87, 6),
    Guard(cases.matmul("matmul_tn", "matmul_tn", 256, 256, 256, "a.T @ b, 256"), 0.91, 6),
    Guard(cases.gemv("gemv", 256), 0.73, 5),
    Guard(cases.conv3x3("conv3x3", 1, 32, 28), 0.17, 6),
    Guard(cases.maxpool2("maxpool2", 1, 32, 56), 0.152, 2.5),
    Guard(cases.moved("transpose", "transpose", (256, 256), "256 × 256 transposed"), 0.14, 1.9),
    Guard(cases.embedding("embedding", 512, 128, 256), 0.78, 0),
    Guard(cases.sdpa("sdpa", 1, 4, 64, 32), 0.3, 2.2),
    Guard(cases.mlp("mlp_fwd", "mlp_fwd", 32, (128, 128, 64, 10)), 0.5, 5),
)


def is_measured_here() -> bool:
    """Whether the generated code is for the CPU of `usual`."""
    from llvmlite.binding import get_host_cpu_name

    return current_choice().is_native and get_host_cpu_name() == MEASURED_ON


def ratios(names: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> dict[str, float]:
    """Return tinyexplore's time over NumPy's for each guarded case (in `names`, else all), from a fresh process.

    Raise RuntimeError if a case is wrong or raises.
    """
    process = subprocess.run(
        [sys.executable, "-m", "bench.guard", *names],
        cwd=ROOT,
        env={**environment(1), **(variables or {})},
        capture_output=True,
        text=True,
    )
    if process.returncode:
        raise RuntimeError(f"the guard's process ended with status {process.returncode}: {process.stderr[-2000:]}")
    return dict(json.loads(process.stdout))


def too_slow(names: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the slow cases, each with a message, if all of ATTEMPTS find it slow.

    `variables`: of the environment.
    """
    slow = {guard.case.name: "" for guard in GUARDS if guard.case.name in (names or [guard.case.name])}
    for _ in range(ATTEMPTS):
        measured = ratios(tuple(slow), variables)
        plain = {} if is_measured_here() else ratios(tuple(slow), {"NOOPT": "1"})
        slow = {name: words for name, ratio in measured.items() if (words := verdict(name, ratio, plain.get(name)))}
        if not slow:
            break
    return slow


def verdict(name: str, ratio: float, plain: float | None) -> str:
    """Return what is slow about a case, or "".

    `ratio` and `plain` (without opts) are multiples of NumPy's time.
    """
    guard = next(guard for guard in GUARDS if guard.case.name == name)
    if ratio > guard.bound:
        return f"{ratio:.2f} times NumPy's time, and {guard.bound:.2f} is the most"
    if plain is not None and plain < guard.gain * ratio:
        return f"opts make it {plain / ratio:.1f} times as fast, and {guard.gain} is the least"
    return ""


def measure(case: Case) -> float:
    """Return tinyexplore's time over NumPy's: the shortest of alternate samples, after a check of the results."""
    from bench.peers.numpy import families
    from bench.peers.tinyexplore import Engine
    from bench.worker import compare

    arrays = case.make_inputs()
    expected = case.reference(arrays)
    engine = Engine("jit", 1)
    our_call = engine.prepare(case.family, arrays)
    compare(engine.to_numpy(our_call()), expected, case.rtol, case.atol)
    is_supported = case.family in families.makers
    numpy = families.makers[case.family](None, arrays) if is_supported else lambda: case.reference(arrays)
    best = [math.inf, math.inf]
    for _ in range(ROUNDS):
        for place, call in enumerate((our_call, numpy)):
            best[place] = min(best[place], _sample(call))
    return best[0] / best[1]


def _sample(call: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call in this thread, the mean over SAMPLE_SECONDS. The first call only warms up."""
    call()
    calls, start = 0, time.thread_time()
    while (elapsed := time.thread_time() - start) < SAMPLE_SECONDS or calls == 0:
        call()
        calls += 1
    return elapsed / calls


if __name__ == "__main__":
    wanted = [guard for guard in GUARDS if guard.case.name in (sys.argv[1:] or [guard.case.name])]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    found = {guard.case.name: measure(guard.case) for guard in wanted}
    json.dump(found, replies)
    replies.flush()
    for guard in wanted:
        if is_measured_here() and found[guard.case.name] < 0.75 * guard.usual:
            print(f"{guard.case.name} became quicker: let `usual` follow, or twice as long may go unnoticed")
