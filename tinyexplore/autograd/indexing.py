"""Gradients of gathers and scatters: the gradient of a gather is a scatter, and the reverse."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from tinyexplore.autograd.rules import Gradients, constant, gradient_of
from tinyexplore.autograd.tape import TapeEntry, wrap_like
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops
from tinyexplore.uop.symbolic import product as elements_of


def accumulation_dtype(dtype: DType) -> DType:
    """Returns the dtype in which long sums of `dtype` are accumulated."""
    return dtypes.float32 if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


def take_elements(table: LazyBuffer, axis: int, index: LazyBuffer) -> LazyBuffer:
    """Returns the elements of `axis` at the positions in `index`; 0 where an index is out of range."""
    if not isinstance(table, LazyBuffer):
        return cast(Any, table).take_elements(axis, index)
    other_axes = tuple(i for i in range(len(table.shape)) if i != axis)
    shape = tuple(1 if i == axis else size for i, size in enumerate(table.shape))
    table_rows = table.permute((*other_axes, axis)).reshape((*shape, table.shape[axis]))
    return table_rows.expand((*index.shape, table.shape[axis])).gather(index)


def take_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = the elements at the indices: each element gets the sum of the g at its index"""
    (table,), (axis, index) = step.sources, step.arg
    values = g.cast(accumulation_dtype(g.dtype))
    return (constant(0, values, table.shape).scatter(Ops.ADD, axis, index, values).cast(g.dtype),)


@gradient_of(Ops.GATHER)
def gather_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(…) = x(…, index(…)): dx(…, v) = g(…) where index(…) = v, else 0"""
    (x,), index = step.sources, step.arg
    axis_size = x.shape[-1]
    line = (
        LazyBuffer.iota(axis_size, index.dtype, x.device).reshape((*(1,) * len(index.shape), axis_size)).expand(x.shape)
    )
    is_chosen = index.reshape((*index.shape, 1)).expand(x.shape).alu(Ops.CMPEQ, line)
    spread = g.reshape((*g.shape, 1)).expand(x.shape)
    return (is_chosen.alu(Ops.WHERE, spread, constant(0, spread)),)


def broadcast_gather_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(…) = x(…, index(…)), where x and index were broadcast: dx(…, v) = Σ g(…) over the … with index(…) = v

    Along the axes along which x was repeated, g is scattered. Along those along which the index was repeated, it
    selects rows.
    """
    (x,), index = step.sources, step.arg
    rank, length = len(g.shape), x.shape[-1]
    shape = (*(1,) * (rank + 1 - len(x.shape)), *x.shape[:-1])
    named = (*(1,) * (rank - len(index.shape)), *index.shape)
    repeated = [axis for axis in range(rank) if shape[axis] == 1 != g.shape[axis]]
    inner = [axis for axis in range(rank) if axis not in repeated and named[axis] == 1]
    outer = [axis for axis in range(rank) if axis not in repeated and axis not in inner]
    batch, count, width = (prod(g.shape[axis] for axis in axes) for axes in (outer, repeated, inner))
    order = (*outer, *repeated, *inner)
    indices = index.reshape(named).expand(tuple(1 if axis in inner else g.shape[axis] for axis in range(rank)))
    indices = indices.permute(order).reshape((batch, count, 1)).expand((batch, count, width))
    values = g.permute(order).reshape((batch, count, width)).cast(accumulation_dtype(g.dtype))
    scattered = constant(0, values, (batch, length, width)).scatter(Ops.ADD, 1, indices, values).cast(g.dtype)
    separated = scattered.reshape((*(g.shape[axis] for axis in outer), length, *(g.shape[axis] for axis in inner)))
    permutation = [*outer, rank, *inner]
    ordered = separated.permute(sorted(range(len(permutation)), key=permutation.__getitem__))
    return (ordered.reshape(x.shape),)


