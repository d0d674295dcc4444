"""Slots: places in captured kernels where another buffer may be put."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable

from tinyexplore import engine
from tinyexplore.device import Buffer
from tinyexplore.engine import ExecItem
from tinyexplore.jit.arguments import JitError
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.tensor import Tensor
from tinyexplore.uop.symbolic import unbound


class Slot:
    """Every place where `items` read `buffer`, which stands for the value of one tensor."""

    def __init__(self, name: str, like: LazyBuffer, buffer: Buffer, items: Iterable[ExecItem]) -> None:
        self.name, self.like, self.buffer = name, like, buffer
        self.shape = unbound(like.shape)
        self.last: LazyBuffer | None = None  # whose buffer is there now
        self.staging: Buffer | None = None
        self.tables: list[tuple[array[int], int]] = []
        self.others: list[tuple[ExecItem, int]] = []
        self.aligned = False
        for item in items:
            for place, found in enumerate(item.buffers):
                if found is not buffer:
                    continue
                if isinstance(item.bound, BoundProgram):
                    self.tables.append((item.bound.pointers, place))
                    assert item.runner is not None
                    self.aligned = self.aligned or place in item.runner.spec.aligned
                else:
                    self.others.append((item, place))

    def take(self, tensor: Tensor, written: frozenset[int]) -> None:
        """Puts the value of `tensor` here; `written` are the addresses that the replay itself writes."""
        like, value = self.like, tensor.lazydata
        same_shape = value.shape == like.shape or unbound(value.shape) == self.shape
        if not same_shape or value.dtype is not like.dtype or value.device != like.device:
            raise JitError(
                f"{self.name} was captured as {_described(like)}, and is now {_described(value)}: a replay runs the "
                "kernels of the first; use a TinyJit of its own for each form, or reset()"
            )
        if value.buffer is None:
            buffer = engine.read(value)
        else:
            buffer = value.buffer
        address = buffer.address
        if address in written or (self.aligned and address % 64):
            if self.staging is None:
                self.staging = Buffer(like.device, like.size, like.dtype).allocate()
            copy_bytes(self.staging, buffer)
            self.put(self.staging)
            self.last = None  # to be copied anew each time
            return
        self.put(buffer)
        self.last = value if value.buffer is not None else None

    def put(self, buffer: Buffer) -> None:
        """The kernels read `buffer` from now on."""
        if buffer is self.buffer:
            return
        self.buffer = buffer
        address = buffer.address
        for table, place in self.tables:
            table[place] = address
        for item, place in self.others:
            item.buffers = (*item.buffers[:place], buffer, *item.buffers[place + 1 :])
            item.bound = None


def copy_bytes(to: Buffer, source: Buffer) -> None:
    """All of `source` into memory of the same size, on a host; of symbolic sizes, what both have room for."""
    ctypes.memmove(to.address, source.address, min(to.nbytes, source.nbytes))


def _described(value: LazyBuffer) -> str:
    return f"{value.shape} {value.dtype.name} on {value.device}"
