"""Ops: the operations of the IR node, and groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import auto

from tinyexplore.util.enums import PickledByName, quick_members


@quick_members
class Ops(PickledByName):
    """The operation of a UOp or a LazyBuffer. `docs/reference.md` has the table of sources and arguments."""

    # structure
    SINK = auto()
    # values
    CONST = auto()
    DEFINE_VAR = auto()
    BIND = auto()
    # memory
    DEFINE_GLOBAL = auto()
    DEFINE_LOCAL = auto()
    DEFINE_ACC = auto()
    INDEX = auto()
    LOAD = auto()
    STORE = auto()
    PREFETCH = auto()
    ASSIGN = auto()
    RESULT = auto()
    BARRIER = auto()
    # loops
    RANGE = auto()
    ENDRANGE = auto()
    SPECIAL = auto()
    REDUCE = auto()
    SCAN = auto()
    # vectors
    VECTORIZE = auto()
    GEP = auto()
    HREDUCE = auto()
    TABLE = auto()
    WMMA = auto()
    TILE = auto()
    # arithmetic, one source
    NEG = auto()
    SQRT = auto()
    EXP = auto()
    EXP2 = auto()
    LOG = auto()
    LOG2 = auto()
    SIN = auto()
    COS = auto()
    TANH = auto()
    ERF = auto()
    FLOOR = auto()
    CAST = auto()
    BITCAST = auto()
    # arithmetic, two sources
    ADD = auto()
    MUL = auto()
    FDIV = auto()
    IDIV = auto()
    MOD = auto()
    MAX = auto()
    MIN = auto()
    POW = auto()
    SCALE = auto()
    CMPLT = auto()
    CMPLE = auto()
    CMPEQ = auto()
    CMPNE = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()
    SHR = auto()
    # arithmetic, three sources
    WHERE = auto()
    MULACC = auto()
    DOT_BF16 = auto()
    DOT_I8 = auto()
    DOT_U8 = auto()
    # tensor level only (LazyBuffer)
    BUFFER = auto()
    IOTA = auto()
    REDUCE_AXIS = auto()
    RESHAPE = auto()
    EXPAND = auto()
    PERMUTE = auto()
    PAD = auto()
    SHRINK = auto()
    FLIP = auto()
    WINDOW = auto()
    DIAGONAL = auto()
    GATHER = auto()
    SCATTER = auto()
    FETCH_ADD = auto()
    SCAN_AXIS = auto()
    CONTIGUOUS = auto()
    COPY = auto()
    WRITE = auto()

    def __repr__(self) -> str:
        return f"Ops.{self.name}"

    def __lt__(self, other: Ops) -> bool:
        return self.value < other.value

    # members are singletons: identity is equality, and the default hash of Enum would hash the name each time
    __hash__ = object.__hash__


class OpGroups:
    """Sets of Ops that passes test membership in."""

    UNARY = frozenset(
        {
            Ops.NEG,
            Ops.SQRT,
            Ops.EXP,
            Ops.EXP2,
            Ops.LOG,
            Ops.LOG2,
            Ops.SIN,
            Ops.COS,
            Ops.TANH,
            Ops.ERF,
            Ops.FLOOR,
            Ops.CAST,
            Ops.BITCAST,
        }
    )
    TRANSCENDENTAL = frozenset({Ops.EXP, Ops.EXP2, Ops.LOG, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.POW})
    COMPARE = frozenset({Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE})
    COMMUTATIVE = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, Ops.CMPEQ, Ops.CMPNE, Ops.AND, Ops.OR, Ops.XOR})
    BINARY = (
        frozenset(
            {
                Ops.ADD,
                Ops.MUL,
                Ops.FDIV,
                Ops.IDIV,
                Ops.MOD,
                Ops.MAX,
                Ops.MIN,
                Ops.POW,
                Ops.SCALE,
                Ops.AND,
                Ops.OR,
                Ops.XOR,
                Ops.SHL,
                Ops.SHR,
            }
        )
        | COMPARE
    )
    DOT = frozenset({Ops.DOT_BF16, Ops.DOT_I8, Ops.DOT_U8})
    TERNARY = frozenset({Ops.WHERE, Ops.MULACC}) | DOT
    ALU = UNARY | BINARY | TERNARY
    MOVEMENT = frozenset(
        {
            Ops.RESHAPE,
            Ops.EXPAND,
            Ops.PERMUTE,
            Ops.PAD,
            Ops.SHRINK,
            Ops.FLIP,
            Ops.WINDOW,
            Ops.DIAGONAL,
        }
    )


# `arg` of a WHERE whose condition rarely holds and whose first branch is expensive, and of a MOD in such a branch
RARELY = "rarely"


@quick_members
class AxisKind(PickledByName):
    """How a kernel iterates over one axis of its iteration space."""

    GLOBAL = "global"  # an output loop on a CPU, a grid dimension on a GPU
    THREAD = "thread"  # an output loop; each call computes the part start ≤ i < stop
    WARP = "warp"  # the lanes of a warp, which together hold the operands of a tensor core (only on a GPU)
    LOCAL = "local"  # a loop over a block of the output on a CPU, a work-group dimension on a GPU
    REDUCE = "reduce"  # a loop that accumulates
    GROUP = "group"  # a reduce axis in blocks on a CPU, shared by the work-items of a group on a GPU
    UNROLL = "unroll"  # an unrolled reduce axis: one accumulator per step
    UPCAST = "upcast"  # an unrolled output axis: a register tile
    VECTOR = "vector"  # an axis whose steps are the lanes of vector instructions
    SCAN = "scan"  # an output loop whose steps run in order, each using the state after the previous step
    COPY = "copy"  # a loop that fills scratch memory, before the loops that read it
    ROW = "row"  # a loop that computes a row into scratch memory, before the loops that read it
    TILE = "tile"  # the rows of a matrix in a tile register of a CPU
    RARE = "rare"  # a body that runs once if some lane needs it, else not at all

    def __repr__(self) -> str:
        return f"AxisKind.{self.name}"

    __hash__ = object.__hash__  # as in Ops


@dataclass(frozen=True, slots=True)
class Axis:
    """The identity of one axis of a kernel.

    id: unique in the kernel; loops are nested by increasing id, outermost first.
    kind: the use of the axis: a loop, an upcast, a reduction, a thread, a work-item.
    ahead: prefetch distance in steps of the loop (0: no prefetch).
    """

    id: int
    kind: AxisKind
    ahead: int = 0

    @property
    def name(self) -> str:
        return f"{_AXIS_LETTER[self.kind]}{self.id}"


_AXIS_LETTER = {
    AxisKind.GLOBAL: "g",
    AxisKind.THREAD: "t",
    AxisKind.LOCAL: "l",
    AxisKind.WARP: "x",
    AxisKind.REDUCE: "r",
    AxisKind.GROUP: "q",
    AxisKind.UNROLL: "u",
    AxisKind.UPCAST: "c",
    AxisKind.VECTOR: "v",
    AxisKind.COPY: "p",
    AxisKind.ROW: "w",
    AxisKind.SCAN: "s",
    AxisKind.TILE: "m",
    AxisKind.RARE: "b",
}

_DIVISIONS = frozenset({Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.SQRT})


def multiplications_in(op: Ops) -> int:
    """Returns how many vector multiplications take about as long as `op`."""
    return 8 if op in OpGroups.TRANSCENDENTAL else 3 if op in _DIVISIONS else 1
