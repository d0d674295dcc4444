"""Where memory comes from: a host allocator that keeps freed blocks for reuse, because fresh pages are slow.

The first touch of a page costs more than the arithmetic of most kernels done on it, so blocks of 1 MiB and more are
mapped on their own, with huge pages where the system has them, and kept when they are freed (least recently used
ones go first).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Protocol

from tinyexplore.util import GlobalCounters

try:
    import mmap
except ImportError:  # a Python without it, as in some browsers
    mmap = None  # type: ignore[assignment]

LINES_IN_A_PAGE = 64
ALIGNMENT = 64  # a cache line, and the widest vector register
HUGE_PAGE = 2 << 20
MAPPED_FROM = 1 << 20
DEFAULT_CACHE_BYTES = 1 << 30
# Buffers walked together do not all start at the same place in a page, nor 1 to 4 lines apart: a load waits for a store
# not long before it if only the pages differ in their addresses; of rows of a page each that is every one (layernorm
# of 4 KiB rows in a cache takes 1.5 times as long at 2 lines, 1.1 at 4, and from 8 on no longer than at none).
_STAGGER_LINES, _STAGGERS = 24, 8


class Memory:
    """`nbytes` of host memory at `address`; `owner` is what keeps it there.

    `on_release`, if any, is called once, when this object and every view made of it are gone.
    """

    __slots__ = ("address", "nbytes", "readonly", "owner", "on_release", "__weakref__")

    def __init__(
        self,
        address: int,
        nbytes: int,
        owner: Any,
        *,
        readonly: bool = False,
        on_release: Callable[[], None] | None = None,
    ) -> None:
        self.address = address
        self.nbytes = nbytes
        self.owner = owner
        self.readonly = readonly
        self.on_release = on_release

    def view(self) -> memoryview:
        """The bytes, not copied; as long as the view lives, so does the memory."""
        if self.nbytes == 0:
            return memoryview(b"") if self.readonly else memoryview(bytearray())
        exporter = _bytes_type(self.nbytes).from_address(self.address)
        exporter.memory = self  # type: ignore[attr-defined]
        view = memoryview(exporter).cast("B")
        return view.toreadonly() if self.readonly else view

    @property
    def is_own(self) -> bool:
        """True for a block of an allocator, which nobody else has an address in."""
        return isinstance(self.owner, _Block) and not self.readonly

    def part(self, start: int, nbytes: int, *, readonly: bool = False) -> Memory:
        """`nbytes` of this memory from `start` on; the whole lives as long as any part."""
        if not 0 <= start <= start + nbytes <= self.nbytes:
            raise ValueError(f"bytes {start} to {start + nbytes} of a memory of {self.nbytes}")
        return Memory(self.address + start, nbytes, self, readonly=readonly or self.readonly)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.on_release is not None and not is_finalizing():  # at the end modules are empty already
            self.on_release()

    @staticmethod
    def of(exporter: Any) -> Memory:
        """The memory of an object with the buffer protocol; it stays the object's, and the object stays alive."""
        view = memoryview(exporter)
        if not view.c_contiguous:
            raise ValueError(
                f"memory of shape {view.shape} and strides {view.strides} is not C-contiguous; copy it first"
            )
        return Memory(_address_of(view), view.nbytes, view, readonly=view.readonly)


class _KeptBytes(ctypes.c_ubyte):
    """A byte of an array that carries the `Memory` it looks at (ctypes arrays take attributes)."""


@lru_cache(maxsize=1024)
def _bytes_type(nbytes: int) -> type[ctypes.Array[Any]]:
    return _KeptBytes * nbytes


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer: all that is asked of it is `buf`."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def _address_of(view: memoryview) -> int:
    """Where the bytes lie; ctypes' own `from_buffer` refuses memory that may only be read."""
    found = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), 0)
    address = found.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address


class Allocator(Protocol):
    """Gives memory and takes it back."""

    def allocate(self, nbytes: int) -> Memory:
        """At least `nbytes`, aligned to a cache line, its content undefined; MemoryError where there is none."""
        ...

    def empty_cache(self) -> int:
        """Gives blocks kept for reuse back to the system; returns how many bytes."""
        ...


class _Block:
    """Raw memory of one size class."""

    __slots__ = ("address", "size", "owner")

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.address = address
        self.size = size
        self.owner = owner


