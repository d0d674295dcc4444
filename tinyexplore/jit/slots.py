"""Slots: operands of captured kernels whose buffer a replay may exchange."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Collection, Iterable
from typing import cast

from tinyexplore import engine
from tinyexplore.device import Buffer
from tinyexplore.engine import ExecItem
from tinyexplore.jit.arguments import JitError, is_packed, own_buffers
from tinyexplore.lazy import LazyBuffer, Origin, ShardedBuffer, parts_of
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.tensor import Tensor
from tinyexplore.uop.symbolic import unbound
from tinyexplore.util.interpreter import BASE_REFERENCES, references


class Slot:
    """All uses in `items` of the value of one tensor, whose value was `like` when they were captured.

    own_memory: the buffers that only this slot represents; the others have their uses in another slot.
    """

    def __init__(self, name: str, like: LazyBuffer, own_memory: Collection[Buffer], items: Iterable[ExecItem]) -> None:
        self.name, self.like = name, like
        self.shape = unbound(like.shape)
        self.last: LazyBuffer | None = None  # the current value
        self.is_written = False  # whether parts of it are written in place: `lend` sets it, for one call
        all_items = list(items)
        self.buffer_uses = [
            BufferUses(buffer, all_items if buffer in own_memory else ()) for buffer in own_buffers(like)
        ]

    def take(self, value: LazyBuffer, written: frozenset[int]) -> None:
        """Sets the value to `value`. `written`: the addresses that the replay itself writes."""
        if not self._fits(value):
            raise JitError(
                f"{self.name} was captured as {describe(self.like)}, and is now {describe(value)}: a replay runs the "
                "kernels of the first; use a separate TinyJit for each form, or reset()"
            )
        if self.is_written:
            return
        self.last = None  # None until the exchange is complete: a call after an interrupt starts again
        if value.buffer is not None:
            self.last = value if self.buffer_uses[0].take(value.buffer, written) else None
            return
        stays = is_packed(value)
        if not stays:
            engine.realize([value])
        for part, uses in zip(parts_of(value), self.buffer_uses):
            if not uses.take(engine.read(part) if part.buffer is None else part.buffer, written):
                stays = False  # it must be copied again in each call
        self.last = value if stays else None

    def empty(self) -> None:
        """Restores the buffers that the kernels read when they were captured."""
        self.last = None
        for uses in self.buffer_uses:
            uses.return_buffer()

    def lend(self, tensor: Tensor) -> None:
        """Lets the kernels write to the memory of `tensor` if nothing else refers to it, else to a copy that
        `tensor` gets."""
        value = tensor.lazydata
        if value.buffer is None or references((value,))[0] > BASE_REFERENCES + 2 or not engine.is_alone(value):
            value = tensor.lazydata = value.packed()
            engine.realize([value])
        mark_sources_unknown(value)
        assert value.buffer is not None
        self.buffer_uses[0].put(value.buffer)

    def _fits(self, value: LazyBuffer) -> bool:
        like = self.like
        if value.dtype is not like.dtype or value.device != like.device:
            return False
        if value.shape != like.shape and unbound(value.shape) != self.shape:
            return False
        return not isinstance(like, ShardedBuffer) or cast(ShardedBuffer, value).layout == like.layout


class BufferUses:
    """All reads and writes of `buffer` in `items`, which another buffer may replace."""

    def __init__(self, buffer: Buffer, items: Iterable[ExecItem]) -> None:
        self.like = buffer
        self.buffer: Buffer | None = buffer  # None: unknown
        self.staging: Buffer | None = None
        self.tables: list[tuple[array[int], int]] = []
        self.others: list[tuple[ExecItem, int]] = []
        self.aligned = False
        for item in items:
            for number, used_buffer in enumerate(item.buffers):
                if used_buffer is not buffer:
                    continue
                if isinstance(item.bound, BoundProgram):
                    self.tables.append((item.bound.pointers, number))
                    assert item.runner is not None
                    self.aligned = self.aligned or number in item.runner.spec.aligned
                else:
                    self.others.append((item, number))

    def take(self, buffer: Buffer, written: frozenset[int]) -> bool:
        """Replaces the buffer by `buffer`. Returns False if it uses a copy of it because `buffer` itself cannot be
        used."""
        address = buffer.address
        if address in written or (self.aligned and address % 64):
            if self.staging is None:
                self.staging = Buffer(self.like.device, self.like.size, self.like.dtype).allocate()
            copy_bytes(self.staging, buffer)
            self.put(self.staging)
            return False
        self.put(buffer)
        return True

    def put(self, buffer: Buffer) -> None:
        """Lets the kernels read `buffer` from now on."""
        if buffer is self.buffer:
            return
        self.buffer = None  # None until every position has it
        address = buffer.address
        for table, index in self.tables:
            table[index] = address
        for item, index in self.others:
            item.buffers = (*item.buffers[:index], buffer, *item.buffers[index + 1 :])
            item.bound = None
        self.buffer = buffer

    def return_buffer(self) -> None:
        """Gives the buffer back to the caller, which then is its only owner again."""
        self.put(self.like)


def copy_bytes(target: Buffer, source: Buffer) -> None:
    """Copies all of `source` into memory of the same size on a host; for symbolic sizes, the smaller of both."""
    source.memory.wait_for_kernels()
    target.memory.wait_for_kernels()
    ctypes.memmove(target.address, source.address, min(target.nbytes, source.nbytes))


def allocate_like(value: LazyBuffer) -> LazyBuffer:
    """Returns a value like this one in newly allocated memory."""
    parts = []
    for part in parts_of(value):
        buffer = Buffer(part.device, part.size, part.dtype).allocate()
        parts.append(LazyBuffer.from_buffer(buffer, part.shape))
    storage = ShardedBuffer(parts, value.axis) if isinstance(value, ShardedBuffer) else parts[0]
    mark_sources_unknown(storage)
    return storage


def mark_sources_unknown(value: LazyBuffer) -> None:
    """Marks memory that replays write, so that gradients know that its sources are unknown."""
    for part in parts_of(value):
        part.base.note = Origin.UNKNOWN


def is_alike(a: LazyBuffer, b: LazyBuffer) -> bool:
    """Whether the same kernels can use both: equal shapes, dtypes and devices, with the same division."""
    is_equal = a.shape == b.shape and a.dtype is b.dtype and a.device == b.device
    if is_equal and isinstance(a, ShardedBuffer) and isinstance(b, ShardedBuffer):
        return a.layout == b.layout
    return is_equal


def describe(value: LazyBuffer) -> str:
    """Returns the description of a value in error messages."""
    if not isinstance(value, ShardedBuffer):
        return f"{value.shape} {value.dtype.name} on {value.device}"
    axis, sizes = value.layout
    how = "whole on each" if axis is None else f"in parts of {', '.join(map(str, sizes))} along axis {axis}"
    return f"{value.shape} {value.dtype.name} on {', '.join(value.devices)}, {how}"
