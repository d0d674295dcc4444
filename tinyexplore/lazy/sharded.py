"""ShardedBuffer: one value on several devices, in parts along an axis, or whole on each device.

The operations of a LazyBuffer run part by part. Only the following operations move data between devices, as little as
possible:

- a reduction over the divided axis (all-reduce): the result is whole on each device;
- a scan along it: the totals of the earlier parts;
- a flip of it: each part goes to the device at the other end;
- windows along it: the few elements after each part that its last windows read;
- a slice of it, if some part has no element of the slice: all devices get the whole slice;
- a gather along it: the gathered elements, or the table, whichever is smaller;
- a scatter along it: the scattered values; if these are divided, the result of each device;
- a reshape that breaks up parts, and the diagonal of the divided axis: each device gets all parts.

Values that stay divided stay on their devices. Parts may become uneven (`x[1:]`), and padding enlarges the first and
the last part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from tinyexplore.device import Device
from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.lazy.collective import all_reduce, as_bits, axis_bounds, bounds_of, concatenate
from tinyexplore.lazy.lazybuffer import DataCopy, GatheredParts, LazyBuffer, Origin, Shape, ShapeError, numbers
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.identity import reduce_identity


class ShardedBuffer(LazyBuffer):
    """A value whose `parts`, one on each device, are consecutive along `axis`. If `axis` is None, each part is the
    whole value.

    `op`, `src` and `arg` describe the operation that made the value, as for any LazyBuffer. Gradients and writes to
    views read them. The parts are computed, and each part has its own graph.
    """

    __slots__ = ("parts", "axis")
    parts: tuple[LazyBuffer, ...]
    axis: int | None

    def __init__(
        self,
        parts: Sequence[LazyBuffer],
        axis: int | None,
        op: Ops = Ops.COPY,
        src: tuple[LazyBuffer, ...] = (),
        arg: Any = None,
    ) -> None:
        self.parts, self.axis = tuple(parts), axis
        first = self.parts[0]
        shape = first.shape
        if axis is not None:
            shape = (*shape[:axis], sum(part.shape[axis] for part in self.parts), *shape[axis + 1 :])
        if UOp in map(type, shape):
            raise ShapeError(f"a sharded tensor of shape {shape}: its sizes must be numbers, none symbolic")
        self.op, self.dtype, self.shape, self.src, self.arg = op, first.dtype, shape, src, arg
        self.device = Device.group([part.device for part in self.parts])
        self.buffer = None
        self.number = next(numbers)
        for source in src:
            if isinstance(source, ShardedBuffer):
                source.forget()

    def __repr__(self) -> str:
        how = "whole on each" if self.axis is None else f"divided along axis {self.axis}"
        return f"ShardedBuffer({self.shape}, {self.dtype.name}, {', '.join(self.devices)}, {how})"

    def __str__(self) -> str:
        return repr(self)

    # *** creation ***

    @staticmethod
    def const(value: ConstType | UOp, dtype: DType, device: str, shape: Shape = ()) -> LazyBuffer:
        parts = [LazyBuffer.const(value, dtype, member, shape) for member in Device.members(device)]
        return ShardedBuffer(parts, None, Ops.CONST, (), parts[0].arg)

    @staticmethod
    def iota(length: int, dtype: DType, device: str) -> LazyBuffer:
        return ShardedBuffer(
            [LazyBuffer.iota(length, dtype, member) for member in Device.members(device)], None, Ops.IOTA
        )

    @staticmethod
    def of(whole: LazyBuffer, device: str, axis: int | None, splits: Sequence[int] | None = None) -> ShardedBuffer:
        """Divides `whole` among the devices of the group `device`: in parts of the sizes `splits`, or as equal as
        possible."""
        devices = Device.members(device)
        if axis is None:
            return ShardedBuffer([whole.copy_to_device(target) for target in devices], None, Ops.COPY, (whole,))
        size = whole.shape[axis]
        sizes = _divide_evenly(size, len(devices)) if splits is None else list(splits)
        if len(sizes) != len(devices) or sum(sizes) != size or min(sizes) < 1:
            detail = "" if splits is None else "specified splits do not sum up to axis shape, or some are empty: "
            raise ShapeError(
                f"{detail}shard axis {axis} of shape {whole.shape} on {len(devices)} devices in parts of {sizes}: "
                f"need {len(devices)} parts of 1 at least that add up to {size}"
            )
        cuts = [whole.shrink(axis_bounds(whole.shape, axis, bounds)) for bounds in bounds_of(sizes)]
        return ShardedBuffer(
            [part.copy_to_device(target) for part, target in zip(cuts, devices)], axis, Ops.COPY, (whole,)
        )

    def forget(self) -> None:
        """Drops the sources of a computed value, as its parts have done."""
        node: LazyBuffer = self
        while isinstance(node, ShardedBuffer):
            if all(part.buffer is not None for part in node.parts):
                node.op, node.src, node.arg = Ops.COPY, (), None
            elif node.op in OpGroups.MOVEMENT and node.src:
                node = node.src[0]
                continue
            elif node.is_realized:
                node.src = ()
            return

    # *** properties ***

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(part.device for part in self.parts)

    @property
    def is_realized(self) -> bool:
        return all(part.base.is_realized for part in self.parts)

    @property
    def noted(self) -> Any:
        """The note; if there is none and the parts are in memory, the notes of the parts."""
        note = getattr(self, "note", None)
        if note is not None or not self.is_realized:
            return note
        if any(part.base.noted is Origin.UNKNOWN for part in self.parts):
            return Origin.UNKNOWN
        return DataCopy.of(self.parts)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """The (start, stop) of each part on the divided axis."""
        assert self.axis is not None
        return bounds_of([part.shape[self.axis] for part in self.parts])

    @property
    def layout(self) -> tuple[int | None, tuple[int, ...]]:
        """The divided axis and the sizes of the parts; (None, ()) if each part is the whole value."""
        return self.axis, () if self.axis is None else tuple(part.shape[self.axis] for part in self.parts)

    # *** part by part ***

    def _map_parts(self, op: Ops, function: Callable[[LazyBuffer], LazyBuffer], arg: Any = None) -> ShardedBuffer:
        return ShardedBuffer([function(part) for part in self.parts], self.axis, op, (self,), arg)

    def _wrap_movement(self, op: Ops, arg: Any, parts: Sequence[LazyBuffer], axis: int | None) -> ShardedBuffer:
        """Returns the result of the movement `op` on this value."""
        return ShardedBuffer(parts, axis, op, (self,), arg)

    def divided_like(self, model: ShardedBuffer) -> ShardedBuffer:
        """Divides the value like `model`, if `model` has parts. If each device has a whole copy, no data moves."""
        if model.axis is None or self.layout == model.layout:
            return self
        axis, bounds = model.axis, model.bounds
        if self.axis == axis:
            parts = [self._take_range(device, pair) for device, pair in zip(self.devices, bounds)]
            return ShardedBuffer(parts, axis, Ops.COPY, (self,))
        whole = self.whole()
        cuts = [part.shrink(axis_bounds(part.shape, axis, pair)) for part, pair in zip(whole.parts, bounds)]
        return ShardedBuffer(cuts, axis, Ops.COPY, (self,))

    def whole(self) -> ShardedBuffer:
        """Returns the whole value on each device."""
        if self.axis is None:
            return self
        whole_bounds = (0, self.shape[self.axis])
        return ShardedBuffer(
            [self._take_range(device, whole_bounds) for device in self.devices], None, Ops.COPY, (self,)
        )

    def _take_range(self, device: str, bounds: tuple[int, int]) -> LazyBuffer:
        """Returns the elements start ≤ i < stop of the divided axis on one device. Elements already there are not
        copied."""
        assert self.axis is not None
        pieces = []
        for part, (start, stop) in zip(self.parts, self.bounds):
            local_start, local_stop = max(start, bounds[0]) - start, min(stop, bounds[1]) - start
            if local_start < local_stop:
                piece = part.shrink(axis_bounds(part.shape, self.axis, (local_start, local_stop)))
                pieces.append(piece if part.device == device else piece.contiguous().copy_to_device(device))
        if not pieces:
            shape = (*self.shape[: self.axis], 0, *self.shape[self.axis + 1 :])
            return LazyBuffer.const(0, self.dtype, device, shape)
        return concatenate(pieces, self.axis)

    def alu(self, op: Ops, *others: LazyBuffer) -> LazyBuffer:
        src = self._check_same_devices(op.name, others)
        for other in src:
            if other.shape != self.shape:
                raise ShapeError(
                    f"{op.name} of shapes {', '.join(str(operand.shape) for operand in src)}: they must be equal"
                )
        model = next((operand for operand in src if operand.axis is not None), self)
        aligned = [source.divided_like(model) for source in src]
        parts = [
            first_part.alu(op, *other_parts)
            for first_part, *other_parts in zip(*(operand.parts for operand in aligned))
        ]
        return ShardedBuffer(parts, model.axis, op, tuple(src))

    def _check_same_devices(self, operation: str, operands: Sequence[LazyBuffer]) -> list[ShardedBuffer]:
        """Returns this value and `operands`. Raises unless all are on the same devices."""
        src: list[ShardedBuffer] = [self]
        for operand in operands:
            if not isinstance(operand, ShardedBuffer) or operand.devices != self.devices:
                raise ValueError(
                    f"{operation} of tensors on {', '.join(self.devices)} and {operand.device}: "
                    "shard both on the same devices"
                )
            src.append(operand)
        return src

    def cast(self, dtype: DType) -> LazyBuffer:
        return self if dtype is self.dtype else self._map_parts(Ops.CAST, lambda part: part.cast(dtype))

    def bitcast(self, dtype: DType) -> LazyBuffer:
        return self if dtype is self.dtype else self._map_parts(Ops.BITCAST, lambda part: part.bitcast(dtype))

    def detached(self) -> LazyBuffer:
        view = self._map_parts(Ops.RESHAPE, lambda part: part.detached(), self.shape)
        view.note = Origin.DETACHED
        return view

    def contiguous(self) -> LazyBuffer:
        parts = self._map_parts(Ops.CONTIGUOUS, lambda part: part.contiguous())
        return self if parts.parts == self.parts else parts

    def packed(self) -> LazyBuffer:
        return self._map_parts(Ops.CONTIGUOUS, lambda part: part.packed())

    def reduce(self, op: Ops, axes: Sequence[int]) -> LazyBuffer:
        parts = [part.reduce(op, axes) for part in self.parts]
        arg = (op, tuple(sorted(set(axes))))
        if self.axis is None or self.axis not in axes:
            return ShardedBuffer(parts, self.axis, Ops.REDUCE_AXIS, (self,), arg)
        return ShardedBuffer(all_reduce(op, parts), None, Ops.REDUCE_AXIS, (self,), arg)

    def scan(self, op: Ops, axis: int) -> LazyBuffer:
        part_scans = [part.scan(op, axis) for part in self.parts]
        if axis != self.axis:
            return ShardedBuffer(part_scans, self.axis, Ops.SCAN_AXIS, (self,), (op, axis))
        totals = [part.reduce(op, (axis,)).contiguous() for part in self.parts[:-1]]
        scanned = part_scans[:1]
        for number in range(1, len(part_scans)):
            earlier_totals = [total.copy_to_device(part_scans[number].device) for total in totals[:number]]
            for total in earlier_totals[1:]:
                earlier_totals[0] = earlier_totals[0].alu(op, total)
            scanned.append(earlier_totals[0].expand(part_scans[number].shape).alu(op, part_scans[number]))
        return ShardedBuffer(scanned, axis, Ops.SCAN_AXIS, (self,), (op, axis))

    def recurrence(self, factor: LazyBuffer, axis: int) -> LazyBuffer:
        x, factors = (
            operand.whole() if operand.axis == axis else operand
            for operand in self._check_same_devices("recurrence", (factor,))
        )
        model = x if x.axis is not None else factors
        pairs = zip(x.divided_like(model).parts, factors.divided_like(model).parts)
        parts = [part.recurrence(part_factor, axis) for part, part_factor in pairs]
        return ShardedBuffer(parts, model.axis, Ops.SCAN_AXIS, (self, factor), (Ops.MULACC, axis))

    def gather(self, index: LazyBuffer) -> LazyBuffer:
        (indices,) = self._check_same_devices("gather", (index,))[1:]
        in_parts = self.axis == len(self.shape) - 1
        gathered = self._gather_in_parts(indices) if in_parts else self._gather_part_by_part(indices)
        return ShardedBuffer(gathered.parts, gathered.axis, Ops.GATHER, (self, index))

    def _gather_part_by_part(self, indices: ShardedBuffer) -> ShardedBuffer:
        model = self if self.axis is not None else indices
        pairs = zip(self.divided_like(model).parts, indices.divided_like(model).parts)
        return ShardedBuffer([part.gather(index_part) for part, index_part in pairs], model.axis)

    def _gather_in_parts(self, indices: ShardedBuffer) -> ShardedBuffer:
        """Gathers on each device from its part (zeros elsewhere) and adds the results, or copies the table."""
        if sum(part.base.size for part in self.parts) <= indices.size * len(self.parts):
            return self.whole()._gather_part_by_part(indices)
        wide_indices = indices if indices.dtype is dtypes.int32 else indices.cast(dtypes.int64)
        parts = []
        for part, index, (start, _) in zip(self.parts, cast(ShardedBuffer, wide_indices).whole().parts, self.bounds):
            negative_start = LazyBuffer.const(-start, index.dtype, index.device, index.shape)
            parts.append(as_bits(part.gather(index.alu(Ops.ADD, negative_start))))
        return ShardedBuffer([bits.bitcast(self.dtype) for bits in all_reduce(Ops.ADD, parts)], None)

    def scatter(self, op: Ops | None, axis: int, index: LazyBuffer, values: LazyBuffer) -> LazyBuffer:
        """Scatters `values` along `axis`, with the least movement of data.

        If another axis is divided, scatters part by part. If `axis` is divided, each device scatters the values for its
        part. If the values are divided, each device scatters its own values, and the results are combined.
        """
        _, indices, updates = self._check_same_devices("scatter", (index, values))
        parts = self._scatter_parts(op, axis, indices, updates)
        return ShardedBuffer(parts.parts, parts.axis, Ops.SCATTER, (self, index, values), (op, axis))

    def _scatter_parts(
        self, op: Ops | None, axis: int, indices: ShardedBuffer, updates: ShardedBuffer
    ) -> ShardedBuffer:
        if self.axis == axis:
            wide_indices = indices if indices.dtype is dtypes.int32 else indices.cast(dtypes.int64)
            scattered = []
            rows = zip(self.parts, cast(ShardedBuffer, wide_indices).whole().parts, updates.whole().parts, self.bounds)
            for part, named, part_values, (start, _) in rows:
                negative_start = LazyBuffer.const(-start, named.dtype, named.device, named.shape)
                scattered.append(part.scatter(op, axis, named.alu(Ops.ADD, negative_start), part_values))
            return ShardedBuffer(scattered, axis)
        steps = updates if updates.axis == axis else indices
        if op is not None and self.axis is None and steps.axis == axis:
            start = reduce_identity(op, self.dtype).arg
            empty = [LazyBuffer.const(start, self.dtype, part.device, part.shape) for part in self.parts[1:]]
            triples = zip((self.parts[0], *empty), indices.divided_like(steps).parts, updates.divided_like(steps).parts)
            partial = [part.scatter(op, axis, named, part_values) for part, named, part_values in triples]
            return ShardedBuffer(all_reduce(op, partial), None)
        operands = [operand.whole() if operand.axis == axis else operand for operand in (self, indices, updates)]
        model = next((operand for operand in operands if operand.axis is not None), self)
        parts = zip(*(operand.divided_like(model).parts for operand in operands))
        return ShardedBuffer(
            [part.scatter(op, axis, *index_and_values) for part, *index_and_values in parts], model.axis
        )

    # *** movements ***

    def reshape(self, shape: Shape) -> LazyBuffer:
        if shape == self.shape:
            return self
        if UOp in map(type, shape) or prod(shape) != self.size:
            raise ShapeError(f"reshape {self.shape} to {shape}: {self.size} elements are not {prod(shape)}")
        axis = self._find_axis_in(shape)
        if axis is None:
            return self._wrap_movement(Ops.RESHAPE, shape, [part.reshape(shape) for part in self.whole().parts], None)
        assert self.axis is not None
        factor, size = shape[axis], self.shape[self.axis]
        part_sizes = [factor * part.shape[self.axis] // size for part in self.parts]
        parts = [part.reshape((*shape[:axis], n, *shape[axis + 1 :])) for part, n in zip(self.parts, part_sizes)]
        return self._wrap_movement(Ops.RESHAPE, shape, parts, axis)

    def _find_axis_in(self, shape: Shape) -> int | None:
        """Returns the axis of `shape` along which the parts are still consecutive."""
        if self.axis is None or self.size == 0:
            return None
        outer_size, size = prod(self.shape[: self.axis]), self.shape[self.axis]
        for axis, factor in enumerate(shape):
            fits = all(factor * part.shape[self.axis] % size == 0 for part in self.parts)
            if prod(shape[:axis]) == outer_size and fits:
                return axis
        return None

    def expand(self, shape: Shape) -> LazyBuffer:
        if shape == self.shape:
            return self
        axis = self.axis
        if axis is None or self.shape[axis] != shape[axis]:
            return self._wrap_movement(Ops.EXPAND, shape, [part.expand(shape) for part in self.whole().parts], None)
        part_shapes = [(*shape[:axis], part.shape[axis], *shape[axis + 1 :]) for part in self.parts]
        return self._wrap_movement(
            Ops.EXPAND, shape, [part.expand(part_shape) for part, part_shape in zip(self.parts, part_shapes)], axis
        )

    def permute(self, order: Sequence[int]) -> LazyBuffer:
        order = tuple(order)
        if order == tuple(range(len(self.shape))):
            return self
        axis = None if self.axis is None else order.index(self.axis)
        return self._wrap_movement(Ops.PERMUTE, order, [part.permute(order) for part in self.parts], axis)

    def pad(self, amounts: Sequence[tuple[int, int]]) -> LazyBuffer:
        pairs = [tuple(pair) for pair in amounts]
        if all(pair == (0, 0) for pair in pairs):
            return self
        parts = []
        for number, part in enumerate(self.parts):
            part_pairs = list(pairs)
            if self.axis is not None:
                before, after = pairs[self.axis]
                part_pairs[self.axis] = (before if number == 0 else 0, after if number == len(self.parts) - 1 else 0)
            parts.append(part.pad(cast(Any, part_pairs)))
        return self._wrap_movement(Ops.PAD, tuple(pairs), parts, self.axis)

    def shrink(self, bounds: Sequence[tuple[int, int]]) -> LazyBuffer:
        bounds = tuple([(start, stop) for start, stop in bounds])
        if bounds == tuple([(0, size) for size in self.shape]):
            return self
        if self.axis is None:
            return self._wrap_movement(Ops.SHRINK, bounds, [part.shrink(bounds) for part in self.parts], None)
        axis, (start_of_all, last) = self.axis, self._check_bounds(bounds)
        local = [(max(start_of_all, start) - start, min(last, stop) - start) for start, stop in self.bounds]
        if all(start < stop for start, stop in local):
            cuts = [
                part.shrink((*bounds[:axis], part_bounds, *bounds[axis + 1 :]))
                for part, part_bounds in zip(self.parts, local)
            ]
            return self._wrap_movement(Ops.SHRINK, bounds, cuts, axis)
        cuts = [part.shrink((*bounds[:axis], (0, part.shape[axis]), *bounds[axis + 1 :])) for part in self.parts]
        cut = ShardedBuffer(cuts, axis)
        parts = [cut._take_range(device, (start_of_all, last)) for device in self.devices]
        return self._wrap_movement(Ops.SHRINK, bounds, parts, None)

    def _check_bounds(self, bounds: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Checks that all bounds fit. Returns the bounds of the divided axis."""
        assert self.axis is not None
        if len(bounds) != len(self.shape) or not all(
            0 <= start <= stop <= size for (start, stop), size in zip(bounds, self.shape)
        ):
            raise ShapeError(f"shrink {self.shape} to {bounds}: need 0 ≤ start ≤ stop ≤ size for every axis")
        return bounds[self.axis]

    def flip(self, axes: Sequence[int]) -> LazyBuffer:
        axes = tuple(sorted(set(axes)))
        if not axes:
            return self
        parts = [part.flip(axes) for part in self.parts]
        if self.axis in axes:
            parts = [part.contiguous().copy_to_device(device) for part, device in zip(reversed(parts), self.devices)]
        return self._wrap_movement(Ops.FLIP, axes, parts, self.axis)

    def window(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> LazyBuffer:
        arg = (axis, size, stride, dilation)
        if axis != self.axis:
            return self._wrap_movement(Ops.WINDOW, arg, [part.window(*arg) for part in self.parts], self.axis)
        count = (self.shape[axis] - dilation * (size - 1) - 1) // stride + 1
        window_bounds = [(-(-start // stride), min(-(-stop // stride), count)) for start, stop in self.bounds]
        if any(
            first_window >= window_stop for first_window, window_stop in window_bounds
        ):  # no window begins in this part
            return self._wrap_movement(Ops.WINDOW, arg, [part.window(*arg) for part in self.whole().parts], None)
        parts = []
        for device, (first_window, window_stop) in zip(self.devices, window_bounds):
            reach = (first_window * stride, (window_stop - 1) * stride + dilation * (size - 1) + 1)
            parts.append(self._take_range(device, reach).window(*arg))
        return self._wrap_movement(Ops.WINDOW, arg, parts, axis)

    def diagonal(self, first: int, second: int) -> LazyBuffer:
        source = self.whole() if self.axis in (first, second) else self
        axis = source.axis
        new_axis = axis - 1 if axis is not None and axis > second else axis
        return self._wrap_movement(
            Ops.DIAGONAL, (first, second), [part.diagonal(first, second) for part in source.parts], new_axis
        )

    # *** between devices ***

    def copy_to_device(self, device: str) -> LazyBuffer:
        """Copies the whole value to one device, or to another group of devices, divided as before."""
        if device == self.device:
            return self
        if Device.is_group(device):
            return ShardedBuffer.of(self.copy_to_device(self.devices[0]), device, self.axis)
        if self.axis is None:
            nearest_part = next((part for part in self.parts if part.device == device), self.parts[0])
            copy = nearest_part.copy_to_device(device)
        else:
            copy = self._take_range(device, (0, self.shape[self.axis]))
        if copy.is_realized:
            return copy
        copy = copy.detached()  # a view, so that the note is not added to a part
        copy.note = GatheredParts(self)
        return copy


def _divide_evenly(size: int, count: int) -> list[int]:
    """Divides `size` into `count` parts: equal ones and a smaller last one.

    If that leaves a part empty, sizes differ by at most one and the first parts are larger.
    """
    step = -(-size // count)
    if step * (count - 1) < size:
        return [step] * (count - 1) + [size - step * (count - 1)]
    return [size // count + (number < size % count) for number in range(count)]


def laid_out_as(value: LazyBuffer, model: LazyBuffer) -> LazyBuffer:
    """Divides `value` like `model`, which is on the same devices: in parts, or whole on each device."""
    if not isinstance(value, ShardedBuffer) or not isinstance(model, ShardedBuffer):
        return value
    return value.whole() if model.axis is None else value.divided_like(model)


def forget_sources(values: Sequence[LazyBuffer]) -> None:
    """Drops the sources of computed `values` on several devices, as other computed values do."""
    for value in values:
        if type(value) is ShardedBuffer:
            value.forget()
        elif type(getattr(value, "note", None)) is GatheredParts and value.base.buffer is not None:
            value.note = None


def parts_of(value: LazyBuffer) -> tuple[LazyBuffer, ...]:
    """Returns the part on each device. For a value on one device, that is the value itself."""
    return value.parts if isinstance(value, ShardedBuffer) else (value,)


LazyBuffer.sharded = ShardedBuffer
