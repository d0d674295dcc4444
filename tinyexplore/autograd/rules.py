"""One gradient rule per operation: from the gradient of the result to the gradients of the sources.

Each rule's docstring states the derivative; `g` is the gradient of the result, `y` the result itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod

from tinyexplore.autograd.tape import GradientRule, TapeEntry, wrap_like
from tinyexplore.dtype import ConstType, dtypes, least_upper_dtype
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import Shape
from tinyexplore.uop import Ops

Gradients = tuple["LazyBuffer | None", ...]

GRADIENTS: dict[Ops, GradientRule] = {}
"""The table: an operation that is missing here has no gradient (comparisons, bit operations)."""


def gradient_of(op: Ops) -> Callable[[GradientRule], GradientRule]:
    """Returns a decorator that adds a rule to the table."""

    def enter(rule: GradientRule) -> GradientRule:
        GRADIENTS[op] = rule
        return rule

    return enter


def constant(value: ConstType, like: LazyBuffer, shape: Shape | None = None) -> LazyBuffer:
    """Returns a tensor filled with `value`, with the dtype, device and shape of `like`, unless `shape` is given."""
    return wrap_like(like, LazyBuffer.const(value, like.dtype, like.device, like.shape if shape is None else shape))


def _negate(x: LazyBuffer) -> LazyBuffer:
    return x.alu(Ops.NEG)


def sum_axes(x: LazyBuffer, axes: tuple[int, ...]) -> LazyBuffer:
    """Sums over `axes` (which remain with size 1), accumulated in float32 if `x` is narrower."""
    if not axes:
        return x
    if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4:
        return x.cast(dtypes.float32).reduce(Ops.ADD, axes).cast(x.dtype)
    return x.reduce(Ops.ADD, axes)


# *** one source ***


@gradient_of(Ops.NEG)
def neg_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = -x: dx = -g"""
    return (_negate(g),)


@gradient_of(Ops.SQRT)
def sqrt_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = √x: dx = g / 2y"""
    return (g.alu(Ops.FDIV, step.result.alu(Ops.ADD, step.result)),)


def deviation_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = √x, where all values are equal if x is 0: dx = g / 2y, and 0 if x is 0"""
    y = step.result
    flat = y.alu(Ops.CMPEQ, constant(0.0, y))
    slope = g.alu(Ops.FDIV, flat.alu(Ops.WHERE, constant(1.0, y), y.alu(Ops.ADD, y)))
    return (flat.alu(Ops.WHERE, constant(0.0, y), slope),)


@gradient_of(Ops.EXP)
def exp_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = eˣ: dx = g · y"""
    return (g.alu(Ops.MUL, step.result),)


@gradient_of(Ops.EXP2)
def exp2_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = 2ˣ: dx = g · y · ln 2"""
    return (g.alu(Ops.MUL, step.result).alu(Ops.MUL, constant(math.log(2), g)),)


@gradient_of(Ops.LOG)
def log_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = ln x: dx = g / x"""
    return (g.alu(Ops.FDIV, step.sources[0]),)


@gradient_of(Ops.LOG2)
def log2_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = log₂ x: dx = g / (x ln 2)"""
    return (g.alu(Ops.FDIV, step.sources[0].alu(Ops.MUL, constant(math.log(2), g))),)


@gradient_of(Ops.SIN)
def sin_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = sin x: dx = g · cos x"""
    return (g.alu(Ops.MUL, step.sources[0].alu(Ops.COS)),)


@gradient_of(Ops.COS)
def cos_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = cos x: dx = -g · sin x"""
    return (_negate(g.alu(Ops.MUL, step.sources[0].alu(Ops.SIN))),)


@gradient_of(Ops.TANH)
def tanh_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = tanh x: dx = g · (1 - y²)"""
    square = step.result.alu(Ops.MUL, step.result)
    return (g.alu(Ops.MUL, constant(1.0, g).alu(Ops.ADD, _negate(square))),)


@gradient_of(Ops.ERF)
def erf_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = erf x: dx = g · 2/√π · exp(-x²)"""
    (x,) = step.sources
    bell = _negate(x.alu(Ops.MUL, x)).alu(Ops.EXP)
    return (g.alu(Ops.MUL, bell).alu(Ops.MUL, constant(2 / math.sqrt(math.pi), g)),)


