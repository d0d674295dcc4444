"""LazyBuffer: one tensor-level operation on other LazyBuffers, with its shape, dtype and device.

Movement ops are nodes of their own; `st` is the ShapeTracker that composes those since the last computed node
(`base`), worked out when somebody asks. A LazyBuffer never changes, but for one thing: when it is realised it gets its
`Buffer` and forgets its sources, so that what made it can be freed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from types import FrameType
from typing import Any, TypeVar

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.shape import ShapeTracker
from tinyexplore.trace import Recorded, UserFrame, active_recorder
from tinyexplore.uop import Group, Ops
from tinyexplore.util import config

Shape = tuple[int, ...]

FEW_RESULTS = 16  # a reduction to fewer results than this leaves cores idle
MUCH_TO_REDUCE = 1 << 18  # elements from which on a second kernel costs less than idle cores
MOST_PARTS = 256


class ShapeError(ValueError):
    """Shapes that do not fit the operation; says what was tried, what was found, what would do."""


class LazyBuffer:
    """`op` on `src`. Compare with `is`; `arg` depends on the op (see `docs/architecture.md`)."""

    __slots__ = ("op", "dtype", "shape", "src", "arg", "device", "buffer", "__weakref__")
    op: Ops
    dtype: DType
    shape: Shape
    src: tuple[LazyBuffer, ...]
    arg: Any
    device: str
    buffer: Buffer | None

    def __init__(
        self,
        op: Ops,
        dtype: DType,
        shape: Shape,
        src: tuple[LazyBuffer, ...],
        arg: Any,
        device: str,
        buffer: Buffer | None = None,
    ) -> None:
        self.op = op
        self.dtype = dtype
        self.shape = shape
        self.src = src
        self.arg = arg
        self.device = device
        self.buffer = buffer
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(Recorded(self, src, _user_frame()))

    def __repr__(self) -> str:
        state = " realized" if self.is_realized else ""
        return f"LazyBuffer({self.op.name}, {self.shape}, {self.dtype.name}, {self.device}{state})"

    # *** making ***

    @staticmethod
    def const(value: ConstType, dtype: DType, device: str, shape: Shape = ()) -> LazyBuffer:
        """`value` everywhere in `shape`; takes no memory until something asks for it."""
        return LazyBuffer(Ops.CONST, dtype, shape, (), dtypes.as_const(value, dtype), device)

    @staticmethod
    def iota(length: int, dtype: DType, device: str) -> LazyBuffer:
        """0, 1, 2, ..., length - 1; takes no memory when it is fused."""
        return LazyBuffer(Ops.IOTA, dtype, (length,), (), None, device)

    @staticmethod
    def from_buffer(buffer: Buffer, shape: Shape) -> LazyBuffer:
        """What lies in `buffer`, row-major."""
        if prod(shape) != buffer.size:
            raise ShapeError(f"a buffer of {buffer.size} elements cannot have shape {shape}")
        return kind_on(buffer.device)(Ops.BUFFER, buffer.dtype, shape, (), None, buffer.device, buffer=buffer)

    # *** asking ***

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def base(self) -> LazyBuffer:
        """The computed node under the movement ops."""
        node = self
        while node.op in Group.MOVEMENT and node.buffer is None:
            node = node.src[0]
        return node

    @property
    def is_realized(self) -> bool:
        """True where the values lie in memory."""
        return self.buffer is not None

    @property
    def st(self) -> ShapeTracker:
        """Where in `base` the elements lie."""
        moves: list[LazyBuffer] = []
        node = self
        while node.op in Group.MOVEMENT and node.buffer is None:
            moves.append(node)
            node = node.src[0]
        tracker = ShapeTracker.from_shape(node.shape)
        for move in reversed(moves):
            tracker = moved_like(tracker, move)
        return tracker

    # *** computing ***

    def alu(self, op: Ops, *others: LazyBuffer) -> LazyBuffer:
        """`op` element by element; all of one shape, device and (but for WHERE's condition) dtype."""
        src = (self, *others)
        for other in others:
            if other.shape != self.shape:
                raise ShapeError(f"{op.name} of shapes {', '.join(str(lb.shape) for lb in src)}: they must be equal")
            if other.device != self.device:
                raise ValueError(f"{op.name} of tensors on {self.device} and {other.device}: move one with .to()")
        values = src[1:] if op is Ops.WHERE else src
        if any(lb.dtype is not values[0].dtype for lb in values):
            raise TypeError(f"{op.name} of dtypes {', '.join(lb.dtype.name for lb in src)}: cast to one dtype first")
        dtype = dtypes.bool if op in Group.COMPARE else values[0].dtype
        return LazyBuffer(op, dtype, self.shape, src, None, self.device)

    def cast(self, dtype: DType) -> LazyBuffer:
        """The values converted to `dtype` (floats to ints truncate)."""
        if dtype is self.dtype:
            return self
        return LazyBuffer(Ops.CAST, dtype, self.shape, (self,), None, self.device)

    def bitcast(self, dtype: DType) -> LazyBuffer:
        """The same bits read as another dtype of the same size."""
        if dtype is self.dtype:
            return self
        if dtype.itemsize != self.dtype.itemsize:
            raise TypeError(f"bitcast {self.dtype.name} to {dtype.name}: the sizes differ, cast instead")
        return LazyBuffer(Ops.BITCAST, dtype, self.shape, (self,), None, self.device)

    def reduce(self, op: Ops, axes: Sequence[int]) -> LazyBuffer:
        """`op` (ADD, MUL, MAX or MIN) over `axes`, which stay with size 1."""
        wanted = tuple(sorted(set(axes)))
        if bad := [axis for axis in wanted if not 0 <= axis < len(self.shape)]:
            raise ShapeError(f"reduce over axes {bad} of shape {self.shape}")
        shape = tuple(1 if axis in wanted else size for axis, size in enumerate(self.shape))
        if prod(shape) < FEW_RESULTS and self.size >= MUCH_TO_REDUCE and config().SPLIT_REDUCEOP:
            return self._reduce_in_two_steps(op, wanted, shape)
        return self._reduce_at_once(op, wanted, shape)

    def _reduce_in_two_steps(self, op: Ops, axes: tuple[int, ...], shape: Shape) -> LazyBuffer:
        """Many partial results first, which the cores can share, then few: it is also the more accurate sum."""
        outer = max(axes, key=lambda axis: self.shape[axis])
        size = self.shape[outer]
        parts = max(n for n in range(1, MOST_PARTS + 1) if size % n == 0)
        if parts < FEW_RESULTS:
            return self._reduce_at_once(op, axes, shape)
        split = self.reshape((*self.shape[:outer], parts, size // parts, *self.shape[outer + 1 :]))
        inner = tuple(axis if axis < outer else axis + 1 for axis in axes)
        partial = split._reduce_at_once(
            op, inner, tuple(1 if axis in inner else n for axis, n in enumerate(split.shape))
        ).contiguous()
        flat = partial.reshape(partial.shape[: outer + 1] + partial.shape[outer + 2 :])
        return flat._reduce_at_once(op, (outer,), shape)

    def _reduce_at_once(self, op: Ops, wanted: tuple[int, ...], shape: Shape) -> LazyBuffer:
        return LazyBuffer(Ops.REDUCE_AXIS, self.dtype, shape, (self,), (op, wanted), self.device)

    def scan(self, op: Ops, axis: int) -> LazyBuffer:
        """The running result of `op` (ADD, MUL, MAX or MIN) along `axis`: of each element and all before it."""
        if not 0 <= axis < len(self.shape):
            raise ShapeError(f"scan along axis {axis} of shape {self.shape}")
        return LazyBuffer(Ops.SCAN_AXIS, self.dtype, self.shape, (self,), (op, axis), self.device)

    def gather(self, index: LazyBuffer) -> LazyBuffer:
        """Element (...) is element (..., index[...]) of this: the last axis is picked from; out of range gives 0."""
        if not self.shape or index.shape != self.shape[:-1]:
            raise ShapeError(f"gather from {self.shape} by an index of {index.shape}: need {self.shape[:-1]}")
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"gather by {index.dtype.name}: need ints")
        if index.device != self.device:
            raise ValueError(f"gather on {self.device} by an index on {index.device}: move one with .to()")
        return LazyBuffer(Ops.GATHER, self.dtype, index.shape, (self, index), None, self.device)

    def contiguous(self) -> LazyBuffer:
        """The same values, realised in row-major order."""
        if self.is_realized or self.op is Ops.CONTIGUOUS:
            return self
        return LazyBuffer(Ops.CONTIGUOUS, self.dtype, self.shape, (self,), None, self.device)

    def copy_to_device(self, device: str) -> LazyBuffer:
        """The same values in another device's memory."""
        if device == self.device:
            return self
        return kind_on(device)(Ops.COPY, self.dtype, self.shape, (self,), self.device, device)

    # *** moving ***

    def _view(self, op: Ops, shape: Shape, arg: Any) -> LazyBuffer:
        return type(self)(op, self.dtype, shape, (self,), arg, self.device)

    def reshape(self, shape: Shape) -> LazyBuffer:
        if shape == self.shape:
            return self
        if prod(shape) != self.size:
            raise ShapeError(f"reshape {self.shape} to {shape}: {self.size} elements are not {prod(shape)}")
        return self._view(Ops.RESHAPE, shape, shape)

    def expand(self, shape: Shape) -> LazyBuffer:
        """Axes of size 1 repeated to the size in `shape` (same rank)."""
        if shape == self.shape:
            return self
        if len(shape) != len(self.shape) or any(a not in (1, b) for a, b in zip(self.shape, shape)):
            raise ShapeError(f"expand {self.shape} to {shape}: only axes of size 1 expand, and the rank stays")
        return self._view(Ops.EXPAND, shape, shape)

    def permute(self, order: Sequence[int]) -> LazyBuffer:
        order = tuple(order)
        if sorted(order) != list(range(len(self.shape))):
            raise ShapeError(f"permute {self.shape} by {order}: need each of 0..{len(self.shape) - 1} once")
        if order == tuple(range(len(order))):
            return self
        shape = tuple(self.shape[axis] for axis in order)
        return self._view(Ops.PERMUTE, shape, order)

    def pad(self, amounts: Sequence[tuple[int, int]]) -> LazyBuffer:
        """Zeros (False) before and after each axis: `amounts[axis] = (before, after)`, none negative."""
        amounts = tuple((before, after) for before, after in amounts)
        if len(amounts) != len(self.shape) or any(before < 0 or after < 0 for before, after in amounts):
            raise ShapeError(f"pad {self.shape} by {amounts}: need one pair of non-negative amounts per axis")
        if not any(before or after for before, after in amounts):
            return self
        shape = tuple(size + before + after for size, (before, after) in zip(self.shape, amounts))
        return self._view(Ops.PAD, shape, amounts)

    def shrink(self, bounds: Sequence[tuple[int, int]]) -> LazyBuffer:
        """The part `start ≤ i < stop` of each axis: `bounds[axis] = (start, stop)`."""
        bounds = tuple((start, stop) for start, stop in bounds)
        fits = len(bounds) == len(self.shape) and all(
            0 <= start <= stop <= size for (start, stop), size in zip(bounds, self.shape)
        )
        if not fits:
            raise ShapeError(f"shrink {self.shape} to {bounds}: need 0 ≤ start ≤ stop ≤ size for every axis")
        shape = tuple(stop - start for start, stop in bounds)
        if shape == self.shape:
            return self
        return self._view(Ops.SHRINK, shape, bounds)

    def flip(self, axes: Sequence[int]) -> LazyBuffer:
        """The order of `axes` reversed."""
        axes = tuple(sorted(set(axes)))
        if bad := [axis for axis in axes if not 0 <= axis < len(self.shape)]:
            raise ShapeError(f"flip axes {bad} of shape {self.shape}")
        if not axes:
            return self
        return self._view(Ops.FLIP, self.shape, axes)

    def window(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> LazyBuffer:
        """Sliding windows along `axis`: that axis counts the windows, a new last axis the `size` places in one.

        Element (..., o, ..., k) is element o * stride + k * dilation of `axis`.
        """
        reach = dilation * (size - 1) + 1
        if not 0 <= axis < len(self.shape) or min(size, stride, dilation) < 1 or reach > self.shape[axis]:
            raise ShapeError(
                f"window of size {size}, stride {stride}, dilation {dilation} along axis {axis} of {self.shape}: "
                f"needs an axis of at least {reach}"
            )
        count = (self.shape[axis] - reach) // stride + 1
        shape = (*self.shape[:axis], count, *self.shape[axis + 1 :], size)
        arg = (axis, size, stride, dilation)
        return self._view(Ops.WINDOW, shape, arg)

    def diagonal(self, first: int, second: int) -> LazyBuffer:
        """Element (..., k, ...) is (..., k, ..., k, ...): axis `second` is dropped, `first` walks both."""
        rank = len(self.shape)
        if not (0 <= first < second < rank) or self.shape[first] != self.shape[second]:
            raise ShapeError(
                f"diagonal of axes {first}, {second} of {self.shape}: need two axes of equal size, in order"
            )
        shape = self.shape[:second] + self.shape[second + 1 :]
        return self._view(Ops.DIAGONAL, shape, (first, second))


Movable = TypeVar("Movable", LazyBuffer, ShapeTracker)


def moved_like(source: Movable, step: LazyBuffer) -> Movable:
    """`source` after the movement that `step` is."""
    arg: Any = step.arg
    match step.op:
        case Ops.RESHAPE:
            return source.reshape(step.shape)
        case Ops.EXPAND:
            return source.expand(step.shape)
        case Ops.PERMUTE:
            return source.permute(arg)
        case Ops.PAD:
            return source.pad(arg)
        case Ops.SHRINK:
            return source.shrink(arg)
        case Ops.FLIP:
            return source.flip(arg)
        case Ops.WINDOW:
            return source.window(*arg)
        case Ops.DIAGONAL:
            return source.diagonal(*arg)
    raise ValueError(f"{step.op.name} is not a movement")


def kind_on(device: str) -> type[LazyBuffer]:
    """The class of nodes on `device`: what a file or a NumPy array holds is only viewed and copied."""
    if not Device.is_storage(device):
        return LazyBuffer
    from tinyexplore.lazy.stored import StoredBuffer

    return StoredBuffer


_PACKAGE = __name__.split(".")[0]


def _user_frame() -> UserFrame | None:
    """The first frame outside the package: the line of the user's that asked for this."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        frame = frame.f_back
    if frame is None:
        return None
    return UserFrame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
