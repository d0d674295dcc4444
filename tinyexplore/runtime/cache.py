"""Machine code kept on disk, by the content of what it was made from.

The key covers source, target, compiler and its version (`ProgramSpec.key`), and every file ends in a checksum of
itself, so that what is found is right or not found. `CACHELEVEL=0` turns this off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from tinyexplore.util import cache_folder, config

MAX_FILES = 8192
_CHECKSUM_BYTES = 16


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """What `make` made for `key`, now or in an earlier process. A folder that cannot be used is no error."""
    found = find(key)
    if found is None:
        found = make()
        keep(key, found)
    return found


def find(key: str) -> bytes | None:
    """What was kept under `key`, by this process or an earlier one."""
    return _read(cache_folder() / key) if config().CACHELEVEL >= 1 else None


def keep(key: str, data: bytes) -> None:
    """Keeps `data` for `find`, if that is possible."""
    if config().CACHELEVEL >= 1:
        _write(cache_folder() / key, data)


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    data, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    return data if blake2b(data, digest_size=_CHECKSUM_BYTES).digest() == checksum else None


def _write(path: Path, data: bytes) -> None:
    """All or nothing, also when several processes write the same key."""
    checksum = blake2b(data, digest_size=_CHECKSUM_BYTES).digest()
    temporary = f"{path.parent}/.new-{os.urandom(8).hex()}"
    try:
        try:
            file = _created(temporary)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = _created(temporary)
        try:
            with file:
                file.write(data + checksum)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            return
        if blake2b(path.name.encode(), digest_size=1).digest()[0] == 0:  # one write in 256 looks at the size
            _prune(path.parent)
    except OSError:
        return


def _created(path: str) -> BinaryIO:
    """A new file that only its owner may read. (tempfile's would take three times as long, while a kernel waits.)"""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))


def _prune(folder: Path) -> None:
    """The older half goes once there are too many files."""
    files = [entry for entry in folder.iterdir() if not entry.name.startswith(".") and entry.is_file()]
    if len(files) > MAX_FILES:
        for entry in sorted(files, key=lambda entry: entry.stat().st_mtime)[: len(files) // 2]:
            entry.unlink(missing_ok=True)
