"""A report as text for a terminal, and as Markdown for the documents."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.first_run import COLD, WARM
from bench.peers import OURS
from bench.report import FirstRun, Report, Row
from bench.targets import MAX_RATIO_TO_TINYGRAD, Aim, aims, python_costs

# several ways of using one engine share a column, which shows the best
COLUMNS = {
    "NumPy": ("numpy",),
    "torch": ("torch",),
    "torch.compile": ("torch.compile", "torch.max"),
    "JAX": ("jax",),
    "Numba": ("numba",),
    "tinygrad": ("tinygrad", "tinygrad.llvm", "tinygrad.x86"),
}
NEAR = 1.1  # times the best peer; noise hides smaller differences
BUSY = 0.7  # load at the start (processes ready to run) above which the report has a warning
LIMITED_BY = {"flops": "arithmetic", "bytes": "memory", "": ""}


# *** numbers ***


def three_digits(value: float | None) -> str:
    """Return `value` with three digits, without an exponent."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def milliseconds(seconds: float | None) -> str:
    return three_digits(None if seconds is None else seconds * 1e3)


def times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def summary(report: Report) -> str:
    """Return a sentence with the number of rows that meet the aim, or "" if no ratio is known."""
    ratios = [row.ours_over_best for row in report.rows if row.ours_over_best is not None]
    if not ratios:
        return ""
    met = sum(ratio <= 1 for ratio in ratios)
    near = sum(ratio <= NEAR for ratio in ratios)
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    return (
        f"No slower than the best peer in {met} of {len(ratios)} cases, within {NEAR}× in {near}; "
        f"geometric mean {mean:.2f}×."
    )


def not_measured(report: Report) -> list[str]:
    """Return a line for every failure, and for every case that tinyexplore does not support."""
    entries: list[tuple[str, dict[str, tuple[str, str]]]] = [(row.name, row.failures) for row in report.rows]
    entries.extend((f"{run.name}, first run", run.failures) for run in report.first)
    return [
        f"{label}, {name}: {kind}: {' '.join(reason.split())}"
        for label, failures in entries
        for name, (kind, reason) in failures.items()
        if kind != "unsupported" or name in OURS
    ]


# *** text ***


def text(report: Report) -> str:
    """Return the whole report for a terminal. Missing measurements are listed at the end."""
    parts = [_machine_lines(report), _case_table(report), *_notes(report)]
    if report.first:
        parts.append(text_table(*first_run_cells(report.first)))
    if report.overhead:
        parts.append(overhead_table(report.overhead))
    if costs := python_cost_cells(report):
        parts.append(text_table(*costs))
    return "\n\n".join(part for part in parts if part) + "\n"


