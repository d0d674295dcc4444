"""An Opt: one transformation of one axis of a kernel. What each kind does stands in `opts/`, one file per kind."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.util.enums import PickledByName, quick_members


class OptError(ValueError):
    """An Opt that is not legal for a kernel. The message says which Opt, what forbids it, and what would be legal."""


@quick_members
class OptOps(PickledByName):
    VECTOR = "VECTOR"
    UPCAST = "UPCAST"
    UNROLL = "UNROLL"
    THREAD = "THREAD"
    LOCAL = "LOCAL"
    GROUP = "GROUP"
    GROUPTOP = "GROUPTOP"
    NOLOCALS = "NOLOCALS"
    PADTO = "PADTO"
    SWAP = "SWAP"
    MERGE = "MERGE"
    STAGE = "STAGE"
    COLLECT = "COLLECT"
    CUT = "CUT"
    TC = "TC"
    AHEAD = "AHEAD"
    PIPE = "PIPE"

    @property
    def splits(self) -> bool:
        """True where one step of the loop stands for `amount` steps afterwards."""
        return self in SPLITS

    @property
    def moves(self) -> bool:
        """True where loops change places or become one."""
        return self in MOVES

    @property
    def ends_groups(self) -> bool:
        """True where no work-group may be made afterwards."""
        return self is OptOps.NOLOCALS

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


SPLITS = frozenset({OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL, OptOps.LOCAL, OptOps.GROUP})
MOVES = frozenset({OptOps.SWAP, OptOps.MERGE})


@dataclass(frozen=True, slots=True)
class Opt:
    """One scheduling primitive applied to a kernel.

    op: which primitive.
    axis: id of the axis that it changes.
    amount: its factor; its meaning depends on `op`.
    """

    op: OptOps
    """The kind of transformation."""
    axis: int
    """The id of the axis in `Kernel.axes`."""
    amount: int = 0
    """The size of a block, the id of a second axis, or 0 where the kind takes none."""

    def __str__(self) -> str:
        return f"{self.op.name}({self.axis}, {self.amount})" if self.amount else f"{self.op.name}({self.axis})"
