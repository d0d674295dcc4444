"""The DISK device: a file as memory. `DISK:path` names the file. Only the parts that are used are read."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from tinyexplore.device import Memory, Storage

try:
    import mmap
except ImportError:  # this Python has no mmap, as in some browsers
    mmap = None  # type: ignore[assignment]


class DiskAllocator:
    """Maps a file as memory. Creates the file if it is missing, and extends it if it is too short."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def allocate(self, nbytes: int) -> Memory:
        """Maps the first `nbytes` bytes of the file; read-only if the user may not write to it."""
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
        """Returns 0, the number of freed bytes, because this allocator has no cache."""
        return 0


def open_disk(path: str) -> Storage:
    """Opens the file `path` as a device."""
    return Storage(f"DISK:{path}", DiskAllocator(path))
