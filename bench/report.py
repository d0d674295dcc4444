"""What was measured as data (JSON), as a table, and with its ratios."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.cases import Case
from bench.harness import MACHINE, Timing
from bench.peers import OURS

REPORT_VERSION = 1
SHORTEST_LIMIT = 20e-6  # seconds: below that a case measures the price of a call, and has no limit stated
SMALLEST_TRAFFIC = 256 << 10  # bytes: streaming less than that measures the start of threads


@dataclass(frozen=True)
class Figures:
    """Seconds: the minimum, median and quartiles of the samples."""

    minimum: float
    low: float
    median: float
    high: float
    samples: int

    @staticmethod
    def of(samples: Sequence[float]) -> Figures:
        if not samples:
            raise ValueError("no samples to sum up")
        low, median, high = samples[0], samples[0], samples[0]
        if len(samples) > 1:
            low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        return Figures(min(samples), low, median, high, len(samples))


@dataclass
class Row:
    """One case: every peer's figures or failure, and the ratios that follow.

    `limit` is the machine's own: the longer of doing the case's flops at the measured peak and moving its bytes at
    the best bandwidth, the latter measured among the peers. Ratios are of minima; None where a side is missing.
    `ours` is the quicker way of using tinyexplore, `best` the quickest other peer.
    """

    name: str
    what: str
    figures: dict[str, Figures] = field(default_factory=dict)
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    limit: float | None = None
    limited_by: str = ""
    ours: str | None = None
    best: str | None = None

    def ratio(self, top: str | None, bottom: str | None) -> float | None:
        """How many times longer `top` takes than `bottom`."""
        if top is None or bottom is None:
            return None
        return self.figures[top].minimum / self.figures[bottom].minimum

    def over_limit(self, peer: str | None) -> float | None:
        if peer is None or self.limit is None:
            return None
        return self.figures[peer].minimum / self.limit

    @property
    def ours_over_best(self) -> float | None:
        return self.ratio(self.ours, self.best)


def make_row(case: Case, timings: dict[str, Timing], peak_flops: float | None) -> Row:
    """Sums up what the harness brought; `peak_flops` is what the machine does in a second."""
    row = Row(case.name, case.what)
    for name, timing in timings.items():
        if timing.failure is not None:
            row.failures[name] = (timing.failure, timing.reason)
        elif timing.samples:
            row.figures[name] = Figures.of(timing.samples)
            row.first[name] = timing.first_seconds
    limits = {}
    if peak_flops:
        limits["flops"] = case.flops / peak_flops
    machine = row.figures.pop(MACHINE, None)
    if machine is not None and case.read_bytes + case.write_bytes >= SMALLEST_TRAFFIC:
        limits["bytes"] = machine.minimum
    row.first.pop(MACHINE, None)
    if limits and (longest := max(limits, key=lambda kind: limits[kind])) and limits[longest] >= SHORTEST_LIMIT:
        row.limit, row.limited_by = limits[longest], longest
    row.ours = _quickest(row, [name for name in row.figures if name in OURS])
    row.best = _quickest(row, [name for name in row.figures if name not in OURS])
    return row


def _quickest(row: Row, names: Iterable[str]) -> str | None:
    return min(names, key=lambda name: row.figures[name].minimum, default=None)


@dataclass
class Report:
    """A whole run. `about`: date, machine, settings; `probes`: (name, threads, value, unit)."""

    about: dict[str, Any]
    peers: dict[str, str]
    left_out: dict[str, str]
    probes: list[tuple[str, int, float, str]]
    rows: list[Row] = field(default_factory=list)
    overhead: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: milliseconds for cases."""
        return {
            "version": REPORT_VERSION,
            "about": self.about,
            "peers": self.peers,
            "left_out": self.left_out,
            "probes": [dict(zip(("name", "threads", "value", "unit"), probe)) for probe in self.probes],
            "cases": [_row_data(row) for row in self.rows],
            "overhead": self.overhead,
        }

    def save(self, path: Path) -> Path:
        path.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    def table(self) -> str:
        """The rows as text, and everything that is missing said below."""
        parts = [_machine_lines(self), _case_table(self), *_notes(self)]
        if self.overhead:
            parts.append(overhead_table(self.overhead))
        return "\n\n".join(part for part in parts if part) + "\n"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None or math.isnan(seconds) else seconds * 1e3


