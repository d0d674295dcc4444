"""`python -m bench.roofs`: compares every kernel of five programs with its measured roof.

The roof of a kernel is the arithmetic rate and the bandwidth that were measured on this machine. Samples vary, so a
share above 1 counts only if it exceeds the spread of the roof and of the samples.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.cliffs.programs import PROGRAMS, Program
from tinyexplore import Tensor
from tinyexplore.explore import Explorer, explore
from tinyexplore.explore.analysis.machine.ceiling_table import ceilings, improve_ceilings
from tinyexplore.explore.analysis.machine.roofs import with_ceilings

NAMES = ("x @ w", "grad of gelu(x @ w + b)", "causal attention", "grad of conv", "softmax of columns")


@dataclass(frozen=True)
class Share:
    """The share of its roof that one kernel reaches.

    kernel: its name.
    arithmetic, memory: its rates over those of the roof, at the median time.
    spread: the spread of the samples of roof and kernel, as a share of their medians.
    """

    kernel: str
    arithmetic: float
    memory: float
    spread: float

    @property
    def is_above(self) -> bool:
        """Whether the kernel exceeds its roof by more than the spread."""
        return max(self.arithmetic, self.memory) > 1 + self.spread


def capture_program(program: Program) -> Explorer:
    """Return the capture of one call, with samples of each kernel."""
    inputs = {name: Tensor(value).contiguous().realize() for name, value in program.draw().items()}
    leaves = [inputs[name].requires_grad_() for name in program.gradients]

    def call() -> Any:
        result = program.ours(*inputs.values())
        results = result.gradient(*leaves) if leaves else [result]
        return results[0].realize(*results[1:])

    return explore(call)


def shares(view: Explorer) -> Iterator[Share]:
    """Yield the share of each sampled kernel that has a roof."""
    trace = with_ceilings(view.trace, ceilings(), improve_ceilings)
    roofs = {roof.kernel: roof for roof in trace.roofs}
    kernels = {kernel.id: kernel for kernel in trace.kernels}
    for run in trace.runs:
        roof = roofs.get(run.kernel)
        if roof is None or not run.warm or not run.median_us:
            continue
        kernel, ordered = kernels[run.kernel], sorted(run.times_us)
        last = len(ordered) - 1
        kernel_spread = (ordered[round(0.75 * last)] - ordered[round(0.25 * last)]) / run.median_us if last > 0 else 0.0
        yield Share(
            kernel.name,
            kernel.flops / run.median_us / 1e3 / roof.gflops if roof.gflops else 0.0,
            kernel.bytes_moved / run.median_us / 1e3 / roof.gb_per_s if roof.gb_per_s else 0.0,
            roof.spread + kernel_spread,
        )


def main() -> int:
    """Print the shares. Return 1 if a kernel exceeds its roof by more than the spread, else 0."""
    by_name = {program.name: program for program in PROGRAMS}
    above = 0
    for name in NAMES:
        print(name)
        for share in shares(capture_program(by_name[name])):
            above += share.is_above
            rates = f"arithmetic {share.arithmetic:5.2f}, memory {share.memory:5.2f} of the roof"
            mark = "  ABOVE" if share.is_above else ""
            print(f"  {share.kernel:44.44} {rates}, spread {share.spread:.2f}{mark}")
    print(f"{above} kernels above their roofs by more than the spread")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
