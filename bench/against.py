"""Compares an older checkout with this one: `python -m bench.against OLD_TREE [CASE...]`; by default the whole table.

Each tree runs its own engine and its own `bench.worker`, with the same inputs, alternately. The parts are warm rows,
first runs with an empty disk cache, and the extra time that a recorder adds to compilation. A ratio is new / old.

`git worktree add OLD_TREE COMMIT` makes the older tree. It must speak the protocol of the workers, as every commit
since 3b1240c does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench.awake import Awake
from bench.cases import CASES, TINY, Case, UnknownCase, choose_cases
from bench.first_run import first_call
from bench.harness import ROOT, Harness, PeerProcess, Settings, WorkerLost, environment, store_case
from bench.overhead import RECORDED
from bench.peers import OURS

WARM, FIRST, RECORDING = "warm", "first run", "recording / off"
MAX_RATIOS = {WARM: 1.05, FIRST: 1.15}  # upper limits of new time / old time
MAX_RECORDING_RATIO = 1.20  # upper limit of the time with a recorder / the time of the same tree without one
Say = Callable[[str], None]


@dataclass(frozen=True)
class Pair:
    """The samples of both trees for one row, in seconds.

    For `RECORDING`: ratios of the time with and without a recorder.

    part: WARM, FIRST or RECORDING.
    name: the case or program.
    old: samples of the old tree.
    new: samples of the new tree.
    """

    part: str
    name: str
    old: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return min(self.new) / min(self.old)

    @property
    def median_ratio(self) -> float:
        return median(self.new) / median(self.old)

    @property
    def is_over(self) -> bool:
        """Whether the row exceeds its limit by the minimum and by the median.

        One alone may come from noise of the machine.
        """
        if self.part == RECORDING:
            return median(self.new) > MAX_RECORDING_RATIO
        return min(self.ratio, self.median_ratio) > MAX_RATIOS[self.part]


@dataclass
class Comparison:
    """The results of a comparison.

    pairs: one for each row that both trees ran.
    failed: error messages of either tree.
    """

    pairs: list[Pair] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the table in Markdown, with a summary."""
        lines = ["| | row | old | new | minima | medians | |", "|---|---|---:|---:|---:|---:|---|"]
        for pair in self.pairs:
            old, new = time_text(pair.part, min(pair.old)), time_text(pair.part, min(pair.new))
            mark = "over" if pair.is_over else ""
            ratios = f"{pair.ratio:.3f} | {pair.median_ratio:.3f}"
            lines.append(f"| {pair.part} | {pair.name} | {old} | {new} | {ratios} | {mark} |")
        return "\n".join([*lines, "", *self.summary(), *self.failed])

    def summary(self) -> Iterator[str]:
        for part in (WARM, FIRST, RECORDING):
            pairs = [pair for pair in self.pairs if pair.part == part]
            if not pairs:
                continue
            slower = [pair.name for pair in pairs if pair.is_over]
            bound = f"new ≤ {MAX_RECORDING_RATIO}" if part == RECORDING else f"≤ {MAX_RATIOS[part]} × old"
            mean, half = (
                geometric_mean([pair.ratio for pair in pairs]),
                geometric_mean([pair.median_ratio for pair in pairs]),
            )
            kept_text = f"{len(pairs) - len(slower)} of {len(pairs)} {bound}"
            named = f"; over: {', '.join(slower)}" if slower else ""
            yield f"{part}: {kept_text}; geometric means {mean:.3f} of minima, {half:.3f} of medians{named}"


def time_text(part: str, value: float) -> str:
    return f"{value:.3f}" if part == RECORDING else f"{value * 1e3:.4g} ms"


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(fmean(map(log, ratios)))


class Trees(Harness):
    """The ways in which both trees run a case, as peers: `old tinyexplore`, `new tinyexplore.jit`, …"""

    def __init__(self, roots: dict[str, Path], settings: Settings, say: Say, cache: str) -> None:
        super().__init__(OURS, settings, say)
        self.roots, self.cache = roots, cache
        self.names = [f"{side} {way}" for way in OURS for side in roots]

    def _process(self, name: str) -> PeerProcess:
        side, _, way = name.partition(" ")
        cache = {"XDG_CACHE_HOME": os.path.join(self.cache, side)}
        return PeerProcess(way, self.settings, variables=cache, root=self.roots[side])


def measure_warm(
    comparison: Comparison, cases: Sequence[Case], roots: dict[str, Path], settings: Settings, say: Say
) -> None:
    with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-") as cache, Trees(roots, settings, say, cache) as trees:
        comparison.failed += [f"{name}: {reason}" for name, reason in trees.left_out.items()]
        for number, case in enumerate(cases, 1):
            timings = trees.run(case)
            for way in OURS:
                sides = [timings.get(f"{side} {way}") for side in roots]
                lost = [side.reason if side else "left out" for side in sides if side is None or not side.samples]
                name = case.name if way == OURS[0] else f"{case.name}, {way.partition('.')[2]}"
                if lost:
                    comparison.failed.append(f"{name}: {'; '.join(lost)}")
                    continue
                pair = Pair(WARM, name, *[tuple(side.samples) for side in sides if side is not None])
                comparison.pairs.append(pair)
                say(f"{number}/{len(cases)} {name}: {pair.ratio:.3f}, medians {pair.median_ratio:.3f}")


