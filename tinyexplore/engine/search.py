"""Measuring for beam_search: a candidate is compiled and run on scratch memory of the kernel's own sizes."""

from __future__ import annotations

import math
import time

from tinyexplore.device import Buffer
from tinyexplore.dtype import PtrDType
from tinyexplore.engine.compile import compile_optimised
from tinyexplore.engine.threads import run_divided
from tinyexplore.kernel import Kernel, hand_coded
from tinyexplore.kernel.merge import with_merged_axes, with_split_axes
from tinyexplore.kernel.search import SearchResult, beam_search
from tinyexplore.trace import active_recorder, recording
from tinyexplore.uop import Ops, UOp

RUNS = 5
HOPELESS = 3.0  # a first run this many times slower than the best so far ends the measurement


def scratch_buffers(device: str, ast: UOp) -> tuple[Buffer, ...]:
    """Memory for a kernel that nobody else uses: zeros."""
    pointers = sorted((node for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL), key=lambda node: node.arg)
    buffers = []
    for pointer in pointers:
        assert isinstance(pointer.dtype, PtrDType)
        buffer = Buffer(device, pointer.dtype.size, pointer.dtype.base).allocate()
        buffer.copyin(bytes(buffer.nbytes))
        buffers.append(buffer)
    return tuple(buffers)


class Measure:
    """The clock of one search: seconds of a candidate's best run, infinity for one that does not compile."""

    def __init__(self, device: str, ast: UOp) -> None:
        self.device = device
        self.buffers = scratch_buffers(device, ast)
        self.best = math.inf

    def __call__(self, kernel: Kernel) -> float:
        try:
            runner = compile_optimised(self.device, kernel)
        except (ValueError, RuntimeError):
            return math.inf
        run = runner.program.bind(self.buffers)
        fastest = math.inf
        for _ in range(RUNS):
            start = time.perf_counter()
            run_divided(run, runner.spec.thread_extent)
            fastest = min(fastest, time.perf_counter() - start)
            if fastest > self.best * HOPELESS:
                break
        self.best = min(self.best, fastest)
        return fastest


def searched(device: str, kernel: Kernel, width: int) -> Kernel:
    """`kernel` with the opts that a beam of `width` finds fastest; the hand-coded choice is the one to beat."""
    with recording(None):
        starts = (hand_coded(kernel), with_merged_axes(with_split_axes(kernel)))
    result: SearchResult = beam_search(starts, width, Measure(device, kernel.ast))
    recorder = active_recorder()
    if recorder is None:
        return result.kernel
    step = with_merged_axes(with_split_axes(kernel))
    for number, opt in enumerate(result.kernel.applied):
        step = step.apply(opt, result.reason if number == 0 else "")
    return step


__all__ = ["Measure", "scratch_buffers", "searched"]
