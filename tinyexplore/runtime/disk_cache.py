"""The disk cache: stores bytes under a name, and reads them back only if this user wrote them under that name.

An entry may be run as machine code. So every entry ends in a hash of its name and content under a key that only this
user can read (`.key`, made by the first process). A folder that others can write to is not used. The name of an entry
includes everything that it depends on. Entries take at most `CACHE_MB` in total; the least recently used ones are
evicted. `CACHELEVEL=0` turns the cache off. If it cannot work (no home, a full or read-only disk), programs run without
it. See docs/decisions/0033.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import TypeVar

from tinyexplore.util import config
from tinyexplore.util.private_folder import (
    OTHERS_WRITE,
    cache_folder,
    is_private,
    make_private,
    user,
    warn_once,
    why_not_private,
)

try:
    import fcntl
except ImportError:  # Windows: two processes may evict at the same time, and evict more than needed
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
KEY_BYTES = HASH_BYTES = 32
BLOCK_BYTES = 4096  # files are counted in blocks, as disks store them
LEFTOVER_S = 3600.0  # a write that began longer ago was interrupted
USED_AGAIN_S = 3600.0  # resolution of the time of last use
_SAFELY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def load_cached(name: str, make: Callable[[], bytes], load: Callable[[bytes], T]) -> T:
    """Returns `load` of the bytes that `make` makes for `name`, either now or in an earlier process.

    If stored bytes do not load (another machine may have stored them), they are rebuilt.
    """
    entry = find(name)
    if entry is not None:
        try:
            return load(entry)
        except Exception:
            pass
    entry = make()
    keep(name, entry)
    return load(entry)


def find(name: str) -> bytes | None:
    """Returns the bytes that this user stored under `name` (letters, digits and hyphens), in any process; None if
    there are none."""
    store = _open_store(name)
    return None if store is None else store.find(name)


def keep(name: str, data: bytes) -> None:
    """Stores `data` for `find`, if possible."""
    store = _open_store(name, may_make=True)
    if store is not None:
        try:
            store.keep(name, data)
        except OSError as error:
            _warn_without(store.folder, error)


@dataclass(frozen=True)
class _Store:
    """A cache folder whose permissions were checked.

    folder: its path.
    checked: its state at the time of the check.
    key: the key that signs its entries.
    """

    folder: str
    checked: tuple[int | None, ...]
    key: bytes

    def signature(self, name: str, data: bytes) -> bytes:
        signed = blake2b(name.encode() + b"\0", key=self.key, digest_size=HASH_BYTES)
        signed.update(data)
        return signed.digest()

    def find(self, name: str) -> bytes | None:
        path = f"{self.folder}/{name}"
        content = _read(path, OTHERS_WRITE, touch=True)
        if content is None:
            return None
        data, signature = content[:-HASH_BYTES], content[-HASH_BYTES:]
        return data if compare_digest(self.signature(name, data), signature) else None

    def keep(self, name: str, data: bytes) -> None:
        """Stores an entry atomically, even if several processes write the same name."""
        if self.has_room_for(len(data) + HASH_BYTES):
            with _new_file(self.folder, data + self.signature(name, data)) as new:
                os.replace(new, f"{self.folder}/{name}")

    def has_room_for(self, size: int) -> bool:
        """Counts `size` more bytes, and makes room for them. False if they would take too large a part of the cache.

        The count is the length of the file `.size`, one byte per block, so that processes can add to it concurrently
        without a lock. It may be too high (entries are replaced); `_make_room` corrects it.
        """
        most_blocks = (config().CACHE_MB << 20) // BLOCK_BYTES
        blocks = _count_blocks(size)
        if blocks > most_blocks // 4:
            return False
        handle = os.open(f"{self.folder}/.size", os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFELY, 0o600)
        try:
            counted_blocks = os.fstat(handle).st_size
            os.write(handle, bytes(blocks))
            fits = counted_blocks + blocks <= most_blocks
            if counted_blocks == 0 or not fits:
                fits = self._make_room(handle, blocks, most_blocks) or fits
            return fits
        finally:
            os.close(handle)

    def _make_room(self, counter: int, blocks: int, most_blocks: int) -> bool:
        """Counts the entries. If these and `blocks` exceed `most_blocks`, evicts the least recently used entries until
        a quarter is free.

        Only one process does this at a time; for others it returns False.
        """
        if fcntl is not None:
            try:
                fcntl.flock(counter, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until it is closed
            except OSError:
                return False
        start = os.fstat(counter).st_size
        entries = []
        with os.scandir(self.folder) as files:
            for file in files:
                with suppress(OSError):
                    info = file.stat(follow_symlinks=False)
                    if not file.name.startswith(".") and stat.S_ISREG(info.st_mode):
                        entries.append((info.st_mtime, _count_blocks(info.st_size), file.path))
        total = blocks + sum(entry[1] for entry in entries)
        if total > most_blocks:
            for _, size, path in sorted(entries):
                if total <= most_blocks * 3 // 4:
                    break
                with suppress(OSError):
                    os.unlink(path)
                    total -= size
        os.ftruncate(counter, total + os.fstat(counter).st_size - start)  # other processes have added to it meanwhile
        return True


def _count_blocks(size: int) -> int:
    return -(-size // BLOCK_BYTES)


_stores: dict[str, _Store] = {}
_has_warned = False


def _open_store(name: str, may_make: bool = False) -> _Store | None:
    """Returns the store of this user, which may have changed since the last call; None if there is no usable one."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of an entry: need letters, digits and hyphens")
    if config().CACHELEVEL < 1:
        return None
    folder = ""
    try:
        folder = str(cache_folder())
        if may_make and not os.path.exists(folder):
            make_private(folder)
        existing = _stores.get(folder)
        if existing is not None and existing.checked == _folder_state(folder):
            return existing
        reason = why_not_private(folder)
        if reason is not None:
            warn_once(
                f"The disk cache {folder} is not used: {reason}, and its code would be run. Make the folder private "
                "(chown, chmod go-w), choose another folder (XDG_CACHE_HOME), or set CACHELEVEL=0."
            )
            return None
        if may_make and _read_key_in(folder) is None:
            _make_key(folder)
        # in this order, so that a key made in between is noticed
        state, key = _folder_state(folder), _read_key_in(folder)
        if state is None or key is None:
            return None
        _sweep(folder)
        store = _stores[folder] = _Store(folder, state, key)
    except FileNotFoundError as error:
        if may_make:
            _warn_without(folder, error)
        return None
    except (OSError, RuntimeError, ValueError) as error:  # the last two: this user has no home, or a relative one
        _warn_without(folder, error)
        return None
    return store


