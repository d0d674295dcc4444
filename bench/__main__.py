"""`python -m bench [CASE...] [--against PEERS]`: times the cases and writes JSON, Markdown and a plot.

`python -m bench explorer` measures the explorer instead.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import tables
from bench.awake import Awake
from bench.cases import CASES, TINY, Case, UnknownCase, choose_cases
from bench.first_run import COMPILING_PEERS, measure_first_runs
from bench.harness import Harness, Settings
from bench.overhead import measure_overhead
from bench.peers import OURS, PEERS
from bench.report import Report, Row, make_row
from bench.targets import cases_with_aims
from bench.wide.cases import TINY_WIDE, WIDE
from tinyexplore.target import current_choice

DEFAULT_PEERS = "numpy,torch,torch.compile,torch.max,jax,numba,tinygrad,tinygrad.llvm"
WIDE_PEERS = "numpy,torch,torch.compile,jax,numba"
DOCUMENTS = "docs/performance"
ALL_CASES = (*CASES, *TINY, *WIDE, *TINY_WIDE)
Say = Callable[[str], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return the exit status.

    The status is 0, or 1 if a case of tinyexplore was wrong or raised, or 2 for a wrong command.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["explorer"]:
        from bench.explorer import main as measure_explorer

        return measure_explorer(words[1:])
    options = _parser().parse_args(words)
    if options.list:
        _print_cases()
        return 0
    try:
        if options.report:
            written = _write(Report.load(Path(options.report)), Path(options.report).parent)
            print(written)
            return 0
        report = _run_measurements(options)
    except (UnknownCase, ValueError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    print(tables.targets_text(report) if options.targets else tables.text(report))
    bad = [row.name for row in report.rows if any(row.failures.get(n, ("",))[0] in ("wrong", "error") for n in OURS)]
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinyexplore bench",
        description="Time tinyexplore against other engines and against the machine's own limits.",
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names or beginnings of names (default: all)")
    peers = f"default: {DEFAULT_PEERS}; with --wide: {WIDE_PEERS}"
    parser.add_argument("--against", metavar="PEERS", help=peers)
    parser.add_argument("--without-us", action="store_true", help="time the peers only")
    what = parser.add_argument_group("what to measure (default: the cases, warm)")
    what.add_argument("--all", action="store_true", help=f"everything below and every case, into {DOCUMENTS}/")
    what.add_argument("--wide", action="store_true", help="operations and layers that no list of aims names")
    what.add_argument("--first-run", action="store_true", help="the first call of a fresh process, compiling included")
    what.add_argument("--overhead", action="store_true", help="Python overhead, recording, compile times, imports")
    what.add_argument("--targets", action="store_true", help="what has an aim, without peers: each figure beside it")
    what.add_argument("--report", metavar="JSON", help="nothing: rewrite table and plot of an earlier run")
    how = parser.add_argument_group("how")
    how.add_argument("--rounds", type=_parse_count, default=10, help="slices for each peer and case (10)")
    how.add_argument("--slice-ms", type=_parse_positive, default=30.0, help="how long a slice is (30)")
    how.add_argument("--threads", type=_parse_threads, default=0, help="threads for each peer (default: one per core)")
    how.add_argument(
        "--timeout", type=_parse_positive, default=120.0, help="seconds that a peer may prepare a case (120)"
    )
    how.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="[PEER=]PATH",
        help="the interpreter of a peer, or of all other engines; also $TINYEXPLORE_BENCH_PYTHON",
    )
    how.add_argument("--out", metavar="FOLDER", help=f"bench/results, or bench/results/wide, or {DOCUMENTS} with --all")
    how.add_argument("--update", action="store_true", help="keep what FOLDER's results.json has beside it")
    parser.add_argument("--list", action="store_true", help="list cases and peers")
    return parser


def _parse_count(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return value


def _parse_positive(text: str) -> float:
    if not 0 < (value := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: more than nothing, and an end")
    return value


def _parse_threads(text: str) -> int:
    """Parse a number of threads, at most the number of cores.

    With more threads than cores, threads that wait for each other in a loop would make no progress.
    """
    cores = os.cpu_count() or 1
    if not 1 <= (value := int(text)) <= cores:
        raise argparse.ArgumentTypeError(f"{text}: from 1 to this machine's {cores} cores")
    return value


def _print_cases() -> None:
    for case in ALL_CASES:
        print(f"{case.name:24} {case.what}")
    print()
    for peer in PEERS.values():
        print(f"{peer.name:24} {peer.what}")


def _pythons(options: Sequence[str]) -> dict[str, str]:
    """Return the Python interpreter of each peer.

    The key "" stands for every peer that `options` does not name.
    """
    python_of_peer = {}
    for entry in (os.environ.get("TINYEXPLORE_BENCH_PYTHON", ""), *options):
        name, _, path = entry.rpartition("=")
        if not path:
            continue
        if name and name not in PEERS:
            raise ValueError(f"--python {entry}: no peer is called {name!r}; known: {', '.join(PEERS)}")
        if not os.access(path, os.X_OK):
            raise ValueError(f"--python {entry}: {path} is not a program")
        python_of_peer[name] = os.path.abspath(path)  # the workers start in the checkout
    return python_of_peer


# *** measuring ***


def _run_measurements(options: argparse.Namespace) -> Report:
    """Measure what `options` ask for.

    The report is written after each part, so that an interrupted run keeps its results.
    """
    settings = Settings(
        threads=options.threads,
        rounds=options.rounds,
        slice_seconds=options.slice_ms / 1e3,
        setup_timeout=options.timeout,
        pythons=_pythons(options.python),
    )
    patterns = cases_with_aims() if options.targets and not options.cases else options.cases
    cases = choose_cases(patterns, ALL_CASES, WIDE if options.wide else CASES)
    named = (WIDE_PEERS if options.wide else DEFAULT_PEERS) if options.against is None else options.against
    against = [] if options.targets else list(filter(None, named.split(",")))
    peers = [*([] if options.without_us else OURS), *against]
    if unknown := [name for name in peers if name not in PEERS]:
        raise ValueError(f"unknown peers {', '.join(unknown)}; known: {', '.join(PEERS)}")
    folder = Path(
        options.out or (DOCUMENTS if options.all else "bench/results/wide" if options.wide else "bench/results")
    )
    folder.mkdir(parents=True, exist_ok=True)  # now, so that a wrong path fails before an hour of measurements
    older = _load_older_report(folder) if options.update else None
    report = Report(_describe_run(settings), {}, {}, [])

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with Awake(say, settles=2.0 if options.rounds >= 5 else 0.0):
        for part in _measure_parts(options, report, settings, cases, peers, say):
            merged = report if older is None else report.updating(older)
            say(f"{_write(merged, folder)} ({part})")
    return report


def _measure_parts(
    options: argparse.Namespace, report: Report, settings: Settings, cases: list[Case], peers: list[str], say: Say
) -> Iterator[str]:
    """Measure one part after the other into `report`. Yield the name of each part when it is done."""
    only = options.first_run or options.overhead
    if options.all or options.targets or not only:
        harness = Harness(peers, settings, say)
        _measure_cases(report, harness, cases, say)
        yield "the cases"
    if options.all or options.targets or options.overhead:
        small = [name for name in peers if name not in report.left_out]
        report.overhead = measure_overhead(settings, small, options.rounds, say)
        yield "overhead"
    if options.all or options.first_run:
        compiling = [name for name in peers if name in COMPILING_PEERS and name not in report.left_out]
        report.first = measure_first_runs(cases, compiling, settings, say)
        yield "first runs"


def _measure_cases(report: Report, harness: Harness, cases: Sequence[Case], say: Say) -> None:
    with harness:
        report.peers, report.left_out = harness.versions, harness.left_out
        report.probes = harness.probes()
        measured = []
        for number, case in enumerate(cases, 1):
            measured.append((case, harness.run(case), _current_time()))
            say(_progress(f"{number}/{len(cases)}", make_row(*measured[-1][:2], harness.peak_flops)))
        if harness.settings.rounds >= 5:
            report.probes = _better_probes(report.probes, harness.probes())
        # after the cases, which may have raised the known peak of the machine
        report.rows = [make_row(case, timings, harness.peak_flops, date) for case, timings, date in measured]


def _progress(place: str, row: Row) -> str:
    figures = ", ".join(f"{name} {tables.milliseconds(value.minimum)}" for name, value in row.figures.items())
    failed = ", ".join(
        f"{name}: {kind}" for name, (kind, _) in row.failures.items() if kind != "unsupported" or name in OURS
    )
    ratio = tables.times(row.ours_over_best)
    return f"{place} {row.name}: {figures} ms; ours/best {ratio}" + (f"; {failed}" if failed else "")


def _better_probes(
    before: list[tuple[str, int, float, str]], after: list[tuple[str, int, float, str]]
) -> list[tuple[str, int, float, str]]:
    """Return each probe with the better of its two measurements."""
    best = []
    later = {(name, threads): value for name, threads, value, _ in after}
    for name, threads, value, unit in before:
        pick = min if unit == "µs" else max
        best.append((name, threads, pick(value, later.get((name, threads), value)), unit))
    return best


# *** output files ***


def _current_time() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _describe_run(settings: Settings) -> dict[str, Any]:
    return {
        "date": _current_time(),
        "machine": f"{_cpu_name()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "target": current_choice().text or "native",
        "load at the start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "nan",
        "threads": settings.thread_count,
        "rounds": f"{settings.rounds} of {settings.slice_seconds * 1e3:g} ms for each peer and case, interleaved",
    }


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor() or platform.machine()


def _load_older_report(folder: Path) -> Report | None:
    path = folder / "results.json"
    return Report.load(path) if path.is_file() else None


def _write(report: Report, folder: Path) -> str:
    """Write results.json, results.md and plot.svg into `folder`. Return a message that names them."""
    from bench.plot import plot_svg

    report.save(folder / "results.json")
    command = f"tinyexplore bench --report {(folder / 'results.json').as_posix()}"
    (folder / "results.md").write_text(tables.markdown(report, command), encoding="utf-8")
    written = ["results.json", "results.md"]
    if report.rows:
        (folder / "plot.svg").write_text(plot_svg(report), encoding="utf-8")
        written.append("plot.svg")
    return f"wrote {', '.join(written)} to {folder}/"


if __name__ == "__main__":
    sys.exit(main())
