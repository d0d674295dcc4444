"""Lowering: the state that the passes share for one kernel, beside its graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from tinyexplore.dtype import dtypes
from tinyexplore.kernel import Kernel, OptOps
from tinyexplore.target import Target
from tinyexplore.uop import Ops, UOp
from tinyexplore.util import config

ARGUMENTS = (Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR)  # the values that a call supplies


@dataclass(frozen=True)
class Lowering:
    """The state of one kernel during lowering, which its passes share beside the graph.

    target: the machine that it is lowered for.
    arguments: the arguments of the scheduled kernel. An argument that simplification leaves unused stays an argument.
    numbers: yields the number of the next accumulator.
    has_groups: whether the kernel determines the work-groups of a GPU; otherwise the runtime does.
    """

    target: Target
    arguments: tuple[UOp, ...] = ()
    numbers: Iterator[int] = field(default_factory=count)
    has_groups: bool = True

    @staticmethod
    def of(kernel: Kernel) -> Lowering:
        arguments = [node for node in kernel.original.toposort() if node.op in ARGUMENTS]
        has_groups = all(opt.op is not OptOps.NOLOCALS for opt in kernel.applied)
        return Lowering(kernel.target, tuple(arguments), has_groups=has_groups)

    @property
    def function_target(self) -> Target:
        """Returns the target, with `native_dtypes` changed by TRANSCENDENTAL.

        0: the functions of libm, lane by lane; 1: the target's own functions; 2: none for float32 and float64.
        """
        written_out = (dtypes.float32, dtypes.float64)
        match config().TRANSCENDENTAL:
            case 0:
                return replace(self.target, native_dtypes=(*self.target.native_dtypes, *written_out))
            case 1:
                return self.target
            case _:
                native = tuple(dtype for dtype in self.target.native_dtypes if dtype not in written_out)
                return replace(self.target, native_dtypes=native)


__all__ = ["ARGUMENTS", "Lowering"]
