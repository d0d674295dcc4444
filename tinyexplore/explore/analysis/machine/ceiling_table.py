"""The ceilings of this machine as one table: measured once for each target, and stored on disk."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from html import escape
from math import exp, log
from statistics import median

from tinyexplore.device import Device
from tinyexplore.engine import compile_many, schedule, step_by_step
from tinyexplore.explore.analysis.machine.probes import (
    ACCESSES,
    Prober,
    ceiling,
    disturbed_rows,
    merge_better,
    multiply_adds,
    proven_rate,
    slow_arithmetic_rows,
)
from tinyexplore.explore.tracefile.model import Ceiling
from tinyexplore.explore.tracefile.texts import figures_text
from tinyexplore.runtime.disk_cache import find, keep
from tinyexplore.runtime.llvm import compiler_for
from tinyexplore.target import core_count, current_choice
from tinyexplore.tensor import Tensor
from tinyexplore.trace import recording

FORMAT = 4  # version of the file; part of its name
MEASURED = ("LLVM", "CLANG")  # the devices whose kernels are machine code of this CPU, like the probes
LAUNCHES = 200  # samples of the smallest kernel
IMPROVE_S = 1.5  # seconds for rates that are measured again
MIN_FITTING_SHARE = 0.9  # share of a kernel's bytes that must fit into a working set
_UNITS = {"arithmetic": "G op/s", "memory": "GB/s", "clock": "GHz", "launch": "µs", "gather": "G/s", "runs": "GB/s"}


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The best rates of a machine.

    cpu: the model of the CPU.
    target: the name of the target.
    rows: the rates.
    reason: why there are none, "" if there are.
    """

    cpu: str
    target: str
    rows: tuple[Ceiling, ...]
    reason: str = ""

    def peak(self, operation: str = "float32", threads: int = 0) -> Ceiling | None:
        """Returns the arithmetic ceiling of one type for `threads` threads (0: for all that were measured)."""
        rows = [row for row in self.rows if row.kind == "arithmetic" and row.what == operation]
        return max((row for row in rows if not threads or row.threads <= threads), key=_rate_of, default=None)

    def bandwidth(self, nbytes: int, write_share: float = 0.0, threads: int = 0) -> Ceiling | None:
        """Returns the bandwidth through a working set of `nbytes`, of which `write_share` is written, in 10⁹ bytes a
        second.

        The row of the next larger working set counts, because a cache may end between two of them. Write shares between
        the measured ones are interpolated by the time per byte.
        """
        rows = [row for row in self.rows if row.kind == "memory" and threads in (0, row.threads)]
        counts = {row.threads for row in rows}
        mixed = (_find_mixed_ceiling(self.rows, nbytes, write_share, count) for count in counts)
        return max((row for row in mixed if row is not None), key=_rate_of, default=None)

    def gather(self, nbytes: int, threads: int) -> Ceiling | None:
        """Returns the rate of random loads from the next larger measured table, in 10⁹ loads a second."""
        return self._find_next_larger("gather", "", nbytes, threads)

    def runs(self, nbytes: int, run_bytes: int, threads: int) -> Ceiling | None:
        """Returns the rate of reading pieces of about `run_bytes`, each in another row of 16 KB, through `nbytes` in
        all.

        The rate is in 10⁹ bytes a second. Lengths between the measured ones are interpolated by their logarithms.
        """
        lengths = sorted({int(row.what) for row in self.rows if row.kind == "runs"})
        if not lengths:
            return None
        length = min(max(run_bytes, lengths[0]), lengths[-1])
        low = max(measured for measured in lengths if measured <= length)
        high = min(measured for measured in lengths if measured >= length)
        a, b = (self._find_next_larger("runs", str(bound), nbytes, threads) for bound in (low, high))
        if a is None or b is None or low == high:
            return a
        part = log(length / low) / log(high / low)
        return replace(a, rate=exp(log(a.rate) * (1 - part) + log(b.rate) * part), what=str(run_bytes))

    def _find_next_larger(self, kind: str, operation: str, nbytes: int, threads: int) -> Ceiling | None:
        rows = [
            row for row in self.rows if (row.kind, row.what, row.threads) == (kind, operation, threads) and row.rate
        ]
        rows.sort(key=lambda row: row.holds)
        level = next((row for row in rows if row.holds >= MIN_FITTING_SHARE * nbytes), rows[-1] if rows else None)
        return None if level is None else replace(level, rate=proven_rate(self.rows, level))

    @property
    def clock_ghz(self) -> float | None:
        """The fastest measured clock of a core."""
        return next((row.rate for row in self.rows if row.kind == "clock"), None)

    @property
    def launch_us(self) -> float | None:
        """The time of the smallest kernel, in microseconds."""
        return next((row.rate for row in self.rows if row.kind == "launch"), None)

    @property
    def load_notes(self) -> tuple[str, ...]:
        """A sentence for each rate that is too low for this CPU: another process used the core during the probe."""
        bits = re.search(r"(\d+)-bit vectors", self.target)
        lanes = int(bits[1]) // 32 if bits else 0
        rows = slow_arithmetic_rows(self.rows, lanes)
        return tuple(
            f"{row.name}, {row.threads} thread: measured under load. It is {multiply_adds(self.rows, row, lanes):.2g} "
            "vectors of multiply-adds a cycle, and a CPU does at least one. ceilings(again=True) measures it again."
            for row in rows
        )

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not self.rows:
            return f"no ceilings: {self.reason}"
        lines = [f"{self.cpu} · {self.target}"]
        for name, cells in self._make_table():
            lines.append(f"  {name:26}" + "".join(f"{cell:>22}" for cell in cells))
        return "\n".join((*lines, *self.load_notes))

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>No ceilings: {escape(self.reason)}</p>"
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            + "".join(f"<td style='text-align:right'>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, cells in self._make_table()
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.load_notes)
        return f"<table><caption>{escape(self.cpu)} · {escape(self.target)}</caption>{rows}</table>{notes}"

    def _make_table(self) -> list[tuple[str, list[str]]]:
        """Returns a row for each rate, with a column for each number of threads."""
        counts = sorted({row.threads for row in self.rows if row.threads})
        sections = [("", [f"{count} thread{'s' if count > 1 else ''}" for count in counts])]
        for name in dict.fromkeys(row.name for row in self.rows):
            rows = [row for row in self.rows if row.name == name]
            for holds in sorted({(row.holds // max(row.threads, 1)) for row in rows if row.name == name}):
                same = {row.threads: row for row in rows if row.holds // max(row.threads, 1) == holds}
                sections.append((name, [_format_rate(same.get(count)) for count in counts]))
        return sections


def _rate_of(row: Ceiling) -> float:
    return row.rate


def _format_rate(row: Ceiling | None) -> str:
    return "" if row is None else f"{figures_text(row.rate)} {_UNITS[row.kind]} ±{100 * row.spread / 2:.0f} %"


def _find_mixed_ceiling(rows: Iterable[Ceiling], nbytes: int, write_share: float, threads: int) -> Ceiling | None:
    """Interpolates the bandwidth for a share of writes between the two nearest measured accesses."""
    memory_rows = [row for row in rows if row.kind == "memory" and row.threads == threads]
    sizes = sorted({row.holds for row in memory_rows})
    if not sizes:
        return None
    size = next((size for size in sizes if size >= MIN_FITTING_SHARE * nbytes), sizes[-1])
    measured = []
    for row in memory_rows:
        if row.holds == size:
            reads, writes = ACCESSES.get(row.what, (1, 0))
            measured.append((writes / (reads + writes), row))
    measured.sort(key=lambda pair: pair[0])
    below = [pair for pair in measured if pair[0] <= write_share] or measured[:1]
    above = [pair for pair in measured if pair[0] >= write_share] or measured[-1:]
    (low, a), (high, b) = below[-1], above[0]
    part = 0.0 if high == low else (write_share - low) / (high - low)
    rate = 1 / ((1 - part) / proven_rate(rows, a) + part / proven_rate(rows, b))
    nearer = a if part < 0.5 else b
    level = nearer.name.removeprefix(nearer.what).strip()
    return replace(nearer, name=level or nearer.name, rate=rate, samples=nearer.samples)


# *** storage of the table ***

_ceilings_cache: dict[str, Ceilings] = {}


def ceilings(device: str = "", *, again: bool = False, measure: bool = True) -> Ceilings:
    """Returns the ceilings of this machine for the current TARGET, each with its samples.

    They are arithmetic by type, bandwidth by working set, the clock and the smallest kernel. They are measured once (in
    less than 2 s) and stored in the cache directory under the CPU's name and the target. Devices whose kernels are not
    machine code of this CPU have none; `reason` then has the explanation.

    again: whether to measure again and keep the better rate of each.
    measure: whether to measure at all; without it, only stored rates are returned.
    """
    name = Device.canonicalize(device or Device.DEFAULT)
    cpu, target = cpu_name(), ""
    if reason := _reason_without_compiler() or no_ceilings_reason(name):
        return Ceilings(cpu, target, (), reason)
    described = Device["LLVM"].target
    target = f"{described.cpu}, {described.vector_bytes * 8}-bit vectors, {described.threads} threads"
    key = key_of(cpu, target, described.features)
    measured = _ceilings_cache.get(key) or _load_ceilings(key, cpu, target)
    if measured is None or again:
        if measured is None and not measure:
            return Ceilings(cpu, target, (), "not measured yet: call tinyexplore.explore.ceilings()")
        prober = Prober(described.threads, described.l1_bytes, described.l2_bytes, described.vector_bytes // 4)
        rows = merge_better(() if measured is None else measured.rows, (*prober.all(), launch_ceiling()))
        measured = Ceilings(cpu, target, tuple(rows))
        _store_ceilings(key, measured)
    elif key not in _ceilings_cache and (slow := _find_doubtful_rows(measured.rows, described.vector_bytes // 4)):
        measured = improve_ceilings(measured, slow)
    _ceilings_cache[key] = measured
    return measured


def _find_doubtful_rows(rows: tuple[Ceiling, ...], lanes: int) -> list[Ceiling]:
    """Returns the rates in a file that were measured under load.

    Several threads are never slower than one, and the clock gives a lower bound for arithmetic.
    """
    return disturbed_rows(rows, 1.0) + slow_arithmetic_rows(rows, lanes)


def improve_ceilings(ceilings: Ceilings, beaten_rows: Iterable[Ceiling]) -> Ceilings:
    """Measures the rates of `beaten_rows`; returns `ceilings` with the better ones. No probe starts after IMPROVE_S."""
    described = Device["LLVM"].target
    prober = Prober(described.threads, described.l1_bytes, described.l2_bytes, described.vector_bytes // 4)
    rows, began = list(ceilings.rows), time.perf_counter()
    for beaten_row in beaten_rows:
        rows = merge_better(rows, prober.measure_again(beaten_row))
        if time.perf_counter() - began > IMPROVE_S:
            break
    improved = replace(ceilings, rows=tuple(rows))
    key = key_of(ceilings.cpu, ceilings.target, described.features)
    _ceilings_cache[key] = improved
    _store_ceilings(key, improved)
    return improved


def stream_rate(nbytes: int, write_share: float, threads: int) -> float:
    """Measures how fast `threads` threads stream through `nbytes` now, in 10⁹ bytes a second; 0 if nothing measures it.

    write_share: the part of the bytes that is written. The nearest of the measured kinds of access counts.
    """
    if _reason_without_compiler():
        return 0.0
    described = Device["LLVM"].target
    prober = Prober(threads, described.l1_bytes, described.l2_bytes, described.vector_bytes // 4)
    prober.most = min(nbytes, prober.most)
    access = min(ACCESSES, key=lambda name: abs(ACCESSES[name][1] / sum(ACCESSES[name]) - write_share))
    return max(row.rate for row in prober.streams(prober.most, prober.threads, [access]))


def no_ceilings_reason(device: str) -> str:
    """Returns the reason why a device has no measured ceilings, or "" if it has some."""
    kind = device.partition(":")[0]
    if kind in MEASURED:
        target = Device[device].target
        if target.target_setting and _is_foreign(device):
            return f"this machine cannot execute code for {target.cpu}"
        return ""
    if kind == "PYTHON":
        return "PYTHON interprets kernels; its speed does not depend on the machine's limits"
    return f"the probes are machine code of this CPU, kernels of {kind} are not"


def _is_foreign(device: str) -> bool:
    choice = current_choice()
    return choice.gpu is not None or choice.arch == "wasm32" or bool(compiler_for(choice.cpu).refusal)


def _reason_without_compiler() -> str:
    try:
        import llvmlite  # noqa: F401
    except ImportError:
        return "the probes are compiled by llvmlite, which is not installed"
    return ""


def launch_ceiling() -> Ceiling:
    """Measures the microseconds of the smallest kernel, in the same way as launches are sampled."""
    with recording(None), step_by_step():
        x = Tensor([1.0], device="LLVM").realize()
        (item,) = compile_many(schedule([(x + 1).lazydata]))
        item.run()
        samples = sorted(seconds * 1e6 for seconds in item.measure(LAUNCHES))
    quartiles = (samples[0], samples[LAUNCHES // 4], median(samples), samples[3 * LAUNCHES // 4])
    row = ceiling("smallest kernel", "launch", "", 1, 0, quartiles)
    return replace(row, rate=round(quartiles[2], 4))


def cpu_name() -> str:
    """Returns the system's name of the CPU."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def key_of(cpu: str, target: str, features: str) -> str:
    """Returns the name of the file: "ceilings-Intel-Xeon-…-0123456789abcdef"."""
    name_parts = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in cpu).split()
    text = "\0".join((str(FORMAT), cpu, target, features, str(core_count()), platform.node()))
    return f"ceilings-{'-'.join(name_parts)}-{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _store_ceilings(key: str, measured: Ceilings) -> None:
    rows = [{field.name: getattr(row, field.name) for field in fields(row)} for row in measured.rows]
    keep(key, json.dumps({"cpu": measured.cpu, "target": measured.target, "rows": rows}, ensure_ascii=False).encode())


def _load_ceilings(key: str, cpu: str, target: str) -> Ceilings | None:
    data = find(key)
    if data is None:
        return None
    try:
        rows = json.loads(data)["rows"]
        return Ceilings(cpu, target, tuple(Ceiling(**{**row, "samples": tuple(row["samples"])}) for row in rows))
    except (ValueError, KeyError, TypeError):
        return None  # of another version


__all__ = ["Ceilings", "ceilings", "improve_ceilings", "stream_rate", "no_ceilings_reason"]
