"""The throughput of a loop as plain data, for the panel and the static picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tinyexplore.explore.tracefile.readable import ReadableRow

Bound = Literal["ports", "front end", "dependencies", "unknown"]


@dataclass(frozen=True, slots=True, repr=False)
class ThroughputData(ReadableRow):
    """The data that the panel of throughputs draws, without unused ports."""

    kernel: str
    """Name of the kernel."""
    lines: tuple[int, int] | None
    """First line of the loop in the listing, and the one after its last."""
    instructions: tuple[tuple[str, int, int, tuple[tuple[str, float], ...], int | None], ...]
    """Of each instruction: text, micro-operations, latency in cycles, cycles of each port, line of the listing."""
    cycles: float
    """Cycles of one iteration, as simulated."""
    ports: tuple[tuple[str, float], ...]
    """Cycles of one iteration that each port is busy."""
    front_end: float
    """Cycles in which the instructions of one iteration can begin, at best."""
    bound: Bound
    """The bottleneck."""
    reason: str
    """Why, as text."""
    cpu: str
    """The CPU whose model this is."""
    tool: str
    """The program that has the model, with its version."""
    measured: float | None
    """Cycles of one iteration by the time of a run."""
    notes: tuple[str, ...]
    """What else a reader must know."""
