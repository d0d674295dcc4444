"""LazyBuffer: one tensor-level operation on other LazyBuffers, with its shape, dtype and device.

Movement ops are separate nodes. `st` is the ShapeTracker that composes the movements since the last computed node
(`base`); it is computed on request. Sizes and bounds may be symbolic (`tinyexplore.uop.symbolic`). They are kept in
normal form, so that equal sizes are the same object. A LazyBuffer changes only once: when it is realized, it gets its
`Buffer` and drops its sources, so that their memory can be freed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from itertools import count
from math import prod
from types import FrameType
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.lazy.folding import EQUAL_OPERAND_OPS, Simplification, known_reduction, known_result
from tinyexplore.shape import ShapeTracker
from tinyexplore.trace import LazyBufferBuilt, UserFrame, recorder_variable
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.symbolic import (
    as_size,
    concrete,
    greatest,
    holds,
    is_symbolic,
    is_undecided,
    limits,
    product,
    simplified,
    text,
    value_of,
)
from tinyexplore.uop.uop import UOp, argument_text
from tinyexplore.util.tree import tree_text

Shape = tuple[Any, ...]  # ints, and UOps for symbolic sizes

MAX_WRITES = 8  # each write is a kernel of its own; if its position is a constant, it must be compiled

_recorder = recorder_variable().get  # called for every node, so not through a Python function
_MOVEMENT, _CONST, _NEG = OpGroups.MOVEMENT, Ops.CONST, Ops.NEG
_TELLING = OpGroups.MOVEMENT | {Ops.CONST}
_COMPARE, _WHERE, _BOOL = OpGroups.COMPARE, Ops.WHERE, dtypes.bool


numbers = count(1)  # no two threads get the same number


class Origin(Enum):
    """A note on where the value of a node comes from, which its sources do not show. Only gradients of the graph read
    it."""

    DATA = "given from outside, or drawn at random: computed from nothing that may need a gradient"
    DETACHED = "no gradient goes through it"
    UNKNOWN = "in memory that may have got other values since, or copied with its values"


_DATA, _DETACHED = Origin.DATA, Origin.DETACHED  # faster than a lookup in the class


class DataCopy:
    """A note: this node is a copy of data (`Origin.DATA`).

    numbers: the numbers of the nodes that are the data, or views of it.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: frozenset[int]) -> None:
        self.numbers = numbers

    @staticmethod
    def of(values: Sequence[LazyBuffer]) -> DataCopy | None:
        """Returns the note on copies of `values`; None if they are not data."""
        numbers: set[int] = set()
        for value in values:
            numbers.add(value.number)
            while value.op in OpGroups.MOVEMENT and value.buffer is None and value.noted is not Origin.DETACHED:
                value = value.src[0]
                numbers.add(value.number)
            note = value.noted
            if type(note) is DataCopy:
                numbers |= note.numbers
            elif note is not Origin.DATA:
                return None
        return DataCopy(frozenset(numbers))


class ExternalOperation(NamedTuple):
    """The `arg` of a node whose memory an operation outside this package filled.

    name: the name of the operation.
    seconds: how long it took.
    shape: the shape of the value, if the memory is flat.
    is_first: whether this is the first result of the operation; its time counts once.
    """

    name: str
    seconds: float
    shape: tuple[int, ...]
    is_first: bool = True