def targets_text(report: Report) -> str:
    """Return every aim with its figure, for a terminal."""
    head = ["aim", "", "measured", "met"]
    rows = [[f"{aim.area}: {aim.name}", _bound_text(aim), _found_text(aim), _met_text(aim)] for aim in aims(report)]
    return text_table(head, rows) + "\n"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned table: the first column to the left, the others to the right."""
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
    head = ["case, minimum in ms", "limit", *peers, "best peer", "ours/best", "spread", "ours/limit", "best/limit"]
    lines = []
    for row in report.rows:
        cells = [row.name, milliseconds(row.limit), *(_time(row, name) for name in peers)]
        cells.extend([row.best or "–", times(row.ours_over_best), _spread(row)])
        cells.extend([times(row.over_limit(row.ours)), times(row.over_limit(row.best))])
        lines.append(cells)
    return text_table(head, lines)


def _time(row: Row, name: str) -> str:
    """Return the best time of a peer in ms, or one word for the reason why there is none."""
    if name in row.figures:
        return milliseconds(row.figures[name].minimum)
    kind = row.failures.get(name, ("", ""))[0]
    cannot = "CANNOT YET" if name == "tinyexplore" else "–"
    return {"": "–", "unsupported": cannot}.get(kind, kind.upper())


def _spread(row: Row) -> str:
    """Return the median and quartiles of tinyexplore over its minimum."""
    if row.ours is None:
        return "–"
    figures = row.figures[row.ours]
    shares = [value / figures.minimum for value in (figures.low, figures.median, figures.high)]
    return "/".join(f"{share:.2f}" for share in shares)


def _notes(report: Report) -> list[str]:
    notes = [summary(report)]
    if any(row.ours is not None for row in report.rows):
        notes.append("Spread: the lower quartile, the median and the upper quartile of ours, over its minimum.")
    if beaten := [row.name for row in report.rows if (share := row.over_limit(row.best)) is not None and share < 1]:
        notes.append(f"Quicker than the limit, which was measured while the machine was busy: {', '.join(beaten)}.")
    if lines := not_measured(report):
        notes.append("\n".join(["NOT MEASURED:", *(f"  {line}" for line in lines)]))
    if report.left_out:
        notes.append("\n".join(f"LEFT OUT: {name}: {reason}" for name, reason in report.left_out.items()))
    return notes


def first_run_cells(runs: Sequence[FirstRun]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of first runs, in ms."""
    ways = [way for way in dict.fromkeys(way for run in runs for way in (*run.seconds, *run.failures)) if way != WARM]
    if any(WARM in run.seconds for run in runs):
        ways.insert(1, WARM)
    lines = []
    for run in runs:
        cells = [run.name]
        for way in ways:
            kind = run.failures.get(way, ("–", ""))[0]
            cells.append(milliseconds(run.seconds[way]) if way in run.seconds else kind.replace("unsupported", "–"))
        lines.append([*cells, times(_over_best(run.seconds)), times(_over_best(run.with_imports))])
    return ["first run, ms", *ways, "ours/best", "with imports"], lines


def _over_best(seconds: Mapping[str, float]) -> float | None:
    """Return tinyexplore's cold time over that of the fastest other engine."""
    others = [value for way, value in seconds.items() if way not in (COLD, WARM)]
    return seconds[COLD] / min(others) if others and COLD in seconds else None


def overhead_table(entries: Sequence[dict[str, Any]]) -> str:
    """Return the table of the costs of the compiler and of Python."""
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


def python_cost_cells(report: Report) -> tuple[list[str], list[list[str]]] | None:
    """Return head and rows of the costs of Python here and in tinygrad, or None if only one of them was measured."""
    costs = python_costs(report)
    if all(cost.ratio is None for cost in costs):
        return None
    met = {True: "yes", False: "no", None: "–"}
    rows = [
        [cost.what, three_digits(cost.ours), three_digits(cost.theirs), _share(cost.ratio), met[cost.is_met]]
        for cost in costs
    ]
    return ["Python, in µs", "ours", "tinygrad", "ours/tinygrad", f"at most {MAX_RATIO_TO_TINYGRAD}×"], rows


def _share(ratio: float | None) -> str:
    return "–" if ratio is None else f"{three_digits(ratio)}×"


def _bound_text(aim: Aim) -> str:
    return f"{'≥' if aim.at_least else '≤'} {three_digits(aim.aim)} {aim.unit}{_in_brackets(aim.there)}"


def _found_text(aim: Aim) -> str:
    if aim.found is None:
        return "not measured"
    return f"{three_digits(aim.found)} {aim.unit}{_in_brackets(aim.here)}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _met_text(aim: Aim) -> str:
    if aim.is_met is None:
        return "–"
    if aim.is_met:
        return "yes"
    assert aim.found is not None
    return f"{max(aim.found, aim.aim) / min(aim.found, aim.aim):.2f}× off"


# *** Markdown ***


