"""The throughput of a loop as a static picture: its instructions, the ports that each keeps busy, its bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.explore.tracefile.pictures.sheets import Column, sheet_svg

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.byhand.throughput import Throughput

MOST_PORTS = 12  # columns; the busiest
LEAST_SHOWN = 0.005  # cycles


def throughput_svg(result: Throughput) -> str:
    """A row for each instruction and one for their sums, a column for each port that is used, the busiest first; then
    the bounds, and what was measured."""
    ports = [name for name, cycles in sorted(result.port_cycles.items(), key=lambda one: -one[1]) if cycles]
    ports = ports[:MOST_PORTS]
    rows: list[tuple[str, ...]] = []
    for one in result.instructions:
        used = [_cycles(one.ports.get(name, 0.0)) for name in ports]
        rows.append((one.text, str(one.uops), str(one.latency), *used))
    uops = sum(one.uops for one in result.instructions)
    rows.append(("all of it", str(uops), "", *(_cycles(result.port_cycles[name]) for name in ports)))
    blank = ("",) * (len(ports) + 2)
    rows += [(f"{words}: {cycles:.2f} cycles", *blank) for words, cycles in bounds(result)]
    columns = (
        Column("instruction", mono=True),
        Column("µops", right=True),
        Column("latency", right=True),
        *(Column(name, right=True) for name in ports),
    )
    title = f"{result.kernel or 'loop'}: {result.cycles:.2f} cycles an iteration, {bound_words(result.bound)}"
    note = f"{result.reason} · {result.cpu}, {result.tool}"
    return sheet_svg(title, columns, rows, note)


def bounds(result: Throughput) -> list[tuple[str, float]]:
    """What one iteration takes at least, as simulated, and as measured; in cycles."""
    rows = [
        ("the busiest port", max(result.port_cycles.values(), default=0.0)),
        ("the front end", result.front_end_cycles),
        ("simulated", result.cycles),
    ]
    if result.measured_cycles is not None:
        rows.append(("measured", result.measured_cycles))
    return rows


def bound_words(bound: str) -> str:
    """ "bound by ports", "bound by the front end"; where the measurement contradicts the model, no bottleneck."""
    if bound == "unknown":
        return "by a model that the measurement contradicts: no bottleneck is named"
    return "bound by the front end" if bound == "front end" else f"bound by {bound}"


def _cycles(value: float) -> str:
    return f"{value:.2f}" if value >= LEAST_SHOWN else ""


__all__ = ["bound_words", "bounds", "throughput_svg"]
