"""Occupancy: how many groups a multiprocessor of a GPU holds at one time, and what keeps it from holding more.

While one warp waits for memory, others compute: of those that a multiprocessor can hold, the share that it does hold is
its occupancy. Registers are counted in the linear program, by what is live at one time; a compiler may take fewer, by
computing things again, or more, by loading ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.explore.counted import count_text
from tinyexplore.renderer.program import is_shared
from tinyexplore.target import GPU
from tinyexplore.uop import Ops, UOp

REGISTER_BYTES = 4
OVERHEAD = 8  # registers for addresses on their way, and what a compiler needs for itself
ROUNDED_TO = 8  # registers of a work-item come in pieces of so many
MOST_REGISTERS = 255  # of one work-item; what is more lies in memory
NO_REGISTER = frozenset({Ops.CONST, Ops.INDEX, Ops.STORE, Ops.ASSIGN, Ops.BARRIER, Ops.ENDRANGE, Ops.RESULT})
MEMORY = frozenset({Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL})


@dataclass(frozen=True)
class Occupancy:
    """limits: of each resource, what a group takes, what a multiprocessor has, and how many groups that allows. groups:
    the fewest of these; limit: the resource that allows no more. share: warps that are held, of those that could be.
    """

    registers: int
    shared_bytes: int
    groups: int
    limit: str
    share: float
    limits: tuple[tuple[str, int, int, int], ...]

    @property
    def says(self) -> str:
        if not self.groups:
            return f"a multiprocessor does not hold one group: {self.limit} are too few"
        held = count_text(self.groups, "group")
        return f"a multiprocessor holds {held}, {self.share:.0%} of its warps; {self.limit} allow no more"


def live_registers(uops: Sequence[UOp]) -> int:
    """The most 32-bit registers that values take which are live at one time."""
    place = {node: number for number, node in enumerate(uops)}
    register_of = {node: node.src[0] for node in uops if node.op is Ops.RESULT}
    ends: dict[UOp, int] = {}
    opened: list[tuple[UOp, int]] = []
    loop_end: dict[UOp, int] = {node.src[0]: number for number, node in enumerate(uops) if node.op is Ops.ENDRANGE}
    for number, node in enumerate(uops):
        if node.op is Ops.RANGE:
            opened.append((node, number))
        elif node.op is Ops.ENDRANGE:
            opened.pop()
        for src in _values(node):
            src = register_of.get(src, src)
            last = number
            for loop, start in opened:
                if place[src] < start:  # it is wanted again in the next step
                    last = max(last, loop_end[loop])
                    break
            ends[src] = max(ends.get(src, 0), last)
    changes = [0] * (len(uops) + 1)
    for node, end in ends.items():
        changes[place[node]] += words_of(node)
        changes[end] -= words_of(node)
    live = most = 0
    for change in changes:
        live += change
        most = max(most, live)
    return most


def _values(node: UOp) -> list[UOp]:
    """What a node reads; of an INDEX, which is no value of its own, what it is made of."""
    found: list[UOp] = []
    for src in node.src:
        if src.op is Ops.INDEX:
            found += [part for part in src.src if part.op not in NO_REGISTER]
        elif src.op is Ops.RESULT or src.op not in NO_REGISTER:
            found.append(src)
    return found if node.op is not Ops.INDEX else []


def words_of(node: UOp) -> int:
    """The registers that a value takes: an index one, for bounds say nearly always that it is small, an address two."""
    if node.op is Ops.DEFINE_GLOBAL:
        return 2
    if node.op in MEMORY or isinstance(node.dtype, PtrDType) or node.dtype is dtypes.void:
        return 0
    if dtypes.is_bool(node.dtype):
        return 0  # a predicate
    if node.dtype is dtypes.index:
        return 1
    assert isinstance(node.dtype, DType)
    return node.dtype.count * -(-node.dtype.scalar.itemsize // REGISTER_BYTES)


def shared_memory(uops: Sequence[UOp]) -> int:
    """The bytes of shared memory that a group takes."""
    return sum(node.dtype.size * node.dtype.base.itemsize for node in uops if is_shared(node))


def occupancy(uops: Sequence[UOp], items: int, gpu: GPU) -> Occupancy | None:
    """That of a program in groups of `items` on `gpu`. None where nobody tells what a multiprocessor holds."""
    if not gpu.resident_groups:
        return None
    registers = min(MOST_REGISTERS, -(-(live_registers(uops) + OVERHEAD) // ROUNDED_TO) * ROUNDED_TO)
    shared = shared_memory(uops)
    whole = -(-items // gpu.warp) * gpu.warp
    taken = shared + gpu.group_overhead_bytes if shared else 0
    limits = [
        ("registers", registers * whole, gpu.registers),
        ("bytes of shared memory", taken, gpu.resident_shared_bytes),
        ("work-items", whole, gpu.resident_items),
        ("groups", 1, gpu.resident_groups),
    ]
    rows = [(name, need, have, have // need) for name, need, have in limits if need]
    name, _, _, groups = min(rows, key=lambda row: row[3])
    share = groups * whole / gpu.resident_items
    return Occupancy(registers, shared, groups, name, share, tuple(rows))


__all__ = ["Occupancy", "live_registers", "occupancy", "shared_memory"]
