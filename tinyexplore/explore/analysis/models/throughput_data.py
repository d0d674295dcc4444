"""The throughput of a loop as plain data, for the panel and the static picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tinyexplore.explore.tracefile.result_display import DisplayableRow

Bound = Literal["ports", "front end", "dependencies", "unknown"]


@dataclass(frozen=True, slots=True, repr=False)
class ThroughputData(DisplayableRow):
    """The data that the panel of throughputs draws, without unused ports."""

    kernel: str
    """Name of the kernel."""
    lines: tuple[int, int] | None
    """First line of the loop in the listing, and the line after its last."""
    instructions: tuple[tuple[str, int, int, tuple[tuple[str, float], ...], int | None], ...]
    """Text, micro-operations, latency in cycles, cycles of each port, and listing line of each instruction."""
    cycles: float
    """Simulated cycles of one iteration."""
    ports: tuple[tuple[str, float], ...]
    """Busy cycles of each port in one iteration."""
    front_end: float
    """Fewest cycles in which the instructions of one iteration can issue."""
    bound: Bound
    """The bottleneck."""
    reason: str
    """The reason, as text."""
    cpu: str
    """The modeled CPU."""
    tool: str
    """The program with the model, and its version."""
    measured: float | None
    """Measured cycles of one iteration; None if unknown."""
    notes: tuple[str, ...]
    """Remarks for the reader."""