def markdown(report: Report, command: str) -> str:
    """Return the document that `command` writes: all measurements, with machine and dates."""
    parts = [
        "# Measured",
        f"Written by `{command}` from [results.json](results.json), which has medians and spreads too; do not edit.",
        _machine_markdown(report),
    ]
    if report.rows:
        parts.extend(["## Against other engines", _reading(report), *_cases_markdown(report)])
    if report.first:
        parts.extend(["## First runs", _FIRST_RUNS, *_first_markdown(report.first)])
    if any(aim.found is not None for aim in aims(report)):
        parts.extend(["## Aims", _AIMS, _aims_markdown(report)])
    if report.overhead:
        parts.extend(["## What Python and the compiler cost", *_overhead_markdown(report.overhead)])
    if costs := python_cost_cells(report):
        parts.extend(["## Python, beside tinygrad", _PYTHON, markdown_table(*costs)])
    if report.probes:
        parts.extend(["## What the machine can do", _probes_markdown(report.probes)])
    if lines := [*not_measured(report), *(f"{name} is left out: {why}" for name, why in report.left_out.items())]:
        parts.extend(["## Not measured", "\n".join(f"- {line}" for line in lines)])
    return "\n\n".join(part for part in parts if part) + "\n"


_FIRST_RUNS = (
    "The first call of a fresh process, in ms: everything compiled, nothing on disk; imports are done and the inputs "
    "ready. The second column is the next process, which finds our machine code on disk. *With imports* is the ratio "
    "of what a user waits for: from the engine's import, over the inputs being handed to it, to the result."
)
_AIMS = (
    "Kernels' aims were set on a 2-core machine with AVX-512 (532 GFLOP/s, 90 GB/s), as times beside that machine's "
    "own limit; in brackets both, there and here. What counts is how many times its limit a machine takes."
)


