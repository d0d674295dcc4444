"""Kernels of a vector machine that does not exist. Tests read them and do not run them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyexplore.codegen import lower
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import Runner, compile_many, create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import Target
from tinyexplore.util import Context

MACHINE = Target("TEST", "any", "any", "", 64, 32, 2, 32768, 1 << 20, frozenset(), ())


WIDE = "x86-64-v4,threads=2,l1=32K,l2=1M"  # a TARGET with vectors of 16 floats and 32 registers, on every machine


def rendered(node: LazyBuffer, target: str = WIDE) -> ProgramSpec:
    """The program of the one kernel that computes `node`, with the heuristics' opts, for the LLVM device."""
    with Context(TARGET=target):
        interface = Device["LLVM"]
        kernel = apply_heuristics(kernel_of(node, interface.target))
        spec: ProgramSpec = interface.renderer.render(kernel.name, lower(kernel))
    return spec


def unread(*shape: int) -> LazyBuffer:
    """A LazyBuffer of a buffer that is never allocated."""
    return LazyBuffer.from_buffer(Buffer("LLVM", int(np.prod(shape)), dtypes.float32), shape)


def kernel_of(node: LazyBuffer, target: Target = MACHINE) -> Kernel:
    """The one kernel that computes `node`, without opts."""
    (item,) = create_schedule([node])
    return Kernel.of(item.ast, target)


def compile_all(items: Sequence[ScheduleItem]) -> list[Runner | None]:
    """The runner of each item, None for copies."""
    return [one.runner for one in compile_many(items)]