def _row_data(row: Row) -> dict[str, Any]:
    peers: dict[str, Any] = {}
    for name, figures in row.figures.items():
        peers[name] = {
            "min_ms": _ms(figures.minimum),
            "low_ms": _ms(figures.low),
            "median_ms": _ms(figures.median),
            "high_ms": _ms(figures.high),
            "samples": figures.samples,
            "first_ms": _ms(row.first.get(name)),
            "over_best_peer": row.ratio(name, row.best),
            "over_limit": row.over_limit(name),
        }
    for name, (kind, reason) in row.failures.items():
        peers[name] = {"failure": kind, "reason": reason}
    return {
        "name": row.name,
        "what": row.what,
        "limit_ms": _ms(row.limit),
        "limited_by": row.limited_by,
        "ours": row.ours,
        "best_peer": row.best,
        "ours_over_best_peer": row.ours_over_best,
        "ours_over_limit": row.over_limit(row.ours),
        "best_peer_over_limit": row.over_limit(row.best),
        "peers": peers,
    }


# *** text ***


def three_digits(value: float | None) -> str:
    """`value` to three digits, without an exponent."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, the first to the left and the others to the right."""
    widths = [max(len(line[place]) for line in (head, *rows)) for place in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths))
        )
        return "  ".join([first, *others]).rstrip()

    return "\n".join([line(head), "  ".join("─" * width for width in widths), *map(line, rows)])


def _machine_lines(report: Report) -> str:
    lines = [f"{name}: {value}" for name, value in report.about.items()]
    lines.extend(f"{name}: {version}" for name, version in report.peers.items())
    for name, threads, value, unit in report.probes:
        lines.append(f"{name}, {threads} thread{'s' if threads > 1 else ''}: {three_digits(value)} {unit}")
    return "\n".join(lines)


def _case_table(report: Report) -> str:
    if not report.rows:
        return ""
    peers = list(dict.fromkeys(name for row in report.rows for name in (*row.figures, *row.failures)))
    peers = [name for name in peers if name != MACHINE]
    head = ["case, minimum in ms", "limit", *peers, "best peer", "ours/best", "spread", "ours/limit", "best/limit"]
    lines = []
    for row in report.rows:
        cells = [row.name, three_digits(_ms(row.limit))]
        for name in peers:
            if name in row.figures:
                cells.append(three_digits(_ms(row.figures[name].minimum)))
            else:
                kind = row.failures.get(name, ("", ""))[0]
                cannot = "CANNOT YET" if name == "tinyexplore" else "–"
                cells.append({"": "–", "unsupported": cannot}.get(kind, kind.upper()))
        cells.extend([row.best or "–", times(row.ours_over_best), _spread(row)])
        cells.extend([times(row.over_limit(row.ours)), times(row.over_limit(row.best))])
        lines.append(cells)
    return text_table(head, lines)


def _spread(row: Row) -> str:
    """Median and quartiles of ours, over its minimum."""
    if row.ours is None:
        return "–"
    figures = row.figures[row.ours]
    shares = [value / figures.minimum for value in (figures.low, figures.median, figures.high)]
    return "/".join(f"{share:.2f}" for share in shares)


def _notes(report: Report) -> list[str]:
    notes = []
    ratios = [row.ours_over_best for row in report.rows if row.ours_over_best is not None]
    if ratios:
        met = sum(ratio <= 1 for ratio in ratios)
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        notes.append(f"No slower than the best peer in {met} of {len(ratios)} cases; geometric mean {mean:.2f}×.")
    if beaten := [row.name for row in report.rows if (share := row.over_limit(row.best)) is not None and share < 1]:
        notes.append(f"Quicker than the limit, which was measured while the machine was busy: {', '.join(beaten)}.")
    cannot = [
        f"  {row.name}, {name}: {kind}: {reason}"
        for row in report.rows
        for name, (kind, reason) in row.failures.items()
        if kind != "unsupported" or name in OURS
    ]
    if cannot:
        notes.append("\n".join(["NOT MEASURED:", *cannot]))
    if report.left_out:
        notes.append("\n".join(f"LEFT OUT: {name}: {reason}" for name, reason in report.left_out.items()))
    return notes


def overhead_table(entries: Sequence[dict[str, Any]]) -> str:
    """What the compiler and Python themselves cost."""
    lines = []
    for entry in entries:
        value = three_digits(entry["value"]) if isinstance(entry["value"], (int, float)) else str(entry["value"])
        target = three_digits(entry["target"]) if entry.get("target") is not None else "–"
        lines.append([entry["name"], entry["who"], f"{value} {entry['unit']}".strip(), target, entry.get("detail", "")])
    head = ["overhead", "who", "measured", "aim", ""]
    widths = [max(len(line[place]) for line in (head, *lines)) for place in range(4)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths)), cells[4]]).rstrip()

    return "\n".join([line(head), "  ".join("─" * width for width in widths), *map(line, lines)])