@gradient_of(Ops.FLOOR)
def step_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y is constant around each source, except for single jumps: the gradient is 0, also where y is NaN"""
    return tuple([constant(0.0, source) for source in step.sources])


@gradient_of(Ops.CAST)
def cast_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x cast between float types: dx = g, converted back. Other casts have no gradient."""
    source = step.sources[0].dtype
    if not dtypes.is_float(source) or not dtypes.is_float(g.dtype):
        return (None,)
    return (g.cast(source),)


def stationary_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """dx = g: the result is stationary in everything else that y depends on. `arg` is y with all of that on the
    tape."""
    return (g,)


def relu_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = max(x, 0): dx = 0 where y ≤ 0 (also at x = 0, where `MAX` would give half), else g, also where y is NaN"""
    zero = constant(0.0, g)
    return (step.result.alu(Ops.CMPLE, zero).alu(Ops.WHERE, zero, g),)


def sigmoid_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = 1 / (1 + e⁻ˣ): dx = g · y · (1 - y), which stays finite where e⁻ˣ overflows"""
    y = step.result
    slope = y.alu(Ops.MUL, constant(1.0, y).alu(Ops.ADD, _negate(y)))
    return (g.alu(Ops.MUL, slope),)


def clip_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x between the numbers low and high (`arg`; None: no limit): dx = g strictly between them, else 0

    As in PyTorch 2.14, it is 0 at a limit and at NaN.
    """
    (x,) = step.sources
    low, high = step.arg
    zero = constant(0.0, g)
    if low is not None:
        g = constant(low, x).alu(Ops.CMPLT, x).alu(Ops.WHERE, g, zero)
    if high is not None:
        g = x.alu(Ops.CMPLT, constant(high, x)).alu(Ops.WHERE, g, zero)
    return (g,)


# *** functions of several operations that have their own gradient rule ***


def _divide_by_root(g: LazyBuffer, square: LazyBuffer) -> LazyBuffer:
    return g.alu(Ops.FDIV, square.alu(Ops.SQRT))


def abs_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = |x|: dx = g for positive x, -g for negative x, 0 at 0"""
    (x,) = step.sources
    zero = constant(0.0, x)
    falling = x.alu(Ops.CMPLT, zero).alu(Ops.WHERE, _negate(g), zero)
    return (zero.alu(Ops.CMPLT, x).alu(Ops.WHERE, g, falling),)


def copysign_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = |x| with the sign of s: dx = g where x and y have the same sign, else -g; 0 at 0, NaN at NaN; ds = 0"""
    x, s = step.sources
    zero = constant(0.0, x)
    of_size = step.result.alu(Ops.CMPLT, zero).alu(Ops.WHERE, _negate(g), g)
    falling = x.alu(Ops.CMPLT, zero).alu(Ops.WHERE, _negate(of_size), x.alu(Ops.MUL, g))
    return zero.alu(Ops.CMPLT, x).alu(Ops.WHERE, of_size, falling), constant(0.0, s)


def log1p_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = ln(1 + x): dx = g / (1 + x)"""
    (x,) = step.sources
    return (g.alu(Ops.FDIV, constant(1.0, x).alu(Ops.ADD, x)),)


def inverse_root_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x ** -0.5: dx = -g · y³ / 2"""
    y = step.result
    slope = y.alu(Ops.MUL, y).alu(Ops.MUL, y).alu(Ops.MUL, constant(-0.5, y))
    return (g.alu(Ops.MUL, slope),)


def asinh_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = asinh x: dx = g / √(x² + 1)"""
    (x,) = step.sources
    return (_divide_by_root(g, x.alu(Ops.MUL, x).alu(Ops.ADD, constant(1.0, x))),)


def _subtract_square_from_one(x: LazyBuffer) -> LazyBuffer:
    return constant(1.0, x).alu(Ops.ADD, _negate(x.alu(Ops.MUL, x)))


