"""The table of a run as text, Markdown and JSON."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import date
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.cliffs.measure import Measured, Settings
from bench.cliffs.programs import PROGRAMS
from bench.cliffs.reasons import REASONS

# the aims: no ratio above BAD, 90 % of the ratios at most GOOD, no first run above FIRST seconds
BAD, GOOD, FIRST = 2.0, 1.2, 1.0


@dataclass(frozen=True)
class Report:
    """The rows of a run, with the machine and the settings.

    about: versions, machine and settings by name.
    rows: one for each program.
    """

    about: dict[str, str]
    rows: list[Measured]

    def save(self, path: Path) -> None:
        content = {"about": self.about, "rows": [asdict(row) for row in self.rows]}
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Report:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Report(
            content["about"], [Measured(**{**row, "samples": tuple(row["samples"])}) for row in content["rows"]]
        )

    @property
    def worst_first(self) -> list[Measured]:
        return sorted(self.rows, key=lambda row: (row.counts, row.ratio), reverse=True)


def describe_run(settings: Settings) -> dict[str, Any]:
    """Return the machine, date and settings."""
    from llvmlite.binding import get_host_cpu_name

    from bench.__main__ import _cpu_name
    from tinyexplore.target import current_choice

    peer = "torch.compile" if settings.compiles else "eager"
    return {
        "date": date.today().isoformat(),
        "cpu": f"{_cpu_name()} (LLVM: {get_host_cpu_name()}), {os.cpu_count()} cores",
        "target": current_choice().text or "native",
        "peer": f"PyTorch, {peer}",
        "threads": str(settings.threads),
        "clock": "time on the CPU" if settings.cpu_time else "wall",
        "replayed": f"programs that PyTorch runs in less than {settings.short * 1e3:g} ms",
        "samples": f"medians; {settings.rounds} repetitions of {settings.slice_seconds * 1e3:g} ms of each engine",
    }


def line(row: Measured) -> str:
    """Return one row as text."""
    if row.failure:
        return f"{'FAILED':>8} {row.name}: {row.failure}"
    way = "replayed" if row.is_replayed else "realized"
    times = (
        f"ours {row.ours * 1e6:>9,.0f} µs, theirs {row.theirs * 1e6:>8,.0f} µs, first run {row.first * 1e3:>6,.0f} ms"
    )
    return f"{row.ratio:8.2f} {row.name:34} {times}, {way}"


def text(report: Report) -> str:
    """Return the rows as text, worst first, and the summary."""
    return "\n".join([*map(line, report.worst_first), "", summary(report)])


def summary(report: Report) -> str:
    """Return a sentence about each aim: how many rows meet it."""
    rows = [row for row in report.rows if row.counts]
    timed = [row for row in rows if not row.failure]
    if not timed:
        return f"{len(rows)} programs, none timed"
    bad = sum(row.ratio > BAD for row in timed)
    good = sum(row.ratio <= GOOD for row in timed)
    slow = sum(row.first > FIRST for row in timed)
    mean = exp(fmean(log(row.ratio) for row in timed))
    return (
        f"{len(rows)} programs, {len(rows) - len(timed)} failed; {bad} above {BAD:g}×; "
        f"{100 * good / len(timed):.0f} % at most {GOOD:g}×; geometric mean {mean:.2f}; "
        f"{slow} first runs above {FIRST:g} s"
    )


def markdown(report: Report, before: Report | None) -> str:
    """Return the table as a document. `before` adds the ratios of an earlier run."""
    earlier = {row.name: row for row in before.rows} if before else {}
    lines = [
        "# Ordinary programs beside PyTorch",
        "",
        "Written by `python -m bench.cliffs`. Times are of one call.",
        "",
    ]
    lines += [f"- {key}: {value}" for key, value in report.about.items()]
    lines += ["", f"{summary(report)}."]
    if before:
        lines += ["", f"Before ({before.about['date']}, {before.about['cpu']}): {summary(before)}."]
    lines += ["", "| program | group | ours, µs | PyTorch, µs | ratio | before | first run, ms | |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---|"]
    for row in report.worst_first:
        old = f"{earlier[row.name].ratio:.2f}" if row.name in earlier else ""
        name = row.name.replace("|", "\\|")
        if row.failure:
            lines.append(f"| {name} | {row.group} | | | failed | {old} | | {row.failure} |")
            continue
        way = "replayed" if row.is_replayed else ""
        times = f"{row.ours * 1e6:,.0f} | {row.theirs * 1e6:,.0f} | {row.ratio:.2f} | {old} | {row.first * 1e3:,.0f}"
        lines.append(f"| {name} | {row.group} | {times} | {way} |")
    return "\n".join([*lines, *reasons(report)]) + "\n"


def reasons(report: Report) -> list[str]:
    """Return a section with the causes why rows miss the aim."""
    above = [row for row in report.worst_first if row.counts and not row.failure and row.ratio > GOOD]
    if not above:
        return []
    lines = ["", f"## Rows above {GOOD:g}×", "", "| program | ratio | why |", "|---|---:|---|"]
    for row in above:
        name = row.name.replace("|", "\\|")
        lines.append(f"| {name} | {row.ratio:.2f} | {REASONS.get(row.name, 'no cause found yet')} |")
    return lines


def rows_of(file: str) -> list[Measured]:
    """Return the rows of FILE.json."""
    return Report.load(Path(file).with_suffix(".json")).rows


def with_earlier_rows(file: str, report: Report) -> Report:
    """Return `report`, completed with the rows of FILE.json that it lacks.

    Rows of programs that no longer exist are dropped. Raise ValueError if FILE.json was measured with other settings.
    """
    path = Path(file).with_suffix(".json")
    if not path.is_file():
        return report
    old = Report.load(path)
    for key in report.about.keys() - {"date", "samples"}:
        if old.about.get(key) != report.about[key]:
            raise ValueError(
                f"{path} was measured with {key} {old.about.get(key)!r}, this run with {report.about[key]!r}"
            )
    rows = {row.name: row for row in (*old.rows, *report.rows)}
    samples = old.about.get("samples", "")
    if report.about.get("samples", "") not in samples:
        report.about["samples"] = f"{samples}; of some rows {report.about['samples']}"
    else:
        report.about["samples"] = samples
    return Report(report.about, [rows[program.name] for program in PROGRAMS if program.name in rows])


def write(report: Report, file: str) -> None:
    """Write FILE.json and FILE.md.

    If FILE-before.json exists, the document compares the rows with that earlier run.
    """
    path = Path(file).with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    report.save(path)
    older = path.with_name(f"{path.stem}-before.json")
    before = Report.load(older) if older.is_file() else None
    path.with_suffix(".md").write_text(markdown(report, before), encoding="utf-8")