_PYTHON = (
    "The same programs (`bench/peers/tensors.py`) run by both, each engine used in its quickest way; tinygrad is the "
    "release named above. The aim: at most half."
)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table: the first column to the left, the others to the right."""
    ruler = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ruler, *rows))


def _machine_markdown(report: Report) -> str:
    dates = sorted(entry.date[:10] for entry in (*report.rows, *report.first) if entry.date)  # type: ignore[attr-defined]
    dates.extend(sorted({entry["date"][:10] for entry in report.overhead if "date" in entry}))
    span = " to ".join(dict.fromkeys((min(dates), max(dates)))) if dates else str(report.about.get("date", ""))[:10]
    facts = [f"**{report.about.get('machine')}**, {report.about.get('threads')} threads for every engine, {span}."]
    if report.about.get("target", "native") != "native":
        facts.append(f"Code for **{report.about['target']}**, to which the other engines are restricted as well.")
    if "rounds" in report.about:
        facts.append(f"Slices: {report.about['rounds']}. Load at the start {report.about.get('load at the start')}.")
    if float(report.about.get("load at the start", "nan")) > BUSY:
        facts.append("**The machine was busy: times are too long, and ratios rough.**")
    versions = "; ".join(f"{name} {version}" for name, version in report.peers.items() if name != "machine")
    return " ".join(facts) + f"\n\nEngines: {versions}."


def _reading(report: Report) -> str:
    return (
        "Milliseconds, the shortest of all samples; every result was first compared with NumPy's. *Limit* is what the "
        "machine itself needs, measured in the same run: the longer of the arithmetic at its peak and the least "
        "traffic at its best bandwidth. *ours/best*: the quicker of our two ways over the quickest peer (in bold): "
        "below 1 is faster. Where an engine has several backends or modes, the best one counts.\n\n"
        "![Every engine's time over the machine's limit](plot.svg)\n\n" + summary(report)
    )


def _cases_markdown(report: Report) -> list[str]:
    names = {name for row in report.rows for name in (*row.figures, *row.failures)}
    columns = {title: group for title, group in COLUMNS.items() if names & set(group)}
    head = ["case", "ours, lazy call", "ours, TinyJit", *columns, "ours/best", "limit", "set by", "of the limit"]
    lines = []
    for row in report.rows:
        cells = [f"`{row.name}`", *(_time(row, name) for name in OURS)]
        for group in columns.values():
            best = row.quickest(group)
            shown = _time(row, best or group[0])
            cells.append(f"**{shown}**" if best is not None and best == row.best else shown)
        over_limit = row.over_limit(row.ours)
        cells.extend([times(row.ours_over_best), milliseconds(row.limit), LIMITED_BY[row.limited_by]])
        lines.append([*cells, percent(None if over_limit is None else 1 / over_limit)])
    key = "\n".join(f"- `{row.name}`: {row.what}" for row in report.rows)
    return [markdown_table(head, lines), f"<details><summary>What each case is</summary>\n\n{key}\n\n</details>"]


def _first_markdown(runs: Sequence[FirstRun]) -> list[str]:
    head, lines = first_run_cells(runs)
    sentences = []
    for kind, ratios in (
        ("", [_over_best(run.seconds) for run in runs]),
        ("With imports: b", [_over_best(run.with_imports) for run in runs]),
    ):
        ratios_known = [ratio for ratio in ratios if ratio is not None]
        if ratios_known:
            below = sum(ratio < 1 for ratio in ratios_known)
            sentences.append(f"{kind or 'B'}elow every peer in {below} of {len(ratios_known)} cases.")
    below = " ".join(sentences)
    return [markdown_table(["case", *head[1:]], [[f"`{name}`", *cells] for name, *cells in lines]), below]


def _aims_markdown(report: Report) -> str:
    rows = [[aim.area, aim.name, _bound_text(aim), _found_text(aim), _met_text(aim)] for aim in aims(report)]
    return markdown_table(["area", "what", "aim", "measured", "met"], rows)


def _overhead_markdown(entries: Sequence[dict[str, Any]]) -> list[str]:
    """Return tables of imports, Python and rewriters by engine, of recording and compilation here, and of the
    stages.
    """
    parts = []
    for areas in (("import", "Python"), ("rewriting",), ("recording", "compiling")):
        chosen = [entry for entry in entries if entry["area"] in areas]
        if chosen:
            parts.append(_by_engine(chosen))
    stages = [entry for entry in entries if entry["area"] == "stages"]
    if stages:
        programs = list(dict.fromkeys(entry["program"] for entry in stages))
        seconds_of = {(entry["stage"], entry["program"]): entry["value"] for entry in stages}
        largest = {entry["stage"]: entry["value"] for entry in sorted(stages, key=lambda entry: entry["value"])}
        rows = []
        for stage in sorted(largest, key=lambda stage: -largest[stage]):
            rows.append([stage, *(three_digits(seconds_of.get((stage, program))) for program in programs)])
        parts.extend([_STAGES, markdown_table(["stage, ms", *programs], rows)])
    return parts


_STAGES = "Where the time goes, while every rewrite is recorded (without that it takes less):"


def _by_engine(entries: Sequence[dict[str, Any]]) -> str:
    labels = list(dict.fromkeys(entry["name"] for entry in entries))
    engines = list(dict.fromkeys(entry["who"] for entry in entries))
    cells = {(entry["name"], entry["who"]): entry for entry in entries}
    rows = []
    for label in labels:
        unit = next(entry["unit"] for entry in entries if entry["name"] == label)
        values = [cells.get((label, engine), {}).get("value") for engine in engines]
        shown = ["" if value is None else value if isinstance(value, str) else three_digits(value) for value in values]
        rows.append([f"{label}, {unit}".rstrip(", "), *shown])
    return markdown_table(["what", *engines], rows)


def _probes_markdown(probes: Sequence[tuple[str, int, float, str]]) -> str:
    counts = sorted({threads for _, threads, _, _ in probes})
    values = {(name, threads): (value, unit) for name, threads, value, unit in probes}
    rows = []
    for name in dict.fromkeys(name for name, *_ in probes):
        rates = [values.get((name, threads)) for threads in counts]
        unit = next(pair[1] for pair in rates if pair)
        rows.append([f"{name.replace('_', ' ')}, {unit}", *(three_digits(pair[0]) if pair else "–" for pair in rates)])
    return markdown_table(["probe", *(f"{n} thread{'s' if n > 1 else ''}" for n in counts)], rows)
