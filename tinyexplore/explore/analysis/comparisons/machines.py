"""One program compiled for several machines, with its kernels side by side. The machines are not needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyexplore.explore.analysis.comparisons.instructions import instructions_of
from tinyexplore.explore.analysis.comparisons.machine_kernel import FACTS, Machine, MachineKernel, Row
from tinyexplore.explore.analysis.comparisons.machines_page import machines_html, machines_svg
from tinyexplore.explore.analysis.comparisons.trace_diff import diff
from tinyexplore.explore.tracefile.encodable_text import PageText, write_text
from tinyexplore.explore.tracefile.result_display import page_frame
from tinyexplore.explore.tracefile.trace import Trace


@dataclass(frozen=True, slots=True)
class Machines:
    """The result of `explore.targets`. A notebook displays it as the page from `to_html`.

    title: the title of the capture.
    machines: the machines, in the order requested.
    traces: a capture for each machine.
    rows: each kernel for all machines, None if a machine has no such kernel.
    """

    title: str
    machines: tuple[Machine, ...]
    traces: tuple[Trace, ...]
    rows: tuple[Row, ...]

    @property
    def main(self) -> Row:
        """The kernel with the most operations."""
        if not self.rows:
            raise ValueError("nothing was computed, so there is no kernel to compare")
        return max(self.rows, key=lambda row: max(result.kernel.flops for result in row if result is not None))

    def __repr__(self) -> str:
        return machines_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for JSON: the machines, and each kernel for each machine."""
        return machines_dict(self)

    def svg(self, row: int | None = None) -> str:
        """Returns a kernel as one picture: the vector registers of each machine to scale, used ones filled, and
        instruction counts.

        row: the position of the kernel in `rows`; by default the kernel with the most operations.
        """
        return machines_svg(self.main if row is None else self.rows[row], self.title)

    def to_html(self, path: str | Path | None = None) -> str:
        """Returns one page without script or request; also write it to `path` if given."""
        page = machines_html(self)
        if path is not None:
            write_text(path, page)
        return PageText(page)

    def _repr_html_(self) -> str:
        return page_frame("machines", self.to_html(), "42rem")


def machines_of(names: Sequence[str], traces: Sequence[Trace]) -> Machines:
    """Combines `traces` of one program, one for each of `names` (LLVM's CPU names)."""
    machines = tuple([Machine.of(name) for name in names])
    return Machines(traces[0].title, machines, tuple(traces), _make_rows(machines, traces))


def _make_rows(machines: Sequence[Machine], traces: Sequence[Trace]) -> tuple[Row, ...]:
    """Returns a row for each kernel of the first trace, in order."""
    partners = [dict(diff(traces[0], trace).kernels) for trace in traces[1:]]
    rows = []
    for kernel in traces[0].kernels:
        kernel_ids = [kernel.id, *(partner.get(kernel.id) for partner in partners)]
        row = tuple([_find_kernel_for_machine(*of) for of in zip(machines, traces, kernel_ids, strict=True)])
        if row[0] is not None:
            rows.append(row)
    return tuple(rows)


def _find_kernel_for_machine(machine: Machine, trace: Trace, number: int | None) -> MachineKernel | None:
    """Returns a kernel for a machine; None if it has no assembly (a copy) or does not exist."""
    if number is None:
        return None
    kernel = trace.kernels[number]
    owner = number if kernel.same_as is None else kernel.same_as
    listings = [program for program in trace.programs if program.kernel == owner and program.language == "asm"]
    if not listings:
        return None
    lines = tuple([line.text for line in listings[-1].lines])
    medians = {run.kernel: run.median_us for run in trace.runs}
    instructions = instructions_of(lines, machine.arch, machine.vector_bits)
    return MachineKernel(machine, kernel, lines, instructions, medians.get(number))


# *** text and data ***


def machines_text(machines: Machines) -> str:
    """Returns a table for each kernel, with a column for each machine."""
    lines = [f"{machines.title or 'a program'} for {', '.join(machine.name for machine in machines.machines)}"]
    for row in machines.rows:
        present = [result for result in row if result is not None]
        cells = [
            ["", *(result.machine.name for result in present)],
            ["kernel", *(result.kernel.name for result in present)],
        ]
        cells += [[title, *map(describe, present)] for title, describe in FACTS]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        lines.append("")
        lines += ["  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join(lines)


def machines_dict(comparison: Machines) -> dict[str, Any]:
    """Returns the data of `Machines.to_dict`."""
    machines = [
        {
            "name": machine.name,
            "arch": machine.arch,
            "cpu": machine.cpu,
            "vector_bits": machine.vector_bits,
            "registers": machine.registers,
            "runs_here": machine.runs_here,
        }
        for machine in comparison.machines
    ]
    return {
        "title": comparison.title,
        "machines": machines,
        "kernels": [[_result_to_dict(result) for result in row] for row in comparison.rows],
    }


def _result_to_dict(result: MachineKernel | None) -> dict[str, Any] | None:
    """Returns the result of a kernel on one machine as plain data."""
    if result is None:
        return None
    counted = result.instructions
    return {
        "machine": result.machine.name,
        "kernel": result.kernel.id,
        "name": result.kernel.name,
        "opts": list(result.kernel.opts),
        "code_bytes": result.kernel.code_bytes,
        "instructions": counted.total,
        "vector_instructions": counted.vector,
        "widest_bits": counted.widest_bits,
        "registers_used": list(counted.registers),
        "loop_instructions": counted.in_loop,
        "loop_vector_instructions": counted.vector_in_loop,
        "median_us": result.median_us,
        "not_run": result.kernel.not_run,
    }


__all__ = ["Machines", "machines_of"]