class SourceNumberBound:
    """A note: all sources of this value have at least this node number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def first_number(node: LazyBuffer) -> int:
    """Returns the smallest number of `node`, which is in memory, and its sources; 0 if unknown."""
    try:
        note = node.note
    except AttributeError:
        return 0
    if type(note) is SourceNumberBound:
        return note.number
    if note is _DATA or note is _DETACHED:
        return node.number
    return min(node.number, *note.numbers) if type(note) is DataCopy else 0


def smallest_number_behind(nodes: Sequence[LazyBuffer]) -> int:
    """Returns the smallest number in the graph that computes `nodes`; 0 if unknown."""
    stack, visited = list(nodes), set(nodes)
    smallest = stack[0].number
    while stack:
        node = stack.pop()
        smallest = min(smallest, node.number if node.buffer is None else first_number(node))
        new = [source for source in node.src if source not in visited]
        visited.update(new)
        stack += new
    return smallest


def note_source_bound(node: LazyBuffer, since: SourceNumberBound) -> None:
    """Notes on `node` the smallest number of its sources, unless it has a more exact note."""
    note_type = type(getattr(node, "note", None))
    if note_type is not Origin and note_type is not DataCopy and note_type is not GatheredParts:
        node.note = since


class GatheredParts:
    """A note: this value was gathered from the parts of `source` on several devices."""

    __slots__ = ("source",)

    def __init__(self, source: LazyBuffer) -> None:
        self.source = source


class ShapeError(ValueError, RuntimeError):
    """Raised for shapes that do not fit the operation. The message states the operation, the shapes, and the expected
    shapes.

    It is a ValueError, as in NumPy, and a RuntimeError, as in PyTorch.
    """


def _axes_text(shape: Shape) -> str:
    """Returns the axes of `shape`, for an error message."""
    return f"the axes of this shape are 0 to {len(shape) - 1}" if shape else "this shape has no axes"


def _format_head(node: LazyBuffer) -> str:
    constructor = f"{type(node).__name__}({node.op!r}, {node.dtype!r}, {argument_text(node.shape)}"
    return constructor if node.src else f"{constructor}, src=()"


def _format_tail(node: LazyBuffer) -> str:
    buffer = node.buffer
    memory = "" if buffer is None else f", buffer=Buffer({buffer.device!r}, {buffer.size}, {buffer.dtype!r})"
    return f", arg={argument_text(node.arg)}, device={node.device!r}{memory})"


class LazyBuffer:
    """An operation `op` on the LazyBuffers `src`. Compare nodes with `is`. `arg` depends on `op` (see
    `docs/reference.md`).

    number: nodes are numbered in the order of their creation, so a node depends only on smaller numbers.
    note: information for gradients, an `Origin` or a rule. Few nodes have one.
    calls: the public functions that made the node, if a recorder was attached (`LazyBufferBuilt.calls`).
    """

    __slots__ = ("op", "dtype", "shape", "src", "arg", "device", "buffer", "number", "note", "calls", "__weakref__")
    op: Ops
    dtype: DType
    shape: Shape
    src: tuple[LazyBuffer, ...]
    arg: Any
    device: str
    buffer: Buffer | None
    number: int
    note: Any
    calls: tuple[str, ...]

    # the classes of values on several devices, and of values in storage; each module sets its class here
    sharded: ClassVar[type[Any]]
    stored: ClassVar[type[Any]]

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
        self.number = next(numbers)
        recorder = _recorder()
        if recorder is not None:
            frame, self.calls = _find_user_call()
            recorder.record(LazyBufferBuilt(self, src, frame, self.calls))

    def over(self, src: tuple[LazyBuffer, ...]) -> LazyBuffer:
        """Returns a copy of the node with other sources and the same number, note and calls. It is not recorded."""
        copy = object.__new__(type(self))
        for name in LazyBuffer.__slots__:
            if name != "__weakref__" and hasattr(self, name):
                setattr(copy, name, getattr(self, name))
        copy.src = src
        return copy

    def __repr__(self) -> str:
        state = " realized" if self.is_realized else ""
        return f"LazyBuffer({self.op.name}, {self.shape}, {self.dtype.name}, {self.device}{state})"

    def __str__(self) -> str:
        """Writes the whole graph as an expression that builds an equal graph, with new memory for realized nodes.

        The expression needs `from tinyexplore.lazy import LazyBuffer`, `from tinyexplore.device import Buffer`, and the
        names of `UOp.tree`.
        """
        return tree_text(self, lambda node: node.src, _format_head, _format_tail)

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Restores a copied or unpickled node, which is a separate node. Its sources are unknown unless it is data."""
        for name, value in state[1].items():
            setattr(self, name, value)
        self.number = next(numbers)
        if self.buffer is not None and self.noted is not Origin.DATA:
            self.note = Origin.UNKNOWN

    # *** creation ***

    @staticmethod
    def const(value: ConstType | UOp, dtype: DType, device: str, shape: Shape = ()) -> LazyBuffer:
        """Returns `value` in every element of `shape`. A size may be symbolic. The node gets memory only if a kernel
        needs it there."""
        if "|" in device:
            return cast(LazyBuffer, LazyBuffer.sharded.const(value, dtype, device, shape))
        if isinstance(value, UOp):
            value = simplified(value)
            check_dtype_holds(value, dtype)
        if not isinstance(value, UOp):
            value = dtypes.as_const(value, dtype)
        return LazyBuffer(Ops.CONST, dtype, check_sizes(shape), (), value, device)

    @staticmethod
    def iota(length: int, dtype: DType, device: str) -> LazyBuffer:
        """Returns 0, 1, 2, ..., length - 1. If it is fused, it takes no memory."""
        device = Device.canonicalize(device)  # for a sharded tensor, a tuple of devices
        if Device.is_group(device):
            return cast(LazyBuffer, LazyBuffer.sharded.iota(length, dtype, device))
        return LazyBuffer(Ops.IOTA, dtype, check_sizes((length,)), (), None, device)

    @staticmethod
    def from_buffer(buffer: Buffer, shape: Shape) -> LazyBuffer:
        """Returns the value in `buffer`, row-major. A symbolic shape starts at the beginning of the buffer."""
        shape = normalize_sizes(shape)
        fits = value_of(product(shape)) <= buffer.size if is_symbolic(shape) else prod(shape) == buffer.size
        if not fits:
            raise ShapeError(f"a buffer of {buffer.size} elements cannot have shape {shape}")
        return buffer_class_for(buffer.device)(Ops.BUFFER, buffer.dtype, shape, (), None, buffer.device, buffer=buffer)

    # *** properties ***

    @property
    def size(self) -> int:
        """The number of elements; the greatest possible number if the shape is symbolic."""
        count: Any = prod(self.shape)
        return count if type(count) is int else greatest(simplified(count))

    @property
    def base(self) -> LazyBuffer:
        """The computed node below the movement ops."""
        node = self
        while node.op in OpGroups.MOVEMENT and node.buffer is None:
            node = node.src[0]
        return node

    @property
    def noted(self) -> Any:
        """The note, or None."""
        return getattr(self, "note", None)

    @property
    def is_realized(self) -> bool:
        """Whether the values are in memory."""
        return self.buffer is not None

    @property
    def st(self) -> ShapeTracker:
        """The ShapeTracker from this node to `base`. Symbolic sizes have their current values."""
        moves: list[LazyBuffer] = []
        node = self
        while node.op in OpGroups.MOVEMENT and node.buffer is None:
            moves.append(node)
            node = node.src[0]
        tracker = ShapeTracker.from_shape(concrete(node.shape))
        for move in reversed(moves):
            tracker = move_like(tracker, move)
        return tracker

    # *** computation ***

    def alu(self, op: Ops, *others: LazyBuffer) -> LazyBuffer:
        """Applies `op` element by element. All operands have one shape, device and dtype (except WHERE's condition)."""
        src = (self, *others)
        shape, device = self.shape, self.device
        dtype = others[0].dtype if op is _WHERE else self.dtype
        for other in others:
            if other.shape != shape:
                raise ShapeError(f"{op.name} of shapes {', '.join(str(lb.shape) for lb in src)}: they must be equal")
            if other.device != device:
                raise ValueError(f"{op.name} of tensors on {device} and {other.device}: move one with .to()")
            if other.dtype is not dtype:
                names = ", ".join(lb.dtype.name for lb in src)
                raise TypeError(f"{op.name} of dtypes {names}: cast to one dtype first")
        if op in _COMPARE:
            dtype = _BOOL
        for source in src:
            base = source
            while base.op in _MOVEMENT and base.buffer is None:
                base = base.src[0]
            if base.op is _CONST or (base.op is _NEG and op is _NEG):
                constant = known_result(op, dtype, src)
                if constant is not None:
                    return constant
                break
        else:
            if op in EQUAL_OPERAND_OPS and src[-2] is src[-1]:
                constant = known_result(op, dtype, src)
                if constant is not None:
                    return constant
        return LazyBuffer(op, dtype, shape, src, None, device)

    def cast(self, dtype: DType) -> LazyBuffer:
        """Converts the elements to `dtype`. Floats are truncated to ints."""
        if dtype is self.dtype:
            return self
        if self.op in _TELLING and (constant := known_result(Ops.CAST, dtype, (self,))) is not None:
            return constant
        return LazyBuffer(Ops.CAST, dtype, self.shape, (self,), None, self.device)

    def bitcast(self, dtype: DType) -> LazyBuffer:
        """Reinterprets the bits as another dtype of the same size."""
        if dtype is self.dtype:
            return self
        if dtype.itemsize != self.dtype.itemsize:
            raise TypeError(f"bitcast {self.dtype.name} to {dtype.name}: the sizes differ, cast instead")
        if self.op in _TELLING and (constant := known_result(Ops.BITCAST, dtype, (self,))) is not None:
            return constant
        return LazyBuffer(Ops.BITCAST, dtype, self.shape, (self,), None, self.device)

    def reduce(self, op: Ops, axes: Sequence[int]) -> LazyBuffer:
        """Reduces by `op` (ADD, MUL, MAX or MIN) over `axes`, which remain with size 1."""
        reduced_axes = tuple(sorted(set(axes)))
        if bad := [axis for axis in reduced_axes if not 0 <= axis < len(self.shape)]:
            raise ShapeError(f"reduce over axes {bad} of shape {self.shape}: {_axes_text(self.shape)}")
        shape = tuple([1 if axis in reduced_axes else size for axis, size in enumerate(self.shape)])
        constant = known_reduction(self, op, reduced_axes, shape)
        if constant is not None:
            return constant
        return LazyBuffer(Ops.REDUCE_AXIS, self.dtype, shape, (self,), (op, reduced_axes), self.device)

    def scan(self, op: Ops, axis: int) -> LazyBuffer:
        """Returns the running result of `op` (ADD, MUL, MAX or MIN) along `axis`, each element included."""
        if not 0 <= axis < len(self.shape):
            raise ShapeError(f"scan along axis {axis} of shape {self.shape}: {_axes_text(self.shape)}")
        return LazyBuffer(Ops.SCAN_AXIS, self.dtype, self.shape, (self,), (op, axis), self.device)

    def recurrence(self, factor: LazyBuffer, axis: int) -> LazyBuffer:
        """Computes y(i) = y(i - 1) · factor(i) + x(i) along `axis`, where x is this value and y starts at 0."""
        if not 0 <= axis < len(self.shape) or factor.shape != self.shape:
            raise ShapeError(
                f"recurrence along axis {axis} of shape {self.shape} with factors of {factor.shape}: need {self.shape}"
            )
        if factor.dtype is not self.dtype or not dtypes.is_float(self.dtype):
            raise TypeError(
                f"recurrence of {self.dtype.name} with factors of {factor.dtype.name}: need one float dtype"
            )
        if self.shape[axis] == 1:
            return self
        return LazyBuffer(Ops.SCAN_AXIS, self.dtype, self.shape, (self, factor), (Ops.MULACC, axis), self.device)

    def gather(self, index: LazyBuffer) -> LazyBuffer:
        """Returns self[..., index[...]]: `index` selects along the last axis. An index out of range gives 0."""
        if not self.shape or index.shape != self.shape[:-1]:
            raise ShapeError(f"gather from {self.shape} by an index of {index.shape}: need {self.shape[:-1]}")
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"gather by {index.dtype.name}: need ints")
        if index.device != self.device:
            raise ValueError(f"gather on {self.device} by an index on {index.device}: move one with .to()")
        return LazyBuffer(Ops.GATHER, self.dtype, index.shape, (self, index), None, self.device)

    def scatter(self, op: Ops | None, axis: int, index: LazyBuffer, values: LazyBuffer) -> LazyBuffer:
        """Combines each of `values` by `op` (ADD, MUL, MAX or MIN) into the position of `axis` that `index` gives.

        The values are combined in the order of `axis`, so the bits are always the same. Without `op`, the last value
        stays. Indices out of range are ignored.
        """
        shape, other_sizes = values.shape, (*self.shape[:axis], *self.shape[axis + 1 :])
        if index.shape != shape or (*shape[:axis], *shape[axis + 1 :]) != other_sizes or not 0 <= axis < len(shape):
            raise ShapeError(f"scatter {shape} into {self.shape} along axis {axis} by an index of {index.shape}")
        if not dtypes.is_int(index.dtype) or values.dtype is not self.dtype:
            raise TypeError(
                f"scatter {values.dtype.name} into {self.dtype.name} by {index.dtype.name}: need one dtype, ints"
            )
        if {index.device, values.device} != {self.device}:
            raise ValueError(f"scatter on {self.device}, {index.device} and {values.device}: move them with .to()")
        if 0 in shape or 0 in self.shape:
            return self
        return LazyBuffer(Ops.SCATTER, self.dtype, self.shape, (self, index, values), (op, axis), self.device)

    def fetch_add(self, index: LazyBuffer) -> LazyBuffer:
        """Reads the counter in the last axis that each element of `index` selects, then increases the counter by one.

        Each result is the initial value plus the number of earlier elements with the same index, or 0 if the index is
        out of range.
        """
        if not self.shape or self.shape[:-1] != index.shape[:-1]:
            raise ShapeError(
                f"fetch-and-add on shape {self.shape}: the index has shape {index.shape}, expected {self.shape[:-1]} "
                "with one more axis"
            )
        if not dtypes.is_int(index.dtype) or not dtypes.is_int(self.dtype) or index.device != self.device:
            raise TypeError(
                f"fetch-and-add on {self.dtype.name} of {self.device}: the index is {index.dtype.name} of "
                f"{index.device}, expected ints on one device"
            )
        arg = (Ops.ADD, len(index.shape) - 1)
        counters = self.contiguous()  # each row starts with its own counters
        return LazyBuffer(Ops.FETCH_ADD, self.dtype, index.shape, (counters, index), arg, self.device)

    def contiguous(self) -> LazyBuffer:
        """Returns the same values, which will be realized in row-major order."""
        node = self
        while node.src and ((note := node.noted) is Origin.DETACHED or type(note) in (GatheredParts, Simplification)):
            node = node.src[0]
        if node.is_realized or node.op is Ops.CONTIGUOUS or self._shows_all_in_order():
            return self
        return LazyBuffer(Ops.CONTIGUOUS, self.dtype, self.shape, (self,), None, self.device)

    def _shows_all_in_order(self) -> bool:
        """Whether the movements amount to a reshape of a value that is, or will be, in memory."""
        base = self.base
        if base.buffer is None and base.op is not Ops.CONTIGUOUS:
            return False
        sizes = (*self.shape, *base.shape)
        return UOp not in map(type, sizes) and prod(self.shape) == prod(base.shape) and self.st.contiguous

    def packed(self) -> LazyBuffer:
        """Returns a copy in separate memory. (`contiguous` does not copy a value that is in memory.)"""
        return self._note_copy(LazyBuffer(Ops.CONTIGUOUS, self.dtype, self.shape, (self,), None, self.device))

    @property
    def can_be_written(self) -> bool:
        """Whether the value is row-major in memory, or will be when computed, so that a part can be stored alone.

        After `MAX_WRITES` pending parts, one kernel that writes the whole value is cheaper.
        """
        waiting = 0
        node = self
        while node.op is Ops.WRITE and node.buffer is None:
            waiting += 1
            node = node.src[0]
        return waiting < MAX_WRITES and (waiting > 0 or node.buffer is not None or node.op is Ops.CONTIGUOUS)

    def written_at(self, indices: LazyBuffer, value: LazyBuffer) -> LazyBuffer:
        """Writes `value` at the row-major `indices` (distinct ints): movements of a counter, or loaded ints.

        Loaded indices out of range are ignored.
        """
        if indices.shape != value.shape or value.dtype is not self.dtype or value.device != self.device:
            raise ShapeError(f"write {value!r} at {indices!r} of {self!r}: shapes, dtypes and devices must be equal")
        return LazyBuffer(Ops.WRITE, self.dtype, self.shape, (self, indices, value), None, self.device)

    def copy_to_device(self, device: str) -> LazyBuffer:
        """Copies the values to the memory of another device."""
        if device == self.device:
            return self
        if Device.is_group(device):
            return cast(LazyBuffer, LazyBuffer.sharded.of(self, device, None))
        return self._note_copy(buffer_class_for(device)(Ops.COPY, self.dtype, self.shape, (self,), self.device, device))

    def _note_copy(self, copy: LazyBuffer) -> LazyBuffer:
        """Adds a note to `copy`, a copy of this node, if this node is data. Returns it."""
        note = DataCopy.of((self,))
        if note is not None:
            copy.note = note
        return copy

    def detached(self) -> LazyBuffer:
        """Returns the same value in the same memory. Gradients do not flow through it."""
        if self.buffer is not None:
            view = type(self)(Ops.BUFFER, self.dtype, self.shape, (), None, self.device, self.buffer)
        else:
            view = self._view(Ops.RESHAPE, self.shape, self.shape)
        view.note = Origin.DETACHED
        return view

    # *** movements ***

    def _view(self, op: Ops, shape: Shape, arg: Any) -> LazyBuffer:
        return type(self)(op, self.dtype, shape, (self,), arg, self.device)

    def reshape(self, shape: Shape) -> LazyBuffer:
        if shape == self.shape:
            return self
        size_before: Any = prod(self.shape)
        new_size: Any = prod(shape)
        if type(size_before) is not int or type(new_size) is not int:
            return self._reshape_symbolic(normalize_sizes(shape))
        if size_before != new_size:
            raise ShapeError(f"reshape {self.shape} to {shape}: {size_before} elements are not {new_size}")
        return self._view(Ops.RESHAPE, shape, shape)

    def _reshape_symbolic(self, shape: Shape) -> LazyBuffer:
        """Reshapes to a shape that has as many elements for every value of the Variables, or at least for the values of
        this call."""
        if shape == self.shape:
            return self
        size_before, new_size = product(self.shape), product(shape)
        if size_before != new_size and not holds(as_size(size_before).eq(new_size)):
            raise ShapeError(f"reshape {self.shape} to {shape}: {size_before} elements are not {new_size}")
        if self.buffer is not None and not is_symbolic(self.shape) and self.buffer.size == size_before:
            return type(self)(Ops.BUFFER, self.dtype, shape, (), None, self.device, self.buffer)
        return self._view(Ops.RESHAPE, shape, shape)

    def expand(self, shape: Shape) -> LazyBuffer:
        """Repeats axes of size 1 to the size in `shape` (of the same rank)."""
        shape = check_sizes(shape)
        if shape == self.shape:
            return self
        if len(shape) != len(self.shape) or any([a not in (1, b) for a, b in zip(self.shape, shape)]):
            raise ShapeError(f"expand {self.shape} to {shape}: only axes of size 1 expand, and the rank stays")
        return self._view(Ops.EXPAND, shape, shape)

    def permute(self, order: Sequence[int]) -> LazyBuffer:
        order = tuple(order)
        if sorted(order) != list(range(len(self.shape))):
            raise ShapeError(f"permute {self.shape} by {order}: need each of 0..{len(self.shape) - 1} once")
        if order == tuple(range(len(order))):
            return self
        shape = tuple([self.shape[axis] for axis in order])
        return self._view(Ops.PERMUTE, shape, order)

    def pad(self, amounts: Sequence[tuple[Any, Any]]) -> LazyBuffer:
        """Adds zeros (False) before and after each axis: `amounts[axis] = (before, after)`, none negative."""
        amounts = tuple([normalize_sizes((before, after)) for before, after in amounts])
        if len(amounts) != len(self.shape) or not all([holds(a >= 0) and holds(b >= 0) for a, b in amounts]):
            raise ShapeError(f"pad {self.shape} by {amounts}: need one pair of non-negative amounts per axis")
        if all([pair == (0, 0) for pair in amounts]):
            return self
        shape = check_sizes(tuple([before + size + after for size, (before, after) in zip(self.shape, amounts)]))
        return self._view(Ops.PAD, shape, amounts)

    def shrink(self, bounds: Sequence[tuple[Any, Any]]) -> LazyBuffer:
        """Keeps the part `start ≤ i < stop` of each axis: `bounds[axis] = (start, stop)`."""
        bounds = tuple([(start, stop) for start, stop in bounds])
        fits = len(bounds) == len(self.shape)
        for (start, stop), size in zip(bounds, self.shape):
            if type(start) is int and type(stop) is int and type(size) is int:
                fits = fits and 0 <= start <= stop <= size
            else:
                bounds = tuple([normalize_sizes(pair) for pair in bounds])
                fits = fits and all([holds(condition) for condition in _make_bounds_conditions(self.shape, bounds)])
                break
        if not fits:
            raise ShapeError(f"shrink {self.shape} to {bounds}: need 0 ≤ start ≤ stop ≤ size for every axis")
        shape = normalize_sizes(tuple([stop - start for start, stop in bounds]))
        if shape == self.shape:
            return self
        return self._view(Ops.SHRINK, shape, bounds)

    def flip(self, axes: Sequence[int]) -> LazyBuffer:
        """Reverses the order of `axes`."""
        axes = tuple(sorted(set(axes)))
        if bad := [axis for axis in axes if not 0 <= axis < len(self.shape)]:
            raise ShapeError(f"flip axes {bad} of shape {self.shape}: {_axes_text(self.shape)}")
        if not axes:
            return self
        return self._view(Ops.FLIP, self.shape, axes)

    def window(self, axis: int, size: Any, stride: int = 1, dilation: int = 1) -> LazyBuffer:
        """Returns sliding windows along `axis`, which then counts the windows. A new last axis has the `size` elements
        of a window.

        Element (..., o, ..., k) is element o * stride + k * dilation of `axis`.
        """
        reach = dilation * (size - 1) + 1
        possible = 0 <= axis < len(self.shape) and min(stride, dilation) >= 1
        if not possible or not holds(size >= 1) or not holds(reach <= self.shape[axis]):
            raise ShapeError(
                f"window of size {size}, stride {stride}, dilation {dilation} along axis {axis} of {self.shape}: "
                f"needs an axis of at least {reach}"
            )
        count = (self.shape[axis] - reach) // stride + 1
        shape = check_sizes((*self.shape[:axis], count, *self.shape[axis + 1 :], size))
        return self._view(Ops.WINDOW, shape, (axis, simplified(size), stride, dilation))

    def diagonal(self, first: int, second: int) -> LazyBuffer:
        """Returns the elements with equal index in two axes: removes axis `second`; `first` then indexes both."""
        rank = len(self.shape)
        if not (0 <= first < second < rank) or self.shape[first] != self.shape[second]:
            raise ShapeError(
                f"diagonal of axes {first}, {second} of {self.shape}: need two axes of equal size, in order"
            )
        shape = self.shape[:second] + self.shape[second + 1 :]
        return self._view(Ops.DIAGONAL, shape, (first, second))

    def requirements(self) -> list[UOp]:
        """Returns the conditions of this movement that hold only for some values of its Variables."""
        conditions: list[Any] = []
        if self.op is Ops.BUFFER and self.buffer is not None and self.buffer.size < self.size:
            conditions = [product(self.shape) <= self.buffer.size]
        if self.op in (Ops.CONST, Ops.IOTA, Ops.EXPAND):
            conditions = [size >= 0 for size in self.shape if type(size) is UOp]
        if not self.src:
            # this movement changes nothing any more
            return [condition for condition in conditions if type(condition) is UOp and is_undecided(condition)]
        shape = self.src[0].shape
        if self.op is Ops.RESHAPE:
            source_size, own_size = product(shape), product(self.shape)
            conditions = [] if source_size == own_size else [as_size(source_size).eq(own_size)]
        elif self.op is Ops.SHRINK:
            conditions = _make_bounds_conditions(shape, self.arg)
        elif self.op is Ops.PAD:
            conditions = [n >= 0 for pair in self.arg for n in pair]
        elif self.op is Ops.WINDOW:
            axis, size, _, dilation = self.arg
            conditions = [size >= 1, dilation * (size - 1) + 1 <= shape[axis]]
        return [condition for condition in conditions if type(condition) is UOp and is_undecided(condition)]


