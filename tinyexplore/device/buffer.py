"""Buffer: typed memory on a device, allocated on first use and freed when its last reference is gone."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from tinyexplore.device.allocator import Allocator, Memory
from tinyexplore.dtype import DType
from tinyexplore.trace import BufferAllocated, BufferFreed, active_recorder
from tinyexplore.util.interpreter import BASE_REFERENCES, references

_ids = itertools.count()
_FILL_CHUNK_ELEMENTS = 1 << 12  # elements


class Devices(Protocol):
    """The interface to the registry of devices that a Buffer uses."""

    def is_storage(self, name: str) -> bool: ...

    def allocator(self, name: str) -> Allocator: ...


@dataclass(frozen=True, slots=True)
class BufferKey:
    """The description of a buffer in events. It does not keep the memory alive.

    id: the number of the buffer in this process.
    device: the name of its device.
    dtype: the dtype of its elements.
    size: the number of elements.
    """

    id: int
    device: str
    dtype: DType
    size: int

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class Buffer:
    """`size` elements of `dtype` on `device`. `id` is unique in the process.

    The memory lives until the buffer and every view of it are gone; then the device's allocator may reuse it.
    """

    __slots__ = ("id", "device", "size", "dtype", "_memory", "__weakref__")
    devices: ClassVar[Devices]  # the registry assigns itself here

    def __init__(self, device: str, size: int, dtype: DType, memory: Memory | None = None) -> None:
        if size < 0:
            raise ValueError(f"a buffer cannot have {size} elements: need 0 or more")
        self.id = next(_ids)
        self.device = device
        self.size = size
        self.dtype = dtype
        self._memory = memory

    @classmethod
    def from_memory(cls, device: str, dtype: DType, memory: Any) -> Buffer:
        """Wraps the elements of an object with the buffer protocol (bytes, array, NumPy array, mmap), not copied.

        The object must be C-contiguous, aligned to its elements and a whole number of them. The buffer keeps it alive.
        Kernels may not write to read-only memory.
        """
        storage = Memory.of(memory)
        size, extra_bytes = divmod(storage.nbytes, dtype.itemsize)
        if extra_bytes:
            raise ValueError(f"{storage.nbytes} bytes are not a whole number of {dtype.name} ({dtype.itemsize} bytes)")
        if size and storage.address % dtype.itemsize:
            raise ValueError(f"memory at {storage.address:#x} is not aligned to {dtype.name}; copy it with copyin()")
        return cls(device, size, dtype, storage)

    def __repr__(self) -> str:
        state = "" if self.is_allocated else ", not allocated"
        return f"Buffer({self.id}, {self.device}, {self.size} × {self.dtype.name}{state})"

    def __reduce__(self) -> tuple[Any, ...]:
        if Buffer.devices.is_storage(self.device):
            raise TypeError(f"{self!r} cannot be pickled: its data is in storage; move it with .to() first")
        return _restore, (self.device, self.size, self.dtype, self.copyout() if self.is_allocated else None)

    @property
    def key(self) -> BufferKey:
        """The description of this buffer for the events `BufferAllocated` and `BufferFreed`."""
        return BufferKey(self.id, self.device, self.dtype, self.size)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_allocated(self) -> bool:
        return self._memory is not None

    @property
    def is_readonly(self) -> bool:
        """Whether the memory belongs to another library that forbids writes. Kernels must not write to it."""
        return self._memory is not None and self._memory.readonly

    @property
    def is_own(self) -> bool:
        """Whether the device's allocator allocated the memory. Otherwise, it belongs to a foreign array."""
        return self._memory is not None and self._memory.is_own

    @property
    def is_unshared(self) -> bool:
        """Whether `is_own`, and nothing else refers to the memory: no view, no program bound to it."""
        return self.is_own and references((self._memory,))[0] == BASE_REFERENCES + 1

    @property
    def memory(self) -> Memory:
        """The memory. A reference to it prevents its reuse."""
        if self._memory is None:
            raise ValueError(f"{self!r} has no memory yet: call allocate() first")
        return self._memory

    @property
    def address(self) -> int:
        """The address of the first element."""
        memory = self._memory
        return self.memory.address if memory is None else memory.address

    def allocate(self) -> Buffer:
        """Allocates memory if there is none; its content is undefined. Returns self."""
        if self._memory is not None:
            return self
        memory = Buffer.devices.allocator(self.device).allocate(self.nbytes)
        self._memory = memory
        recorder = active_recorder()
        if recorder is not None:
            recorder.record_gone()
            recorder.record(BufferAllocated(self.key))
            recorder.record_when_gone(memory, BufferFreed(self.key))
        return self

    def memoryview(self) -> memoryview:
        """Returns the bytes, not copied, after all kernels that use them are done. The view keeps the memory alive.

        Raises:
            OSError: the memory is a mapped file that was truncated.
        """
        memory = self.memory
        memory.check_backed()
        return memory.view()

    def copyin(self, data: Any) -> Buffer:
        """Fills the buffer from an object with the buffer protocol of exactly `nbytes` bytes. Returns self."""
        source = memoryview(data)
        if source.nbytes != self.nbytes:
            raise ValueError(f"{self!r} holds {self.nbytes} bytes; {source.nbytes} were given")
        self.allocate()
        if self.is_readonly:
            raise ValueError(f"{self!r} wraps memory that may only be read; make a new Buffer to write to")
        storage = Memory.of(source if source.c_contiguous else source.tobytes())
        self.memory.wait_for_kernels()
        # not by memoryviews, which are copied only between equal formats
        ctypes.memmove(self.address, storage.address, self.nbytes)
        return self

    def fill(self, element: bytes) -> Buffer:
        """Fills the buffer with copies of the bytes of one element. Returns self."""
        memory = self.allocate().memoryview()
        if len(set(element)) == 1:
            ctypes.memset(self.address, element[0], self.nbytes)
            return self
        filled_bytes = min(self.nbytes, len(element) * _FILL_CHUNK_ELEMENTS)
        memory[:filled_bytes] = element * (filled_bytes // len(element))
        while filled_bytes < self.nbytes:  # doubles the filled part
            step = min(filled_bytes, self.nbytes - filled_bytes)
            ctypes.memmove(self.address + filled_bytes, self.address, step)
            filled_bytes += step
        return self

    def copyout(self) -> bytes:
        """Returns a copy of the content as bytes."""
        return bytes(self.memoryview())


def _restore(device: str, size: int, dtype: DType, content: bytes | None) -> Buffer:
    buffer = Buffer(device, size, dtype)
    return buffer if content is None else buffer.copyin(content)
