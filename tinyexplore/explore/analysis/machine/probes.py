"""Measures the ceilings of this machine: arithmetic, bandwidth, random loads, short pieces, clock, and launch.

Each rate is the best of a few samples. Threads are pinned to cores. The fastest of three trials sets the number of
repetitions in a sample, because the first trial includes the start of the threads.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable

from tinyexplore.execute.sampling import MAX_WAIT_SHARE, seconds_waited
from tinyexplore.explore.analysis.machine.benchmark_loops import CHUNK, ROW, HugePageMemory, Loops, ThreadTeam
from tinyexplore.explore.tracefile.model import Ceiling

SAMPLE_S = 0.0004  # seconds of one sample: long compared with its start, short compared with disturbances
PROBE_SAMPLES = 9
SCALES = 1.4  # least speedup of several threads on separate cores over one thread
CONTRADICTED_SHARE = 0.85  # share of the rate that other rows prove; a lower rate is measured again
PATIENCE_S = 2.0  # seconds that all probes together may wait until no other process uses a core
PAUSE_S = 0.03  # seconds before such a probe is repeated
# vectors of multiply-adds per cycle: CPUs finish one or two, so a lower rate means a disturbed probe
MIN_MULTIPLY_ADDS = 0.7
UNSTEADY_SPREAD = 0.1  # spread; a rate with a larger spread is measured again
TRIALS = 3
MAX_BYTES = 256 << 20  # largest working set
LARGE = 32 << 20  # from this size on: fewer samples, one pass each, and also stores that bypass the caches
ACCESSES = {"read": (1, 0), "triad": (2, 1), "copy": (1, 1), "write": (0, 1)}  # proportion of bytes read and written
GATHERS = (1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 28)  # bytes of the tables
RUNS = ("4", "64", "256", "1024", "4096")  # bytes of a contiguous piece
RUNS_IN = (1 << 22, 1 << 26)  # total bytes of the rows
_LOOPS = {"read": "read", "triad": "triad", "copy": "copy", "write": "fill"}


class Prober:
    """The probes of one machine and TARGET. Memory is allocated once, and its pages are accessed once."""

    def __init__(self, threads: int, l1_bytes: int, l2_bytes: int, lanes: int) -> None:
        self.loops = Loops()
        self.lanes = lanes
        self.threads = max(1, min(threads, _count_cores()))
        self.l1_bytes, self.l2_bytes = l1_bytes, l2_bytes
        self.most = min(MAX_BYTES, _read_physical_bytes() // 8)
        self._memory: HugePageMemory | None = None
        self._patience_s = PATIENCE_S

    def all(self, budget_s: float = 2.0) -> tuple[Ceiling, ...]:
        """Returns every ceiling. Ceilings with a large spread are measured again until `budget_s` seconds are over."""
        began = time.perf_counter()
        counts = sorted({1, self.threads}, reverse=True)
        ceilings = [self.clock()]
        ceilings += [self.compute(name, threads) for threads in counts for name in self.loops.arithmetic]
        for threads in counts:
            for nbytes in self.working_sets(threads):
                ceilings += self.streams(nbytes, threads)
            for nbytes in GATHERS:
                ceilings += self.gathers(nbytes, threads)
            for nbytes in RUNS_IN:
                ceilings += self.runs(nbytes, threads)
        to_repeat = disturbed_rows(ceilings) + slow_arithmetic_rows(ceilings, self.lanes)
        to_repeat += sorted(
            (row for row in ceilings if row.spread > UNSTEADY_SPREAD), key=lambda ceiling: -ceiling.spread
        )
        while to_repeat and time.perf_counter() - began < budget_s:
            ceilings = merge_better(ceilings, self.measure_again(to_repeat.pop(0)))
        return tuple(ceilings)

    def measure_again(self, ceiling: Ceiling) -> list[Ceiling]:
        """Measures the same rate again."""
        if ceiling.kind == "clock":
            return [self.clock()]
        if ceiling.kind == "arithmetic":
            return [self.compute(ceiling.what, ceiling.threads)]
        if ceiling.kind == "gather":
            return self.gathers(ceiling.holds, ceiling.threads)
        if ceiling.kind == "runs":
            return self.runs(ceiling.holds, ceiling.threads, [ceiling.what])
        return self.streams(ceiling.holds, ceiling.threads, [ceiling.what])

    def working_sets(self, threads: int) -> list[int]:
        """Returns working sets in total bytes: for L1 and L2 of each thread, and beyond them."""
        near = [self.l1_bytes * 2 // 3, self.l2_bytes // 4, self.l2_bytes * 3 // 4]
        large_sizes = [1 << 20 << power for power in (3, 4, 5, 6)] if threads == self.threads else [1 << 24]
        sizes = [each // CHUNK * CHUNK * threads for each in near]
        sizes += [nbytes for nbytes in large_sizes if nbytes > sizes[-1]] + [MAX_BYTES]
        return [nbytes for nbytes in dict.fromkeys(sizes) if CHUNK * threads <= nbytes <= self.most]

    def clock(self) -> Ceiling:
        """Measures the clock of a core, in GHz."""
        area = HugePageMemory(CHUNK, huge=False)
        (ctypes.c_int64 * 2).from_address(area.address)[:] = [3, 5]
        rates = self._measure_rates(1, lambda _, turns: self.loops.clock(area.address, turns), 64)
        return ceiling("clock", "clock", "", 1, 0, rates)

    def compute(self, name: str, threads: int) -> Ceiling:
        """Measures one type of arithmetic, in 10⁹ operations a second."""
        areas = [self.loops.factors(name) for _ in range(threads)]
        rates = self._measure_rates(threads, lambda n, turns: self.loops.compute(name, areas[n].address, turns), 64)
        return ceiling(f"{name} arithmetic", "arithmetic", name, threads, 0, rates)

    def streams(self, nbytes: int, threads: int, accesses: Iterable[str] = tuple(ACCESSES)) -> list[Ceiling]:
        """Measures streams through a working set of `nbytes` by kind of access, in 10⁹ bytes a second."""
        ceilings = []
        for access in accesses:
            ways = (False,) if nbytes < LARGE or access == "read" else (True,) if nbytes >= 2 * LARGE else (False, True)
            rates = max((self._measure_stream(access, nbytes, threads, past) for past in ways), key=max)
            ceilings.append(
                ceiling(f"{access} {self.level(nbytes, threads)}", "memory", access, threads, nbytes, rates)
            )
        return ceilings

    def gathers(self, nbytes: int, threads: int) -> list[Ceiling]:
        """Measures random loads in 10⁹ a second, from a table of `nbytes` (a power of two) that all threads share."""
        if nbytes > self.most:
            return []
        table = self._allocate_arena(nbytes)
        to = table + self._spare

        def work(number: int, turns: int) -> int:
            return self.loops.gather(table, to + number * CHUNK, nbytes, 88172645463325252 + 977 * number, turns)

        rates = self._measure_rates(threads, work, 512, samples=5)
        return [ceiling(f"random loads from {_size_text(nbytes)}", "gather", "", threads, nbytes, rates)]

    def runs(self, nbytes: int, threads: int, lengths: Iterable[str] = RUNS) -> list[Ceiling]:
        """Measures reads of contiguous pieces, each in another row of 16 KB, in 10⁹ bytes a second."""
        if nbytes > self.most:
            return []
        each = nbytes // threads // ROW * ROW
        ceilings = []
        for length in lengths:
            memory = self._allocate_arena(nbytes)

            def work(number: int, turns: int, length: str = length, memory: int = memory) -> int:
                return self.loops.runs(memory + number * each, memory + self._spare, each, int(length))

            rates = self._measure_rates(threads, work, 1, trials=0, samples=3)
            name = f"runs of {length} bytes in {_size_text(nbytes)}"
            ceilings.append(ceiling(name, "runs", length, threads, nbytes, rates))
        return ceilings

    @property
    def _spare(self) -> int:
        """The offset in the arena of one CHUNK per thread, after the working sets."""
        return self.most

    def level(self, nbytes: int, threads: int) -> str:
        """Returns the smallest memory that holds `nbytes`, by the target's caches: "L1", "L2", "64 MB"."""
        each = nbytes // threads
        if each <= self.l1_bytes:
            return "L1"
        return "L2" if each <= self.l2_bytes else f"{nbytes / 1e6:,.0f} MB"

    def _measure_stream(self, access: str, nbytes: int, threads: int, past_caches: bool) -> list[float]:
        reads, writes = ACCESSES[access]
        each = nbytes // threads // (reads + writes) // CHUNK * CHUNK or CHUNK
        memory = self._allocate_arena(max(nbytes, each * threads * (reads + writes)))
        name = _LOOPS[access] + ("_nt" if past_caches else "")
        share = each * (reads + writes)

        def work(number: int, turns: int) -> int:
            source = memory + number * share
            # the accumulators of a read go to a line after all others
            to = memory + threads * share + number * CHUNK if not writes else source + reads * each
            self.loops.stream(name, source, to, each, turns)
            return share * turns

        is_large = nbytes >= 2 * LARGE
        return self._measure_rates(
            threads, work, 1, trials=1 if is_large else TRIALS, samples=3 if is_large else PROBE_SAMPLES
        )

    def _allocate_arena(self, nbytes: int) -> int:
        needed = max(nbytes, self.most) + self.threads * CHUNK
        if self._memory is None or self._memory.nbytes < needed:
            self._memory = HugePageMemory(needed)
            self.loops.stream("fill", 0, self._memory.address, self._memory.nbytes)
        return self._memory.address

    def _measure_rates(
        self,
        threads: int,
        work: Callable[[int, int], int],
        turns: int,
        *,
        trials: int = TRIALS,
        samples: int = PROBE_SAMPLES,
    ) -> list[float]:
        """Returns the rate of each sample, in 10⁹ units a second.

        work: `work(thread, turns)` returns the number of units that it did.
        turns: the first number of iterations.
        trials: the number of trials that adjust `turns`; 0 for work that is long enough at one iteration.
        samples: the number of samples.
        """
        team = ThreadTeam(self.loops, threads)
        units = [0] * threads

        def run(number: int) -> None:
            units[number] = work(number, turns)

        while trials:
            fastest_s = team.best_seconds(run, trials)
            if fastest_s >= SAMPLE_S / 8 or turns >= 1 << 24:
                break
            turns *= 8
        if trials:
            turns = max(1, round(turns * SAMPLE_S / fastest_s))
        seconds = self._sample_undisturbed(team, run, samples)
        return [sum(units) / each / 1e9 for each in seconds]

    def _sample_undisturbed(self, team: ThreadTeam, run: Callable[[int], None], samples: int) -> list[float]:
        """Takes samples, and repeats them while threads waited for a core, as long as the patience of all probes lasts.

        Returns the fastest samples.
        """
        best: list[float] = []
        while True:
            began, before = time.perf_counter(), seconds_waited()
            seconds = team.seconds(run, samples)
            took_s, after = time.perf_counter() - began, seconds_waited()
            best = seconds if not best or min(seconds) < min(best) else best
            if before is None or after is None or after - before <= MAX_WAIT_SHARE * took_s or self._patience_s <= 0:
                return best
            time.sleep(PAUSE_S)
            self._patience_s -= took_s + PAUSE_S


