"""Runner: one compiled kernel, which can run on any buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tinyexplore.device import CompiledProgram
from tinyexplore.execute.threads import estimated_ns, run_divided
from tinyexplore.kernel import Kernel, Opt
from tinyexplore.renderer import ProgramSpec
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import sint, value_of

# Approximate bytes of a cached Runner: its nodes, the facts of its program, and its part of a plan. Its text and the
# nodes of its program are dropped, which would take 20 to 200 kB more.
RUNNER_BYTES = 40 << 10


@dataclass(frozen=True, eq=False)
class Runner:
    """A compiled kernel. If the kernel has Variables, its work is arithmetic on them.

    device: the device that runs it.
    make_kernel: returns the Kernel, rebuilt when it is needed.
    spec: its program.
    program: the compiled program.
    flops: floating-point operations of one run.
    bytes_moved: the least bytes read and written in one run.
    operations: `flops`, with each function weighted by its time.
    compile_seconds: seconds that the compiler took.
    again: compiles the kernel in another process.
    """

    device: str
    make_kernel: Callable[[], Kernel]
    spec: ProgramSpec
    program: CompiledProgram
    flops: sint
    bytes_moved: sint
    operations: sint
    compile_seconds: float
    again: Callable[[str, UOp, UOp, UOp, tuple[Opt, ...]], Runner] = field(repr=False)

    @property
    def kernel(self) -> Kernel:
        """The ast and its opts."""
        return self.make_kernel()

    @cached_property
    def nbytes(self) -> int:
        """Approximate bytes of memory that the Runner takes."""
        return RUNNER_BYTES + self.program.nbytes

    def run(self, bound: Callable[[int, int], None], values: Sequence[int] = ()) -> None:
        """Runs `bound`, this program bound to buffers and `values`, once, on as many threads as the work justifies."""
        run_divided(bound, self.spec.extent(values), self.work_ns(values))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the Runner without machine code, which is compiled again on first use, or read from disk."""
        kernel = self.kernel
        return self.again, (self.device, kernel.ast, kernel.original, kernel.start, kernel.applied)

    def work_ns(self, values: Sequence[int]) -> float:
        """Returns the estimated nanoseconds on one core, for these values of its Variables."""
        operations, moved_bytes = self.operations, self.bytes_moved
        if type(operations) is int and type(moved_bytes) is int:
            return estimated_ns(operations, moved_bytes, self.spec.target)
        bound = dict(zip(self.spec.variables, values))
        return estimated_ns(value_of(operations, bound), value_of(moved_bytes, bound), self.spec.target)


__all__ = ["RUNNER_BYTES", "Runner"]
