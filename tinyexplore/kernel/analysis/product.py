"""Sums of products (matmul, convolution, gradients): finds the reduction that takes most of a kernel's time, and its
operands."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.dot_products import first_load, words_in
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.uop import AxisKind, Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

DOMINANCE_RATIO = 8  # a product has at least this many times the steps of all other reductions


@dataclass(frozen=True)
class Product:
    """One sum of products.

    kernel: the kernel that computes it.
    reduce: its REDUCE node.
    loads: strides of the operands' INDEXes.
    stores: strides of the results' INDEXes.
    """

    kernel: Kernel
    reduce: UOp
    loads: tuple[IndexStrides, ...]
    stores: tuple[IndexStrides, ...]

    @property
    def steps(self) -> int:
        """The terms of each sum."""
        return prod(loop.size for loop in self.reduce.src[1:])

    @property
    def outputs(self) -> list[UOp]:
        return [axis for axis in self.kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL]

    def along(self, axis: UOp) -> list[IndexStrides]:
        """Returns the operands that change along `axis`."""
        return [load for load in self.loads if axis in load.node.ranges]

    def rows_of(self, vectors: list[IndexStrides]) -> list[UOp]:
        """Returns the output loops along which the operands `vectors` do not change. Their steps reuse the vectors."""
        return [axis for axis in self.outputs if all(axis not in load.node.ranges for load in vectors)]


def find_product(kernel: Kernel) -> Product | None:
    """Returns the reduction that dominates the kernel, if it sums products of at least two operands; else None.

    An output axis must share one of the operands.
    """
    reduce = main_reduce(kernel)
    if reduce is None or reduce.arg is not Ops.ADD or kernel.gathered_along:
        return None
    if any(not store.ranges <= reduce.ranges for store in kernel.ast.src):
        return None  # the kernel reduces a row and then reads it again
    if kernel.find(Ops.BARRIER) or kernel.find(Ops.SCAN):
        return None
    summed_nodes = {first_load(word).src[0] for word in words_in(reduce.src[0])} or set(reduce.src[0].toposort())
    accesses = kernel.accesses
    loads = tuple(access for access in accesses if access.node in summed_nodes)
    stores = tuple(access for access in accesses if access.is_store)
    product = Product(kernel, reduce, loads, stores)
    shared = any(axis not in load.node.ranges for axis in product.outputs for load in loads)
    return product if len(loads) >= 2 and shared else None


def main_reduce(kernel: Kernel) -> UOp | None:
    """Returns the reduction that takes most of the time; None if another reduction is inside it or around it."""
    if len(kernel.reduces) < 2:
        return kernel.reduces[0] if kernel.reduces else None
    steps = {reduce: prod(axis.size for axis in reduce.ranges.union(reduce.src[1:])) for reduce in kernel.reduces}
    main = max(steps, key=lambda reduce: steps[reduce])
    nested = any(
        main in other_reduce.toposort() or other_reduce in main.toposort()
        for other_reduce in steps
        if other_reduce is not main
    )
    is_dominant = (
        DOMINANCE_RATIO * sum(steps[other_reduce] for other_reduce in steps if other_reduce is not main) <= steps[main]
    )
    return main if is_dominant and not nested else None
