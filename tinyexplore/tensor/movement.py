"""Movement: rearranges elements. Movements compute nothing and rarely copy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from tinyexplore.autograd import CustomGradient, cat_gradient
from tinyexplore.dtype import ConstType, dtypes, least_upper_dtype
from tinyexplore.lazy import LazyBuffer, as_bits
from tinyexplore.lazy.lazybuffer import ShapeError, normalize_sizes
from tinyexplore.tensor.base import Shape, TensorBase
from tinyexplore.tensor.checks import need_int, need_tensor, shown
from tinyexplore.tensor.errors import ArgumentError
from tinyexplore.tensor.operators import Operators
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import SymbolicError, greatest, limits, product, simplified

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T", bound="TensorBase")
Amounts = Sequence[tuple[int, int] | None]
PAD_MODES = ("constant", "reflect", "replicate", "circular")


def flat_sizes(first: Any, rest: tuple[Any, ...], trailing: Shape | int = ()) -> Shape:
    """Returns the sizes given as `f(2, 3)` or as `f((2, 3))`. None stands for the size of `trailing` at that axis, or
    for `trailing` if it is an int."""
    if rest or not isinstance(first, (tuple, list)):
        first = (first, *rest)
    for size in first:
        if type(size) is not int:
            return _check_shape_sizes(first, trailing)
    return tuple(first)


def _check_shape_sizes(sizes: Sequence[Any], default: Shape | int) -> Shape:
    """Checks the sizes of a shape: ints, symbolic sizes, or None, which becomes the size in `default`."""
    checked = []
    for axis, size in enumerate(sizes):
        if size is None and (isinstance(default, int) or axis < len(default)):
            size = default if isinstance(default, int) else default[axis]
        if not isinstance(size, (int, UOp)) or isinstance(size, bool):
            error_class = ValueError if isinstance(size, (tuple, list)) else TypeError  # f((2, 3), 4) mixes both forms
            raise error_class(f"a shape or an order is made of ints; found {size!r} ({type(size).__name__}) in {sizes}")
        checked.append(size)
    return normalize_sizes(tuple(checked))


def _require_tensors(tensors: Sequence[T], operation: str) -> Sequence[T]:
    """Returns the tensors to join. Raises if there are none. A method has its own tensor first."""
    if not tensors:
        raise TypeError(f"{operation} of no tensors: need one at least, {operation}(a, b) or {operation}([a, b])")
    return tensors


def _require_first(tensors: Sequence[T], operation: str) -> T:
    """Returns the first of the tensors to join. Raises if there are none."""
    if not tensors:
        raise ArgumentError(f"{operation} of an empty list: need one tensor at least")
    need_tensor(tensors[0], f"{operation}: the first")
    return tensors[0]


def has_negative(sizes: Sequence[Any]) -> bool:
    """Whether an int among `sizes` is negative."""
    for size in sizes:
        if isinstance(size, int) and size < 0:
            return True
    return False


def min_zero(amount: Any) -> int:
    """Returns min(amount, 0). Symbolic sizes are never negative: 0."""
    return min(amount, 0) if isinstance(amount, int) else 0


MAX_JOINED_PARTS = 8  # most parts joined in one kernel, which tests for each element which part it belongs to


def _concatenate(parts: Sequence[LazyBuffer], axis: int) -> LazyBuffer:
    """Concatenates ints along `axis`: pads each part with zeros, and adds the padded parts."""
    total: Any = sum([part.shape[axis] for part in parts])
    start: Any = 0
    padded: list[LazyBuffer] = []
    for part in parts:
        stop = start + part.shape[axis]
        amounts = normalize_sizes((start, total - stop))
        padded.append(part.pad([amounts if dim == axis else (0, 0) for dim in range(len(part.shape))]))
        start = stop
    joined = padded[0]
    for part in padded[1:]:
        joined = joined.alu(Ops.ADD, part)
    return joined


class Movement(Operators):
    __slots__ = ()

    # *** shape ***

    def reshape(self, shape: int | Sequence[int], *args: int) -> Self:
        """Reshapes the tensor in row-major order. One size may be -1: it is computed from the others.

        None keeps the current size of that axis.
        """
        new_shape = flat_sizes(shape, args, self.shape)
        if -1 in new_shape:
            new_shape = self._without_minus_one(new_shape)
        if has_negative(new_shape):
            raise ShapeError(f"reshape {self.shape} to {new_shape}: sizes cannot be negative, but for one -1")
        return self._wrap_movement(Ops.RESHAPE, self.lazydata.reshape(new_shape))

    def _without_minus_one(self, new_shape: Shape) -> Shape:
        if new_shape.count(-1) > 1:
            raise ShapeError(f"reshape {self.shape} to {new_shape}: only one size can be -1")
        old_sizes, explicit = list(self.shape), [size for size in new_shape if size != -1]
        explicit_size = product(explicit)
        for size in [size for size in explicit if isinstance(size, UOp) and size in old_sizes]:
            old_sizes.remove(size)  # equal sizes on both sides cancel
            explicit.remove(size)
        dividend, divisor = product(old_sizes), product(explicit)
        can_divide = explicit_size != 0 and limits(divisor)[0] > 0
        missing_size = simplified(dividend // divisor) if can_divide else 0
        if not can_divide or simplified(missing_size * divisor) != dividend:
            raise ShapeError(
                f"reshape {self.shape} to {new_shape}: {self.numel()} elements do not divide by {explicit_size}"
            )
        return tuple(missing_size if size == -1 else size for size in new_shape)

    def view(self, *shape: Any) -> Self:
        """Calls `reshape`."""
        return self.reshape(*shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Merges axes `start_dim` to `end_dim` to one. A scalar gets one axis."""
        if self.ndim == 0 and (start_dim, end_dim) in ((0, -1), (0, 0), (-1, -1)):
            return self.reshape((1,))
        start, stop = self._resolve_axis(start_dim), self._resolve_axis(end_dim)
        if start > stop:
            raise ValueError(f"flatten axes {start_dim} to {end_dim} of {self.shape}: the first comes after the last")
        return self.reshape((*self.shape[:start], prod(self.shape[start : stop + 1]), *self.shape[stop + 1 :]))

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Self:
        """Splits axis `dim` into axes of `sizes`, one of which may be -1."""
        axis = self._resolve_axis(dim)
        axis_size = self.shape[axis]
        if not isinstance(sizes, (list, tuple)):
            raise TypeError(f"unflatten axis {dim} of {self.shape}: the sizes are {shown(sizes)}: need several ints")
        for size in sizes:
            need_int(size, "unflatten: a size")
        explicit_size = product([size for size in sizes if size != -1])
        split = tuple(
            simplified(axis_size // (explicit_size if explicit_size != 0 else 1)) if size == -1 else size
            for size in sizes
        )
        if product(split) != axis_size:
            raise ShapeError(f"unflatten axis {dim} of {self.shape} to {tuple(sizes)}: {axis_size} elements do not fit")
        return self.reshape((*self.shape[:axis], *split, *self.shape[axis + 1 :]))

    def squeeze(self, dim: int | None = None) -> Self:
        """Removes axes of size 1: all of them, or `dim` if it has size 1."""
        if dim is None:
            return self.reshape(tuple(size for size in self.shape if size != 1))
        axis = self._resolve_axis(dim)
        if self.ndim == 0 or self.shape[axis] != 1:
            return self
        return self.reshape(self.shape[:axis] + self.shape[axis + 1 :])

    def unsqueeze(self, dim: int) -> Self:
        """Inserts a new axis of size 1 at position `dim`."""
        axis = self._resolve_axis(dim, extra=1)
        return self._reshape_checked((*self.shape[:axis], 1, *self.shape[axis:]))

    # *** repeating ***

    def expand(self, shape: int | Sequence[int], *args: int) -> Self:
        """Repeats axes of size 1 (or new leading axes) to the sizes in `shape`. -1 or None keeps a size."""
        new_shape = flat_sizes(shape, args, -1)
        new_axes = len(new_shape) - self.ndim
        old_shape = (1,) * new_axes + self.shape
        target = tuple([old if new == -1 else new for old, new in zip(old_shape, new_shape)])
        if new_axes < 0 or any([old not in (1, new) for old, new in zip(old_shape, target)]):
            raise ShapeError(f"expand {self.shape} to {new_shape}: only axes of size 1 (and new ones in front) expand")
        return self._broadcast_to(target)

    def repeat(self, repeats: int | Sequence[int], *args: int) -> Self:
        """Repeats the whole tensor along each axis. If there are more numbers than axes, the first ones are for new
        axes."""
        times = flat_sizes(repeats, args)
        if len(times) < self.ndim or has_negative(times):
            raise ShapeError(f"repeat {self.shape} by {times}: need one non-negative number per axis")
        old_shape = (1,) * (len(times) - self.ndim) + self.shape
        with_new_axes = self._reshape_checked(tuple(size for n in old_shape for size in (1, n)))
        spread = with_new_axes._broadcast_to(tuple(size for pair in zip(times, old_shape) for size in pair))
        return spread.reshape(tuple(time * n for time, n in zip(times, old_shape)))

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Repeats each element `repeats` times in a row along `dim` (None: of the flattened tensor)."""
        need_int(repeats, "repeat_interleave: repeats", 0)
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        axis = self._resolve_axis(dim)
        head, axis_size, tail = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
        spread = self.reshape((*head, axis_size, 1, *tail))._broadcast_to((*head, axis_size, repeats, *tail))
        return spread.reshape((*head, axis_size * repeats, *tail))

    # *** order ***

    def permute(self, order: int | Sequence[int], *args: int) -> Self:
        """Reorders the axes."""
        new_order = flat_sizes(order, args)
        axes = tuple([self._resolve_axis(axis) for axis in new_order])
        if sorted(axes) != list(range(self.ndim)):
            raise ShapeError(f"permute {self.shape} by {new_order}: need each of 0..{self.ndim - 1} once")
        return self._wrap_movement(Ops.PERMUTE, self.lazydata.permute(axes))

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Swaps two axes."""
        order = list(range(self.ndim))
        first, second = self._resolve_axis(dim0), self._resolve_axis(dim1)
        if not order:
            return self
        order[first], order[second] = order[second], order[first]
        return self._wrap_movement(Ops.PERMUTE, self.lazydata.permute(order))

    @property
    def T(self) -> Self:
        """The tensor with its first two axes swapped, as by `transpose()`. A vector stays unchanged."""
        return self.transpose() if self.ndim > 1 else self

    def flip(self, axis: int | Sequence[int], *args: int) -> Self:
        """Reverses the order along the given axes."""
        return self._wrap_movement(Ops.FLIP, self.lazydata.flip(self._resolve_axes(flat_sizes(axis, args))))

    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Self:
        """Rotates the elements along `dims` by `shifts`: elements that leave at one end enter at the other."""
        for shift in shifts if isinstance(shifts, (list, tuple)) else (shifts,):
            need_int(shift, "roll: a shift")
        if dims is None:
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        axes = tuple(dims) if isinstance(dims, (list, tuple)) else (dims,)
        if len(steps) != len(axes):
            raise ArgumentError(f"roll by {steps} along {axes}: need one shift per axis")
        result = self
        for step, axis in zip(steps, axes):
            axis_size: Any = self.shape[self._resolve_axis(axis)]
            if isinstance(axis_size, int):
                cut: Any = -step % max(axis_size, 1)
            else:  # reduced to less than the full size
                cut = simplified(axis_size - step) if step > 0 else -step
            if cut != 0:
                # stored between two axes: fused, each element would select among the parts of both axes
                head, tail = (result if result is self else result.contiguous()).split([cut, axis_size - cut], axis)
                result = tail.cat(head, dim=axis)
        return result

    # *** cutting and padding ***

    def shrink(self, arg: Amounts) -> Self:
        """Keeps the elements start ≤ i < stop of each axis. None keeps an axis whole.

        tinygrad programs also write None for axes that do not exist; these are ignored.
        """
        amounts = arg if isinstance(arg, (list, tuple)) else (arg,)
        for bounds_of_axis in amounts:
            if bounds_of_axis is not None and (
                not isinstance(bounds_of_axis, (list, tuple)) or len(bounds_of_axis) != 2
            ):
                raise TypeError(f"shrink {self.shape} to {shown(arg)}: need one (start, stop) or None per axis")
        bounds: Any = tuple(
            (0, size) if bounds_of_axis is None else tuple(bounds_of_axis)
            for bounds_of_axis, size in zip(arg, self.shape)
        )
        if len(arg) < self.ndim or any([bounds_of_axis is not None for bounds_of_axis in arg[self.ndim :]]):
            raise ShapeError(f"shrink {self.shape} to {tuple(arg)}: need one (start, stop) or None per axis")
        return self._wrap_movement(Ops.SHRINK, self.lazydata.shrink(bounds))

    def pad(self, padding: Sequence[Any], mode: str | ConstType = "constant", value: ConstType = 0.0) -> Self:
        """Adds elements before and after each axis: `padding[axis] = (before, after)` or None. Negative amounts remove
        elements.

        A flat sequence of ints counts from the last axis backwards: (left, right, top, bottom, …).

        Args:
            mode: "constant": new elements are `value` · "reflect": mirrored at the edge, without the edge itself ·
            "replicate": the edge · "circular": the elements of the other end. "reflect" and "replicate" use the whole
            tensor, "circular" uses what is left after negative amounts. A number is taken as the `value`.
        """
        if not isinstance(mode, str):
            return self.pad(padding, "constant", mode)
        if mode not in PAD_MODES:
            raise ValueError(f"pad mode {mode!r}; supported: {', '.join(PAD_MODES)}")
        amounts = self._pad_amounts(padding)
        removed = [(min_zero(before), min_zero(after)) for before, after in amounts]
        added = tuple((before - b, after - a) for (before, after), (b, a) in zip(amounts, removed))
        extended = self._extend_edges(added, mode) if mode in ("reflect", "replicate") else self
        bounds = tuple((-before, size + after) for size, (before, after) in zip(extended.shape, removed))
        if any([start > stop for start, stop in bounds if start != 0]):
            raise ShapeError(f"pad {self.shape} by {tuple(padding)}: it removes more elements than there are")
        inner = extended._wrap_movement(Ops.SHRINK, extended.lazydata.shrink(bounds))
        if mode == "circular":
            return inner._extend_edges(added, mode)
        if mode != "constant" or all([before == 0 and after == 0 for before, after in added]):
            return inner
        padded = inner._wrap_movement(Ops.PAD, inner.lazydata.pad(added))
        if value == 0:
            return padded
        is_inside = self._const(True, dtypes.bool, inner.shape)
        mask = is_inside._wrap_movement(Ops.PAD, is_inside.lazydata.pad(added))
        if not dtypes.is_float(self.dtype) and dtypes.min(self.dtype) <= value <= dtypes.max(self.dtype):
            if value == value // 1:
                return mask.where(padded, padded._const(int(value)))  # the dtype can represent the value, so it stays
        return mask.where(padded, value)

    def _slice(self, arg: Sequence[tuple[int, int] | None], value: ConstType = 0) -> Self:
        """Keeps the elements from start to stop of each axis, (start, stop) or None for all. Positions outside get
        `value`.

        tinygrad programs call it by this name.
        """
        bounds = [(0, size) if bound is None else bound for size, bound in zip(self.shape, arg)]
        if len(arg) != self.ndim:
            raise ShapeError(f"_slice of {self.shape} by {tuple(arg)}: need (start, stop) or None for each axis")
        return self.pad([(-start, stop - size) for size, (start, stop) in zip(self.shape, bounds)], value=value)

    def _extend_edges(self, amounts: Sequence[tuple[int, int]], mode: str) -> Self:
        """Extends the tensor at each end by its own elements, as `mode` says."""
        result = self
        for axis, (before, after) in enumerate(amounts):
            if before or after:
                inner = result if result is self else result.contiguous()
                result = inner._extend_axis(axis, before, after, mode)
        return result

    def _extend_axis(self, axis: int, before: int, after: int, mode: str) -> Self:
        """Extends one axis by the tensor's own elements, as `mode` says."""
        if not before and not after:
            return self
        size = self.shape[axis]
        most_added = {"reflect": size - 1, "circular": size, "replicate": before + after if size else 0}[mode]
        if max(before, after) > most_added:
            raise ShapeError(
                f"pad axis {axis} of {self.shape} by {(before, after)}, mode {mode!r}: "
                f"at most {max(most_added, 0)} on a side"
            )
        if mode == "replicate":
            edge_shapes = [self.shape[:axis] + (amount,) + self.shape[axis + 1 :] for amount in (before, after)]
            first_edge, last_edge = self._cut(axis, 0, min(1, size)), self._cut(axis, max(size - 1, 0), size)
            parts = [
                first_edge._broadcast_to(edge_shapes[0]) if before else first_edge._cut(axis, 0, 0),
                self,
                last_edge._broadcast_to(edge_shapes[1]) if after else last_edge._cut(axis, 0, 0),
            ]
        elif mode == "reflect":
            first_edge = self._cut(axis, 1, before + 1).flip(axis)
            last_edge = self._cut(axis, size - after - 1, size - 1).flip(axis)
            parts = [first_edge, self, last_edge]
        else:
            parts = [self._cut(axis, size - before, size), self, self._cut(axis, 0, after)]
        filled = [part for part in parts if part.shape[axis]]
        return filled[0].cat(*filled[1:], dim=axis)

    def _cut(self, axis: int, start: int, stop: int) -> Self:
        """Keeps the elements start ≤ i < stop of one axis."""
        return self.shrink([(start, stop) if i == axis else None for i in range(self.ndim)])

    def _pad_amounts(self, arg: Any) -> tuple[tuple[int, int], ...]:
        if not isinstance(arg, (list, tuple)):
            raise TypeError(f"pad {self.shape} by {shown(arg)}: need ints, or one (before, after) or None per axis")
        if arg and all(isinstance(amount, (int, UOp)) for amount in arg):
            if len(arg) % 2 or len(arg) > 2 * self.ndim:
                raise ShapeError(f"pad {self.shape} by {tuple(arg)}: need pairs of ints, at most {self.ndim} of them")
            pairs = [(arg[i], arg[i + 1]) for i in range(0, len(arg), 2)]
            return ((0, 0),) * (self.ndim - len(pairs)) + tuple(reversed(pairs))
        if any([pair is not None and (not isinstance(pair, (tuple, list)) or len(pair) != 2) for pair in arg]):
            raise TypeError(f"pad {self.shape} by {tuple(arg)}: need ints, or one (before, after) or None per axis")
        if len(arg) != self.ndim:
            raise ShapeError(f"pad {self.shape} by {tuple(arg)}: need one (before, after) or None per axis")
        return tuple((0, 0) if pair is None else normalize_sizes((pair[0], pair[1])) for pair in arg)

    def pad2d(self, padding: Sequence[int], value: ConstType = 0.0) -> Self:
        """Pads the last two axes by (left, right, top, bottom)."""
        return self.pad(tuple(padding), value)

    # *** windows and diagonals ***

    def _window(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Self:
        """Returns sliding windows along `axis`, which then counts the windows. A new last axis holds the elements of a
        window."""
        return self._wrap_movement(Ops.WINDOW, self.lazydata.window(axis, size, stride, dilation))

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Returns all windows of `size` elements along `dim`, `step` apart. A new last axis holds the elements of a
        window."""
        axis = self._resolve_axis(dim)
        axis_size = self.shape[axis]
        if size < 0 or step < 1 or size > axis_size:
            raise ShapeError(
                f"unfold axis {dim} of {self.shape} by windows of {size}, step {step}: need 0 ≤ size ≤ {axis_size}, "
                "and step ≥ 1"
            )
        if size == 0:  # an empty window at each start, also at the end of the axis
            count = axis_size // step + 1
            shape = (*self.shape[:axis], count, *self.shape[axis + 1 :], 0)
            return self._cut(axis, 0, 0).reshape(shape)
        return self._window(axis, size, step)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """Moves the diagonal of axes `dim1` and `dim2` to a new last axis. `offset` is added to the index in `dim2`."""
        first, second = self._resolve_axis(dim1), self._resolve_axis(dim2)
        if self.ndim < 2 or first == second:
            raise ShapeError(f"diagonal of axes {dim1}, {dim2} of {self.shape}: need two different axes")
        if first > second:
            first, second, offset = second, first, -offset
        start1, start2 = max(-offset, 0), max(offset, 0)
        length = min(self.shape[first] - start1, self.shape[second] - start2)
        if length < 0:
            length, start1, start2 = 0, 0, 0
        bounds = [(0, size) for size in self.shape]
        bounds[first] = (start1, start1 + length)
        bounds[second] = (start2, start2 + length)
        square = self._wrap_movement(Ops.SHRINK, self.lazydata.shrink(tuple(bounds)))
        line = square._wrap_movement(Ops.DIAGONAL, square.lazydata.diagonal(first, second))
        order = [axis for axis in range(line.ndim) if axis != first] + [first]
        return line.permute(order)

    def diag(self) -> Self:
        """Puts a vector on the diagonal of a matrix of zeros, or takes the diagonal of a matrix."""
        if self.ndim == 2:
            return self.diagonal()
        if self.ndim != 1:
            raise ShapeError(f"diag of a tensor of shape {self.shape}: need a vector or a matrix")
        size = self.shape[0]
        padded = self.reshape((size, 1)).pad((None, (0, size)))
        return padded.reshape((size * (size + 1),)).shrink(((0, size * size),)).reshape((size, size))

    def _mask_below_diagonal(self, offset: int) -> Self:
        """Returns True where column ≤ row + offset, over the last two axes."""
        need_int(offset, "triangle: the diagonal")
        if self.ndim < 2:
            raise ShapeError(f"triangle of a tensor of shape {self.shape}: need two axes at least")
        rows, columns = self.shape[-2:]
        longest = max(greatest(rows), greatest(columns)) + abs(offset)
        ints = dtypes.int32 if longest <= dtypes.max(dtypes.int32) else dtypes.int64
        row = self._wrap(LazyBuffer.iota(rows, ints, self.device)).reshape((rows, 1))
        column = self._wrap(LazyBuffer.iota(columns, ints, self.device)).reshape((1, columns))
        return column <= (row if offset == 0 else row + offset)

    def tril(self, diagonal: int = 0) -> Self:
        """Sets the elements of the last two axes above the diagonal to 0."""
        return self._mask_below_diagonal(diagonal).where(self, self._const(0))

    def triu(self, diagonal: int = 0) -> Self:
        """Sets the elements of the last two axes below the diagonal to 0."""
        need_int(diagonal, "triangle: the diagonal")
        return self._mask_below_diagonal(diagonal - 1).where(self._const(0), self)

    # *** several tensors ***

    def _check_operands(self, operands: Sequence[Any], operation: str) -> list[Self]:
        for operand in operands:
            if not isinstance(operand, TensorBase):
                raise TypeError(
                    f"{operation} of a Tensor and {type(operand).__name__} {operand!r}: need Tensors, one by one"
                )
        return [self, *operands]

    def cat(*tensors: Self, dim: int = 0) -> Self:
        """Concatenates the tensors along `dim`. `Tensor.cat` also accepts them in a list."""
        self, *args = _require_tensors(tensors, "cat")
        if isinstance(self, (list, tuple)):
            return _require_first(self, "cat").cat(*self[1:], *args, dim=dim)
        parts = self._check_operands(args, "cat")
        axis = self._resolve_axis(dim)
        _check_cat([part.shape for part in parts], axis, dim)
        if len(parts) == 1:
            return parts[0]
        if all([part is self for part in parts]):
            return self.repeat(*[len(parts) if number == axis else 1 for number in range(self.ndim)])
        dtype = least_upper_dtype(*(part.dtype for part in parts))
        operands = [part.cast(dtype) for part in parts]
        nonempty_parts = [part for part in operands if part.shape[axis] != 0] or operands[:1]
        if len(nonempty_parts) == 1 and not any([part.requires_grad for part in operands]):
            return nonempty_parts[0]
        bit_parts = [as_bits(part.lazydata) for part in nonempty_parts]
        while len(bit_parts) > MAX_JOINED_PARTS:
            groups = [
                bit_parts[start : start + MAX_JOINED_PARTS] for start in range(0, len(bit_parts), MAX_JOINED_PARTS)
            ]
            bit_parts = [_concatenate(group, axis).contiguous() for group in groups]
        result = _concatenate(bit_parts, axis)
        result = result if result.dtype is dtype else result.bitcast(dtype)
        result.note = CustomGradient(cat_gradient, [part.lazydata for part in nonempty_parts], axis).attached_to(result)
        return self._put_on_tape(result, cat_gradient, tuple(operands), axis)

    def stack(*tensors: Self, dim: int = 0) -> Self:
        """Stacks tensors of equal shape along a new axis. `Tensor.stack` also accepts them in a list."""
        self, *args = _require_tensors(tensors, "stack")
        if isinstance(self, (list, tuple)):
            return _require_first(self, "stack").stack(*self[1:], *args, dim=dim)
        parts = self._check_operands(args, "stack")
        if any(part.shape != self.shape for part in parts):
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ShapeError(f"stack of shapes {shapes}: they must be equal")
        axis = self._resolve_axis(dim, extra=1)
        if all([part is self for part in parts]):
            return self.unsqueeze(axis)._broadcast_to((*self.shape[:axis], len(parts), *self.shape[axis:]))
        first, *rest = (part.unsqueeze(axis) for part in parts)
        return first.cat(*rest, dim=axis)

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Splits the tensor along `dim` into parts: of the size `sizes` each (the last may be smaller), or of the given
        sizes."""
        axis = self._resolve_axis(dim)
        if not self.ndim:
            raise ShapeError("split of a tensor without axes: need at least one axis")
        for size in (sizes,) if isinstance(sizes, int) or not isinstance(sizes, (list, tuple)) else sizes:
            need_int(size, "split: a size")
        axis_size = self.shape[axis]
        if isinstance(sizes, int):
            if not isinstance(axis_size, int):
                raise SymbolicError(
                    f"split axis {dim} of {self.shape} into parts of {sizes}: how many depends on {axis_size!r}"
                )
            if sizes < 1:
                raise ValueError(f"split into parts of {sizes}: need at least 1")
            sizes = [min(sizes, axis_size - start) for start in range(0, max(axis_size, 1), sizes)]
        if simplified(sum(sizes)) != axis_size:
            raise ShapeError(f"split axis {dim} of {self.shape} into {list(sizes)}: they add up to {sum(sizes)}")
        parts, start = [], 0
        for size in sizes:
            bounds: list[Any] = [None] * self.ndim
            bounds[axis] = (start, start + size)
            parts.append(self.shrink(bounds))
            start = start + size
        return tuple(parts)

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """Splits the tensor along `dim` into at most `chunks` parts of equal size. The last may be smaller.

        An empty tensor gives exactly `chunks` parts.
        """
        need_int(chunks, "chunk: the number of parts")
        if chunks < 1:
            raise ValueError(f"chunk into {chunks} parts: need at least 1")
        axis = self._resolve_axis(dim)
        if not self.ndim:
            raise ShapeError("chunk of a tensor without axes: need at least one axis")
        axis_size = self.shape[axis]
        if not isinstance(axis_size, int):
            raise SymbolicError(f"chunk axis {dim} of {self.shape} into {chunks}: their sizes depend on {axis_size!r}")
        return list(self.split(-(-axis_size // chunks) if axis_size != 0 else [0] * chunks, dim))


def _check_cat(shapes: Sequence[Sequence[Any]], axis: int, dim: int) -> None:
    """Raises ShapeError if `shapes` differ along another axis than `axis`. Raises IndexError for tensors without
    axes."""
    first_shape = shapes[0]
    if not first_shape:
        raise IndexError("cat of tensors without axes: join them with stack()")
    for shape in shapes:
        if len(shape) != len(first_shape) or not all(
            i == axis or a == b for i, (a, b) in enumerate(zip(shape, first_shape))
        ):
            texts = ", ".join(map(str, shapes))
            raise ShapeError(f"cat along axis {dim} of shapes {texts}: all other axes must agree")