def acosh_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = acosh x: dx = g / (√(|x| - 1) √(|x| + 1)), below -1 too, where y is NaN, as in PyTorch"""
    (x,) = step.sources
    x = x.alu(Ops.MAX, _negate(x))
    root_of_difference, root_of_sum = (x.alu(Ops.ADD, constant(shift, x)).alu(Ops.SQRT) for shift in (-1.0, 1.0))
    return (g.alu(Ops.FDIV, root_of_difference.alu(Ops.MUL, root_of_sum)),)


def atanh_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = atanh x: dx = g / (1 - x²)"""
    return (g.alu(Ops.FDIV, _subtract_square_from_one(step.sources[0])),)


def atan_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = atan x: dx = g / (1 + x²)"""
    (x,) = step.sources
    return (g.alu(Ops.FDIV, x.alu(Ops.MUL, x).alu(Ops.ADD, constant(1.0, x))),)


def asin_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = asin x: dx = g / √(1 - x²)"""
    return (_divide_by_root(g, _subtract_square_from_one(step.sources[0])),)


def acos_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = acos x: dx = -g / √(1 - x²)"""
    return (_negate(_divide_by_root(g, _subtract_square_from_one(step.sources[0]))),)


# *** two and three sources ***


@gradient_of(Ops.ADD)
def add_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = a + b: da = g, db = g"""
    return g, g


@gradient_of(Ops.MUL)
def mul_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = a · b: da = g · b, db = g · a"""
    a, b = step.sources
    return (
        g.alu(Ops.MUL, b) if step.needs(0) else None,
        g.alu(Ops.MUL, a) if step.needs(1) else None,
    )


@gradient_of(Ops.FDIV)
def fdiv_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = a / b: da = g / b, db = -g · y / b"""
    b = step.sources[1]
    return (
        g.alu(Ops.FDIV, b) if step.needs(0) else None,
        _negate(g.alu(Ops.MUL, step.result).alu(Ops.FDIV, b)) if step.needs(1) else None,
    )


@gradient_of(Ops.MOD)
def mod_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = a - n · b for a whole n: da = g, db = -g · n; where y is NaN, n is a / b, as in PyTorch"""
    if not step.needs(1):
        return g, None
    a, b = step.sources
    y = step.result
    multiple = y.alu(Ops.CMPNE, y).alu(Ops.WHERE, a, a.alu(Ops.ADD, _negate(y)))
    quotient = multiple.alu(Ops.FDIV, b)
    return g if step.needs(0) else None, _negate(g.alu(Ops.MUL, quotient))


@gradient_of(Ops.POW)
def pow_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = aᵇ: da = g · b · aᵇ⁻¹ (0 where b is 0), db = g · y · ln a (0 where a is 0 and b is not negative)"""
    a, b = step.sources
    zero = constant(0.0, g)
    da = db = None
    if step.needs(0):
        slope = b.alu(Ops.MUL, a.alu(Ops.POW, b.alu(Ops.ADD, constant(-1.0, b))))
        da = g.alu(Ops.MUL, b.alu(Ops.CMPEQ, zero).alu(Ops.WHERE, zero, slope))
    if step.needs(1):
        flat = a.alu(Ops.CMPEQ, zero).alu(Ops.AND, zero.alu(Ops.CMPLE, b))
        slope = step.result.alu(Ops.MUL, a.alu(Ops.LOG))
        db = g.alu(Ops.MUL, flat.alu(Ops.WHERE, zero, slope))
    return da, db


def _larger_gradient(step: TapeEntry, g: LazyBuffer, takes_first: Ops) -> Gradients:
    a, b = step.sources
    smaller_first, larger_first = (b, a) if takes_first is Ops.MAX else (a, b)
    zero = constant(0.0, g)
    share = a.alu(Ops.CMPEQ, b).alu(Ops.WHERE, g.alu(Ops.MUL, constant(0.5, g)), g)  # a NaN gets all of it
    return (
        larger_first.alu(Ops.CMPLT, smaller_first).alu(Ops.WHERE, zero, share) if step.needs(0) else None,
        smaller_first.alu(Ops.CMPLT, larger_first).alu(Ops.WHERE, zero, share) if step.needs(1) else None,
    )


