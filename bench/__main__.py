"""`python -m bench [CASE...] [--against PEERS]`: times the cases and writes a table, JSON and a plot."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.cases import CASES, TINY, Case, UnknownCase, choose_cases
from bench.harness import Harness, Settings
from bench.peers import OURS, PEERS
from bench.report import Report, Row, make_row, three_digits, times

DEFAULT_PEERS = "numpy,torch,torch.compile,jax,numba,tinygrad,tinygrad.llvm"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 1 where a case of tinyexplore's was wrong or raised, or 2 for a wrong command."""
    options = _parser().parse_args(arguments)
    if options.list:
        _list()
        return 0
    try:
        cases = choose_cases(options.cases)
        if options.no_cases:
            cases = []
        settings = Settings(
            threads=options.threads,
            rounds=options.rounds,
            slice_seconds=options.slice_ms / 1e3,
            setup_timeout=options.timeout,
            pythons=_pythons(options.python),
        )
        peers = [*([] if options.without_us else OURS), *filter(None, options.against.split(","))]
        harness = Harness(peers, settings, say=lambda text: print(text, file=sys.stderr))
    except (UnknownCase, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    report = _measure(harness, cases)
    if options.overhead or options.no_cases:
        from bench.overhead import measure_overhead

        report.overhead = measure_overhead(settings, harness.names, options.rounds, harness.say)
    print(report.table())
    _write(report, Path(options.out))
    bad = [row.name for row in report.rows if any(row.failures.get(n, ("",))[0] in ("wrong", "error") for n in OURS)]
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinyexplore bench",
        description="Time tinyexplore against other engines and against the machine's own limits.",
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names or beginnings of names (default: all)")
    parser.add_argument("--against", default=DEFAULT_PEERS, metavar="PEERS", help=f"default: {DEFAULT_PEERS}")
    parser.add_argument("--without-us", action="store_true", help="time the peers only")
    parser.add_argument("--rounds", type=int, default=10, help="slices for each peer and case (10)")
    parser.add_argument("--slice-ms", type=float, default=30.0, help="how long a slice is (30)")
    parser.add_argument("--threads", type=int, default=0, help="threads for each peer (default: one per core)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that a peer may prepare a case (120)")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="[PEER=]PATH",
        help="the interpreter of a peer, or of all other engines; also $TINYEXPLORE_BENCH_PYTHON",
    )
    parser.add_argument("--overhead", action="store_true", help="also: Python overhead, recording, compile times")
    parser.add_argument("--no-cases", action="store_true", help="overhead only")
    parser.add_argument("--out", default="bench/results", metavar="FOLDER", help="bench/results")
    parser.add_argument("--list", action="store_true", help="list cases and peers")
    return parser


def _list() -> None:
    for case in (*CASES, *TINY):
        print(f"{case.name:24} {case.what}")
    print()
    for peer in PEERS.values():
        print(f"{peer.name:24} {peer.what}")


def _pythons(given: Sequence[str]) -> dict[str, str]:
    """PEER → interpreter, "" for every peer that is not named."""
    found = {}
    for entry in (os.environ.get("TINYEXPLORE_BENCH_PYTHON", ""), *given):
        name, _, path = entry.rpartition("=")
        if not path:
            continue
        if name and name not in PEERS:
            raise ValueError(f"--python {entry}: no peer is called {name!r}; known: {', '.join(PEERS)}")
        if not os.access(path, os.X_OK):
            raise ValueError(f"--python {entry}: {path} is not a program")
        found[name] = os.path.abspath(path)  # the workers start in the checkout
    return found


def _measure(harness: Harness, cases: Sequence[Case]) -> Report:
    with harness:
        probes = harness.probes() if cases else []
        report = Report(_about(harness.settings), harness.versions, harness.left_out, probes)
        measured = []
        for number, case in enumerate(cases, 1):
            measured.append((case, harness.run(case)))
            row = make_row(*measured[-1], harness.peak_flops)
            print(_progress(f"{number}/{len(cases)}", row), file=sys.stderr, flush=True)
        if cases and harness.settings.rounds >= 5:
            report.probes = _better(report.probes, harness.probes())
        # now that the machine's peak is known best
        report.rows.extend(make_row(case, timings, harness.peak_flops) for case, timings in measured)
    return report


def _progress(place: str, row: Row) -> str:
    figures = ", ".join(f"{name} {three_digits(value.minimum * 1e3)}" for name, value in row.figures.items())
    failed = ", ".join(
        f"{name}: {kind}" for name, (kind, _) in row.failures.items() if kind != "unsupported" or name in OURS
    )
    return f"{place} {row.name}: {figures} ms; ours/best {times(row.ours_over_best)}" + (
        f"; {failed}" if failed else ""
    )


def _better(
    before: list[tuple[str, int, float, str]], after: list[tuple[str, int, float, str]]
) -> list[tuple[str, int, float, str]]:
    """Each probe at the better of its two measurements."""
    found = []
    later = {(name, threads): value for name, threads, value, _ in after}
    for name, threads, value, unit in before:
        pick = min if unit == "µs" else max
        found.append((name, threads, pick(value, later.get((name, threads), value)), unit))
    return found


def _about(settings: Settings) -> dict[str, Any]:
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": f"{_cpu_name()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "load at the start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
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


def _write(report: Report, folder: Path) -> None:
    from bench.plot import plot_svg

    folder.mkdir(parents=True, exist_ok=True)
    report.save(folder / "results.json")
    (folder / "table.txt").write_text(report.table(), encoding="utf-8")
    written = ["results.json", "table.txt"]
    if report.rows:
        (folder / "plot.svg").write_text(plot_svg(report), encoding="utf-8")
        written.append("plot.svg")
    print(f"wrote {', '.join(written)} to {folder}/")


if __name__ == "__main__":
    sys.exit(main())
