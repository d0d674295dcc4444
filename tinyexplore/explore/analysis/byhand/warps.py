"""The addresses of a warp: where each of its lanes reads or stores, how memory answers, and which banks are hit.

Work-items that go in step are a warp (AMD: a wave). What its lanes ask of memory at one load is one request; memory
answers in segments of 32 bytes, four of them a line of 128. Shared memory has 32 banks, a word of 4 bytes wide, of
which each answers one word at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyexplore.dtype import DType, PtrDType
from tinyexplore.explore.tracefile.readable import ReadableRow
from tinyexplore.renderer.program import Launch, global_buffers, is_shared
from tinyexplore.renderer.python import memory_format
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.semantics import scalar_function

SEGMENT, LINE = 32, 128  # bytes
BANKS, WORD = 32, 4
Lanes = tuple[int | None, ...]


class DataDependentWarp(ValueError):
    """Where a warp reads or stores depends on what was loaded: that takes the kernel's inputs (`keep_inputs`)."""


@dataclass(frozen=True, repr=False)
class WarpRequest(ReadableRow):
    """What a warp asks at one load or store. addresses: of each lane, in bytes from the start of the memory; None where
    the lane is masked. nbytes: of one lane. shared: of shared memory."""

    addresses: Lanes
    nbytes: int
    shared: bool = False

    @property
    def wanted(self) -> int:
        """How many bytes some lane wants, each counted once."""
        return len({at + byte for at in self.asked for byte in range(self.nbytes)})

    @property
    def asked(self) -> list[int]:
        """The addresses of the lanes that are not masked."""
        return [at for at in self.addresses if at is not None]

    def pieces(self, size: int) -> int:
        """How many pieces of memory of `size` bytes it touches."""
        return len({piece for at in self.asked for piece in range(at // size, (at + self.nbytes - 1) // size + 1)})

    @property
    def segments(self) -> int:
        return self.pieces(SEGMENT)

    @property
    def lines(self) -> int:
        return self.pieces(LINE)

    @property
    def least(self) -> int:
        """The segments that as many bytes side by side would be."""
        return -(-self.wanted // SEGMENT)

    @property
    def efficiency(self) -> float:
        """Of the bytes that move, the share that some lane wants."""
        return self.wanted / (self.segments * SEGMENT) if self.asked else 1.0

    def banks(self) -> list[int]:
        """Of each bank, how many different words are wanted of it at one time, at the most. Lanes of 8 bytes are
        answered in two halves, of 16 in four."""
        at_a_time = BANKS // max(1, self.nbytes // WORD)
        most = [0] * BANKS
        for first in range(0, len(self.addresses), at_a_time):
            words: set[int] = set()
            for at in self.addresses[first : first + at_a_time]:
                if at is not None:
                    words.update(range(at // WORD, (at + self.nbytes - 1) // WORD + 1))
            for bank in range(BANKS):
                most[bank] = max(most[bank], sum(word % BANKS == bank for word in words))
        return most

    @property
    def degree(self) -> int:
        """How many times the busiest bank has to answer: 1 is no conflict."""
        return max(1, *self.banks())

    @property
    def stride(self) -> int | None:
        """How many bytes neighbouring lanes lie apart; None where not all do."""
        pairs = zip(self.addresses, self.addresses[1:])
        steps = {b - a for a, b in pairs if a is not None and b is not None}
        return steps.pop() if len(steps) == 1 else None

    def runs(self) -> list[int]:
        """The bytes of each run of addresses that lie one behind the other."""
        sizes: list[int] = []
        end = None
        for at in sorted(set(self.asked)):
            if at == end:
                sizes[-1] += self.nbytes
            else:
                sizes.append(self.nbytes)
            end = at + self.nbytes
        return sizes

    @property
    def says(self) -> str:
        """What to think of it, in words."""
        if not self.asked:
            return "every lane is masked"
        if len(self.asked) == 1 < len(self.addresses):
            return f"one lane of {len(self.addresses)} asks"
        one = len(set(self.asked)) == 1
        if self.shared:
            return self._of_banks(one)
        if one:
            return "broadcast: one address for all"
        if self.segments == self.least:
            return "coalesced"
        if self.stride is not None:
            return f"lanes lie {self.stride} bytes apart"
        sizes = self.runs()
        if len(sizes) < len(self.asked) and len(set(sizes)) == 1:
            return f"{len(sizes)} rows of {sizes[0]} bytes"
        return "lanes lie scattered"

    def _of_banks(self, one: bool) -> str:
        if self.degree > 1:
            return f"{self.degree}-way bank conflict"
        return "broadcast: one word for all" if one else "no bank conflict"


class Warps:
    """The warps of a kernel. `uops`: its linear program; `warp`: how many work-items go in step; `contents`: of each
    buffer, where it is known."""

    def __init__(
        self,
        uops: Sequence[UOp],
        warp: int,
        variables: Mapping[UOp, int] | None = None,
        contents: Sequence[bytes | None] | None = None,
    ) -> None:
        self.uops = uops
        self.launch = Launch.of(uops)
        self.variables = dict(variables or {})
        self.grid = self.launch.sizes([self.variables.get(one, 0) for one in self.launch.variables])
        self.group = self.launch.group
        self.warp = warp
        self.items = 1
        for size in self.group or (warp,):  # a runtime that chooses takes neighbours
            self.items *= size
        stored = {node.src[0].src[0] for node in uops if node.op is Ops.STORE}
        given = zip(global_buffers(uops), contents or ())
        self.known = {node: data for node, data in given if data is not None and node not in stored}

    @property
    def warps(self) -> int:
        """How many a group has."""
        return -(-self.items // self.warp)

    def request(self, node: UOp, group: Sequence[int], warp: int, counters: Mapping[UOp, int]) -> WarpRequest:
        """What this warp of this group asks at a LOAD or STORE. counters: of the loops around it."""
        dtype = node.dtype if node.op is Ops.LOAD else node.src[1].dtype
        pointer, idx, *valid = node.src[0].src
        assert isinstance(dtype, DType) and isinstance(pointer.dtype, PtrDType)
        value = self.evaluator(group, warp, counters)
        places = value(idx)
        there = value(valid[0]) if valid else [True] * len(places)
        size = pointer.dtype.base.itemsize
        addresses = tuple([place * size if ok else None for place, ok in zip(places, there)])
        return WarpRequest(addresses, dtype.count * dtype.scalar.itemsize, is_shared(pointer))

    def lanes(self, group: Sequence[int], warp: int) -> dict[str, list[int]]:
        """The numbers of each lane's work-item, by the names of SPECIALs."""
        first = warp * self.warp
        numbers = range(first, min(first + self.warp, self.items))
        if self.group is None:
            before, place = 0, 1
            for step, size in zip(group, self.grid):
                before, place = before + step * place, place * size
            return _digits("idx", [before + number for number in numbers], self.grid)
        found = _digits("lidx", list(numbers), self.group)
        return {**found, **{f"gidx{d}": [step] * len(numbers) for d, step in enumerate(group)}}

    def evaluator(self, group: Sequence[int], warp: int, counters: Mapping[UOp, int]) -> Callable[[UOp], list[Any]]:
        """A function that gives the value of a node in each lane. DataDependent where nobody knows it."""
        special = self.lanes(group, warp)
        count = len(next(iter(special.values())))

        @cache
        def value(node: UOp) -> list[Any]:
            match node.op:
                case Ops.CONST:
                    return [node.arg] * count
                case Ops.SPECIAL:
                    return special[node.arg]
                case Ops.RANGE:
                    return [counters.get(node, 0)] * count
                case Ops.DEFINE_VAR if node in self.variables:
                    return [self.variables[node]] * count
                case Ops.LOAD if node.src[0].src[0] in self.known:
                    return self.loaded(node, value)
            if node.op not in OpGroups.ALU:
                raise DataDependentWarp(
                    "where it lies depends on what was loaded: capture a run, on DEVICE=PYTHON, with keep_inputs=True"
                )
            sources = [value(src) for src in node.src]
            dtypes = tuple([src.dtype for src in node.src])
            function = scalar_function(node.op, node.dtype, dtypes)
            return [function(*lane) for lane in zip(*sources)]

        return value

    def loaded(self, node: UOp, value: Callable[[UOp], list[Any]]) -> list[Any]:
        """What the lanes load of a buffer whose contents are known; 0 where a lane is masked."""
        pointer, idx, *valid = node.src[0].src
        assert isinstance(pointer.dtype, PtrDType)
        view = memoryview(self.known[pointer]).cast(memory_format(pointer.dtype.base))  # type: ignore[call-overload]
        there = value(valid[0]) if valid else [True] * len(value(idx))
        return [view[place] if ok else 0 for place, ok in zip(value(idx), there)]


def _digits(name: str, numbers: list[int], sizes: Sequence[int]) -> dict[str, list[int]]:
    found = {}
    for place, size in enumerate(sizes):
        found[f"{name}{place}"] = [number % size for number in numbers]
        numbers = [number // size for number in numbers]
    return found


def loops_around(uops: Sequence[UOp]) -> Iterator[tuple[int, UOp, tuple[UOp, ...]]]:
    """Every LOAD and STORE of global or shared memory, with its place in the program and the loops around it."""
    around: list[UOp] = []
    for place, node in enumerate(uops):
        if node.op is Ops.RANGE:
            around.append(node)
        elif node.op is Ops.ENDRANGE:
            around.pop()
        elif node.op in (Ops.LOAD, Ops.STORE):
            memory = node.src[0].src[0]
            if memory.op is Ops.DEFINE_GLOBAL or is_shared(memory):
                yield place, node, tuple(around)


__all__ = ["BANKS", "LINE", "SEGMENT", "DataDependentWarp", "WarpRequest", "Warps", "loops_around"]