Movable = TypeVar("Movable", LazyBuffer, ShapeTracker)


def move_like(source: Movable, step: LazyBuffer) -> Movable:
    """Applies the movement `step` to `source`."""
    arg: Any = step.arg if isinstance(source, LazyBuffer) else concrete(step.arg)
    match step.op:
        case Ops.RESHAPE:
            return source.reshape(arg)
        case Ops.EXPAND:
            return source.expand(arg)
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


def buffer_class_for(device: str) -> type[LazyBuffer]:
    """Returns the class of nodes on `device`. Values in a file or a NumPy array can only be viewed and copied."""
    return LazyBuffer.stored if Device.is_storage(device) else LazyBuffer


def normalize_sizes(sizes: Shape) -> Shape:
    """Returns the sizes in normal form. Plain ints already are."""
    return tuple([simplified(size) for size in sizes]) if UOp in map(type, sizes) else sizes


def check_sizes(shape: Shape) -> Shape:
    """Returns the sizes in normal form. Raises ShapeError for a negative size, or if 64 bits cannot count the
    elements."""
    total: Any = prod(shape)
    if type(total) is int:
        if total >> 63 or min(shape, default=0) < 0:
            raise ShapeError(f"shape {shape}: sizes cannot be negative, nor the elements more than 2**63 - 1")
        return shape
    shape = normalize_sizes(shape)
    if bad := [size for size in shape if not holds(size >= 0)]:
        raise ShapeError(f"shape {shape}: size {bad[0]} is negative; sizes must be 0 or more")
    product(shape)  # raises if the product exceeds 64 bits
    return shape