def _size_text(nbytes: int) -> str:
    """Returns a size as text, in powers of 1024: "64 KB", "16 MB"."""
    return f"{nbytes >> 20} MB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KB"


def ceiling(name: str, kind: str, subject: str, threads: int, nbytes: int, samples: Iterable[float]) -> Ceiling:
    """Returns a ceiling whose rate is the best of `samples`."""
    ordered = sorted(samples)
    return Ceiling(
        name, kind, round(ordered[-1], 4), nbytes, subject, threads, tuple([round(rate, 4) for rate in ordered])
    )


def proven_rate(rows: Iterable[Ceiling], row: Ceiling) -> float:
    """Returns the rate of `row`, or a higher rate that another row implies.

    A smaller working set is never slower than a larger one, and more threads are never slower than fewer.
    """
    proven = (
        other.rate
        for other in rows
        if (other.kind, other.what) == (row.kind, row.what)
        and other.holds >= row.holds
        and other.threads <= row.threads
    )
    return max(proven, default=row.rate)


def disturbed_rows(rows: Iterable[Ceiling], scales: float = SCALES) -> list[Ceiling]:
    """Returns the rates that another process has lowered in all samples.

    These are the rates that other rows contradict (see `proven_rate`), and rates of several threads in their own
    caches or registers below `scales` times that of one thread.
    """
    rows = list(rows)
    single = {
        (ceiling_row.kind, ceiling_row.what, ceiling_row.holds): ceiling_row.rate
        for ceiling_row in rows
        if ceiling_row.threads == 1
    }
    ceilings = []
    for row in rows:
        single_rate = single.get((row.kind, row.what, row.holds // max(row.threads, 1)))
        is_alone = row.threads > 1 and single_rate is not None and row.rate < scales * single_rate
        if is_alone or row.kind != "launch" and row.rate < CONTRADICTED_SHARE * proven_rate(rows, row):
            ceilings.append(row)
    return ceilings


def multiply_adds(rows: Iterable[Ceiling], row: Ceiling, lanes: int) -> float | None:
    """Returns vectors of multiply-adds per cycle and thread for a float32 rate, by the clock in `rows`.

    Returns None for other rates.
    """
    clock = next((ceiling_row.rate for ceiling_row in rows if ceiling_row.kind == "clock"), 0.0)
    if (row.kind, row.what) != ("arithmetic", "float32") or not clock or not lanes:
        return None
    return row.rate / (2 * lanes * clock * max(row.threads, 1))


def slow_arithmetic_rows(rows: Iterable[Ceiling], lanes: int) -> list[Ceiling]:
    """Returns the float32 rates of one thread that are too low for the clock and the vector width."""
    rows = list(rows)
    slow_rows = []
    for row in rows:
        rate = multiply_adds(rows, row, lanes)
        if row.threads == 1 and rate is not None and rate < MIN_MULTIPLY_ADDS:
            slow_rows.append(row)
    return slow_rows


def merge_better(rows_before: Iterable[Ceiling], new_rows: Iterable[Ceiling]) -> list[Ceiling]:
    """Merges rows with new measurements: for each row the higher rate (or the shorter launch), then the new rows."""
    rows = {(row.kind, row.what, row.threads, row.holds): row for row in rows_before}
    for row in new_rows:
        key = (row.kind, row.what, row.threads, row.holds)
        is_better = key not in rows or (
            row.rate < rows[key].rate if row.kind == "launch" else row.rate > rows[key].rate
        )
        if is_better:
            rows[key] = row
    return list(rows.values())


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_physical_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 8 * MAX_BYTES


__all__ = ["ACCESSES", "Prober", "merge_better", "ceiling", "disturbed_rows", "multiply_adds", "slow_arithmetic_rows"]
