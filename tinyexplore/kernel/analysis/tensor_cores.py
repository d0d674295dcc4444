"""Finds sums of products that a tensor core of the target can compute, with the axes of rows, columns and steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.dot_products import EMULATED
from tinyexplore.target import AMX, Target, TensorCore
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.util import config

if TYPE_CHECKING:
    from tinyexplore.dtype import DType
    from tinyexplore.kernel.kernel import Kernel


@dataclass(frozen=True)
class CoreMatch:
    """A sum of products that a tensor core can compute, with the axes to map to the core.

    core: the tensor core.
    reduce: the sum.
    a: the first factor, of the dtype that the core takes.
    b: the second factor, of the dtype that the core takes.
    rows: the output axis along which only A differs.
    columns: the output axis along which only B differs.
    steps: the axis of the sum; the core takes `k` steps at a time.
    """

    core: TensorCore
    reduce: UOp
    a: UOp
    b: UOp
    rows: UOp
    columns: UOp
    steps: UOp

    @property
    def axes(self) -> tuple[tuple[UOp, int], ...]:
        """Returns rows, columns and steps, each with the number that the core takes at a time."""
        return tuple(zip((self.rows, self.columns, self.steps), self.core.dims))

    @property
    def left_over(self) -> int:
        """Returns the number of rows, columns and steps that do not fill a core."""
        return sum(axis.size % amount for axis, amount in self.axes)

    @property
    def work_done(self) -> float:
        """Returns the ratio of multiply-adds that the cores compute to those that are needed."""
        ratio = 1.0
        for axis, amount in self.axes:
            ratio *= -(-axis.size // amount) * amount / axis.size
        return ratio


def cores_of(target: Target) -> tuple[TensorCore, ...]:
    """Returns the tensor cores of the target. With TC=2, a CPU without cores emulates them by sums of dot products."""
    return target.cores or (AMX if config().TC >= EMULATED and not target.has_local else ())


def usable_cores(target: Target, factor: DType, accumulator: DType) -> Iterator[TensorCore]:
    """Yields the cores of the target for these dtypes that the settings allow, preferred ones first."""
    for core in cores_of(target) if config().TC else ():
        if core.factor is factor and core.accumulator is accumulator and (not core.mantissa or config().ALLOW_TF32):
            yield core


def find_core_match(kernel: Kernel, steps: UOp, amount: int) -> CoreMatch | str:
    """Returns how the sum over `steps` fits a core that takes `amount` steps at a time, or the legality error as
    text."""
    target = kernel.target
    if not cores_of(target):
        return f"{target.cpu} has no tensor cores"
    if not config().TC:
        return "TC=0 does without tensor cores"
    if steps.arg.kind is not AxisKind.REDUCE or not steps.is_static:
        return f"the axis is {steps.arg.kind.value}; TC needs a reduction loop of constant size"
    if len(kernel.reduces) != 1 or kernel.find(Ops.SCAN) or kernel.find(Ops.BARRIER):
        return "tensor cores are for kernels with one sum, and without a scan or scratch memory"
    if not target.has_local and any(axis.arg.kind is AxisKind.VECTOR for axis in kernel.axes):
        return "an axis is a vector already, and a tile has vectors along its columns; apply this opt before VECTOR"
    (reduce,) = kernel.reduces
    if any(loop.arg.kind is not AxisKind.REDUCE for loop in reduce.src[1:]):
        return "the sum is shared or written out already; apply this opt before GROUP and UNROLL"
    if reduce.arg is not Ops.ADD or reduce.src[0].op is not Ops.MUL:
        return "it does not sum products of two factors"
    matches = list(iterate_core_matches(kernel, reduce, steps, amount))
    column_id = (lambda fit: fit.columns.arg.id) if not target.has_local else lambda fit: 0  # C is stored row by row
    return (
        max(matches, key=lambda fit: (-fit.work_done, column_id(fit)))
        if matches
        else reason_against_cores(kernel, reduce, amount)
    )


def iterate_core_matches(kernel: Kernel, reduce: UOp, steps: UOp, amount: int) -> Iterator[CoreMatch]:
    """Yields every fit: either factor as A, and all pairs of axes as rows and columns, innermost axes first."""
    first_factor, second_factor = reduce.src[0].src
    stored = frozenset.intersection(*(store.ranges for store in kernel.ast.src))
    axes = [axis for axis in reversed(kernel.output_axes) if axis.arg.kind is AxisKind.GLOBAL and axis.is_static]
    axes = [axis for axis in axes if axis in stored and not axis.arg.ahead]
    for factor_a, factor_b in ((first_factor, second_factor), (second_factor, first_factor)):
        rows = [axis for axis in axes if axis in factor_a.ranges and axis not in factor_b.ranges]
        columns = [axis for axis in axes if axis in factor_b.ranges and axis not in factor_a.ranges]
        for core in usable_cores(kernel.target, factor_dtype(factor_a, factor_b), reduce.dtype):
            a, b = (factor if core.factor is reduce.dtype else factor.src[0] for factor in (factor_a, factor_b))
            if core.tiles and not a.op is b.op is Ops.LOAD:
                continue
            if core.dims[2] == amount:
                yield from (CoreMatch(core, reduce, a, b, row, column, steps) for row in rows for column in columns)


def factor_dtype(first: UOp, second: UOp) -> DType:
    """Returns the dtype of two factors before their conversion for the product; if they differ, the dtype of the
    product."""
    if first.op is Ops.CAST and second.op is Ops.CAST and first.src[0].dtype is second.src[0].dtype:
        narrow_dtype: DType = first.src[0].dtype
        return narrow_dtype
    wide_dtype: DType = first.dtype
    return wide_dtype


def reason_against_cores(kernel: Kernel, reduce: UOp, amount: int) -> str:
    """Returns the reason why no core of the target computes this sum `amount` steps at a time."""
    factor, accumulator = factor_dtype(*reduce.src[0].src), reduce.dtype
    cores = cores_of(kernel.target)
    cores_of_dtypes = [core for core in cores if core.factor is factor and core.accumulator is accumulator]
    if not cores_of_dtypes:
        supported = ", ".join(dict.fromkeys(f"{core.factor.name} → {core.accumulator.name}" for core in cores))
        return f"no core of {kernel.target.cpu} takes {factor.name} → {accumulator.name}; supported: {supported}"
    if not any(usable_cores(kernel.target, factor, accumulator)):
        return f"its cores read {cores_of_dtypes[0].mantissa} bits of a float32's fraction: ALLOW_TF32=1 allows that"
    sizes = sorted({core.dims[2] for core in usable_cores(kernel.target, factor, accumulator)})
    if amount not in sizes:
        return f"these cores do {' or '.join(map(str, sizes))} steps at a time"
    if cores_of_dtypes[0].tiles and any(factor.src[0].op is not Ops.LOAD for factor in reduce.src[0].src):
        return "a tile is filled from memory, and a factor is computed: it would have to be stored first"
    return "rows need an output axis that changes only one factor, and columns one that changes only the other"


__all__ = ["CoreMatch", "cores_of", "find_core_match", "usable_cores"]
