"""Draws the throughput of a loop: its instructions, the ports that each occupies, and its bounds."""

from __future__ import annotations

from tinyexplore.explore.analysis.models.throughput_data import ThroughputData
from tinyexplore.explore.tracefile.pictures.table_pictures import Column, sheet_svg

MAX_PORTS = 12  # columns, for the busiest ports
MIN_SHOWN_CYCLES = 0.005  # cycles


def throughput_svg(result: ThroughputData) -> str:
    """Returns a row for each instruction and one for their sums, and a column for each used port, the busiest first.

    The bounds and the measured cycles follow.
    """
    port_cycles = dict(sorted(result.ports, key=lambda port: -port[1])[:MAX_PORTS])
    rows: list[tuple[str, ...]] = []
    for instruction, uops, latency, keeps_busy, _ in result.instructions:
        used = [_format_cycles(dict(keeps_busy).get(name, 0.0)) for name in port_cycles]
        rows.append((instruction, str(uops), str(latency), *used))
    all_uops = sum(uops for _, uops, _, _, _ in result.instructions)
    rows.append(("all of it", str(all_uops), "", *map(_format_cycles, port_cycles.values())))
    blank = ("",) * (len(port_cycles) + 2)
    rows += [(f"{label}: {cycles:.2f} cycles", *blank) for label, cycles in bounds(result)]
    columns = (
        Column("instruction", mono=True),
        Column("µops", right=True),
        Column("latency", right=True),
        *(Column(name, right=True) for name in port_cycles),
    )
    title = f"{result.kernel or 'loop'}: {result.cycles:.2f} cycles an iteration, {describe_bound(result.bound)}"
    note = f"{result.reason} · {result.cpu}, {result.tool}"
    return sheet_svg(title, columns, rows, note)


def bounds(result: ThroughputData) -> list[tuple[str, float]]:
    """Returns the cycles of one iteration: lower bounds, simulated and measured."""
    rows = [
        ("the busiest port", max((cycles for _, cycles in result.ports), default=0.0)),
        ("the front end", result.front_end),
        ("simulated", result.cycles),
    ]
    if result.measured is not None:
        rows.append(("measured", result.measured))
    return rows


def describe_bound(bound: str) -> str:
    """Returns the bottleneck as text: "bound by ports", "bound by the front end"; no bottleneck if it is "unknown"."""
    if bound == "unknown":
        return "The measurement contradicts the model, so no bottleneck is named"
    return "bound by the front end" if bound == "front end" else f"bound by {bound}"


def _format_cycles(value: float) -> str:
    return f"{value:.2f}" if value >= MIN_SHOWN_CYCLES else ""


__all__ = ["describe_bound", "bounds", "throughput_svg"]