@lru_cache(maxsize=1024)
def size_class(nbytes: int) -> int:
    """`nbytes` rounded up so that freed blocks fit again: at most an eighth is wasted (a huge page for mapped ones)."""
    step = max(ALIGNMENT, (1 << max(nbytes - 1, 1).bit_length()) >> 4)
    if nbytes >= MAPPED_FROM:
        step = max(step, HUGE_PAGE)
    return -(-max(nbytes, 1) // step) * step


class HostAllocator:
    """Host memory for every device that computes on the CPU; safe to use from several threads.

    `cache_bytes`: how much freed memory is kept for reuse. `used_bytes`: what is given out now, in whole size
    classes. `cached_bytes`: what is kept.
    """

    def __init__(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.cache_bytes = cache_bytes
        self.cached_bytes = 0
        self.used_bytes = 0
        self._lock = threading.RLock()  # a block may be released by the garbage collector inside `allocate`
        self._kept: OrderedDict[int, list[_Block]] = OrderedDict()  # by size class, least recently used first
        self._mapped_count = 0

    def allocate(self, nbytes: int) -> Memory:
        """`nbytes` (at least) at a 64-byte boundary, not cleared. MemoryError says how much was asked for."""
        if nbytes < 0:
            raise ValueError(f"cannot allocate {nbytes} bytes")
        size = size_class(nbytes)
        with self._lock:
            block = self._reuse(size)
            if block is None:
                block = self._fresh(size)
            self.used_bytes += size
        GlobalCounters.allocated(nbytes)
        return Memory(block.address, nbytes, block, on_release=partial(self._release, block, nbytes))

    def empty_cache(self) -> int:
        """Gives every block kept for reuse back to the system; returns how many bytes that was."""
        with self._lock:
            freed = self.cached_bytes
            self._kept.clear()
            self.cached_bytes = 0
        return freed

    def _reuse(self, size: int) -> _Block | None:
        blocks = self._kept.get(size)
        if not blocks:
            return None
        self.cached_bytes -= size
        return blocks.pop()

    def _fresh(self, size: int) -> _Block:
        try:
            return self._map(size)
        except (MemoryError, OSError):
            freed = self.empty_cache()
        try:
            return self._map(size)
        except (MemoryError, OSError, OverflowError) as error:
            raise MemoryError(
                f"cannot allocate {size:,} bytes: {self.used_bytes:,} bytes are in use and {freed:,} bytes kept for "
                "reuse were given back first; free tensors (del) or work in smaller pieces"
            ) from error

    def _map(self, size: int) -> _Block:
        if size < MAPPED_FROM or mmap is None:
            owner = ctypes.create_string_buffer(size + ALIGNMENT)
            address = ctypes.addressof(owner)
            return _Block(-(-address // ALIGNMENT) * ALIGNMENT, size, owner)
        span = size + 2 * HUGE_PAGE  # address space only: pages never touched take no memory
        if hasattr(mmap, "MAP_PRIVATE"):  # shared memory, the default, gets no huge pages
            mapped = mmap.mmap(-1, span, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            mapped = mmap.mmap(-1, span)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                mapped.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass  # a kernel built without huge pages: small ones serve as well, only slower
        self._mapped_count += 1
        start = -(-_address_of(memoryview(mapped)) // HUGE_PAGE) * HUGE_PAGE
        return _Block(
            start + self._mapped_count % _STAGGERS * _STAGGER_LINES % LINES_IN_A_PAGE * ALIGNMENT, size, mapped
        )

    def _release(self, block: _Block, nbytes: int) -> None:
        with self._lock:
            self.used_bytes -= block.size
            GlobalCounters.allocated(-nbytes)
            if block.size > self.cache_bytes:
                return  # it would drive out everything else, and then not fit
            blocks = self._kept.get(block.size)
            if blocks is None:
                blocks = self._kept[block.size] = []
            blocks.append(block)
            self._kept.move_to_end(block.size)
            self.cached_bytes += block.size
            while self.cached_bytes > self.cache_bytes:
                oldest = next(iter(self._kept))
                blocks = self._kept[oldest]
                if blocks:
                    del blocks[0]
                    self.cached_bytes -= oldest
                else:
                    del self._kept[oldest]
