"""Models the cache hits and misses of a kernel's loads and stores on its target.

The model has the data caches of one core with least-recently-used replacement (`lru.py`), and runs the address stream
of the linear program (`address_stream.py`). The model leaves out prefetching and other cores. An access of several
cache lines counts once for each line.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from html import escape
from typing import Any

from tinyexplore.explore.analysis.models.address_stream import AddressStream, ProgramAccess, has_numpy
from tinyexplore.explore.analysis.models.lru import DISTANCE_RANGES, Cache, caches_of, simulator
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.target import Target
from tinyexplore.trace import SourceLine
from tinyexplore.uop import UOp

MAX_ACCESSES = 400_000_000  # most accesses: some ten seconds
MAX_INTERPRETED_ACCESSES = 300_000  # most accesses without NumPy: the same time in a browser


class TooManyAccessesError(ValueError):
    """A kernel has too many memory accesses to simulate; smaller tensors would work."""


@dataclass(frozen=True, repr=False)
class Traffic(DisplayableRow):
    """The cache traffic of one access, or of several together.

    served: the number of cache lines that each level served, and last those that memory served.
    reuse: the number of accesses by reuse distance (the number of other lines accessed since the last access to the
        line): 0, 1, 2-3, 4-7 …, and last the first accesses to a line.
    """

    served: tuple[int, ...]
    reuse: tuple[int, ...]

    @property
    def accesses(self) -> int:
        return sum(self.served)

    def hits(self, level: int = 0) -> int:
        """Returns the hits at this level (0: L1)."""
        return self.served[level]

    def misses(self, level: int = 0) -> int:
        """Returns the misses: accesses that neither this level nor one before it served."""
        return sum(self.served[level + 1 :])

    def miss_rate(self, level: int = 0) -> float:
        """Returns the miss rate: misses / accesses at this level."""
        came = sum(self.served[level:])
        return self.misses(level) / came if came else 0.0

    def __add__(self, other: Traffic) -> Traffic:
        hits = tuple(a + b for a, b in zip(self.served, other.served, strict=True))
        return Traffic(hits, tuple(a + b for a, b in zip(self.reuse, other.reuse, strict=True)))


@dataclass(frozen=True, repr=False)
class AccessTraffic(DisplayableRow):
    """The traffic of one LOAD or STORE.

    place: its line in the listing.
    text: the text of that line.
    buffer: the buffer that it reads or writes.
    stored: whether it writes.
    nbytes: bytes of one access.
    loops: the names of the loops around it.
    traffic: its accesses and misses.
    """

    place: int
    text: str
    buffer: str
    stored: bool
    nbytes: int
    loops: tuple[str, ...]
    traffic: Traffic


@dataclass(frozen=True, repr=False)
class AccessTrafficData(DisplayableRow):
    """The traffic of one load or store, as the panel of caches draws it."""

    place: int
    """Line of the listing."""
    text: str
    """Text of the line."""
    buffer: str
    """Name of the buffer."""
    stored: bool
    """Whether it is a store."""
    nbytes: int
    """Bytes of one access."""
    loops: tuple[str, ...]
    """Names of the loops around it."""
    served: tuple[int, ...]
    """Number of cache lines that each level served, memory last."""
    reuse: tuple[int, ...]
    """Accesses by reuse distance; see `Traffic`."""


@dataclass(frozen=True, repr=False)
class TileData(DisplayableRow):
    """The cache lines that one pass of the innermost loop accesses."""

    counters: tuple[tuple[str, int], ...]
    """Name and counter of each loop around the tile."""
    buffers: tuple[tuple[str, tuple[int, ...], int], ...]
    """Name, accessed lines, and total number of lines of each buffer."""


@dataclass(frozen=True, repr=False)
class CacheModelData(DisplayableRow):
    """One kernel under its caches, as the panel of caches draws it."""

    name: str
    """Name of the kernel."""
    opts: tuple[str, ...]
    """Opts of the kernel."""
    levels: tuple[str, ...]
    """Names of the caches, and memory."""
    caches: tuple[tuple[str, int, int, int], ...]
    """Name, bytes, ways, and bytes of a line of each cache."""
    total: Traffic
    """The traffic of all accesses."""
    accesses: tuple[AccessTrafficData, ...]
    """Loads and stores in the order of the listing."""
    loops: tuple[tuple[str, Traffic], ...]
    """The traffic inside each loop, outermost first."""
    lines: tuple[tuple[int, Traffic], ...]
    """The traffic of each line of the source, from 1."""
    footprint: tuple[tuple[str, int], ...]
    """Accessed bytes of each buffer."""
    seconds: float
    """Duration of the simulation, in seconds."""
    tile: TileData | None = None
    """One tile in the middle of the loops; None if there is none."""


@dataclass(frozen=True, repr=False)
class CachesData(DisplayableRow):
    """A kernel under its caches before and after, as the panel of caches draws it."""

    after: CacheModelData
    """The kernel with the opts after the change."""
    before: CacheModelData | None = None
    """The kernel with the opts before the change; None if they are the same."""
    rows: tuple[tuple[str, str, Traffic | None, Traffic | None], ...] = ()
    """Kind ("buffer", "loop" or "line"), name, and traffic before and after the change, of each corresponding pair."""


@dataclass(frozen=True)
class CacheModel:
    """The cache simulation of one run of a kernel.

    name: the name of the kernel.
    caches: the levels, the nearest first.
    accesses: the traffic of each LOAD and STORE.
    total: the traffic of all of them.
    footprint: bytes of each buffer that the kernel reads or writes.
    seconds: the time that the simulation took.
    stream: the addresses that were simulated.
    source: the lines of the program.
    opts: the opts of the kernel.
    """

    name: str
    caches: tuple[Cache, ...]
    accesses: tuple[AccessTraffic, ...]
    total: Traffic
    footprint: Mapping[str, int]  # bytes of each buffer
    seconds: float
    stream: AddressStream = field(repr=False)
    source: tuple[SourceLine, ...] = field(default=(), repr=False)
    opts: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[str, ...]:
        """Returns the levels in lookup order: the caches, then memory."""
        return (*(cache.name for cache in self.caches), "memory")

    def by_loop(self) -> dict[str, Traffic]:
        """Returns the traffic of all accesses inside each loop, outermost first."""
        by_axis: dict[str, Traffic] = {}
        for number in self.stream.loop_names:
            name = self.stream.loop_names[number]
            inside = [access.traffic for access in self.accesses if name in access.loops]
            if inside:
                by_axis[name] = _sum_traffic(inside)
        return by_axis

    def by_line(self) -> dict[int, Traffic]:
        """Returns the traffic of each source line (from 1). An access on several lines counts at the last one."""
        traffic_of = {
            modeled.node: access.traffic for modeled, access in zip(self.stream.accesses, self.accesses, strict=True)
        }
        lines = {node: number for number, line in enumerate(self.source, 1) for node in line.uops if node in traffic_of}
        traffics: dict[int, list[Traffic]] = {}
        for node, number in lines.items():
            traffics.setdefault(number, []).append(traffic_of[node])
        return {number: _sum_traffic(traffics[number]) for number in sorted(traffics)}

    def by_code(self) -> list[tuple[Hashable, str, Traffic]]:
        """Returns the source lines that access memory: key (buffers, stored or loaded), text and traffic of each."""
        access_of = {modeled.node: access for modeled, access in zip(self.stream.accesses, self.accesses, strict=True)}
        rows: list[tuple[Hashable, str, Traffic]] = []
        for number, traffic in self.by_line().items():
            line = self.source[number - 1]
            key = tuple((access_of[node].buffer, access_of[node].stored) for node in line.uops if node in access_of)
            rows.append((key, line.text.strip(), traffic))
        return rows

    def by_buffer(self) -> dict[str, Traffic]:
        """Returns the traffic of each buffer."""
        names = dict.fromkeys(access.buffer for access in self.accesses)
        return {
            name: _sum_traffic([access.traffic for access in self.accesses if access.buffer == name]) for name in names
        }

    def lines_of(self, **counters: int) -> dict[str, list[int]]:
        """Returns the cache lines accessed while loops have these counters. Lines count from their buffer's start.

        Example: `lines_of(g0=0, g1=3)` is the footprint of one tile.
        """
        return find_accessed_lines(self.stream, counters)

    def compare(self, after: CacheModel) -> CacheComparison:
        """Compares this model (before) with another (after)."""
        return CacheComparison(self, after)

    def as_data(self) -> CacheModelData:
        """Returns the data that a view draws, without a tile."""
        accesses = [
            AccessTrafficData(
                access.place,
                access.text,
                access.buffer,
                access.stored,
                access.nbytes,
                access.loops,
                access.traffic.served,
                access.traffic.reuse,
            )
            for access in self.accesses
        ]
        return CacheModelData(
            self.name,
            tuple(self.opts),
            self.levels,
            tuple([(cache.name, cache.nbytes, cache.ways, cache.line_bytes) for cache in self.caches]),
            self.total,
            tuple(accesses),
            tuple(self.by_loop().items()),
            tuple(self.by_line().items()),
            tuple(self.footprint.items()),
            self.seconds,
        )

    def __repr__(self) -> str:
        return "\n".join([*self._write_head(), *_align_columns(self._make_rows())])

    def _repr_html_(self) -> str:
        return _write_html(self._write_head(), self._make_rows())

    def _write_head(self) -> tuple[str, str]:
        """Returns the traffic with memory in lines and bytes, and the conditions of the figures, as text."""
        caches = " · ".join(map(str, self.caches))
        text = f"{self.name}: {self.total.accesses:,} accesses to cache lines; {caches}"
        return f"read from memory: {memory_text(self)}", text

    def _make_rows(self) -> list[tuple[str, ...]]:
        rows = [("", "accesses", *self.levels)]
        rows += [
            _make_row(f"{'store' if access.stored else 'load '} {access.text}", access.traffic)
            for access in self.accesses
        ]
        rows += [_make_row(f"loop {name}", traffic) for name, traffic in self.by_loop().items()]
        return [*rows, _make_row("all", self.total)]


@dataclass(frozen=True, repr=False)
class AlignedTraffic(DisplayableRow):
    """The traffic of a buffer, loop or line before and after a change.

    of: "buffer", "loop" or "line" (of the source).
    name: its name.
    before: the traffic before, None if it did not exist.
    after: the traffic after, None if it no longer exists.
    """

    of: str
    name: str
    before: Traffic | None
    after: Traffic | None


@dataclass(frozen=True)
class CacheComparison:
    """The cache models of one kernel before and after a change, level by level.

    before: the model before the change.
    after: the model after the change.
    """

    before: CacheModel
    after: CacheModel

    def rows(self) -> tuple[AlignedTraffic, ...]:
        """Returns the traffic of both sides: by buffer, by loop (by name, in order), and by line.

        Lines correspond if they access the same buffers, in order.
        """
        first, second = self.before, self.after
        rows = _align_rows("buffer", _list_traffic(first.by_buffer()), _list_traffic(second.by_buffer()))
        rows += _align_rows("loop", _list_traffic(first.by_loop()), _list_traffic(second.by_loop()))
        rows += _align_rows("line", first.by_code(), second.by_code())
        return tuple(rows)

    def as_data(self) -> CachesData:
        """Returns the data of both models, with corresponding rows."""
        rows = tuple([(row.of, row.name, row.before, row.after) for row in self.rows()])
        return CachesData(self.after.as_data(), self.before.as_data(), rows)

    def __repr__(self) -> str:
        return "\n".join([*self._write_head(), *_align_columns(self._make_rows())])

    def _repr_html_(self) -> str:
        return _write_html(self._write_head(), self._make_rows())

    def _write_head(self) -> tuple[str, str]:
        hits_before, hits_after = (model.total.served[-1] for model in (self.before, self.after))
        opts = " ".join(self.before.opts) or "no opts", " ".join(self.after.opts) or "no opts"
        text = f"{self.before.name} ({opts[0]}) → {self.after.name} ({opts[1]})"
        change = (
            f"{memory_text(self.before)} → {memory_text(self.after)} {_factor_text(hits_before, hits_after)}".rstrip()
        )
        return f"read from memory: {change}", text

    def _make_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("", "before", "after", "")]
        for level, name in reversed(list(enumerate(self.before.levels))):
            count_before, count_after = self.before.total.served[level], self.after.total.served[level]
            rows.append((name, f"{count_before:,}", f"{count_after:,}", _factor_text(count_before, count_after)))
        count_before, count_after = self.before.total.accesses, self.after.total.accesses
        rows.append(("all", f"{count_before:,}", f"{count_after:,}", _factor_text(count_before, count_after)))
        for row in self.rows():
            count_before, count_after = (0 if side is None else side.accesses for side in (row.before, row.after))
            texts = ["–" if side is None else f"{side.accesses:,}" for side in (row.before, row.after)]
            rows.append((f"{row.of} {row.name}"[:48], texts[0], texts[1], _factor_text(count_before, count_after)))
        return rows


def model_caches(
    name: str,
    uops: Sequence[UOp],
    target: Target,
    *,
    values: Mapping[UOp, int] | None = None,
    contents: Sequence[Any] | None = None,
    caches: Sequence[Cache] | None = None,
    source: Sequence[SourceLine] = (),
    opts: Iterable[str] = (),
) -> CacheModel:
    """Simulates one run of a linear program on the caches of `target`, or on `caches`. The caches start cold.

    contents: the contents of its buffers, needed only if an index depends on loaded values.
    """
    start = time.perf_counter()
    caches = tuple(caches_of(target) if caches is None else caches)
    line = caches[0].line_bytes if caches else target.line_bytes
    stream = AddressStream(uops, values, unit=line, page=target.page_bytes, contents=contents)
    expected, most_accesses = stream.count_most_accesses(), MAX_ACCESSES if has_numpy() else MAX_INTERPRETED_ACCESSES
    if expected is not None and expected > most_accesses:
        raise TooManyAccessesError(
            f"{name} accesses memory about {count_text(expected, 'time')}; at most {most_accesses:,} are modeled here"
        )
    run = simulator(caches, len(stream.accesses), stream.nbytes // line + 1)
    for chunk in stream.chunks():
        run.run(chunk.lines, chunk.columns)
    rows = [
        _make_access_traffic(stream, access, Traffic(tuple(map(int, hits)), tuple(map(int, reuse))))
        for access, hits, reuse in zip(stream.accesses, run.served, run.reuse, strict=True)
    ]
    none = Traffic((0,) * (len(caches) + 1), (0,) * (DISTANCE_RANGES + 1))
    total = _sum_traffic([none, *(row.traffic for row in rows)])
    seconds = time.perf_counter() - start
    sizes = dict(stream.sizes)
    return CacheModel(name, caches, tuple(rows), total, sizes, seconds, stream, tuple(source), tuple(opts))


def find_accessed_lines(stream: AddressStream, counters: Mapping[str, int]) -> dict[str, list[int]]:
    """Returns the cache lines of each buffer that a stream accesses while the loops have these counters."""
    names = {name: number for number, name in stream.loop_names.items()}
    if unknown := [name for name in counters if name not in names]:
        raise ValueError(f"no loop {', '.join(unknown)}; available: {', '.join(names) or 'none'}")
    fixed = {stream.uops[names[name]]: value for name, value in counters.items()}
    pieces: list[set[int]] = [set() for _ in stream.accesses]
    for chunk in stream.restrict(fixed).chunks():
        columns = chunk.columns.tolist()
        for row in chunk.lines.tolist():
            for line, access in zip(row, columns, strict=True):
                if line >= 0:
                    pieces[access].add(line)
    lines: dict[str, list[int]] = {}
    for number, access in enumerate(stream.accesses):
        base = stream.bases[access.node.src[0].src[0]] // stream.unit
        pieces_here = {piece - base for piece in pieces[number]}
        lines[access.buffer] = sorted({*lines.get(access.buffer, ()), *pieces_here})
    return lines


def _make_access_traffic(stream: AddressStream, access: ProgramAccess, traffic: Traffic) -> AccessTraffic:
    loops = tuple(stream.loop_names[number] for number in access.loops)
    return AccessTraffic(access.place, access.text, access.buffer, access.stored, access.nbytes, loops, traffic)


def _sum_traffic(parts: Sequence[Traffic]) -> Traffic:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _list_traffic(traffic: Mapping[str, Traffic]) -> list[tuple[Hashable, str, Traffic]]:
    return [(name, name, traffic_of_name) for name, traffic_of_name in traffic.items()]


def _align_rows(
    of: str, before: Sequence[tuple[Hashable, str, Traffic]], after: Sequence[tuple[Hashable, str, Traffic]]
) -> list[AlignedTraffic]:
    """Returns the rows of both sides in order. Equal keys share a row; any other key gets its own row."""
    keys = [key for key, _, _ in before], [key for key, _, _ in after]
    rows: list[AlignedTraffic] = []
    for tag, first, end, start, stop in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs = zip(before[first:end], after[start:stop], strict=True)
            rows += [
                AlignedTraffic(of, name, traffic_before, traffic_after)
                for (_, _, traffic_before), (_, name, traffic_after) in pairs
            ]
            continue
        rows += [AlignedTraffic(of, name, traffic_before, None) for _, name, traffic_before in before[first:end]]
        rows += [AlignedTraffic(of, name, None, traffic_after) for _, name, traffic_after in after[start:stop]]
    return rows


def _make_row(name: str, traffic: Traffic) -> tuple[str, ...]:
    accesses = traffic.accesses or 1
    shares = [f"{count:,} {100 * count / accesses:.1f} %" if count else "–" for count in traffic.served]
    return (name[:60], f"{traffic.accesses:,}", *shares)


def memory_text(model: CacheModel) -> str:
    """Returns the number of cache lines from memory, and their bytes, as text."""
    lines = model.total.served[-1]
    line_bytes = model.caches[0].line_bytes if model.caches else model.stream.unit
    return f"{count_text(lines, 'line')}, {count_text(lines * line_bytes, 'byte')}"


def _write_html(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns a table for a notebook; the first line of `head` is the headline."""
    first, *more = (escape(text) for text in head)
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    lines = "".join(f"<div>{text}</div>" for text in more)
    return f"<div><strong>{first}</strong>{lines}<table>{cells}</table></div>"


def _align_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _factor_text(before: int, after: int) -> str:
    if before == after or not before or not after:
        return ""
    return f"÷ {before / after:.1f}" if after < before else f"× {after / before:.1f}"


__all__ = [
    "AccessTraffic",
    "AlignedTraffic",
    "CacheComparison",
    "CacheModel",
    "TooManyAccessesError",
    "Traffic",
    "find_accessed_lines",
    "model_caches",
]
