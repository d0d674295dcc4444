"""The ceilings of this machine as one table: measured once for each target, kept on disk, and used everywhere."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from html import escape
from math import exp, log
from statistics import median

from tinyexplore.device import Device
from tinyexplore.engine import compile_many, schedule, step_by_step
from tinyexplore.explore.analysis.machine.probes import ACCESSES, Prober, at_least, better, ceiling, disturbed
from tinyexplore.explore.tracefile.model import Ceiling
from tinyexplore.explore.tracefile.texts import figures_text
from tinyexplore.runtime.cache import find, keep
from tinyexplore.runtime.llvm import compiler_for
from tinyexplore.target import chosen, core_count
from tinyexplore.tensor import Tensor
from tinyexplore.trace import recording

FORMAT = 4  # of the file; another number is another file
MEASURED = ("LLVM", "CLANG")  # the devices that the probes speak for
LAUNCHES = 200  # of the smallest kernel
IMPROVE_S = 1.5  # for rates that are measured again
FITS = 0.9  # of a kernel's bytes must fit into a working set
_UNITS = {"arithmetic": "G op/s", "memory": "GB/s", "clock": "GHz", "launch": "µs", "gather": "G/s", "runs": "GB/s"}


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The best rates of a machine. `cpu`, `target`: of which one; `reason`: why there are none, else ""."""

    cpu: str
    target: str
    rows: tuple[Ceiling, ...]
    reason: str = ""

    def peak(self, what: str = "float32", threads: int = 0) -> Ceiling | None:
        """The arithmetic of one type, by so many threads (0: by as many as were measured)."""
        rows = [one for one in self.rows if one.kind == "arithmetic" and one.what == what]
        return max((one for one in rows if not threads or one.threads <= threads), key=_rate, default=None)

    def bandwidth(self, nbytes: int, write_share: float = 0.0, threads: int = 0) -> Ceiling | None:
        """10⁹ bytes a second through a working set of `nbytes`, of which `write_share` is written.

        The row of the next larger working set counts: between two of them, a cache ends. Shares between those measured
        are interpolated in the time for each byte.
        """
        rows = [one for one in self.rows if one.kind == "memory" and threads in (0, one.threads)]
        counts = {one.threads for one in rows}
        mixed = (_mixed(self.rows, nbytes, write_share, count) for count in counts)
        return max((one for one in mixed if one is not None), key=_rate, default=None)

    def gather(self, nbytes: int, threads: int) -> Ceiling | None:
        """10⁹ loads a second from random places of a table of `nbytes`: of the next larger table measured."""
        return self._next_larger("gather", "", nbytes, threads)

    def runs(self, nbytes: int, run_bytes: int, threads: int) -> Ceiling | None:
        """10⁹ bytes a second in runs of about `run_bytes`, each in another row of 16 KB, through `nbytes` in all.
        Lengths between those measured are interpolated by their logarithms."""
        lengths = sorted({int(one.what) for one in self.rows if one.kind == "runs"})
        if not lengths:
            return None
        length = min(max(run_bytes, lengths[0]), lengths[-1])
        low = max(one for one in lengths if one <= length)
        high = min(one for one in lengths if one >= length)
        a, b = (self._next_larger("runs", str(one), nbytes, threads) for one in (low, high))
        if a is None or b is None or low == high:
            return a
        part = log(length / low) / log(high / low)
        return replace(a, rate=exp(log(a.rate) * (1 - part) + log(b.rate) * part), what=str(run_bytes))

    def _next_larger(self, kind: str, what: str, nbytes: int, threads: int) -> Ceiling | None:
        mine = [one for one in self.rows if (one.kind, one.what, one.threads) == (kind, what, threads) and one.rate]
        mine.sort(key=lambda one: one.holds)
        found = next((one for one in mine if one.holds >= FITS * nbytes), mine[-1] if mine else None)
        return None if found is None else replace(found, rate=at_least(self.rows, found))

    @property
    def clock_ghz(self) -> float | None:
        """The fastest clock of a core that was measured."""
        return next((one.rate for one in self.rows if one.kind == "clock"), None)

    @property
    def launch_us(self) -> float | None:
        """What a sample of the smallest kernel takes."""
        return next((one.rate for one in self.rows if one.kind == "launch"), None)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not self.rows:
            return f"no ceilings: {self.reason}"
        lines = [f"{self.cpu} · {self.target}"]
        for name, cells in self._table():
            lines.append(f"  {name:26}" + "".join(f"{cell:>22}" for cell in cells))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>No ceilings: {escape(self.reason)}</p>"
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            + "".join(f"<td style='text-align:right'>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, cells in self._table()
        )
        return f"<table><caption>{escape(self.cpu)} · {escape(self.target)}</caption>{rows}</table>"

    def _table(self) -> list[tuple[str, list[str]]]:
        """A row for each rate, a column for each number of threads."""
        counts = sorted({one.threads for one in self.rows if one.threads})
        found = [("", [f"{count} thread{'s' if count > 1 else ''}" for count in counts])]
        for name in dict.fromkeys(one.name for one in self.rows):
            rows = [one for one in self.rows if one.name == name]
            for holds in sorted({(one.holds // max(one.threads, 1)) for one in rows if one.name == name}):
                same = {one.threads: one for one in rows if one.holds // max(one.threads, 1) == holds}
                found.append((name, [_cell(same.get(count)) for count in counts]))
        return found


def _rate(one: Ceiling) -> float:
    return one.rate


def _cell(one: Ceiling | None) -> str:
    return "" if one is None else f"{figures_text(one.rate)} {_UNITS[one.kind]} ±{100 * one.spread / 2:.0f} %"


def _mixed(rows: Iterable[Ceiling], nbytes: int, write_share: float, threads: int) -> Ceiling | None:
    mine = [one for one in rows if one.kind == "memory" and one.threads == threads]
    sizes = sorted({one.holds for one in mine})
    if not sizes:
        return None
    size = next((size for size in sizes if size >= FITS * nbytes), sizes[-1])
    known = []
    for one in mine:
        if one.holds == size:
            reads, writes = ACCESSES.get(one.what, (1, 0))
            known.append((writes / (reads + writes), one))
    known.sort(key=lambda pair: pair[0])
    below = [pair for pair in known if pair[0] <= write_share] or known[:1]
    above = [pair for pair in known if pair[0] >= write_share] or known[-1:]
    (low, a), (high, b) = below[-1], above[0]
    part = 0.0 if high == low else (write_share - low) / (high - low)
    rate = 1 / ((1 - part) / at_least(rows, a) + part / at_least(rows, b))
    nearer = a if part < 0.5 else b
    level = nearer.name.removeprefix(nearer.what).strip()
    return replace(nearer, name=level or nearer.name, rate=rate, samples=nearer.samples)


# *** where the table is ***

_known: dict[str, Ceilings] = {}


def ceilings(device: str = "", *, again: bool = False, measure: bool = True) -> Ceilings:
    """What this machine does at best under the TARGET in force: arithmetic by type, bandwidth by working set, the
    clock and the smallest kernel, each with its samples.

    They are measured once (under 2 s) and kept in the cache directory under the CPU's name and the target. `again`
    measures again and keeps the better rate of each. Without `measure` only what is kept is given. Devices whose
    kernels are not machine code of this CPU have none; `reason` says why.
    """
    name = Device.canonicalize(device or Device.DEFAULT)
    cpu, target = cpu_name(), ""
    if reason := _no_compiler() or why_none(name):
        return Ceilings(cpu, target, (), reason)
    described = Device["LLVM"].target
    target = f"{described.cpu}, {described.vector_bytes * 8}-bit vectors, {described.threads} threads"
    key = key_of(cpu, target, described.features)
    found = _known.get(key) or _read(key, cpu, target)
    if found is None or again:
        if found is None and not measure:
            return Ceilings(cpu, target, (), "they are not measured yet: tinyexplore.explore.ceilings()")
        prober = Prober(described.threads, described.l1_bytes, described.l2_bytes)
        rows = better(() if found is None else found.rows, (*prober.all(), launch_ceiling()))
        found = Ceilings(cpu, target, tuple(rows))
        _keep(key, found)
    elif key not in _known and (slow := disturbed(found.rows, 1.0)):
        found = improve(found, slow)  # several threads are never slower than one: the file has a disturbed probe
    _known[key] = found
    return found


def improve(known: Ceilings, wanted: Iterable[Ceiling]) -> Ceilings:
    """Measures the rates of `wanted` again, or for the first time, and keeps the better ones; none after IMPROVE_S."""
    described = Device["LLVM"].target
    prober = Prober(described.threads, described.l1_bytes, described.l2_bytes)
    rows, began = list(known.rows), time.perf_counter()
    for one in wanted:
        rows = better(rows, prober.again(one))
        if time.perf_counter() - began > IMPROVE_S:
            break
    found = replace(known, rows=tuple(rows))
    key = key_of(known.cpu, known.target, described.features)
    _known[key] = found
    _keep(key, found)
    return found


def why_none(device: str) -> str:
    """Why there are no ceilings for the kernels of a device, "" where there are."""
    kind = device.partition(":")[0]
    if kind in MEASURED:
        target = Device[device].target
        if target.chosen and _is_foreign(device):
            return f"this machine cannot execute code for {target.cpu}"
        return ""
    if kind == "PYTHON":
        return "PYTHON interprets kernels; its speed says nothing of the machine"
    return f"the probes are machine code of this CPU, kernels of {kind} are not"


def _is_foreign(device: str) -> bool:
    choice = chosen()
    return choice.gpu is not None or choice.arch == "wasm32" or bool(compiler_for(choice.cpu).refusal)


def _no_compiler() -> str:
    try:
        import llvmlite  # noqa: F401
    except ImportError:
        return "the probes are compiled by llvmlite, which is not installed"
    return ""


def launch_ceiling() -> Ceiling:
    """Microseconds of the smallest kernel, as samples of launches are taken."""
    with recording(None), step_by_step():
        x = Tensor([1.0], device="LLVM").realize()
        (item,) = compile_many(schedule([(x + 1).lazydata]))
        item.run()
        samples = sorted(seconds * 1e6 for seconds in item.measure(LAUNCHES))
    quartiles = (samples[0], samples[LAUNCHES // 4], median(samples), samples[3 * LAUNCHES // 4])
    found = ceiling("smallest kernel", "launch", "", 1, 0, quartiles)
    return replace(found, rate=round(quartiles[2], 4))


def cpu_name() -> str:
    """The CPU as the system calls it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def key_of(cpu: str, target: str, features: str) -> str:
    """The file's name: "ceilings-Intel-Xeon-…-0123456789abcdef"."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in cpu).split()
    text = "\0".join((str(FORMAT), cpu, target, features, str(core_count()), platform.node()))
    return f"ceilings-{'-'.join(words)}-{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _keep(key: str, found: Ceilings) -> None:
    rows = [{field.name: getattr(one, field.name) for field in fields(one)} for one in found.rows]
    keep(key, json.dumps({"cpu": found.cpu, "target": found.target, "rows": rows}, ensure_ascii=False).encode())


def _read(key: str, cpu: str, target: str) -> Ceilings | None:
    data = find(key)
    if data is None:
        return None
    try:
        rows = json.loads(data)["rows"]
        return Ceilings(cpu, target, tuple(Ceiling(**{**row, "samples": tuple(row["samples"])}) for row in rows))
    except (ValueError, KeyError, TypeError):
        return None  # of another version


__all__ = ["Ceilings", "ceilings", "improve", "why_none"]
