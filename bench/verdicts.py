"""Programs with a known bottleneck: `python -m bench.verdicts [NAME…]` prints the expected and the found verdict.

`--facts FILE` also writes their facts, and the rates of NumPy on the machine. `tests/explore/test_verdict.py` uses that
file to test the rules and the shares of the limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bench.verdict_programs import Program, neighbors, new_programs, programs
from tinyexplore.explore import SpeedVerdict
from tinyexplore.explore.analysis.machine.ceiling_table import cpu_name
from tinyexplore.target import core_count

PROGRAM_GROUPS = {"table": programs, "neighbors": neighbors, "further": new_programs}


def least_disturbed(program: Program, tries: int) -> SpeedVerdict:
    """Return the verdict on the longest kernel, from the capture with the least disturbance by other processes."""
    best: SpeedVerdict | None = None
    for _ in range(max(1, tries)):
        view = program.captured()
        run = max(view.trace.runs, key=lambda one: one.median_us)
        verdict = view.kernels[run.kernel].verdict()
        if best is None or _waited_share(verdict) < _waited_share(best):
            best = verdict
        if best.kind != "noise":
            break
        time.sleep(0.2)
    assert best is not None
    return best


def _waited_share(verdict: SpeedVerdict) -> float:
    return (verdict.facts.waited if verdict.facts is not None else None) or 0.0


def numpy_gflops(seconds: float = 1.0) -> float:
    """Return NumPy's 10⁹ operations per second of a float32 product on all cores, the best within `seconds`.

    It is a peak that does not depend on this project's probes.
    """
    a, b = (np.random.default_rng(0).random((2048, 2048), np.float32) for _ in range(2))
    out = np.empty_like(a)
    return 2 * 2048**3 / _least_seconds(lambda: np.matmul(a, b, out=out), seconds) / 1e9


def numpy_memory_us(moved: int, written: int, seconds: float = 0.5) -> float:
    """Return the microseconds in which NumPy moves as many bytes on all cores, in arrays of the same total size.

    NumPy copies `written` bytes (`np.copyto`), and multiplies vectors of the other bytes (`np.dot`). Each uses its best
    rate within `seconds`.
    """
    cores = core_count()
    length = moved // 8 // cores
    pairs = [[np.ones(length, np.float32) for _ in range(2)] for _ in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        copy_s = _least_seconds(lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs)), seconds)
        read_s = _least_seconds(lambda: list(pool.map(lambda pair: np.dot(pair[0], pair[1]), pairs)), seconds)
    copied = min(moved, 2 * written)
    return (copied * copy_s + (moved - copied) * read_s) / moved * 1e6


def _least_seconds(work: Callable[[], Any], seconds: float) -> float:
    work()
    until, shortest = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < until:
        began = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - began)
    return shortest


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Return the number of wrong kinds."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of programs; all by default")
    parser.add_argument("--group", choices=PROGRAM_GROUPS, help="one group of programs; all by default")
    parser.add_argument("--facts", help="a file for the facts, as JSON")
    parser.add_argument("--tries", type=int, default=3, help="captures of a program while other processes disturb it")
    options = parser.parse_args(arguments)
    wrong, stored = 0, {}
    gflops = numpy_gflops() if options.facts else 0.0
    print(f"{'program':40} {'expected':26} {'found':18} {'likely':18} {'level':7} {'share':>6}  text")
    groups = [PROGRAM_GROUPS[options.group]] if options.group else list(PROGRAM_GROUPS.values())
    for program in (program_of_group for group in groups for program_of_group in group()):
        if options.names and not any(name in program.name for name in options.names):
            continue
        verdict = least_disturbed(program, options.tries)
        is_right = verdict.likely in program.kinds
        wrong += not is_right
        share = f"{100 * verdict.share_of_limit:.3g} %" if verdict.share_of_limit is not None else "?"
        mark = " " if is_right else "✗"
        expected = " or ".join(program.kinds)
        kinds = f"{expected:26} {verdict.kind:18} {verdict.likely:17}{mark}"
        print(f"{program.name:40} {kinds} {verdict.level:7} {share:>6}  {verdict.text}")
        if verdict.facts is not None:
            stored[program.name] = {"kinds": program.kinds, "facts": verdict.facts.as_data()}
            if options.facts and verdict.facts.level == "memory":
                moved = numpy_memory_us(verdict.facts.bytes_moved, verdict.facts.bytes_written)
                stored[program.name]["numpy_memory_us"] = round(moved, 1)
    if options.facts:
        with open(options.facts, "w", encoding="utf-8") as file:
            content = {"cpu": cpu_name(), "numpy_gflops": round(gflops, 1), "programs": stored}
            json.dump(content, file, indent=1, ensure_ascii=False)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