@gradient_of(Ops.MAX)
def max_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = max(a, b): g goes to the larger one, half to each where they are equal"""
    return _larger_gradient(step, g, Ops.MAX)


@gradient_of(Ops.MIN)
def min_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = min(a, b): g goes to the smaller one, half to each where they are equal"""
    return _larger_gradient(step, g, Ops.MIN)


@gradient_of(Ops.WHERE)
def where_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = a if c else b: da = g if c else 0, db = 0 if c else g"""
    condition = step.sources[0]
    zero = constant(0.0, g)
    return (
        None,
        condition.alu(Ops.WHERE, g, zero) if step.needs(1) else None,
        condition.alu(Ops.WHERE, zero, g) if step.needs(2) else None,
    )


# *** reductions; `arg` is the tuple of axes ***


def reduce_sum_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = Σ x: each summand gets g"""
    return (g.expand(step.sources[0].shape),)


def reduce_extremum_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = max x (or min): g is shared equally by all elements that equal y, counted in float32 at least"""
    (x,) = step.sources
    wide_dtype = least_upper_dtype(g.dtype, dtypes.float32)
    holds = x.alu(Ops.CMPEQ, step.result.expand(x.shape)).cast(wide_dtype)
    share = g.cast(wide_dtype).alu(Ops.FDIV, holds.reduce(Ops.ADD, step.arg))
    return (holds.alu(Ops.MUL, share.expand(x.shape)).cast(g.dtype),)


def reduce_prod_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = Π x: dxᵢ = g · product of the others

    It is not y / xᵢ, which is wrong if a factor is 0, infinite or NaN, or if y overflows or underflows.
    """
    (x,) = step.sources
    return (g.expand(x.shape).alu(Ops.MUL, product_of_others(x, step.arg)),)


FOLDED_FROM = 256  # factors: a line of at least this many is multiplied in columns, which are the lanes of vectors
MAX_COLUMNS = 1024


def product_of_others(x: LazyBuffer, axes: tuple[int, ...]) -> LazyBuffer:
    """Returns for each element the product of all others along `axes`: of all before it times that of all after it."""
    last_axis = len(x.shape) - 1
    if len(axes) == 1 and axes[0] != last_axis and x.shape[last_axis] != 1:
        return _multiply_from_both_sides(x, axes[0])
    order = (*[axis for axis in range(len(x.shape)) if axis not in axes], *axes)
    permuted = x.permute(order)
    count = prod(x.shape[axis] for axis in axes)
    line = permuted.reshape((*permuted.shape[: len(order) - len(axes)], count))
    is_long = isinstance(count, int) and count >= FOLDED_FROM
    product = _multiply_in_columns(line) if is_long else _multiply_from_both_sides(line, len(line.shape) - 1)
    return product.reshape(permuted.shape).permute(sorted(range(len(order)), key=order.__getitem__))


def _multiply_from_both_sides(x: LazyBuffer, axis: int) -> LazyBuffer:
    """Returns the product of all other elements along `axis`, by running products from both ends."""
    count = x.shape[axis]

    def product_before(x: LazyBuffer) -> LazyBuffer:
        earlier = x.shrink([(0, count - 1 if dim == axis else size) for dim, size in enumerate(x.shape)])
        bounds = [(1, 0) if dim == axis else (0, 0) for dim in range(len(x.shape))]
        return _add_one_where_zero(earlier.pad(bounds), axis, 0, 1).scan(Ops.MUL, axis)

    return product_before(x).alu(Ops.MUL, product_before(x.flip((axis,))).flip((axis,)))


