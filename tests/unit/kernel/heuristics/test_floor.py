"""A lower limit of the heuristics: no large ordinary loop is scalar if unit strides are available.

The programs are those of `python -m bench.cliffs`. They are scheduled for pinned targets and not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import pytest

from bench.cliffs.programs import PROGRAMS, Program
from tests.support.machine import complete_target
from tinyexplore import Tensor
from tinyexplore.device import Device
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics, apply_opt
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.util import Context

pytestmark = pytest.mark.pinned

LARGE = 1 << 16  # steps
MIN_SCALAR_STORE_RATIO = 64  # steps of a sum with lanes for each scalar store
TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4,l2=2M")


def kernels_of(program: Program) -> Iterator[Kernel]:
    """The kernels of `program` with the Opts that the heuristics choose."""
    inputs = {name: Tensor(value).contiguous().realize() for name, value in program.draw().items()}
    *rest, last = inputs.values()
    arguments, given = (rest, last) if program.given else ([*rest, last], None)
    leaves = [inputs[name].requires_grad_() for name in program.gradients]
    results = program.ours(*arguments)
    if leaves:
        results = results.gradient(*leaves, gradient=given)
    outputs = results if isinstance(results, (tuple, list)) else (results,)
    for item in create_schedule([output.lazydata for output in outputs]):
        if not item.is_copy:
            yield apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))


def has_lanes(axis: UOp) -> bool:
    return axis.arg.kind is AxisKind.VECTOR


def scalar_loops(kernel: Kernel) -> Iterator[str]:
    """Loops of more than LARGE steps without lanes, although an access inside has unit stride along one of them."""
    inside_reductions: set[UOp] = set()
    bodies = []
    for reduce in kernel.reduces:
        inside = set(reduce.src[0].find(Ops.INDEX))
        inside_reductions |= inside
        bodies.append((reduce.ranges | set(reduce.src[1:]), inside))
    vectors = [prod(axis.size for axis in axes) for axes, _ in bodies if any(map(has_lanes, axes))]
    outside = {access.node for access in kernel.accesses} - inside_reductions
    bodies.append((set(kernel.output_axes), outside))
    for axes, places in bodies:
        kinds = {axis.arg.kind for axis in axes}
        steps = prod(axis.size for axis in axes)
        if (
            steps <= LARGE
            or MIN_SCALAR_STORE_RATIO * steps <= max(vectors, default=0)
            or kinds & {AxisKind.VECTOR, AxisKind.COPY}
        ):
            continue  # a COPY moves the tile of a product that has lanes
        for access in kernel.accesses:
            for axis in axes - kernel.gathered_along:
                is_long = axis.size >= kernel.lanes and axis.arg.kind is not AxisKind.SCAN  # its steps go in order
                if access.node in places and is_long and access.stride(axis) == 1:
                    yield f"{kernel.name}: {axis.arg.name} of {axis.size} has unit stride and no lanes"


@pytest.mark.parametrize("target", TARGETS)
def test_no_large_loop_is_scalar_where_a_unit_stride_is_available(target: str) -> None:
    with Context(TARGET=complete_target(target)):
        found = {
            program.name: loops
            for program in PROGRAMS
            if (loops := [loop for kernel in kernels_of(program) for loop in scalar_loops(kernel)])
        }
    assert found == {}


def test_a_scalar_loop_is_found() -> None:
    with Context(TARGET=complete_target("x86-64-v3")):
        x = Tensor.zeros(LARGE * 2).contiguous().realize()
        (item,) = create_schedule([(x + 1).lazydata])
        kernel = Kernel.of(item.ast, Device["LLVM"].target)
    assert list(scalar_loops(kernel))
    assert not list(scalar_loops(apply_opt(kernel, Opt(OptOps.VECTOR, kernel.axes[0].arg.id, 8))))
