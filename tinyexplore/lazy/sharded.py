"""ShardedBuffer: one value on several devices, in parts along an axis, or whole on each of them.

What a LazyBuffer can do, it does part by part. Only three things move data between devices: a reduction over the axis
that is divided (all-reduce), a movement that would tear parts (they are put together first), and being asked to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tinyexplore.device import Device
from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.lazy.lazybuffer import LazyBuffer, Shape, ShapeError
from tinyexplore.uop import Group, Ops, UOp

def parts_of(value: LazyBuffer) -> tuple[LazyBuffer, ...]:
    """What lies on each device: of a value on one device, itself."""
    return value.parts if isinstance(value, ShardedBuffer) else (value,)


RING_FROM = 1 << 18  # elements: below, every device adds up everything itself


class ShardedBuffer(LazyBuffer):
    """`parts`, one on each device, lie one after another along `axis`; where that is None each is the whole value.

    `arg` is that of the movement that made it, if one did: gradients ask for it.
    """

    __slots__ = ("parts", "axis")
    parts: tuple[LazyBuffer, ...]
    axis: int | None

    def __init__(self, parts: Sequence[LazyBuffer], axis: int | None, arg: Any = None) -> None:
        self.parts, self.axis = tuple(parts), axis
        first = self.parts[0]
        shape = first.shape
        if axis is not None:
            shape = (*shape[:axis], sum(part.shape[axis] for part in self.parts), *shape[axis + 1 :])
        if UOp in map(type, shape):
            raise ShapeError(f"a sharded tensor of shape {shape}: its sizes must be numbers, none symbolic")
        self.op, self.dtype, self.shape, self.src, self.arg = Ops.COPY, first.dtype, shape, (), arg
        self.device = Device.group([part.device for part in self.parts])
        self.buffer = None

    def __repr__(self) -> str:
        how = "whole on each" if self.axis is None else f"divided along axis {self.axis}"
        return f"ShardedBuffer({self.shape}, {self.dtype.name}, {', '.join(self.devices)}, {how})"

    # *** making ***

    @staticmethod
    def const(value: ConstType | UOp, dtype: DType, device: str, shape: Shape = ()) -> LazyBuffer:
        return ShardedBuffer([LazyBuffer.const(value, dtype, one, shape) for one in Device.members(device)], None)

    @staticmethod
    def iota(length: int, dtype: DType, device: str) -> LazyBuffer:
        return ShardedBuffer([LazyBuffer.iota(length, dtype, one) for one in Device.members(device)], None)

    @staticmethod
    def of(whole: LazyBuffer, device: str, axis: int | None, splits: Sequence[int] | None = None) -> ShardedBuffer:
        """`whole` in parts on the devices of the group `device`: of sizes `splits`, or as equal as can be."""
        devices = Device.members(device)
        if axis is None:
            return ShardedBuffer([whole.copy_to_device(one) for one in devices], None)
        size = whole.shape[axis]
        step = -(-size // len(devices))
        sizes = [min(step, size - step * place) for place in range(len(devices))] if splits is None else list(splits)
        if len(sizes) != len(devices) or sum(sizes) != size or min(sizes) < 1:
            raise ShapeError(
                f"shard axis {axis} of shape {whole.shape} on {len(devices)} devices in parts of {sizes}: "
                f"need {len(devices)} parts of 1 at least that add up to {size}"
            )
        return ShardedBuffer(
            [part.copy_to_device(one) for part, one in zip(_cut(whole, axis, _bounds(sizes)), devices)], axis
        )

    # *** asking ***

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(part.device for part in self.parts)

    @property
    def is_realized(self) -> bool:
        return all(part.base.is_realized for part in self.parts)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each part begins and ends on the axis that is divided."""
        assert self.axis is not None
        return _bounds([part.shape[self.axis] for part in self.parts])

    @property
    def layout(self) -> tuple[int | None, tuple[int, ...]]:
        """The axis that is divided and the sizes of the parts: (None, ()) where each is the whole value."""
        return self.axis, () if self.axis is None else tuple(part.shape[self.axis] for part in self.parts)

    # *** part by part ***

    def _each(self, function: Callable[[LazyBuffer], LazyBuffer], axis: int | None, arg: Any = None) -> LazyBuffer:
        return ShardedBuffer([function(part) for part in self.parts], axis, arg)

    def laid_out_as(self, model: ShardedBuffer) -> ShardedBuffer:
        """The same value in parts as `model` has them, or whole on each device as it is there."""
        return self.whole() if model.axis is None else self.divided_like(model)

    def divided_like(self, model: ShardedBuffer) -> ShardedBuffer:
        """The same value in parts as `model` has them, if it has parts; from whole copies that moves nothing."""
        if model.axis is None or self.layout == model.layout:
            return self
        axis, bounds = model.axis, model.bounds
        whole = self.whole()
        return ShardedBuffer([_cut(part, axis, bounds)[place] for place, part in enumerate(whole.parts)], axis)

    def whole(self) -> ShardedBuffer:
        """The whole value on each device."""
        if self.axis is None:
            return self
        return ShardedBuffer([self._put_together(one) for one in self.devices], None)

    def _put_together(self, device: str) -> LazyBuffer:
        assert self.axis is not None
        return joined([part.contiguous().copy_to_device(device) for part in self.parts], self.axis)

    def alu(self, op: Ops, *others: LazyBuffer) -> LazyBuffer:
        src = self._with(op.name, others)
        for other in src:
            if other.shape != self.shape:
                raise ShapeError(f"{op.name} of shapes {', '.join(str(one.shape) for one in src)}: they must be equal")
        model = next((one for one in src if one.axis is not None), self)
        aligned = [one.divided_like(model) for one in src]
        parts = [first.alu(op, *rest) for first, *rest in zip(*(one.parts for one in aligned))]
        return ShardedBuffer(parts, model.axis)

    def _with(self, what: str, others: Sequence[LazyBuffer]) -> list[ShardedBuffer]:
        """This and the others, which lie on the same devices."""
        src: list[ShardedBuffer] = [self]
        for other in others:
            if not isinstance(other, ShardedBuffer) or other.devices != self.devices:
                raise ValueError(
                    f"{what} of tensors on {', '.join(self.devices)} and {other.device}: shard both on the same devices"
                )
            src.append(other)
        return src

    def cast(self, dtype: DType) -> LazyBuffer:
        return self if dtype is self.dtype else self._each(lambda part: part.cast(dtype), self.axis)

    def bitcast(self, dtype: DType) -> LazyBuffer:
        return self if dtype is self.dtype else self._each(lambda part: part.bitcast(dtype), self.axis)

    def contiguous(self) -> LazyBuffer:
        return self._each(lambda part: part.contiguous(), self.axis)

    def reduce(self, op: Ops, axes: Sequence[int]) -> LazyBuffer:
        parts = [part.reduce(op, axes) for part in self.parts]
        if self.axis is None or self.axis not in axes:
            return ShardedBuffer(parts, self.axis)
        return ShardedBuffer(all_reduce(op, parts), None)

    def scan(self, op: Ops, axis: int) -> LazyBuffer:
        source = self._intact((axis,))
        return source._each(lambda part: part.scan(op, axis), source.axis)

    def gather(self, index: LazyBuffer) -> LazyBuffer:
        table, places = self._intact((len(self.shape) - 1,))._with("gather", (index,))
        model = table if table.axis is not None else places
        pairs = zip(table.divided_like(model).parts, places.divided_like(model).parts)
        return ShardedBuffer([part.gather(place) for part, place in pairs], model.axis)

    # *** moving ***

    def _intact(self, touched: Sequence[int]) -> ShardedBuffer:
        """This, or the whole on each device where one of the axes `touched` is the divided one."""
        return self.whole() if self.axis in touched else self

    def reshape(self, shape: Shape) -> LazyBuffer:
        if shape == self.shape:
            return self
        if UOp in map(type, shape) or prod(shape) != self.size:
            raise ShapeError(f"reshape {self.shape} to {shape}: {self.size} elements are not {prod(shape)}")
        axis = self._axis_in(shape)
        if axis is None:
            return self.whole()._each(lambda part: part.reshape(shape), None, shape)
        assert self.axis is not None
        factor, size = shape[axis], self.shape[self.axis]
        own = [factor * part.shape[self.axis] // size for part in self.parts]
        parts = [part.reshape((*shape[:axis], n, *shape[axis + 1 :])) for part, n in zip(self.parts, own)]
        return ShardedBuffer(parts, axis, shape)

    def _axis_in(self, shape: Shape) -> int | None:
        """The axis of `shape` along which the parts still lie one after another."""
        if self.axis is None or self.size == 0:
            return None
        before, size = prod(self.shape[: self.axis]), self.shape[self.axis]
        for axis, factor in enumerate(shape):
            fits = all(factor * part.shape[self.axis] % size == 0 for part in self.parts)
            if prod(shape[:axis]) == before and fits:
                return axis
        return None

    def expand(self, shape: Shape) -> LazyBuffer:
        source = self._intact([axis for axis, (a, b) in enumerate(zip(self.shape, shape)) if a != b])
        axis = source.axis
        if axis is None:
            return source._each(lambda part: part.expand(shape), None, shape)
        return source._each(
            lambda part: part.expand((*shape[:axis], part.shape[axis], *shape[axis + 1 :])), axis, shape
        )

    def permute(self, order: Sequence[int]) -> LazyBuffer:
        axis = None if self.axis is None else list(order).index(self.axis)
        return self._each(lambda part: part.permute(order), axis, tuple(order))

    def pad(self, amounts: Sequence[tuple[int, int]]) -> LazyBuffer:
        source = self._intact([axis for axis, (before, after) in enumerate(amounts) if before or after])
        return source._each(lambda part: part.pad(amounts), source.axis, tuple(map(tuple, amounts)))

    def shrink(self, bounds: Sequence[tuple[int, int]]) -> LazyBuffer:
        cut = [axis for axis, (pair, size) in enumerate(zip(bounds, self.shape)) if tuple(pair) != (0, size)]
        source = self._intact(cut)
        axis, arg = source.axis, tuple(map(tuple, bounds))
        if axis is None:
            return source._each(lambda part: part.shrink(bounds), None, arg)
        return source._each(
            lambda part: part.shrink([*bounds[:axis], (0, part.shape[axis]), *bounds[axis + 1 :]]), axis, arg
        )

    def flip(self, axes: Sequence[int]) -> LazyBuffer:
        source = self._intact(axes)
        return source._each(lambda part: part.flip(axes), source.axis, tuple(sorted(set(axes))))

    def window(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> LazyBuffer:
        source = self._intact((axis,))
        arg = (axis, size, stride, dilation)
        return source._each(lambda part: part.window(*arg), source.axis, arg)

    def diagonal(self, first: int, second: int) -> LazyBuffer:
        source = self._intact((first, second))
        axis = source.axis
        moved = axis - 1 if axis is not None and axis > second else axis
        return source._each(lambda part: part.diagonal(first, second), moved, (first, second))

    # *** between devices ***

    def copy_to_device(self, device: str) -> LazyBuffer:
        """On one device: the whole value. On another group: in parts as before, or whole on each as before."""
        if device == self.device:
            return self
        if Device.is_group(device):
            return ShardedBuffer.of(self.copy_to_device(self.devices[0]), device, self.axis)
        if self.axis is None:
            near = next((part for part in self.parts if part.device == device), self.parts[0])
            return near.copy_to_device(device)
        return self._put_together(device)


def _bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return [(end - size, end) for end, size in zip(ends, sizes)]


def _cut(whole: LazyBuffer, axis: int, bounds: Sequence[tuple[int, int]]) -> list[LazyBuffer]:
    full = [(0, size) for size in whole.shape]
    return [whole.shrink([*full[:axis], pair, *full[axis + 1 :]]) for pair in bounds]


def joined(parts: Sequence[LazyBuffer], axis: int) -> LazyBuffer:
    """Values on one device, one after another. Floats go as bits, so that minus zero and NaN stay what they are."""
    dtype, shape = parts[0].dtype, parts[0].shape
    bits = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[dtype.itemsize]
    as_bits = dtypes.is_float(dtype)
    bounds = _bounds([part.shape[axis] for part in parts])
    padded = []
    for part, (start, stop) in zip(parts, bounds):
        amounts = [(start, bounds[-1][1] - stop) if one == axis else (0, 0) for one in range(len(shape))]
        padded.append((part.bitcast(bits) if as_bits else part).pad(amounts))
    found = _combined(Ops.ADD, padded)
    return found.bitcast(dtype) if as_bits else found


def all_reduce(op: Ops, parts: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """`op` over equally shaped values, one on each device: the same result, to the bit, on all of them."""
    assert op in Group.ALU
    if len(parts) < 3 or parts[0].size < RING_FROM:
        return [_combined(op, [part.contiguous().copy_to_device(here.device) for part in parts]) for here in parts]
    return _ring(op, parts)


def _combined(op: Ops, values: Sequence[LazyBuffer]) -> LazyBuffer:
    first, *rest = values
    for other in rest:
        first = first.alu(op, other)
    return first


def _ring(op: Ops, parts: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """Every device finishes one piece, which goes round the ring collecting, then round again to be copied.

    Each link carries 2 · (n - 1) / n of the value, however many devices there are (Patarasuk and Yuan, 2009).
    """
    count, size = len(parts), parts[0].size
    step = -(-size // count)
    flat = [part.contiguous().reshape((size,)) for part in parts]
    pieces: list[list[LazyBuffer]] = [[] for _ in parts]  # by device, in the order of the value
    for start in range(0, size, step):
        bounds = [(start, min(start + step, size))]
        owner = start // step
        collected = flat[owner].shrink(bounds)
        for hop in range(1, count):
            here = flat[(owner + hop) % count]
            collected = collected.contiguous().copy_to_device(here.device).alu(op, here.shrink(bounds))
        done = collected.contiguous()
        at = (owner + count - 1) % count
        for _ in range(count):
            pieces[at].append(done)
            at = (at + 1) % count
            done = done.copy_to_device(parts[at].device)
    return [joined(own, 0).reshape(parts[0].shape) for own in pieces]
