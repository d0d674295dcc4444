"""`python -m bench.cliffs`: times ordinary programs here and in PyTorch, and prints the worst ratio first."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 1 if a program failed or its numbers differ from those of PyTorch, else 0."""
    options = _parser().parse_args(arguments)
    if options.cpu_time:
        options.threads = 1  # the CPU time of several threads would be their sum
    if options.target:
        os.environ["TARGET"] = options.target  # tinyexplore reads it at import
    from bench.limits import peer_limits

    os.environ.update(peer_limits())  # PyTorch reads them at import
    from bench.cliffs import report
    from bench.cliffs.measure import Settings, import_engines, measure
    from bench.cliffs.programs import PROGRAMS

    words = [word.lower() for word in options.only]
    programs = [program for program in PROGRAMS if not words or any(word in program.name.lower() for word in words)]
    if options.group:
        programs = [program for program in programs if program.group in options.group]
    if options.above:
        above = {row.name for row in report.rows_of(options.out) if row.ratio > options.above}
        programs = [program for program in programs if program.name in above]
    if options.part:
        number, parts = map(int, options.part.split("/"))
        programs = programs[number - 1 :: parts]
    if options.list:
        for program in programs:
            print(f"{program.group:12} {program.name}")
        return 0
    quick: dict[str, Any] = {"rounds": 2, "slice_seconds": 0.003} if options.quick else {}
    if options.rounds:
        quick["rounds"] = options.rounds
    settings = Settings(
        threads=options.threads, compiles=options.compile, cpu_time=options.cpu_time, short=options.short / 1e3, **quick
    )
    rows = []
    start = time.perf_counter()
    import_engines()
    for number, program in enumerate(programs, 1):
        row = measure(program, settings)
        rows.append(row)
        print(f"{number}/{len(programs)} {report.line(row)}", file=sys.stderr, flush=True)
    result = report.Report(report.describe_run(settings), rows)
    print(report.text(result))
    print(f"{time.perf_counter() - start:.0f} s")
    if options.out:
        report.write(report.with_earlier_rows(options.out, result) if options.update else result, options.out)
    return 1 if any(row.failure for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.cliffs", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="programs whose names contain a word")
    parser.add_argument("--group", nargs="+", default=[], metavar="GROUP", help="programs of these groups")
    parser.add_argument("--part", default="", metavar="K/N", help="of these programs every N-th, from the K-th on")
    parser.add_argument("--rounds", type=int, default=0, help="repetitions of each engine (8)")
    parser.add_argument(
        "--quick", action="store_true", help="2 short repetitions: enough to find cliffs, not differences of 20 percent"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of each engine (all cores)")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time on one thread, where other programs run too")
    parser.add_argument("--target", default="", help="generate code for it, and restrict PyTorch alike: x86-64-v3")
    parser.add_argument("--compile", action="store_true", help="PyTorch runs through torch.compile")
    parser.add_argument("--out", default="", metavar="FILE.json", help="also write FILE.json and FILE.md")
    parser.add_argument("--update", action="store_true", help="keep FILE.json's rows of other programs")
    parser.add_argument("--above", type=float, default=0, metavar="RATIO", help="only FILE.json's rows above it, again")
    parser.add_argument(
        "--short", type=float, default=1, metavar="MS", help="programs that PyTorch runs in less time are replayed"
    )
    parser.add_argument("--list", action="store_true", help="list the programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
