"""`python -m bench.opencl [CASE …]`: times kernels in OpenCL C on the GPU device, and in C on CLANG.

Both run on the same cores, alternately (the OpenCL driver can be PoCL). The CPU time of the whole process counts, since
the threads of PoCL belong to it. Wall time is shown too. A slice has as many calls as fit into `TURN_S`: the system
adds the CPU time of other running threads only at its ticks, so that the time of one short call is unreliable. Calls of
GPU are launched, and the end of a slice waits for them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from bench.wasm import CASES, Case
from tinyexplore import Context, Device, Tensor, TinyJit

SAMPLES = 15
TURN_S = 0.05
DEVICES = ("CLANG", "GPU")


@dataclass(frozen=True)
class Times:
    """Median times in µs, of CLANG and of GPU.

    case: its name.
    cpu_us: CPU time on CLANG and on GPU.
    wall_us: wall time on CLANG and on GPU.
    apart: the largest difference of the results.
    """

    case: str
    cpu_us: tuple[float, float]
    wall_us: tuple[float, float]
    apart: float

    @property
    def ratio(self) -> float:
        """Return the ratio of CPU times: GPU over CLANG."""
        return self.cpu_us[1] / self.cpu_us[0]


def measure(case: Case, samples: int = SAMPLES) -> Times:
    """Time `case` on both devices, replayed by TinyJit."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, dtype=np.float32) for shape in case.shapes]
    prepared = [_prepared(case, arrays, device) for device in DEVICES]
    cpu: list[list[float]] = [[], []]
    wall: list[list[float]] = [[], []]
    turns = [count_calls(TURN_S, call, device) for (call, _), device in zip(prepared, DEVICES)]
    for _ in range(samples):
        for place, (call, _) in enumerate(prepared):
            began, start = time.perf_counter(), time.process_time()
            for _ in range(turns[place]):
                call()
            Device[DEVICES[place]].synchronize()
            cpu[place].append((time.process_time() - start) / turns[place] * 1e6)
            wall[place].append((time.perf_counter() - began) / turns[place] * 1e6)
    difference = float(np.abs(prepared[0][1] - prepared[1][1]).max())
    clang_us, gpu_us = map(median, cpu)
    return Times(case.name, (clang_us, gpu_us), (median(wall[0]), median(wall[1])), difference)


def count_calls(seconds: float, call: Callable[[], None], device: str) -> int:
    """Return the number of calls that take about `seconds`, each waited for."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        call()
        Device[device].synchronize()
        count += 1
    return count


def _prepared(case: Case, arrays: list[np.ndarray], device: str) -> tuple[Callable[[], None], np.ndarray]:
    """Return a replay of `case`, and its result."""
    with Context(DEVICE=device):
        jitted = TinyJit(lambda *tensors: case.program(*tensors).realize())
        given_tensors = [(Tensor(array) + 0).contiguous().realize() for array in arrays]
        result = [jitted(*given_tensors).numpy() for _ in range(3)][-1]

    def call() -> None:
        with Context(DEVICE=device):
            jitted(*given_tensors)

    return call, result


def main(names: list[str]) -> None:
    print("| | CLANG: processor, clock | OpenCL: processor, clock | ratio |\n|---|---|---|---|")
    for case in CASES:
        if names and case.name not in names:
            continue
        times = measure(case)
        (a, b), (c, d) = times.cpu_us, times.wall_us
        print(f"| {times.case} | {a:,.0f}, {c:,.0f} µs | {b:,.0f}, {d:,.0f} µs | {times.ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
