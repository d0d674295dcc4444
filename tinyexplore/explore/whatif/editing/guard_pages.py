"""Memory between guard pages. Known bytes fill the unused rest of its own pages.

An access before the start or beyond the end of a buffer faults at a guard page. A write into the rest of a page is
detected afterwards.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.device.allocator import Memory
from tinyexplore.dtype import DType
from tinyexplore.explore.tracefile.counts import count_text

PAGE = mmap.PAGESIZE
GUARD_BYTES = 1 << 20  # on each side; wide enough to catch accesses some rows out of bounds
FILLED = 0xCB
NO_ACCESS, READ_ONLY = 0, 1  # protection flags of mprotect


@cache
def protect() -> Any:
    """Returns the system's `mprotect`; None if it has none."""
    if sys.platform in ("win32", "emscripten", "wasi"):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "mprotect", None)


@dataclass(frozen=True)
class GuardedBuffer:
    """Memory between two guard pages.

    name: the name of the buffer.
    dtype: the element type.
    start: its address.
    nbytes: its size in bytes.
    first: the address of its first page.
    last: the address after its last page.
    region: the mapping, including both guards.
    """

    name: str
    dtype: DType
    start: int
    nbytes: int
    first: int
    last: int
    region: mmap.mmap

    @staticmethod
    def of(name: str, dtype: DType, content: bytes, *, at_start: bool, align: int) -> GuardedBuffer:
        """Allocates memory with `content`, adjacent to one guard.

        With `at_start` it begins where the lower guard ends. Else it ends where the upper guard begins, as near as an
        alignment of `align` bytes permits.
        """
        guard = GUARD_BYTES if protect() is not None else PAGE
        page_bytes = -(-max(1, len(content)) // PAGE) * PAGE
        region = mmap.mmap(-1, page_bytes + 2 * guard)
        base = ctypes.addressof(ctypes.c_char.from_buffer(region))
        first, last = base + guard, base + guard + page_bytes
        start = first if at_start else (last - len(content)) // align * align
        ctypes.memset(first, FILLED, page_bytes)
        ctypes.memmove(start, content, len(content))
        return GuardedBuffer(name, dtype, start, len(content), first, last, region)

    def close(self, *, read_only: bool) -> None:
        """Protects the guard pages, and with `read_only` the memory too: from now on such accesses fault."""
        call = protect()
        if call is None:
            return
        parts = [(self.first - GUARD_BYTES, GUARD_BYTES, NO_ACCESS), (self.last, GUARD_BYTES, NO_ACCESS)]
        if read_only:
            parts.append((self.first, self.last - self.first, READ_ONLY))
        for address, nbytes, access in parts:
            if call(ctypes.c_void_p(address), ctypes.c_size_t(nbytes), access):
                raise OSError(ctypes.get_errno(), "mprotect")

    def buffer(self, device: str) -> Buffer:
        """Returns the memory as a Buffer."""
        size = self.nbytes // self.dtype.itemsize
        return Buffer(device, size, self.dtype, Memory(self.start, self.nbytes, self.region))

    def content(self) -> bytes:
        """Returns the current content of the memory."""
        return ctypes.string_at(self.start, self.nbytes)

    def overrun(self) -> str:
        """Returns the writes into the unused rest of its pages as text; "" for none."""
        before = ctypes.string_at(self.first, self.start - self.first)
        if (overwritten := before.rstrip(bytes([FILLED]))) != b"":
            changed = next(offset for offset, byte in enumerate(before) if byte != FILLED)
            return _describe_overwritten_bytes("wrote", self, changed - len(before), len(overwritten) - changed)
        behind = ctypes.string_at(self.start + self.nbytes, self.last - self.start - self.nbytes)
        if (overwritten := behind.rstrip(bytes([FILLED]))) != b"":
            changed = next(offset for offset, byte in enumerate(behind) if byte != FILLED)
            return _describe_overwritten_bytes("wrote", self, self.nbytes + changed, len(overwritten) - changed)
        return ""

    def place_data(self) -> list[Any]:
        """Returns the name and the addresses of the buffer and its guard pages as data, for `describe_access`."""
        guard = GUARD_BYTES if protect() is not None else 0
        return [self.name, self.start, self.nbytes, self.dtype.itemsize, self.first - guard, self.last + guard]


@contextmanager
def make_guarded_buffers(
    names: Sequence[tuple[str, DType]],
    contents: Sequence[bytes],
    writes: frozenset[int],
    aligned: frozenset[int],
    *,
    at_start: bool,
) -> Iterator[list[GuardedBuffer]]:
    """Yields memory between guard pages for the buffers of a kernel.

    Args:
        names: (name, element type) of each buffer.
        contents: the content of each buffer.
        writes: the positions of the buffers that the kernel may write.
        aligned: the positions of the buffers that must start at a cache line.
        at_start: see `GuardedBuffer.of`.
    """
    memory = []
    for position, ((name, dtype), content) in enumerate(zip(names, contents)):
        align = 64 if position in aligned else dtype.itemsize
        fence = GuardedBuffer.of(name, dtype, content, at_start=at_start, align=align)
        fence.close(read_only=position not in writes)
        memory.append(fence)
    yield memory


def describe_access(buffers: Sequence[Sequence[Any]], address: int, verb: str) -> str:
    """Returns the access to `address` as text, with its position relative to the nearest buffer; "" if none is near."""
    for name, start, nbytes, itemsize, low, high in buffers:
        if low <= address < high:
            if start <= address < start + nbytes:
                element = (address - start) // itemsize
                return f"{verb} {name}, which it may only read (element {element})"
            return _position_text(verb, name, address - start, nbytes, itemsize)
    return ""


def _describe_overwritten_bytes(verb: str, memory: GuardedBuffer, offset: int, count: int) -> str:
    position = _position_text(verb, memory.name, offset, memory.nbytes, memory.dtype.itemsize)
    return position.replace(verb, f"{verb} {count_text(count, 'byte')}", 1)


def _position_text(verb: str, name: str, offset: int, nbytes: int, itemsize: int) -> str:
    size = nbytes // itemsize
    if offset < 0:
        return f"{verb} before the start of {name}: {-offset} bytes before it (element {offset // itemsize})"
    bytes_past = offset - nbytes
    distance = f"{bytes_past} bytes past it, " if bytes_past else ""
    return f"{verb} past the end of {name}: {distance}element {offset // itemsize} of {size}"


__all__ = ["GuardedBuffer", "make_guarded_buffers", "protect", "describe_access"]
