"""The measurements as data: figures, rows with their ratios, and the whole report as JSON."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.cases import CASES, TINY, Case
from bench.harness import MACHINE, Timing
from bench.peers import OURS
from bench.wide.cases import TINY_WIDE, WIDE

REPORT_VERSION = 2
SHORTEST_LIMIT = 20e-6  # seconds; a shorter case measures the cost of a call, and no limit is stated
SMALLEST_TRAFFIC = 256 << 10  # bytes; streaming less measures the start of the threads


@dataclass(frozen=True)
class Figures:
    """The minimum, median and quartiles of the samples, in seconds.

    minimum: shortest sample.
    low: first quartile.
    median: second quartile.
    high: third quartile.
    samples: their number.
    """

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
    """One case: the figures or the failure of every peer, and the ratios.

    Ratios are ratios of minima, or None if one side is missing.

    name: of the case.
    what: description of the case.
    figures: for each peer that has samples.
    failures: kind and reason, for each peer that has none.
    limit: seconds on this machine: the longer of the case's flops at the measured peak and its bytes at the best
        bandwidth, which is measured as a peer.
    limited_by: "flops" or "bytes", whichever takes longer.
    flops: of the case.
    date: of the measurement.
    """

    name: str
    what: str
    figures: dict[str, Figures] = field(default_factory=dict)
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)
    limit: float | None = None
    limited_by: str = ""
    flops: int = 0
    date: str = ""

    @property
    def ours(self) -> str | None:
        """Return the faster way of using tinyexplore."""
        return self.quickest(name for name in self.figures if name in OURS)

    @property
    def best(self) -> str | None:
        """Return the fastest other peer."""
        return self.quickest(name for name in self.figures if name not in OURS)

    def quickest(self, names: Iterable[str]) -> str | None:
        """Return the fastest of the peers in `names` that have a time."""
        timed = [name for name in names if name in self.figures]
        return min(timed, key=lambda name: self.figures[name].minimum, default=None)

    def ratio(self, top: str | None, bottom: str | None) -> float | None:
        """Return how many times longer `top` takes than `bottom`."""
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


def make_row(case: Case, timings: dict[str, Timing], peak_flops: float | None, date: str = "") -> Row:
    """Return the row of `case` from the timings of the harness.

    `peak_flops`: the machine's peak per second.
    """
    row = Row(case.name, case.what, flops=case.flops, date=date)
    for name, timing in timings.items():
        if timing.failure is not None:
            row.failures[name] = (timing.failure, timing.reason)
        elif timing.samples:
            row.figures[name] = Figures.of(timing.samples)
    limits = {}
    if peak_flops:
        limits["flops"] = case.flops / peak_flops
    machine = row.figures.pop(MACHINE, None)
    if machine is not None and case.read_bytes + case.write_bytes >= SMALLEST_TRAFFIC:
        limits["bytes"] = machine.minimum
    if limits and (longest := max(limits, key=lambda kind: limits[kind])) and limits[longest] >= SHORTEST_LIMIT:
        row.limit, row.limited_by = limits[longest], longest
    return row


@dataclass
class FirstRun:
    """The first call of a fresh process for each way, in seconds; or the reason why there is none.

    name: of the case.
    seconds: of the first call, for each engine.
    with_imports: from the start of the engine's import, over the transfer of the inputs, to the first result.
    failures: kind and reason, for each engine without a time.
    date: of the measurement.
    """

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    with_imports: dict[str, float] = field(default_factory=dict)
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)
    date: str = ""


@dataclass
class Report:
    """The measurements of one machine.

    about: machine, threads, settings.
    peers: version of each peer.
    left_out: reason for each peer that did not run.
    probes: measured limits: (name, threads, value, unit).
    rows: one for each case.
    first: first calls, one for each case.
    overhead: costs in Python, of recording and of compilation.
    """

    about: dict[str, Any]
    peers: dict[str, str]
    left_out: dict[str, str]
    probes: list[tuple[str, int, float, str]]
    rows: list[Row] = field(default_factory=list)
    first: list[FirstRun] = field(default_factory=list)
    overhead: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, with the times of cases in milliseconds."""
        return {
            "version": REPORT_VERSION,
            "about": self.about,
            "peers": self.peers,
            "left_out": self.left_out,
            "probes": [dict(zip(("name", "threads", "value", "unit"), probe)) for probe in self.probes],
            "cases": [_row_data(row) for row in self.rows],
            "first_runs": [_first_data(run) for run in self.first],
            "overhead": self.overhead,
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Report:
        """Return the report from the data of `to_dict`."""
        if data.get("version") != REPORT_VERSION:
            raise ValueError(f"a report of version {data.get('version')}; this bench reads version {REPORT_VERSION}")
        probes = [(probe["name"], probe["threads"], probe["value"], probe["unit"]) for probe in data["probes"]]
        rows = [_row_of(entry) for entry in data["cases"]]
        first = [_first_of(entry) for entry in data["first_runs"]]
        return Report(data["about"], data["peers"], data["left_out"], probes, rows, first, data["overhead"])

    def save(self, path: Path) -> Path:
        path.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    @staticmethod
    def load(path: Path) -> Report:
        return Report.from_dict(json.loads(path.read_text(encoding="utf-8")))

    def updating(self, older: Report) -> Report:
        """Return this report, completed with the measurements of `older` that it lacks.

        Raise ValueError if machines differ.
        """
        for fact in ("machine", "target", "threads"):
            if self.about.get(fact) != older.about.get(fact) and fact in older.about:
                raise ValueError(f"the {fact} was {older.about.get(fact)}, and is {self.about.get(fact)}")
        rows = {row.name: row for row in (*older.rows, *self.rows)}
        first = {run.name: run for run in (*older.first, *self.first)}
        order = [case.name for case in (*CASES, *TINY, *WIDE, *TINY_WIDE)]
        return Report(
            self.about if self.rows else older.about,
            {**older.peers, **self.peers},
            {name: why for name, why in {**older.left_out, **self.left_out}.items() if name not in self.peers},
            self.probes or older.probes,
            sorted(rows.values(), key=lambda row: order.index(row.name)),
            sorted(first.values(), key=lambda run: order.index(run.name)),
            self.overhead or older.overhead,
        )


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
            "over_best_peer": row.ratio(name, row.best),
            "over_limit": row.over_limit(name),
        }
    for name, (kind, reason) in row.failures.items():
        peers[name] = {"failure": kind, "reason": reason}
    return {
        "name": row.name,
        "what": row.what,
        "date": row.date,
        "flops": row.flops,
        "limit_ms": _ms(row.limit),
        "limited_by": row.limited_by,
        "ours": row.ours,
        "best_peer": row.best,
        "ours_over_best_peer": row.ours_over_best,
        "ours_over_limit": row.over_limit(row.ours),
        "best_peer_over_limit": row.over_limit(row.best),
        "peers": peers,
    }