def _multiply_in_columns(line: LazyBuffer) -> LazyBuffer:
    """Returns the product of all other elements along the last axis, which becomes a matrix.

    It is the product of the others in the element's column, times that of all other columns. A running product down the
    rows computes all columns of a row in vectors.
    """
    *outer, count = line.shape
    axis = len(outer)
    columns = 16
    while columns < MAX_COLUMNS and 4 * columns * columns <= count:
        columns *= 2
    rows = -(-count // columns)
    fill_count = rows * columns - count
    padded = (
        _add_one_where_zero(line.pad([(0, 0)] * axis + [(0, fill_count)]), axis, count, count + fill_count)
        if fill_count
        else line
    )
    grid = padded.reshape((*outer, rows, columns))
    totals = grid.reduce(Ops.MUL, (axis,)).reshape((*outer, columns))
    other_columns = product_of_others(totals, (axis,)).reshape((*outer, 1, columns)).expand(grid.shape)
    gradient = _multiply_from_both_sides(grid, axis).alu(Ops.MUL, other_columns).reshape(padded.shape)
    return gradient.shrink([*[(0, size) for size in outer], (0, count)])


def _add_one_where_zero(x: LazyBuffer, axis: int, start: int, stop: int) -> LazyBuffer:
    """Adds 1 to the positions `start` to `stop` of `axis`, where `x` is 0."""
    size = x.shape[axis]
    ones = constant(1.0, x, tuple(stop - start if dim == axis else n for dim, n in enumerate(x.shape)))
    return x.alu(Ops.ADD, ones.pad([(start, size - stop) if dim == axis else (0, 0) for dim in range(len(x.shape))]))


REDUCE_GRADIENTS: dict[Ops, GradientRule] = {
    Ops.ADD: reduce_sum_gradient,
    Ops.MAX: reduce_extremum_gradient,
    Ops.MIN: reduce_extremum_gradient,
    Ops.MUL: reduce_prod_gradient,
}


# *** movements; `arg` is the argument of the LazyBuffer method ***


@gradient_of(Ops.RESHAPE)
def reshape_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x reshaped: dx = g in the old shape"""
    return (g.reshape(step.sources[0].shape),)


@gradient_of(Ops.EXPAND)
def expand_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x repeated: an element gets the sum of g over its copies"""
    source_shape = step.sources[0].shape
    return (sum_axes(g, tuple(axis for axis, size in enumerate(source_shape) if size != g.shape[axis])),)


@gradient_of(Ops.PERMUTE)
def permute_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x permuted: dx = g by the inverse permutation"""
    return (g.permute(sorted(range(len(step.arg)), key=step.arg.__getitem__)),)


@gradient_of(Ops.PAD)
def pad_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x padded: dx = g without the padding"""
    shape = step.sources[0].shape
    return (g.shrink(tuple((before, before + size) for size, (before, _) in zip(shape, step.arg))),)


@gradient_of(Ops.SHRINK)
def shrink_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = a part of x: dx = g there, 0 elsewhere"""
    shape = step.sources[0].shape
    return (g.pad(tuple((start, size - stop) for size, (start, stop) in zip(shape, step.arg))),)


@gradient_of(Ops.FLIP)
def flip_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x flipped: dx = g flipped"""
    return (g.flip(step.arg),)


def cat_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x, z, … along an axis: each gets its part of g"""
    axis, gradients, start = step.arg, [], 0
    for source in step.sources:
        stop = start + source.shape[axis]
        gradients.append(g.shrink(tuple((start, stop) if dim == axis else (0, n) for dim, n in enumerate(g.shape))))
        start = stop
    return tuple(gradients)


def _resize(x: LazyBuffer, axis: int, size: int) -> LazyBuffer:
    """Cuts `axis` to `size`, or pads it with zeros at its end."""
    size_before = x.shape[axis]
    if size_before > size:
        return x.shrink(tuple((0, size) if i == axis else (0, n) for i, n in enumerate(x.shape)))
    return x.pad(tuple((0, size - size_before) if i == axis else (0, 0) for i in range(len(x.shape))))


def _dilate(x: LazyBuffer, axis: int, stride: int) -> LazyBuffer:
    """Inserts `stride - 1` zeros between neighbors along `axis`."""
    if stride == 1:
        return x
    shape, count = x.shape, x.shape[axis]
    with_axis = x.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))
    with_axis = _resize(with_axis, axis + 1, stride)
    joined = with_axis.reshape((*shape[:axis], count * stride, *shape[axis + 1 :]))
    return _resize(joined, axis, (count - 1) * stride + 1)


@gradient_of(Ops.WINDOW)
def window_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y[o, k] = x[o·stride + k·dilation]: dx[i] = Σₖ g'[i - k·dilation, k]

    g' is g with stride - 1 zeros between windows. It is written as a gather, so that nothing is scattered: the diagonal
    of windows over g' (padded) is summed. Without dilation no zeros are needed: dx[q·stride + r] = Σᵤ g[q - u, r +
    u·stride].
    """
    axis, size, stride, dilation = step.arg
    length = step.sources[0].shape[axis]
    rank = len(g.shape) - 1
    if dilation == 1 and size <= stride:
        return (_disjoint_window_gradient(g, axis, stride, length),)
    if dilation == 1:
        taps = -(-size // stride)
        split = _resize(g, rank, taps * stride).reshape((*g.shape[:rank], taps, stride))
        total = _overlay_taps(split, axis, rank, 1)
        return (_disjoint_window_gradient(total, axis, stride, length),)
    return (_resize(_overlay_taps(_dilate(g, axis, stride), axis, rank, dilation), axis, length),)


def _overlay_taps(g: LazyBuffer, axis: int, taps: int, dilation: int) -> LazyBuffer:
    """Returns y[i] = Σₖ g[i - k·dilation, k] with i along `axis` and k along the axis `taps`, which is removed."""
    rank = len(g.shape)
    reach = (g.shape[taps] - 1) * dilation
    padded = g.pad(tuple((reach, reach) if i == axis else (0, 0) for i in range(rank)))
    windows = padded.window(axis, g.shape[taps], 1, dilation).flip((rank,))
    total = sum_axes(windows.diagonal(taps, rank), (taps,))
    return total.reshape((*total.shape[:taps], *total.shape[taps + 1 :]))


def _disjoint_window_gradient(g: LazyBuffer, axis: int, stride: int, length: int) -> LazyBuffer:
    """Computes `window_gradient` for windows that do not overlap: puts them side by side again."""
    rank = len(g.shape) - 1
    adjacent = g.permute((*range(axis + 1), rank, *range(axis + 1, rank)))
    spaced = _resize(adjacent, axis + 1, stride)
    joined = spaced.reshape((*g.shape[:axis], g.shape[axis] * stride, *g.shape[axis + 1 : rank]))
    return _resize(joined, axis, length)


@gradient_of(Ops.DIAGONAL)
def diagonal_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = the diagonal of x: dx = g on the diagonal, 0 elsewhere"""
    first_axis, second_axis = step.arg
    shape = step.sources[0].shape
    counter = LazyBuffer.iota(shape[first_axis], dtypes.index, g.device)

    def along(axis: int) -> LazyBuffer:
        shape_along = tuple(size if i == axis else 1 for i, size in enumerate(shape))
        return counter.reshape(shape_along).expand(shape)

    on_diagonal = wrap_like(g, along(first_axis).alu(Ops.CMPEQ, along(second_axis)))
    repeated = g.reshape((*g.shape[:second_axis], 1, *g.shape[second_axis:])).expand(shape)
    return (on_diagonal.alu(Ops.WHERE, repeated, constant(0.0, repeated)),)


# *** memory ***


def assigned_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """Raises an error: the tensor was assigned to, so the values that were used are gone."""
    raise RuntimeError(
        f"backward through a tensor of shape {g.shape} that was assigned to after it had been computed: "
        "write y = ... for another value instead of y.assign(...), or detach() it first"
    )


@gradient_of(Ops.CONTIGUOUS)
def contiguous_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x in memory: dx = g"""
    return (g,)


def contiguous_backward_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x: dx = g, realized as a kernel's result"""
    return (g.contiguous(),)


@gradient_of(Ops.COPY)
def copy_gradient(step: TapeEntry, g: LazyBuffer) -> Gradients:
    """y = x on another device: dx = g, copied back"""
    return (g.copy_to_device(step.sources[0].device),)