def measure_first(
    comparison: Comparison, cases: Sequence[Case], roots: dict[str, Path], settings: Settings, repeats: int, say: Say
) -> None:
    for number, case in enumerate(cases, 1):
        seconds: dict[str, list[float]] = {side: [] for side in roots}
        with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-") as folder:
            request = store_case(case, Path(folder))
            try:
                for turn in range(repeats):
                    for side in rotated(list(roots), turn):
                        with tempfile.TemporaryDirectory(prefix="tinyexplore-bench-cache-") as cache:
                            first, _ = first_call(OURS[0], request, settings, cache, roots[side])
                        seconds[side].append(first)
            except WorkerLost as lost:
                comparison.failed.append(f"{case.name}, first run: {side}: {lost}")
                continue
        pair = Pair(FIRST, case.name, *[tuple(samples) for samples in seconds.values()])
        comparison.pairs.append(pair)
        say(f"{number}/{len(cases)} {case.name}, first run: {pair.ratio:.3f}, medians {pair.median_ratio:.3f}")


def measure_recording(
    comparison: Comparison,
    labels: Sequence[tuple[str, str]],
    roots: dict[str, Path],
    settings: Settings,
    rounds: int,
    say: Say,
) -> None:
    """Compare the time to compile everything again with a recorder and without one, alternately, in CPU time."""
    with ExitStack() as stack:
        processes = {}
        for side, root in roots.items():
            processes[side] = PeerProcess("plain", settings, "bench.compile_worker", root=root)
            stack.callback(processes[side].close)

        def ask(side: str, **request: Any) -> dict[str, Any]:
            reply = processes[side].ask(settings.setup_timeout, **request)
            if not reply["ok"]:
                raise WorkerLost("error", f"{side}: {reply['reason']}")
            return reply

        for side in roots:
            ask(side, do="hello")
        for label, case in labels:
            times: dict[tuple[str, str], list[float]] = {}
            for side in roots:
                ask(side, do="prepare", case=case)
            turns = [(side, recording) for side in roots for recording in ("off", "on")]
            for turn in range(rounds):
                for side, recording in rotated(turns, turn):
                    reply = ask(side, do="cold", recording=recording)
                    # an older tree reports wall time only
                    times.setdefault((side, recording), []).append(float(reply.get("cpu_seconds", reply["seconds"])))
            ratios = [tuple(on / off for on, off in zip(times[side, "on"], times[side, "off"])) for side in roots]
            pair = Pair(RECORDING, label, *ratios)
            comparison.pairs.append(pair)
            say(f"{label}, recording / off: old {median(pair.old):.3f}, new {median(pair.new):.3f} (medians)")


def rotated(sides: Sequence[Any], turn: int) -> list[Any]:
    """Return `sides`, rotated by `turn`, so that each turn starts with another side."""
    start = turn % len(sides)
    return [*sides[start:], *sides[:start]]


def checked_root(root: Path) -> Path:
    """Return `root`, if a process that starts there imports the code of `root`.

    Raise ValueError otherwise.
    """
    if not (root / "bench" / "worker.py").is_file():
        raise ValueError(f"{root} is no checkout with a bench/: git worktree add {root} COMMIT")
    program = "import tinyexplore; print(tinyexplore.__file__)"
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, cwd=root, env=environment(1, root), capture_output=True, text=True)
    if not Path(process.stdout.strip()).resolve().is_relative_to(root):
        raise ValueError(f"a process in {root} imports {process.stdout.strip() or process.stderr[-300:]}")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Return the exit status: 0, 1 if a row exceeds its limit or failed, or 2 for a wrong command.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("old", metavar="OLD_TREE", help="the older checkout")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names or beginnings of names (default: the table)")
    parser.add_argument("--rounds", type=int, default=10, help="slices for each tree and way (10)")
    parser.add_argument("--slice-ms", type=float, default=30.0, help="how long a slice is (30)")
    parser.add_argument("--first-runs", type=int, default=5, metavar="N", help="fresh processes a tree (5); 0: none")
    parser.add_argument("--recording", type=int, default=8, metavar="N", help="rounds of recording (8); 0: none")
    parser.add_argument("--out", metavar="FILE", help="write the table there, too")
    options = parser.parse_args(arguments)
    settings = Settings(rounds=max(1, options.rounds), slice_seconds=options.slice_ms / 1e3)
    try:
        cases = choose_cases(options.cases, (*CASES, *TINY), CASES)
        roots = {"old": checked_root(Path(options.old).resolve()), "new": checked_root(ROOT)}
    except (UnknownCase, ValueError) as error:
        print(f"bench.against: {error}", file=sys.stderr)
        return 2

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    comparison = Comparison()
    load = f"load at the start {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "load unknown"
    with Awake(say, settles=2.0 if options.rounds >= 5 else 0.0):
        measure_warm(comparison, cases, roots, settings, say)
        if options.first_runs:
            measure_first(comparison, cases, roots, settings, options.first_runs, say)
        if options.recording:
            measure_recording(comparison, RECORDED, roots, settings, options.recording, say)
    text = f"{comparison.text()}\n({load}, {os.cpu_count()} cores)\n"
    print(text)
    if options.out:
        Path(options.out).write_text(text, encoding="utf-8")
    return 1 if comparison.failed or any(pair.is_over for pair in comparison.pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
