"""The host allocator: it caches freed blocks for reuse, because fresh pages are slow.

The first access of a page costs more than the arithmetic of most kernels on it. So blocks of 1 MiB and more are
mapped on their own, with huge pages where the system has them. They are cached when they are freed (least recently used
ones go first).
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol
from weakref import ref

from tinyexplore.util import GlobalCounters
from tinyexplore.util.interpreter import memory_address

try:
    import mmap
except ImportError:  # this Python has no mmap, as in some browsers
    mmap = None  # type: ignore[assignment]

LINES_PER_PAGE = 64
ALIGNMENT = 64  # bytes of a cache line, and of the widest vector register
HUGE_PAGE = 2 << 20
MIN_MAPPED_BYTES = 1 << 20
DEFAULT_CACHE_BYTES = 1 << 30
# Page offsets of blocks differ, because kernels walk several buffers together. A load waits for an earlier store if
# their page offsets are equal or differ by only 1 to 4 cache lines. Example: layernorm of 4 KiB rows in a cache takes
# 1.5 times as long at a distance of 2 lines, 1.1 times as long at 4, and is not slower from 8 on.
STAGGER_LINES, STAGGERS = 24, 8


class Memory:
    """`nbytes` bytes of host memory at `address`. The memory lives until this object and all views of it are gone.

    owner: the object that keeps the memory alive.

    There is no finalizer, because an interrupt that arrived in it would be lost. To learn when the memory is gone, use
    a weak reference with a built-in function as callback.
    """

    __slots__ = ("address", "nbytes", "readonly", "owner", "back", "__weakref__")
    back: _BlockReturnRef

    def __init__(self, address: int, nbytes: int, owner: Any, *, readonly: bool = False) -> None:
        self.address = address
        self.nbytes = nbytes
        self.owner = owner
        self.readonly = readonly

    def view(self) -> memoryview:
        """Returns the bytes, not copied, after all kernels that use them are done. The view keeps the memory alive."""
        self.wait_for_kernels()
        if self.nbytes == 0:
            return memoryview(b"") if self.readonly else memoryview(bytearray())
        exporter = _bytes_type(self.nbytes).from_address(self.address)
        exporter.memory = self  # type: ignore[attr-defined]
        view = memoryview(exporter).cast("B")
        return view.toreadonly() if self.readonly else view

    @property
    def is_own(self) -> bool:
        """Whether this is a block of an allocator, so that no foreign object has its address."""
        return isinstance(self.owner, Block) and not self.readonly

    @property
    def root(self) -> Memory:
        """Returns the outermost memory that this is a part of."""
        outermost = self
        while isinstance(outermost.owner, Memory):
            outermost = outermost.owner
        return outermost

    def wait_for_kernels(self) -> None:
        """Waits until no launched kernel uses this memory, so that the host can read or write it."""
        block = self.root.owner
        if isinstance(block, Block) and block.wait is not None:
            block.wait()

    def part(self, start: int, nbytes: int, *, readonly: bool = False) -> Memory:
        """Returns `nbytes` of this memory from `start` on. The part keeps the whole memory alive."""
        if not 0 <= start <= start + nbytes <= self.nbytes:
            raise ValueError(f"bytes {start} to {start + nbytes} are outside a memory of {self.nbytes} bytes")
        return Memory(self.address + start, nbytes, self, readonly=readonly or self.readonly)

    def check_backed(self) -> None:
        """Raises OSError if this is part of a mapped file that was truncated. Reading it would end the process."""
        root = self.root
        mapped = root.owner.obj if isinstance(root.owner, memoryview) else None
        if mmap is None or not isinstance(mapped, mmap.mmap):
            return
        try:
            backed = mapped.size()
        except (OSError, ValueError):  # the memory is not a file
            return
        needed_bytes = self.address - root.address + self.nbytes
        if backed < needed_bytes:
            raise OSError(
                f"the mapped file was truncated: it has {backed} bytes, {needed_bytes} are needed; load it again"
            )

    @staticmethod
    def of(exporter: Any) -> Memory:
        """Returns the memory of an object with the buffer protocol. The memory keeps the object alive."""
        view = memoryview(exporter)
        if not view.c_contiguous:
            raise ValueError(
                f"memory of shape {view.shape} and strides {view.strides} is not C-contiguous; copy it first"
            )
        return Memory(memory_address(view), view.nbytes, view, readonly=view.readonly)


class _OwnedByte(ctypes.c_ubyte):
    """A byte array with a reference to its `Memory` (ctypes arrays accept attributes)."""


@lru_cache(maxsize=1024)
def _bytes_type(nbytes: int) -> type[ctypes.Array[Any]]:
    return _OwnedByte * nbytes


class Allocator(Protocol):
    """Allocates and frees memory."""

    def allocate(self, nbytes: int) -> Memory:
        """Allocates at least `nbytes` bytes, aligned to a cache line, with undefined content. Raises MemoryError if
        there are none."""
        ...

    def empty_cache(self) -> int:
        """Returns the cached blocks to the system. Returns their number of bytes."""
        ...


class Block:
    """Raw memory of one size class.

    address: its address.
    size: its size in bytes.
    owner: the object that keeps it alive.
    wait: waits until the last kernel that uses it is done; None: no device runs kernels there asynchronously.
    """

    __slots__ = ("address", "size", "owner", "wait")

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.address = address
        self.size = size
        self.owner = owner
        self.wait: Callable[[], None] | None = None


@lru_cache(maxsize=1024)
def size_class(nbytes: int) -> int:
    """Rounds `nbytes` up to a size class, so that freed blocks can be reused. At most an eighth is wasted (a huge page
    for mapped blocks)."""
    step = max(ALIGNMENT, (1 << max(nbytes - 1, 1).bit_length()) >> 4)
    if nbytes >= MIN_MAPPED_BYTES:
        step = max(step, HUGE_PAGE)
    return -(-max(nbytes, 1) // step) * step


class _MemoryRef(ref[Memory]):
    """Reference to allocated memory, from which the allocator counts it. `size`: bytes of its size class."""

    __slots__ = ("size", "nbytes")
    size: int
    nbytes: int


class _BlockReturnRef(ref[Memory]):
    """Callback that returns a block to the cache when its memory is gone."""

    __slots__ = ("block",)
    block: Block


class HostAllocator:
    """Allocates host memory for all devices that compute on the CPU. Several threads can use it.

    cache_bytes: how many freed bytes to cache. The limit holds for each size class at any time, and for all classes
    together at the next allocation.
    """

    def __init__(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.cache_bytes = cache_bytes
        self._used_bytes = 0
        self._lock = threading.RLock()
        # freed blocks by size class, least recently used first
        self._kept: OrderedDict[int, deque[_BlockReturnRef]] = OrderedDict()
        self._kept_at_most = 0  # bytes
        self._given: set[_MemoryRef] = set()
        self._gone: deque[_MemoryRef] = deque()  # freed memory that is not counted yet
        self._mapped_count = 0
        GlobalCounters.allocators.add(self)

    @property
    def used_bytes(self) -> int:
        """Bytes allocated now, in whole size classes."""
        self.count_gone()
        return self._used_bytes

    @property
    def cached_bytes(self) -> int:
        """Bytes of freed blocks that are cached."""
        self.count_gone()
        return self._cached()

    def allocate(self, nbytes: int) -> Memory:
        """Allocates at least `nbytes` bytes at a 64-byte boundary, not cleared. A MemoryError states the requested
        size."""
        if nbytes < 0:
            raise ValueError(f"cannot allocate {nbytes} bytes: need 0 or more")
        size = size_class(nbytes)
        if self._gone:
            self.count_gone()
        with self._lock:
            free_blocks = self._kept.get(size)
            if free_blocks is None:
                free_blocks = self._kept[size] = deque(maxlen=self.cache_bytes // size)
            try:
                block = free_blocks.pop().block
                self._kept_at_most -= size
            except IndexError:
                block = self._allocate_block(size)
            memory = Memory(block.address, nbytes, block)
            memory.back = _BlockReturnRef(memory, free_blocks.append)
            memory.back.block = block
            reference = _MemoryRef(memory, self._gone.append)
            reference.size, reference.nbytes = size, nbytes
            count, keep = GlobalCounters, self._given.add
            self._used_bytes += size  # Python handles no interrupt from here to the end of the last call
            count.used_now += nbytes
            keep(reference)
        if count.used_now > count.mem_peak:
            count.mem_peak = count.used_now
        return memory

    def count_gone(self) -> None:
        """Updates the counts for freed memory. Returns cached blocks beyond the limit to the system."""
        with self._lock:
            while self._gone:
                reference = self._gone[0]
                self._given.discard(reference)
                if reference.size:
                    self._kept.move_to_end(reference.size)
                self._used_bytes -= reference.size  # as above: interrupts cannot separate these calls
                GlobalCounters.used_now -= reference.nbytes
                self._kept_at_most += reference.size
                reference.size = reference.nbytes = 0
                self._gone.popleft()
            if self._kept_at_most > self.cache_bytes:
                self._trim()

    def _cached(self) -> int:
        return sum([size * len(blocks) for size, blocks in self._kept.items()])

    def _trim(self) -> None:
        self._kept_at_most = self._cached()
        for size, blocks in self._kept.items():
            while blocks and self._kept_at_most > self.cache_bytes:
                blocks.popleft()
                self._kept_at_most -= size

    def empty_cache(self) -> int:
        """Returns all cached blocks to the system. Returns their number of bytes."""
        with self._lock:
            freed = self.cached_bytes
            for blocks in self._kept.values():
                blocks.clear()
        return freed

    def _allocate_block(self, size: int) -> Block:
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

    def _map(self, size: int) -> Block:
        if size < MIN_MAPPED_BYTES or mmap is None:
            owner = ctypes.create_string_buffer(size + ALIGNMENT)
            address = ctypes.addressof(owner)
            return Block(-(-address // ALIGNMENT) * ALIGNMENT, size, owner)
        span = size + 2 * HUGE_PAGE  # reserves addresses only: pages never accessed take no memory
        if hasattr(mmap, "MAP_PRIVATE"):  # private, because shared memory, the default, gets no huge pages
            mapped = mmap.mmap(-1, span, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            mapped = mmap.mmap(-1, span)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                mapped.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass  # a kernel without huge pages: small pages work, but are slower
        return Block(self._block_start(memory_address(memoryview(mapped))), size, mapped)

    def _block_start(self, address: int) -> int:
        """Returns the address of a new block in the huge pages from `address` on. The page offsets of blocks differ."""
        self._mapped_count += 1
        start = -(-address // HUGE_PAGE) * HUGE_PAGE
        return start + self._mapped_count % STAGGERS * STAGGER_LINES % LINES_PER_PAGE * ALIGNMENT