def _row_of(data: dict[str, Any]) -> Row:
    row = Row(data["name"], data["what"], limited_by=data["limited_by"], flops=data["flops"], date=data["date"])
    row.limit = None if data["limit_ms"] is None else data["limit_ms"] / 1e3
    for name, entry in data["peers"].items():
        if "failure" in entry:
            row.failures[name] = (entry["failure"], entry["reason"])
        else:
            least, low, median, high = (entry[key] / 1e3 for key in ("min_ms", "low_ms", "median_ms", "high_ms"))
            row.figures[name] = Figures(least, low, median, high, entry["samples"])
    return row


def _first_data(run: FirstRun) -> dict[str, Any]:
    ways: dict[str, Any] = {way: {"ms": _ms(seconds)} for way, seconds in run.seconds.items()}
    for way, seconds in run.with_imports.items():
        ways[way]["with_imports_ms"] = _ms(seconds)
    ways.update({way: {"failure": kind, "reason": reason} for way, (kind, reason) in run.failures.items()})
    return {"name": run.name, "date": run.date, "ways": ways}


def _first_of(data: dict[str, Any]) -> FirstRun:
    run = FirstRun(data["name"], date=data["date"])
    for way, entry in data["ways"].items():
        if "failure" in entry:
            run.failures[way] = (entry["failure"], entry["reason"])
        else:
            run.seconds[way] = entry["ms"] / 1e3
            if "with_imports_ms" in entry:
                run.with_imports[way] = entry["with_imports_ms"] / 1e3
    return run
