"""Hand-made recordings: small graphs, a table of three rules, no device."""

from __future__ import annotations

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import NodeDerived, Recorder, recording
from tinyexplore.uop import Axis, AxisKind, Ops, PatternMatcher, UOp, cvar, graph_rewrite, law, rule, var

x, c1, c2 = var("x"), cvar("c1"), cvar("c2")

mul_one = law("mul_one", x * 1, x)
add_zero = law(
    "add_zero",
    x + 0,
    x,
)


@rule(c1 + c2)
def fold_add(c1, c2):
    """Two constants add at compile time."""
    return UOp.const(c1.dtype, c1.arg + c2.arg)


TABLE = PatternMatcher([mul_one, add_zero, fold_add])


def row_sum(rows: int = 8, columns: int = 4) -> UOp:
    """data0[g0] = sum over r1 of data1[g0*columns + r1*1 + 0] * 1 + 0: something for every rule."""
    out = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, rows), (), 0)
    data = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, rows * columns), (), 1)
    i = UOp.range(rows, Axis(0, AxisKind.GLOBAL))
    j = UOp.range(columns, Axis(1, AxisKind.REDUCE))
    load = UOp(Ops.LOAD, dtypes.float32, (data.index(i * columns + j * 1 + 0),))
    total = UOp(Ops.REDUCE, dtypes.float32, (load * 1.0 + 0.0, j), Ops.ADD)
    return UOp.sink(UOp(Ops.STORE, dtypes.void, (out.index(i), total)))


def record(recorder: Recorder) -> LazyBuffer:
    """A LazyBuffer is built, a kernel's ast derived from it, and one pass of rules runs over that."""
    with recording(recorder):
        values = LazyBuffer.iota(4, dtypes.float32, "PYTHON")
        total = values.reduce(Ops.ADD, (0,))  # the line that every part of the kernel leads back to
        ast = row_sum()
        recorder.record(NodeDerived(total, ast, "becomes the kernel"))
        graph_rewrite(ast, TABLE, stage="simplify", kernel=0)
    return total


def trace() -> Trace:
    recorder = Recorder()
    record(recorder)
    return build_trace(recorder, title="toy", options=(("DEVICE", "PYTHON"),))
