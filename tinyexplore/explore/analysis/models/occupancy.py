"""Occupancy: how many groups a GPU multiprocessor holds at one time, and which resource limits it.

While one warp waits for memory, others compute. The occupancy is the number of warps that a multiprocessor holds,
divided by the number that it can hold. `target/gpus.py` has the allocation rules for registers and shared memory.
NVIDIA's calculator gives the same results (`tests/explore/test_occupancy.py`).

The register count is an estimate from the live ranges of the linear program. For 28 kernels on sm_80, nvcc was within 9
registers for 18. It used up to 18 fewer for large tiles, and up to 30 more for doubles and for loops that it unrolls
itself (sums of rows, softmax, layernorm). LLVM's AMDGCN was within 9 for 46 of 56, and differed by 10 to 21 for the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.renderer.program import is_shared
from tinyexplore.target import GPUTarget
from tinyexplore.uop import Ops, UOp

REGISTER_BYTES = 4
SCHEDULERS = 4  # per multiprocessor; each has its own registers, and a warp belongs to one
NO_REGISTER = frozenset({Ops.CONST, Ops.INDEX, Ops.STORE, Ops.ASSIGN, Ops.BARRIER, Ops.ENDRANGE, Ops.RESULT})
MEMORY = frozenset({Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL})


_ADVICE = {
    "registers": "a smaller tile for each work-item (UPCAST, UNROLL) takes fewer registers; with much to compute at a "
    "time, few warps are enough",
    "bytes of shared memory": "a smaller STAGE takes less shared memory",
    "work-items": "groups of a size that divides what a multiprocessor holds fill it",
    "groups": "larger groups (LOCAL) hold more warps",
}


@dataclass(frozen=True, repr=False)
class OccupancyData(DisplayableRow):
    """The occupancy of a GPU kernel, as the panel of warps draws it."""

    registers: int
    """Registers of a work-item."""
    known: bool
    """Whether the compiler reported the registers; else they are estimated."""
    advice: str
    """A change that would raise the occupancy; "" at 100 %."""
    groups: int
    """Number of groups that a multiprocessor holds."""
    limit: str
    """The limiting resource."""
    share: float
    """Warps held / warps possible."""
    limits: tuple[tuple[str, int, int, int], ...]
    """Name, need of a group, supply of a multiprocessor, and groups that fit, for each resource."""
    says: str
    """The occupancy, as text."""


@dataclass(frozen=True, repr=False)
class Occupancy(DisplayableRow):
    """The number of work-groups that a multiprocessor holds at the same time.

    registers: the registers of a work-item.
    known: whether the compiler reported the registers; else they are estimated.
    shared_bytes: the shared memory of a group, in bytes.
    groups: the number of groups that fit: the minimum over all resources.
    limit: the resource with this minimum.
    share: the occupancy: warps that are held / warps that the multiprocessor could hold.
    limits: for each resource its name, the need of a group, the supply of a multiprocessor, and the groups that fit.
        That may be less than the quotient: each of four schedulers has its own registers.
    """

    registers: int
    known: bool
    shared_bytes: int
    groups: int
    limit: str
    share: float
    limits: tuple[tuple[str, int, int, int], ...]

    def as_data(self) -> OccupancyData:
        """Returns the data that the panel draws."""
        says, advice = self.says, self.advice
        return OccupancyData(self.registers, self.known, advice, self.groups, self.limit, self.share, self.limits, says)

    @property
    def says(self) -> str:
        if not self.groups:
            return f"a multiprocessor does not hold one group: {self.limit} are too few"
        groups = count_text(self.groups, "group")
        return f"a multiprocessor holds {groups}, {self.share:.0%} of its warps; {self.limit} allow no more"

    @property
    def advice(self) -> str:
        """The change that would let a multiprocessor hold more groups; "" if the occupancy is full."""
        if self.share >= 1:
            return ""
        return _ADVICE[self.limit]


def live_registers(uops: Sequence[UOp]) -> int:
    """Returns the largest number of 32-bit registers of values that are live at the same time."""
    number_of = {node: number for number, node in enumerate(uops)}
    register_of = {node: node.src[0] for node in uops if node.op is Ops.RESULT}
    ends: dict[UOp, int] = {}
    opened: list[tuple[UOp, int]] = []
    loop_end: dict[UOp, int] = {node.src[0]: number for number, node in enumerate(uops) if node.op is Ops.ENDRANGE}
    for number, node in enumerate(uops):
        if node.op is Ops.RANGE:
            opened.append((node, number))
        elif node.op is Ops.ENDRANGE:
            opened.pop()
        for src in _read_values(node):
            src = register_of.get(src, src)
            last = number
            for loop, start in opened:
                if number_of[src] < start:  # the next iteration needs it again
                    last = max(last, loop_end[loop])
                    break
            ends[src] = max(ends.get(src, 0), last)
    changes = [0] * (len(uops) + 1)
    for node, end in ends.items():
        changes[number_of[node]] += words_of(node)
        changes[end] -= words_of(node)
    live = highest = 0
    for change in changes:
        live += change
        highest = max(highest, live)
    return highest


def _read_values(node: UOp) -> list[UOp]:
    """Returns the values that a node reads. An INDEX is no value, so its sources replace it."""
    values: list[UOp] = []
    for src in node.src:
        if src.op is Ops.INDEX:
            values += [part for part in src.src if part.op not in NO_REGISTER]
        elif src.op is Ops.RESULT or src.op not in NO_REGISTER:
            values.append(src)
    return values if node.op is not Ops.INDEX else []


def words_of(node: UOp) -> int:
    """Returns the registers of a value: an index takes one, since it is nearly always small; an address takes two."""
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
    """Returns the bytes of shared memory of a group."""
    return sum(node.dtype.size * node.dtype.base.itemsize for node in uops if is_shared(node))


def compute_occupancy(
    uops: Sequence[UOp], items: int, gpu: GPUTarget, registers: int | None = None
) -> Occupancy | None:
    """Returns the occupancy of a program in groups of `items` work-items on `gpu`; None if the limits of `gpu` are
    unknown.

    registers: the registers of a work-item that a compiler reports; None for an estimate.
    """
    if not gpu.resident_groups:
        return None
    is_exact = registers is not None
    used_registers = (
        registers if registers is not None else min(gpu.item_registers, live_registers(uops) + gpu.own_registers)
    )
    return resident_groups(gpu, items, used_registers, shared_memory(uops), is_exact)


def resident_groups(gpu: GPUTarget, items: int, registers: int, shared_bytes: int, is_exact: bool = True) -> Occupancy:
    """Computes the number of groups that a multiprocessor holds at the same time.

    items: the work-items of a group.
    registers: the registers of a work-item.
    shared_bytes: the shared memory of a group, in bytes.
    is_exact: whether the number of registers is the compiler's, not an estimate.
    """
    warps = -(-items // gpu.warp)
    each = _round_up(max(1, registers), gpu.register_piece)
    shared = _round_up(shared_bytes + gpu.group_overhead_bytes, gpu.shared_piece) if shared_bytes else 0
    room = gpu.registers // SCHEDULERS // (each * gpu.warp) * SCHEDULERS  # warps that the registers suffice for
    most_warps = gpu.resident_items // gpu.warp
    most_groups = most_warps if gpu.lone_warps and warps == 1 else gpu.resident_groups
    rows = [
        ("registers", each * warps * gpu.warp, gpu.registers, room // warps),
        ("bytes of shared memory", shared, gpu.resident_shared_bytes, gpu.resident_shared_bytes // max(1, shared)),
        ("work-items", warps * gpu.warp, gpu.resident_items, most_warps // warps),
        ("groups", 1, most_groups, most_groups),
    ]
    limits = tuple([row for row in rows if row[1]])
    name, _, _, groups = min(limits, key=lambda row: row[3])
    return Occupancy(registers, is_exact, shared_bytes, groups, name, groups * warps / most_warps, limits)


def _round_up(number: int, piece: int) -> int:
    return -(-number // piece) * piece


__all__ = ["Occupancy", "resident_groups", "compute_occupancy", "live_registers", "shared_memory"]