def running_extreme_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y(i) = the largest (or least) x(j) over j ≤ i: g goes to the last such x(j)"""
    (x,), axis, y = step.sources, step.arg, step.result
    shape = tuple(size if i == axis else 1 for i, size in enumerate(x.shape))
    line = LazyBuffer.iota(x.shape[axis], dtypes.int32, x.device).reshape(shape).expand(x.shape)
    is_extreme = x.alu(Ops.CMPEQ, y).alu(Ops.OR, x.alu(Ops.CMPNE, x))
    last_index = is_extreme.alu(Ops.WHERE, line, constant(-1, line)).scan(Ops.MAX, axis)
    return take_gradient(TapeEntry(take_gradient, step.inputs, step.sources, y, (axis, last_index)), g)


def write_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x with v at the row-major positions `arg`: dx = g elsewhere, dv = g at these positions"""
    (_, v), indices = step.sources, step.arg
    flat, line = g.reshape((elements_of(g.shape),)), indices.reshape((elements_of(v.shape),))
    remaining = flat.scatter(None, 0, line, constant(0, g, line.shape)).reshape(g.shape)
    return remaining, take_elements(flat, 0, line).reshape(v.shape)


def scatter_last_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = the last v written to a position, else x: g goes to that v or x only"""
    (x, v), (_, axis, index) = step.sources, step.arg
    shape = tuple(size if i == axis else 1 for i, size in enumerate(v.shape))
    order = wrap_like(g, LazyBuffer.iota(v.shape[axis], dtypes.int32, v.device).reshape(shape).expand(v.shape))
    last_writer = constant(-1, order, x.shape).scatter(None, axis, index, order)
    remaining = last_writer.alu(Ops.CMPEQ, constant(-1, last_writer)).alu(Ops.WHERE, g, constant(0, g))
    gathered = take_elements(g, axis, index)
    return (
        remaining,
        take_elements(last_writer, axis, index).alu(Ops.CMPEQ, order).alu(Ops.WHERE, gathered, constant(0, gathered)),
    )


def scatter_add_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x + Σ v added to a position: dx = g, dv = g at its position"""
    _, axis, index = step.arg
    return (g, take_elements(g, axis, index) if step.needs(1) else None)


def scatter_extremum_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = the largest (or least) of x and all v at a position: g is shared equally by all that equal y"""
    (x, v), (_, axis, index) = step.sources, step.arg
    wide_dtype = accumulation_dtype(g.dtype)
    is_x = x.alu(Ops.CMPEQ, step.result).cast(wide_dtype)
    is_v = v.alu(Ops.CMPEQ, take_elements(step.result, axis, index)).cast(wide_dtype)
    share = g.cast(wide_dtype).alu(Ops.FDIV, is_x.scatter(Ops.ADD, axis, index, is_v)).contiguous()
    dv = is_v.alu(Ops.MUL, take_elements(share, axis, index))
    return (is_x.alu(Ops.MUL, share).cast(g.dtype), dv.cast(g.dtype))


def scatter_prod_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x · Π v at a position: g · product of the others, as for a product along an axis

    The gradient of this gradient is correct where no factor is 0.
    """
    (x, v), (_, axis, index) = step.sources, step.arg
    no_x, no_v = x.alu(Ops.CMPEQ, constant(0.0, x)), v.alu(Ops.CMPEQ, constant(0.0, v))
    some_x, some_v = no_x.alu(Ops.WHERE, constant(1.0, x), x), no_v.alu(Ops.WHERE, constant(1.0, v), v)
    product_of_x_and_v = some_x.scatter(Ops.MUL, axis, index, some_v)
    zeros = no_x.cast(dtypes.int32).scatter(Ops.ADD, axis, index, no_v.cast(dtypes.int32))
    gradients = []
    for factor, none, product, count, gradient in (
        (some_x, no_x, product_of_x_and_v, zeros, g),
        (
            some_v,
            no_v,
            take_elements(product_of_x_and_v, axis, index),
            take_elements(zeros, axis, index),
            take_elements(g, axis, index),
        ),
    ):
        no_other_zero = count.alu(Ops.CMPEQ, none.cast(dtypes.int32))  # no zero among the other factors
        gradients.append(
            gradient.alu(Ops.MUL, no_other_zero.alu(Ops.WHERE, product.alu(Ops.FDIV, factor), constant(0.0, factor)))
        )
    return tuple(gradients)


SCATTER_GRADIENTS = {
    None: scatter_last_gradient,
    Ops.ADD: scatter_add_gradient,
    Ops.MUL: scatter_prod_gradient,
    Ops.MAX: scatter_extremum_gradient,
    Ops.MIN: scatter_extremum_gradient,
}


@gradient_of(Ops.SCATTER)
def scatter_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """Calls the rule for the operation that combines values at one position. `arg` is (op, axis, index)."""
    return SCATTER_GRADIENTS[step.arg[0]](step, g)
