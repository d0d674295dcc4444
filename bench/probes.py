"""The limits of this machine: multiply-adds per second, and bytes per second at every level of its memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tinyexplore.explore.analysis.machine.benchmark_loops import HugePageMemory, Loops, ThreadTeam, shares
from tinyexplore.explore.analysis.machine.ceiling_table import ceilings

SHORT = 0.0004  # seconds of one measurement: long compared with its start, short compared with disturbances
TIMES = 8  # measurements per call
FMA_ROUNDS = 25
# bytes per thread, well inside the level on current CPUs; "memory" is for all threads together
LEVELS = {"l1": 16 << 10, "l2": 256 << 10, "l3": 4 << 20}
MEMORY_BYTES = 128 << 20


@dataclass(frozen=True)
class Probe:
    """One measured limit: the best of several rounds.

    name: what was measured.
    threads: how many ran.
    value: in `unit`.
    unit: "GB/s", "GFLOP/s" or another one.
    """

    name: str
    threads: int
    value: float
    unit: str


class Prober:
    """Loops and memory for the probes. The probes share the memory, whose pages are mapped."""

    def __init__(self, threads: int) -> None:
        self.loops = Loops()
        self.threads = threads
        self._from: HugePageMemory | None = None
        self._to: HugePageMemory | None = None

    def memory(self, nbytes: int) -> tuple[int, int]:
        """Return the addresses of two areas of at least `nbytes`, with mapped pages."""
        if self._from is None or self._from.nbytes < nbytes:
            self._from, self._to = HugePageMemory(nbytes), HugePageMemory(nbytes)
            for area in (self._from, self._to):
                self.loops.stream("fill", 0, area.address, area.nbytes)
        assert self._to is not None
        return self._from.address, self._to.address

    def fma_flops_per_second(self, threads: int, rounds: int = FMA_ROUNDS) -> float:
        loops, turns = self.loops, 1 << 14
        best = 0.0
        areas = [loops.factors("float32") for _ in range(threads)]
        for _ in range(rounds):
            done: list[int] = []

            def work(number: int, turns: int = turns, done: list[int] = done) -> None:
                done.append(loops.fma(areas[number].address, turns))

            seconds = ThreadTeam(loops, threads).best_seconds(work, TIMES)
            best = max(best, threads * done[0] / seconds)
            turns = max(1 << 10, int(turns * SHORT / seconds))
        return best

    def stream_seconds(
        self, reads: int, writes: int, *, past_caches: bool, threads: int, repeat: int, times: int = TIMES
    ) -> float:
        """Return the seconds to read `reads` and write `writes` bytes once, divided among threads.

        It is the shortest of `times` measurements. Each is the mean of `repeat` passes.
        """
        source, to = self.memory(max(reads, writes))
        copied_bytes = min(reads, writes)
        copied = shares(copied_bytes, threads) if copied_bytes else [(0, 0)] * threads
        rest = shares(max(reads, writes) - copied_bytes, threads) if reads != writes else [(0, 0)] * threads
        copy, fill = ("copy_nt", "fill_nt") if past_caches else ("copy", "fill")
        start = copied_bytes // 4096 * 4096
        stream = self.loops.stream
        only = not (copied_bytes and any(size for _, size in rest))
        turns, inner = (1, repeat) if only else (repeat, 1)

        def work(number: int) -> None:
            offset, size = copied[number]
            offset2, size2 = rest[number]
            # each thread's accumulators have their own cache line
            for _ in range(turns):
                if size:
                    stream(copy, source + offset, to + offset, size, inner)
                if size2 and reads > writes:
                    stream("read", source + start + offset2, to + number * 4096, size2, inner)
                elif size2:
                    stream(fill, 0, to + start + offset2, size2, inner)

        return ThreadTeam(self.loops, threads).best_seconds(work, times) / repeat

    def best_stream_seconds(self, reads: int, writes: int, threads: int | None = None, rounds: int = 1) -> float:
        """Return the shortest of `rounds` measurements, with usual stores and with stores past the caches.

        `threads` None: the better of one thread and all.
        """
        counts = {1, self.threads} if threads is None else {threads}
        ways = (False, True) if writes > 4096 else (False,)
        repeats = {count: self._repeats(reads, writes, count) for count in counts}
        return min(
            self.stream_seconds(reads, writes, past_caches=way, threads=count, repeat=repeats[count])
            for _ in range(rounds)
            for way in ways
            for count in counts
        )

    def _repeats(self, reads: int, writes: int, threads: int) -> int:
        """Return the number of passes in one measurement that makes the start of the threads negligible."""
        repeat = 1
        while True:
            once = self.stream_seconds(reads, writes, past_caches=False, threads=threads, repeat=repeat, times=3)
            seconds = repeat * once
            if seconds >= SHORT / 2 or repeat >= 1 << 20:
                return max(1, min(1 << 20, int(repeat * SHORT / seconds)))
            repeat *= 4

    def page_fault_seconds(self, *, huge: bool) -> float:
        """Return the seconds per 4 KiB of memory at its first access."""
        nbytes = 64 << 20
        best = float("inf")
        for _ in range(3):
            area = HugePageMemory(nbytes, huge=huge)
            start = time.perf_counter()
            self.loops.stream("fill", 0, area.address, nbytes)
            best = min(best, time.perf_counter() - start)
            area.close()
        return best * 4096 / nbytes

    def all(self) -> list[Probe]:
        """Measure the limits of this machine again, on one thread and on all, and the cost of page faults."""
        measured = ceilings("LLVM", again=True)
        probes = []
        for threads in sorted({1, self.threads}):
            peak = measured.peak("float32", threads)
            if peak is None:
                continue
            probes.append(Probe("fma_float32", threads, peak.rate, "GFLOP/s"))
            for name, nbytes in (
                *((level, size * threads) for level, size in LEVELS.items()),
                ("memory", MEMORY_BYTES),
            ):
                if rate := measured.bandwidth(nbytes, 0.0, threads):
                    probes.append(Probe(f"read_{name}", threads, rate.rate, "GB/s"))
            if rate := measured.bandwidth(MEMORY_BYTES, 0.5, threads):
                probes.append(Probe("copy_memory_nt", threads, rate.rate, "GB/s"))
        probes.append(Probe("page_fault_4K", 1, self.page_fault_seconds(huge=False) * 1e6, "µs"))
        probes.append(Probe("page_fault_4K_of_2M", 1, self.page_fault_seconds(huge=True) * 1e6, "µs"))
        return probes


if __name__ == "__main__":
    import os

    for probe in Prober(os.cpu_count() or 1).all():
        print(f"{probe.name:20} {probe.threads:2} threads {probe.value:10.2f} {probe.unit}")