def _warn_without(folder: str, error: Exception) -> None:
    """Warns once per process, for the first failure. Programs go on without the cache."""
    global _has_warned  # noqa: PLW0603
    if not _has_warned:
        _has_warned = True
        warn_once(
            f"The disk cache {folder} cannot be used: {error}. Programs run without it, and compile their kernels "
            "again. Choose another place (XDG_CACHE_HOME), or set CACHELEVEL=0."
        )


def _folder_state(folder: str) -> tuple[int | None, ...] | None:
    """Returns the properties of a folder that must not change after its check and the reading of its key; None
    without a folder."""
    try:
        info, key = os.stat(folder), os.stat(f"{folder}/.key")
    except FileNotFoundError:
        return None
    return (user(), info.st_dev, info.st_ino, info.st_mode, info.st_uid, key.st_ino, key.st_ctime_ns)


def _read_key_in(folder: str) -> bytes | None:
    """Returns the key of `folder` if no other user can have read or written it; else None."""
    key = _read(f"{folder}/.key", stat.S_IRWXG | stat.S_IRWXO)
    return key if key is not None and len(key) == KEY_BYTES else None


def _make_key(folder: str) -> None:
    """Creates the key of `folder`. If several processes do so, all get the first one's key."""
    path = f"{folder}/.key"
    with _new_file(folder, os.urandom(KEY_BYTES)) as new:
        try:
            os.link(new, path)
        except FileExistsError:
            if _read_key_in(folder) is None:  # the key is damaged, or others may have read it
                os.replace(new, path)
        except (OSError, AttributeError):  # this disk has no links, so the last key wins
            os.replace(new, path)


def _read(path: str, refused: int, touch: bool = False) -> bytes | None:
    """Returns the content of a file of this user; None for a link, a pipe, or a file whose mode gives others a bit of
    `refused`.

    touch: whether to update the time of its last use.
    """
    try:
        with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | _SAFELY)) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or not is_private(info, refused):
                return None
            content = file.read()
        if touch and time.time() - info.st_mtime > USED_AGAIN_S:
            with suppress(OSError):
                os.utime(path)
        return content
    except OSError:
        return None


@contextmanager
def _new_file(folder: str, content: bytes) -> Iterator[str]:
    """Yields the path of a new file in `folder` that only its owner may read. It is deleted afterwards, unless it
    was moved."""
    path = f"{folder}/.new/{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY
    try:
        handle = os.open(path, flags, 0o600)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(f"{folder}/.new", 0o700)
        handle = os.open(path, flags, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


def _sweep(folder: str) -> None:
    """Deletes the leftovers of interrupted writes."""
    too_old = time.time() - LEFTOVER_S
    with suppress(OSError), os.scandir(f"{folder}/.new") as files:
        for file in files:
            if file.stat(follow_symlinks=False).st_mtime < too_old:
                os.unlink(file.path)


__all__ = ["load_cached", "find", "keep"]
