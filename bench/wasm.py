"""`python -m bench.wasm`: times kernels as WebAssembly and as machine code of the same vector width, on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from tinyexplore import Context, Tensor, TinyJit
from tinyexplore.target import machine

# vectors of 16 bytes without fused multiply-add, as in WebAssembly; on another architecture, this CPU
LEVEL = "x86-64-v2" if machine() == "x86_64" else "native"
NATIVE = f"{LEVEL},threads=1,l1=32K,l2=256K"
SAMPLES = 41


@dataclass(frozen=True)
class Case:
    """A program of one or more arrays.

    name: in the table.
    program: computes one tensor.
    shapes: of the arrays.
    """

    name: str
    program: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]


CASES = (
    Case("matmul 512", lambda a, b: a @ b, ((512, 512), (512, 512))),
    Case("softmax 1024 × 1024", lambda a: a.softmax(), ((1024, 1024),)),
    Case("layernorm 1024 × 1024", lambda a: a.layernorm(), ((1024, 1024),)),
    Case("a · b + a, 1 M", lambda a, b: a * b + a, ((1 << 20,), (1 << 20,))),
    Case("exp, 1 M", lambda a: a.exp(), ((1 << 20,),)),
    Case("sum, 1 M", lambda a: a.sum(), ((1 << 20,),)),
)


@dataclass(frozen=True)
class Times:
    """Median CPU times in µs of alternate runs.

    case: its name.
    native_us: as machine code.
    wasm_us: as WebAssembly.
    apart: the largest difference of the results.
    """

    case: str
    native_us: float
    wasm_us: float
    apart: float

    @property
    def ratio(self) -> float:
        return self.wasm_us / self.native_us


def measure(case: Case, samples: int = SAMPLES) -> Times:
    """Time `case` on both, replayed by TinyJit."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, dtype=np.float32) for shape in case.shapes]
    calls, results = [], []
    for device, target in (("LLVM", NATIVE), ("WASM", "")):
        call, result = _prepared(case, arrays, device, target)
        calls.append(call)
        results.append(result)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(samples):
        for call, samples_of_call in zip(calls, times):
            start = time.thread_time()
            call()
            samples_of_call.append((time.thread_time() - start) * 1e6)
    difference = float(np.abs(results[0] - results[1]).max())
    return Times(case.name, median(times[0]), median(times[1]), difference)


def _prepared(case: Case, arrays: list[np.ndarray], device: str, target: str) -> tuple[Callable[[], None], np.ndarray]:
    """Return a replay of `case`, and its result."""
    settings = {"DEVICE": device, "TARGET": target, "THREADS": 1}
    with Context(**settings):
        jitted = TinyJit(lambda *tensors: case.program(*tensors).realize())
        given_tensors = [(Tensor(array) + 0).contiguous().realize() for array in arrays]
        result = [jitted(*given_tensors).numpy() for _ in range(3)][-1]

    def call() -> None:
        with Context(**settings):
            jitted(*given_tensors)

    return call, result


def main() -> None:
    print(f"| one thread | machine code, {LEVEL} | WebAssembly | ratio |\n|---|---|---|---|")
    for case in CASES:
        times = measure(case)
        print(f"| {times.case} | {times.native_us:,.0f} µs | {times.wasm_us:,.0f} µs | {times.ratio:.2f} |")


if __name__ == "__main__":
    main()
