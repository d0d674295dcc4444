"""Simulates caches with least-recently-used (LRU) replacement, and reuse distances, on a stream of lines.

`NativeSimulator` is machine code (`lru.ll`, by llvmlite). Without llvmlite, `PlainSimulator` in Python is used. It
defines the semantics of both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

from tinyexplore.device import DeviceUnavailable
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.renderer.program import CompileOptions
from tinyexplore.runtime.llvm import shared_compiler
from tinyexplore.target import Target

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

DISTANCE_RANGES = 40  # number of ranges of reuse distances: 0, 1, 2-3, 4-7 …
SHARED_WAYS = 16  # of the L2 and L3 caches: a Target has only their sizes


@dataclass(frozen=True, repr=False)
class Cache(DisplayableRow):
    """One cache level.

    name: the name of the level.
    nbytes: its size in bytes.
    ways: the number of lines in a set.
    line_bytes: the size of a line in bytes.
    """

    name: str
    nbytes: int
    ways: int
    line_bytes: int = 64

    @property
    def sets(self) -> int:
        return max(1, self.nbytes // (self.ways * self.line_bytes))

    def __str__(self) -> str:
        return f"{self.name} {self.nbytes >> 10} KiB, {self.ways} ways"


def caches_of(target: Target) -> tuple[Cache, ...]:
    """Returns the data caches of a machine, nearest first."""
    ways = max(1, target.l1_bytes // target.way_bytes)
    line = target.line_bytes
    shared = (("L2", target.l2_bytes), ("L3", target.l3_bytes))
    return (Cache("L1", target.l1_bytes, ways, line), *(Cache(name, size, SHARED_WAYS, line) for name, size in shared))


class LRU(Protocol):
    """A simulator.

    served: for each access, the number of accesses that each level served, and last memory.
    reuse: for each access, the number of accesses by reuse distance (0, 1, 2-3, 4-7 … other lines), and last the first
        accesses.
    """

    served: Any
    reuse: Any

    def run(self, lines: Array, columns: Array) -> None:
        """Simulates the accesses of `lines`, row by row. Column i belongs to access `columns[i]`; -1 is no access."""


class PlainSimulator:
    """The reference simulator, which processes one cache line at a time."""

    def __init__(self, caches: Sequence[Cache], accesses: int, lines: int) -> None:
        self.caches = caches
        self.served = [[0] * (len(caches) + 1) for _ in range(accesses)]
        self.reuse = [[0] * (DISTANCE_RANGES + 1) for _ in range(accesses)]
        self._sets: list[list[list[int]]] = [[[] for _ in range(cache.sets)] for cache in caches]
        self._stack: list[int] = []  # all lines, the most recently used one at the end

    def run(self, lines: Array, columns: Array) -> None:
        for row in lines.tolist():
            for line, access in zip(row, columns.tolist(), strict=True):
                if line >= 0:
                    self.served[access][self._find_level(line)] += 1
                    self.reuse[access][self._measure_distance(line)] += 1

    def _find_level(self, line: int) -> int:
        """Returns the first level that holds the line, and brings the line into all levels before it."""
        for level, (level_cache, sets) in enumerate(zip(self.caches, self._sets, strict=True)):
            row = sets[line % level_cache.sets]
            is_hit = line in row
            if is_hit:
                row.remove(line)
            row.insert(0, line)
            if is_hit:
                return level
            del row[level_cache.ways :]
        return len(self.caches)

    def _measure_distance(self, line: int) -> int:
        stack = self._stack
        if not stack or stack[-1] != line:
            try:
                distance = len(stack) - 1 - stack.index(line)
            except ValueError:
                stack.append(line)
                return DISTANCE_RANGES
            stack.remove(line)
            stack.append(line)
            return distance.bit_length()
        return 0


class NativeSimulator:
    """The simulator in machine code, with the same results as `PlainSimulator`."""

    def __init__(self, caches: Sequence[Cache], accesses: int, lines: int) -> None:
        import numpy as np

        self._library, levels, reuse = _load_machine_code()
        self._count = len(caches)
        self.served = np.zeros((accesses, len(caches) + 1), np.int64)
        self.reuse = np.zeros((accesses, DISTANCE_RANGES + 1), np.int64)
        self._sets = np.array([cache.sets for cache in caches], np.int32)
        self._ways = np.array([cache.ways for cache in caches], np.int64)
        self._tags = [np.full(cache.sets * cache.ways, -1, np.int32) for cache in caches]
        self._rows = np.array([tags.ctypes.data for tags in self._tags], np.int64)
        self._after, self._before, self._group = (np.full(lines, -1, np.int32) for _ in range(3))
        self._tails, self._sizes = np.full(DISTANCE_RANGES, -1, np.int32), np.zeros(DISTANCE_RANGES, np.int64)
        self._state = np.full(2, -1, np.int32)
        kind = ctypes.CFUNCTYPE
        address, number = ctypes.c_void_p, ctypes.c_int64
        head = (None, address, number, address, number, number)
        self._levels = kind(*head, *[address] * 4)(levels)
        self._reuse = kind(*head, *[address] * 7)(reuse)

    def run(self, lines: Array, columns: Array) -> None:
        import numpy as np

        flat = np.ascontiguousarray(lines, np.int32).ravel()
        columns = np.ascontiguousarray(columns, np.int32)
        stream = (flat.ctypes.data, flat.size, columns.ctypes.data, columns.size)
        if not flat.size:
            return
        parts = (self._sets, self._ways, self._rows, self.served)
        self._levels(*stream, self._count, *(part.ctypes.data for part in parts))
        lists = (self._after, self._before, self._group, self._tails, self._sizes, self._state, self.reuse)
        self._reuse(*stream, DISTANCE_RANGES, *(array.ctypes.data for array in lists))


@cache
def _load_machine_code() -> tuple[Any, int, int]:
    """Returns the library of `lru.ll`, and the addresses of its functions.

    Raises:
        DeviceUnavailable: LLVM is not installed.
    """
    compiler = shared_compiler()
    code = compiler.object_code(resources.files(__package__).joinpath("lru.ll").read_text(), CompileOptions())
    library = compiler.link("lru", [code], ("lru_levels", "lru_reuse"))
    return (library, compiler), library["lru_levels"], library["lru_reuse"]


def simulator(caches: Sequence[Cache], accesses: int, lines: int) -> LRU:
    """Returns the fastest available simulator.

    accesses: the number of accesses of the program.
    lines: the number of lines of memory; they are numbered from 0.
    """
    try:
        return NativeSimulator(caches, accesses, lines)
    except (DeviceUnavailable, ModuleNotFoundError):  # without LLVM or NumPy
        return PlainSimulator(caches, accesses, lines)


__all__ = ["DISTANCE_RANGES", "Cache", "LRU", "NativeSimulator", "PlainSimulator", "caches_of", "simulator"]
