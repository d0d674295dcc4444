"""Kernels of a vector machine that nobody has, to look at and not to run."""

from __future__ import annotations

import numpy as np

from tinyexplore.device import Buffer
from tinyexplore.dtype import dtypes
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import create_schedule
from tinyexplore.target import Target

MACHINE = Target("TEST", "any", "any", "", 64, 32, 2, 32768, 1 << 20, frozenset(), ())


def unread(*shape: int) -> LazyBuffer:
    """A LazyBuffer that nobody computes: it takes no memory."""
    return LazyBuffer.from_buffer(Buffer("LLVM", int(np.prod(shape)), dtypes.float32), shape)


def kernel_of(node: LazyBuffer, target: Target = MACHINE) -> Kernel:
    """The one kernel that computes `node`, without opts."""
    (item,) = create_schedule([node])
    return Kernel.of(item.ast, target)
