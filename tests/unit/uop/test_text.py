"""UOps, LazyBuffers and their containers as text: readable, valid Python, and linear in the size of the graph."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest

from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore import Tensor, Variable, dtypes
from tinyexplore.codegen import lower
from tinyexplore.device import Buffer
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.util import toposort

NAMES = {
    **{"UOp": UOp, "Ops": Ops, "Axis": Axis, "AxisKind": AxisKind, "dtypes": dtypes},
    **{"LazyBuffer": LazyBuffer, "Buffer": Buffer},
}
PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (t(64, 256) * 2 + t(64, 256)).gelu(),
    "sum": lambda: t(1 << 24).sum(),
    "columns": lambda: t(512, 512).sum(0),
    "softmax": lambda: t(512, 512).softmax(),
    "layernorm": lambda: t(256, 1024).layernorm() * t(1024) + t(1024),
    "matmul": lambda: (t(256, 256) @ t(256, 256) + t(256)).relu(),
    "conv": lambda: t(4, 8, 32, 32).conv2d(t(16, 8, 3, 3), padding=1),
    "maxpool": lambda: t(4, 8, 32, 32).max_pool2d(),
    "transpose": lambda: t(128, 64).T.contiguous(),
    "embedding": lambda: t(5000, 64)[t(100).cast("int32")],
    "cumsum": lambda: t(64, 512).cumsum(1),
    "sort": lambda: t(4, 32).sort()[0],
    "attention": lambda: t(1, 4, 64, 32).scaled_dot_product_attention(t(1, 4, 64, 32), t(1, 4, 64, 32), is_causal=True),
    "scatter": lambda: t(4, 8).scatter(1, t(4, 2).cast("int32"), t(4, 2)),
    "random": lambda: Tensor.rand(64, 64) + Tensor.randn(64, 64),
    "symbolic": lambda: t(64, 8)[: Variable("v", 1, 64).bind(7)].sum(0),
}


def t(*shape: int) -> Tensor:
    return Tensor(unread(*shape))


def evaluated(text: str) -> object:
    return eval(text, dict(NAMES))


def a_kernel() -> UOp:
    data = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(32), (), 1)
    out = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(8), (), 0)
    i = UOp.range(8, Axis(0, AxisKind.SCAN))
    load = UOp(Ops.LOAD, dtypes.float32, (data.index(i),))
    return UOp.sink(UOp(Ops.STORE, dtypes.void, (out.index(i), load * load)))


EXPECTED = """\
UOp(Ops.SINK, dtypes.void, src=(
  UOp(Ops.STORE, dtypes.void, src=(
    UOp(Ops.INDEX, dtypes.float32.ptr(8, 'global'), src=(
      UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(8, 'global'), arg=0),
      x0:=UOp(Ops.RANGE, dtypes.int64, arg=Axis(id=0, kind=AxisKind.SCAN, ahead=0), src=(UOp.const(dtypes.int64, 8),)),
    )),
    UOp(Ops.MUL, dtypes.float32, src=(
      x1:=UOp(Ops.LOAD, dtypes.float32, src=(
        UOp(Ops.INDEX, dtypes.float32.ptr(32, 'global'), src=(
          UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(32, 'global'), arg=1),
          x0,
        )),
      )),
      x1,
    )),
  )),
))"""


def test_a_graph_prints_as_the_expression_that_makes_it() -> None:
    assert str(a_kernel()) == EXPECTED
    assert evaluated(EXPECTED) is a_kernel()
    assert repr(a_kernel()) == "UOp(SINK, dtypes.void, src=1)"  # what stands in an error, and in a failed assert


@pytest.mark.parametrize("value", [1, -0.0, 0.0, 1e-30, inf, -inf, nan, True])
def test_constants_keep_their_value_and_sign(value: float) -> None:
    constant = UOp.const(dtypes.bool if value is True else dtypes.float32, value)
    assert evaluated(str(constant)) is constant


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_kernel_is_that_kernel(name: str) -> None:
    """As the scheduler wrote it, with Opts, and every node of what it is lowered to."""
    items = [item for item in create_schedule([PROGRAMS[name]().lazydata]) if item.ast is not None]
    assert items
    for item in items:
        assert evaluated(item.ast.tree()) is item.ast
        assert str(item).endswith(item.ast.tree())
        kernel = apply_heuristics(type(kernel_of(unread(4).reduce(Ops.ADD, (0,)))).of(item.ast, MACHINE))
        assert evaluated(kernel.ast.tree()) is kernel.ast
        last = max(lower(kernel), key=lambda node: len(node.src))
        assert evaluated(last.tree()) is last


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_lazybuffer_makes_one_like_it(name: str) -> None:
    root = PROGRAMS[name]().lazydata
    again = evaluated(str(root))
    nodes, others = (toposort([start], lambda node: node.src) for start in (root, again))  # type: ignore[attr-defined]
    assert len(nodes) == len(others)
    for node, other in zip(nodes, others):
        for field in ("op", "dtype", "shape", "arg", "device"):
            assert getattr(node, field) == getattr(other, field)
        assert (node.buffer is None) == (other.buffer is None)  # type: ignore[attr-defined]


def test_text_is_as_long_as_a_graph_has_nodes_and_no_deeper_than_python_reads() -> None:
    value = UOp.const(dtypes.float32, 1.5)
    for _ in range(2000):
        value = value * value + UOp.const(dtypes.float32, 2)
    text = str(value)
    assert len(text) < 4000 * 250
    assert evaluated(text) is value
    lazy = Tensor.ones(4).lazydata
    for _ in range(300):
        lazy = lazy.alu(Ops.ADD, lazy)
    assert len(toposort([evaluated(str(lazy))], lambda node: node.src)) == len(toposort([lazy], lambda node: node.src))  # type: ignore[attr-defined]


def test_sizes_print_as_their_arithmetic() -> None:
    v = Variable("v", 1, 10)
    assert str(v.bind(3) * 4) == "v*4=12" or str(v.bind(3) * 4) == "4*v=12"
    assert f"{Tensor.ones(10)[: v.bind(3)].shape[0]}" == "v=3"
    assert evaluated(v.tree()) is v


def test_the_repr_of_kernels_and_items_is_one_line() -> None:
    (item,) = create_schedule([(t(4, 8) + 1).sum(1).lazydata])
    kernel = kernel_of((t(4, 8) + 1).sum(1).lazydata)
    assert repr(kernel) == "Kernel(g0 global 4, r1 reduce 8; no opts)"
    assert repr(apply_heuristics(kernel)).startswith("Kernel(") and "; opts " in repr(apply_heuristics(kernel))
    first, second = item.buffers
    assert repr(item) == f"ScheduleItem(kernel of {len(item.members)} LazyBuffers on LLVM: {first!r}, {second!r})"
    assert str(Tensor.ones(4).shard(("LLVM", "LLVM:1")).lazydata).startswith(
        "ShardedBuffer((4,), float32, LLVM, LLVM:1"
    )
