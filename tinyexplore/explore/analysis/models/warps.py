"""The addresses of a warp: where each of its lanes reads or stores, the transferred segments, and the bank conflicts.

Work-items that execute in lockstep are a warp (AMD: a wave). The addresses of its lanes at one load are one request.
Memory transfers segments of 32 bytes; four segments are a line of 128 bytes. Shared memory has 32 banks of 4-byte
words; each bank serves one word per cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyexplore.dtype import DType, PtrDType
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.renderer.program import Launch, global_buffers, is_shared
from tinyexplore.renderer.python import memory_format
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.semantics import scalar_function

SEGMENT, LINE = 32, 128  # bytes
BANKS, WORD = 32, 4
Lanes = tuple[int | None, ...]


class DataDependentWarp(ValueError):
    """An address of a warp depends on loaded values, so it needs the kernel's inputs (`keep_inputs`)."""


@dataclass(frozen=True, repr=False)
class WarpRequest(DisplayableRow):
    """The addresses of a warp at one load or store.

    addresses: the address of each lane, in bytes from the start of the memory; None for a masked lane.
    nbytes: bytes of one lane.
    shared: whether the access goes to shared memory.
    """

    addresses: Lanes
    nbytes: int
    shared: bool = False

    @property
    def used_bytes(self) -> int:
        """The number of different bytes that the lanes use."""
        return len({address + byte for address in self.active for byte in range(self.nbytes)})

    @property
    def active(self) -> list[int]:
        """The addresses of the lanes that are not masked."""
        return [address for address in self.addresses if address is not None]

    def blocks(self, size: int) -> int:
        """Returns the number of aligned blocks of `size` bytes that the access spans."""
        return len(
            {
                piece
                for address in self.active
                for piece in range(address // size, (address + self.nbytes - 1) // size + 1)
            }
        )

    @property
    def segments(self) -> int:
        return self.blocks(SEGMENT)

    @property
    def lines(self) -> int:
        return self.blocks(LINE)

    @property
    def least(self) -> int:
        """The fewest segments that could hold the used bytes."""
        return -(-self.used_bytes // SEGMENT)

    @property
    def efficiency(self) -> float:
        """Used bytes / bytes of the transferred segments."""
        return self.used_bytes / (self.segments * SEGMENT) if self.active else 1.0

    def banks(self) -> list[int]:
        """Returns, for each bank, the number of different words that it serves in one cycle: the maximum over all
        cycles.

        Lanes of 8 bytes are served in two cycles, lanes of 16 bytes in four.
        """
        at_a_time = BANKS // max(1, self.nbytes // WORD)
        most_words = [0] * BANKS
        for first in range(0, len(self.addresses), at_a_time):
            words: set[int] = set()
            for address in self.addresses[first : first + at_a_time]:
                if address is not None:
                    words.update(range(address // WORD, (address + self.nbytes - 1) // WORD + 1))
            for bank in range(BANKS):
                most_words[bank] = max(most_words[bank], sum(word % BANKS == bank for word in words))
        return most_words

    @property
    def degree(self) -> int:
        """The degree of the bank conflict: the number of accesses of the busiest bank. 1: no conflict."""
        return max(1, *self.banks())

    @property
    def stride(self) -> int | None:
        """The distance between neighboring lanes, in bytes; None if it is not constant."""
        pairs = zip(self.addresses, self.addresses[1:])
        steps = {b - a for a, b in pairs if a is not None and b is not None}
        return steps.pop() if len(steps) == 1 else None

    def runs(self) -> list[int]:
        """The bytes of each contiguous range of addresses."""
        sizes: list[int] = []
        end = None
        for address in sorted(set(self.active)):
            if address == end:
                sizes[-1] += self.nbytes
            else:
                sizes.append(self.nbytes)
            end = address + self.nbytes
        return sizes

    @property
    def says(self) -> str:
        """The verdict on the request as text."""
        if not self.active:
            return "every lane is masked"
        if len(self.active) == 1 < len(self.addresses):
            return f"one active lane of {len(self.addresses)}"
        is_broadcast = len(set(self.active)) == 1
        if self.shared:
            return self._bank_text(is_broadcast)
        if is_broadcast:
            return "broadcast: one address for all"
        if self.segments == self.least:
            return "coalesced"
        if self.stride is not None:
            return f"stride of {self.stride} bytes between lanes"
        sizes = self.runs()
        if len(sizes) < len(self.active) and len(set(sizes)) == 1:
            return f"{len(sizes)} rows of {sizes[0]} bytes"
        return "scattered addresses"

    def _bank_text(self, is_broadcast: bool) -> str:
        if self.degree > 1:
            return f"{self.degree}-way bank conflict"
        return "broadcast: one word for all" if is_broadcast else "no bank conflict"


class Warps:
    """The warps of a kernel.

    uops: its linear program.
    warp: the number of work-items of a warp.
    variables: the values of its Variables.
    contents: the content of each buffer, if known.
    """

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
        self.grid = self.launch.sizes([self.variables.get(variable, 0) for variable in self.launch.variables])
        self.group = self.launch.group
        self.warp = warp
        self.items = 1
        for size in self.group or (warp,):  # a runtime that chooses the groups takes neighboring work-items
            self.items *= size
        stored = {node.src[0].src[0] for node in uops if node.op is Ops.STORE}
        buffers = zip(global_buffers(uops), contents or ())
        self.known = {node: data for node, data in buffers if data is not None and node not in stored}

    @property
    def warps(self) -> int:
        """The number of warps in a group."""
        return -(-self.items // self.warp)

    def request(self, node: UOp, group: Sequence[int], warp: int, counters: Mapping[UOp, int]) -> WarpRequest:
        """Returns the memory request of a warp of a group at a LOAD or STORE, for these loop counters."""
        dtype = node.dtype if node.op is Ops.LOAD else node.src[1].dtype
        pointer, idx, *valid = node.src[0].src
        assert isinstance(dtype, DType) and isinstance(pointer.dtype, PtrDType)
        value = self.evaluator(group, warp, counters)
        indices = value(idx)
        active = value(valid[0]) if valid else [True] * len(indices)
        size = pointer.dtype.base.itemsize
        addresses = tuple([index * size if ok else None for index, ok in zip(indices, active)])
        return WarpRequest(addresses, dtype.count * dtype.scalar.itemsize, is_shared(pointer))

    def lanes(self, group: Sequence[int], warp: int) -> dict[str, list[int]]:
        """Returns the indices of each lane's work-item, by the names of SPECIALs."""
        first = warp * self.warp
        numbers = range(first, min(first + self.warp, self.items))
        if self.group is None:
            before, factor = 0, 1
            for step, size in zip(group, self.grid):
                before, factor = before + step * factor, factor * size
            return _split_index("idx", [before + number for number in numbers], self.grid)
        lane_values = _split_index("lidx", list(numbers), self.group)
        return {**lane_values, **{f"gidx{d}": [step] * len(numbers) for d, step in enumerate(group)}}

    def evaluator(self, group: Sequence[int], warp: int, counters: Mapping[UOp, int]) -> Callable[[UOp], list[Any]]:
        """Returns a function that evaluates a node in each lane.

        It raises DataDependentWarp if the value depends on loads.
        """
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
                    return self.loaded_values(node, value)
            if node.op not in OpGroups.ALU:
                raise DataDependentWarp(
                    "its address depends on loaded values: capture a run, on DEVICE=PYTHON, with keep_inputs=True"
                )
            sources = [value(src) for src in node.src]
            dtypes = tuple([src.dtype for src in node.src])
            function = scalar_function(node.op, node.dtype, dtypes)
            return [function(*lane) for lane in zip(*sources)]

        return value

    def loaded_values(self, node: UOp, value: Callable[[UOp], list[Any]]) -> list[Any]:
        """Returns the values that the lanes load from a buffer with known content; 0 for a masked lane."""
        pointer, idx, *valid = node.src[0].src
        assert isinstance(pointer.dtype, PtrDType)
        view = memoryview(self.known[pointer]).cast(memory_format(pointer.dtype.base))  # type: ignore[call-overload]
        active = value(valid[0]) if valid else [True] * len(value(idx))
        return [view[index] if ok else 0 for index, ok in zip(value(idx), active)]


def _split_index(name: str, numbers: list[int], sizes: Sequence[int]) -> dict[str, list[int]]:
    digits = {}
    for axis, size in enumerate(sizes):
        digits[f"{name}{axis}"] = [number % size for number in numbers]
        numbers = [number // size for number in numbers]
    return digits


def find_enclosing_loops(uops: Sequence[UOp]) -> Iterator[tuple[int, UOp, tuple[UOp, ...]]]:
    """Yields every LOAD and STORE of global or shared memory, with its position and the loops around it."""
    around: list[UOp] = []
    for number, node in enumerate(uops):
        if node.op is Ops.RANGE:
            around.append(node)
        elif node.op is Ops.ENDRANGE:
            around.pop()
        elif node.op in (Ops.LOAD, Ops.STORE):
            memory = node.src[0].src[0]
            if memory.op is Ops.DEFINE_GLOBAL or is_shared(memory):
                yield number, node, tuple(around)


__all__ = ["BANKS", "LINE", "SEGMENT", "DataDependentWarp", "WarpRequest", "Warps", "find_enclosing_loops"]
