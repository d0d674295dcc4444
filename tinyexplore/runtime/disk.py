"""The DISK device: a file as memory. `DISK:path` names the file; only the parts that are used are read."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from tinyexplore.device import Memory, Storage

try:
    import mmap
except ImportError:  # a Python without it, as in some browsers
    mmap = None  # type: ignore[assignment]


class DiskAllocator:
    """Memory that is a file. The file is created if it is missing, and extended if it is too short."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def allocate(self, nbytes: int) -> Memory:
        """The first `nbytes` of the file, mapped; read-only if the file may only be read."""
        if not self.path.exists() or (self.path.is_file() and self.path.stat().st_size < nbytes):
            with open(self.path, "ab") as longer:
                longer.truncate(nbytes)
        if nbytes == 0:
            return Memory.of(b"")
        with self._open() as file:
            if mmap is None:
                return Memory.of(file.read(nbytes))
            access = mmap.ACCESS_WRITE if file.writable() else mmap.ACCESS_READ
            return Memory.of(mmap.mmap(file.fileno(), nbytes, access=access))

    def _open(self) -> BinaryIO:
        try:
            return open(self.path, "r+b")
        except PermissionError:
            return open(self.path, "rb")

    def empty_cache(self) -> int:
        """Returns the bytes that were freed: 0, because this allocator has no cache."""
        return 0


def open_disk(path: str) -> Storage:
    """The file `path` as a device."""
    return Storage(f"DISK:{path}", DiskAllocator(path))
