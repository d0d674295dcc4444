"""Kernels as plain loops."""

from __future__ import annotations

from tests.explore import toy
from tinyexplore import Tensor
from tinyexplore.device import Device
from tinyexplore.engine import schedule
from tinyexplore.explore.recording.nest import loop_nest
from tinyexplore.kernel import Kernel, Opt, OptOps


def test_a_row_sum_is_a_loop_over_rows():
    assert loop_nest(toy.row_sum()) == (
        "for g0 in range(8):  # global\n"
        "  total0 = sum(data1[g0*4 + r1*1 + 0]*1.0 + 0.0 for r1 in range(4))\n"
        "  data0[g0] = total0"
    )


def test_a_softmax_is_a_row_loop_with_its_two_reductions_before_the_column_loop():
    rows = Tensor.ones(4, 8).contiguous().realize()
    (item,) = schedule([rows.softmax().lazydata])
    lines = [line.split("=")[0].rstrip() if "=" in line else line for line in loop_nest(item.ast).splitlines()]
    assert lines == [
        "for g0 in range(4):  # global",
        "  most0",
        "  total1",
        "  for g1 in range(8):  # global",
        "    data0[g0*8 + g1]",
    ]


def test_an_opt_shows_in_the_loop_nest():
    kernel = Kernel.of(toy.row_sum(), Device["PYTHON"].target).apply(Opt(OptOps.LOCAL, 0, 4))
    assert loop_nest(kernel.ast).splitlines()[:2] == [
        "for g0 in range(2):  # global",
        "  for l2 in range(4):  # local",
    ]
