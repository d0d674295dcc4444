"""A kernel compiled for one machine, with the facts that are compared between machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyexplore.device import Device
from tinyexplore.explore.analysis.comparisons.instructions import Instructions
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import KernelInfo
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.target import Target
from tinyexplore.util import Context


@dataclass(frozen=True, slots=True, repr=False)
class Machine(DisplayableRow):
    """A CPU for which kernels are compiled.

    name: the name as requested.
    arch: the instruction set.
    cpu: the model.
    vector_bits: the width of a vector register in bits, 0 for none.
    registers: the number of vector registers.
    runs_here: whether this machine can run its code.
    """

    name: str
    arch: str
    cpu: str
    vector_bits: int
    registers: int
    runs_here: bool

    @staticmethod
    def of(name: str) -> Machine:
        with Context(TARGET=name):
            device = Device["LLVM"]
            target: Target = device.target
        bits = 8 * target.vector_bytes
        count = target.vector_registers if bits else 0
        return Machine(name or target.cpu, target.arch, target.cpu, bits, count, not device.refusal)


@dataclass(frozen=True, slots=True, repr=False)
class MachineKernel(DisplayableRow):
    """A kernel for one machine.

    machine: the machine.
    kernel: the kernel.
    assembly: the lines of its assembly.
    instructions: the counts of the assembly.
    median_us: the median time in microseconds; None if it cannot run here, and `kernel.not_run` has the reason.
    """

    machine: Machine
    kernel: KernelInfo
    assembly: tuple[str, ...]
    instructions: Instructions
    median_us: float | None


Row = tuple[MachineKernel | None, ...]  # the kernel for each of the machines


def describe_vectors(machine: Machine) -> str:
    """Returns the vector registers as text: "16 × 256 bit"."""
    return f"{machine.registers} × {machine.vector_bits} bit" if machine.vector_bits else "no vectors"


def describe_time(result: MachineKernel) -> str:
    """Returns the median time as text, or the reason why there is none."""
    if result.median_us is not None:
        return duration_text(result.median_us)
    return "no samples here" if result.kernel.not_run else "not run"


FACTS: tuple[tuple[str, Callable[[MachineKernel], str]], ...] = (
    ("architecture", lambda result: result.machine.arch),
    (
        "vector registers",
        lambda result: f"{describe_vectors(result.machine)}, {len(result.instructions.registers)} used",
    ),
    ("floats per instruction, at most", lambda result: str(max(1, result.instructions.widest_bits // 32))),
    ("instructions", lambda result: f"{result.instructions.total:,}, {result.instructions.vector:,} on vectors"),
    (
        "in the busiest loop",
        lambda result: f"{result.instructions.in_loop:,}, {result.instructions.vector_in_loop:,} on vectors",
    ),
    (
        "machine code",
        lambda result: count_text(result.kernel.code_bytes, "byte") if result.kernel.code_bytes else "unknown",
    ),
    ("time", describe_time),
)
