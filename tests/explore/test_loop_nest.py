"""Kernels as plain loops."""

from __future__ import annotations

import re

from tests.explore import toy
from tinyexplore import Tensor, explore
from tinyexplore.device import Device
from tinyexplore.engine import schedule
from tinyexplore.explore.recording.loop_nest import loop_nest
from tinyexplore.explore.recording.loops import plain_nest
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt


def test_a_row_sum_is_a_loop_over_rows():
    assert loop_nest(toy.row_sum()) == (
        "for g0 in range(8):  # global\n"
        "  total0 = sum(data1[g0*4 + r1*1 + 0]*1.0 + 0.0 for r1 in range(4))\n"
        "  data0[g0] = total0"
    )


def test_a_softmax_is_a_row_loop_with_its_reductions_and_its_row_buffer_before_the_column_loop():
    rows = Tensor.ones(4, 8).contiguous().realize()
    (item,) = schedule([rows.softmax().lazydata])
    lines = [line.split("=")[0].rstrip() if "=" in line else line for line in loop_nest(item.ast).splitlines()]
    assert lines == [
        "for g0 in range(4):  # global",
        "  largest0",
        "  for w3 in range(8):  # row",
        "    row0[w3]",
        "  total1",
        "  for g1 in range(8):  # global",
        "    data0[g0*8 + g1]",
    ]


def test_an_opt_shows_in_the_loop_nest():
    kernel = apply_opt(Kernel.of(toy.row_sum(), Device["PYTHON"].target), Opt(OptOps.LOCAL, 0, 4))
    assert loop_nest(kernel.ast).splitlines()[:2] == [
        "for g0 in range(2):  # global",
        "  for l2 in range(4):  # local",
    ]


def test_the_loop_nest_of_a_kernel_equals_its_program():
    kernel = apply_opt(Kernel.of(toy.row_sum(), Device["PYTHON"].target), Opt(OptOps.UPCAST, 0, 4))
    assert [(line.depth, line.text.split(" += ")[0], line.kind) for line in plain_nest(kernel.ast)] == [
        (0, "for g0 in range(2)", "global"),
        (1, "for r1 in range(4)", "reduce"),
        (2, "for c2 in range(4)", "upcast"),
        (3, "total0", ""),
        (1, "for c2 in range(4)", "upcast"),
        (2, "data0[g0*4 + c2] = total0", ""),
    ]


def test_every_loop_of_a_nest_encloses_all_uses_of_its_index():
    x, w, b = (Tensor.ones(*shape).contiguous().realize() for shape in ((48, 64), (64, 80), (80,)))
    trace = explore(lambda: (x @ w + b).softmax(), device="LLVM", repeat=1).trace
    for kernel in trace.kernels:
        names = {name for name, _, _ in kernel.axes}
        seen: set[str] = set()
        around: list[str] = []
        for line in kernel.nest:
            del around[line.depth :]
            if line.kind:
                around.append(line.text.split()[1])
            else:
                own = set(re.findall(r"\w+ for (\w+) in", line.text))  # loops of a formula within
                assert set(re.findall(r"\w+", line.text)) & names <= {*around, *own}, line
            seen.update(around)
        assert seen == names
