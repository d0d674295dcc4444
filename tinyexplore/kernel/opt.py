"""An Opt: one transformation of one axis of a kernel. `opts/` defines the kinds, one file per kind."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.util.enums import PickledByName, quick_members


class OptError(ValueError):
    """Raised for an Opt that is illegal for a kernel. The message names the Opt, the reason and a legal choice."""


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
    COLLAPSE = "COLLAPSE"
    STAGE = "STAGE"
    TRANSPOSE_STORE = "TRANSPOSE_STORE"
    TRIM = "TRIM"
    TC = "TC"
    PREFETCH = "PREFETCH"
    PIPELINE = "PIPELINE"

    # spellings of earlier versions, so that their traces and scripts still load
    MERGE = "COLLAPSE"
    COLLECT = "TRANSPOSE_STORE"
    CUT = "TRIM"
    AHEAD = "PREFETCH"
    PIPE = "PIPELINE"

    @property
    def splits(self) -> bool:
        """Whether the Opt splits the loop into blocks of `amount` steps."""
        return self in SPLITS

    @property
    def moves(self) -> bool:
        """Whether the Opt reorders or merges loops."""
        return self in MOVES

    @property
    def ends_groups(self) -> bool:
        """Whether no later Opt may make a work-group."""
        return self is OptOps.NOLOCALS

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


SPLITS = frozenset({OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL, OptOps.LOCAL, OptOps.GROUP})
MOVES = frozenset({OptOps.SWAP, OptOps.COLLAPSE})


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
    """The size of a block, the id of a second axis, or 0 if the kind has no amount."""

    def __str__(self) -> str:
        return f"{self.op.name}({self.axis}, {self.amount})" if self.amount else f"{self.op.name}({self.axis})"