def check_dtype_holds(size: Any, dtype: DType) -> None:
    """Raises OverflowError if an int dtype cannot represent every value of the size."""
    size = simplified(size)
    low, high = limits(size)
    if dtypes.is_int(dtype) and not dtypes.min(dtype) <= low <= high <= dtypes.max(dtype):
        raise OverflowError(
            f"{text(size)}, a size of {low} to {high}, does not fit in {dtype.name} "
            f"({dtypes.min(dtype)} … {dtypes.max(dtype)}): give its Variables narrower bounds, or use a wider dtype"
        )


def _make_bounds_conditions(shape: Shape, bounds: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Returns the conditions on the bounds of a shrink, as single comparisons."""
    conditions: list[Any] = []
    for (start, stop), size in zip(bounds, shape):
        if type(start) is int and type(stop) is int and type(size) is int:
            conditions.append(0 <= start <= stop <= size)
        elif start != 0 or stop != size:
            conditions += [start >= 0, start <= stop, stop <= size]
    return conditions


_PACKAGE = __name__.split(".")[0]


def _find_user_call() -> tuple[UserFrame | None, tuple[str, ...]]:
    """Returns the user's stack frame that made this call, and the public functions called inside the package."""
    calls: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (module := _module_of(frame)).split(".")[0] == _PACKAGE:
        if module.split(".")[1:2] in _CALLED:
            name = _call_name(frame)
            if name and calls[-1:] != [name]:
                calls.append(name)
        frame = frame.f_back
    names = tuple(reversed(calls))
    if frame is None:
        return None, names
    code = frame.f_code
    return UserFrame(code.co_filename, frame.f_lineno, code.co_name, code, frame.f_lasti), names


_CALLED = (["tensor"], ["nn"], ["autograd"])


def _module_of(frame: FrameType) -> str:
    """Returns the `__name__` of a frame's globals; an empty string if the user's program stores something else
    there."""
    name = frame.f_globals.get("__name__")
    return name if type(name) is str else ""


def _call_name(frame: FrameType) -> str:
    """Returns the name of a public function, or of the class for a constructor or the call of a layer; "" for internal
    code."""
    name = frame.f_code.co_name
    if name in ("__init__", "__call__") and "self" in frame.f_locals:
        return type(frame.f_locals["self"]).__name__
    return "" if name.startswith(("_", "<")) and not name.startswith("__") else name
