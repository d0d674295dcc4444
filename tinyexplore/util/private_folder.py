"""The cache folder that processes share, and the check that only this user can have written to it.

On Windows, Python cannot read owners and modes. There every folder and file counts as this user's.
"""

from __future__ import annotations

import os
import stat
import warnings
from contextlib import suppress
from pathlib import Path

from tinyexplore.util.config import getenv

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Returns $XDG_CACHE_HOME/tinyexplore, or ~/.cache/tinyexplore if that variable is unset or a relative path.

    The XDG specification says that relative paths are ignored. Raises ValueError for a relative $HOME, because the
    cache would depend on the working directory. Raises RuntimeError if this user has no home.
    """
    cache_root = Path(getenv("XDG_CACHE_HOME", ""))
    folder = cache_root if cache_root.is_absolute() else Path.home() / ".cache"
    if not folder.is_absolute():
        raise ValueError(
            f"HOME={getenv('HOME', '')!r} is a relative path, so that each working directory would have a cache of its "
            "own: give an absolute one, set XDG_CACHE_HOME, or set CACHELEVEL=0"
        )
    return folder / "tinyexplore"


def user() -> int | None:
    """Returns the number of the user that this process runs as; None if the system has no users."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_private(info: os.stat_result, refused: int = OTHERS_WRITE) -> bool:
    """Whether a file belongs to this user, and its mode gives others none of the bits `refused`."""
    return user() is None or (info.st_uid == user() and not info.st_mode & refused)


def why_not_private(folder: str | Path, *, or_of_root: bool = False) -> str | None:
    """Returns the reason why other users could write to `folder`, or None. Raises OSError if it does not exist.

    or_of_root: whether folders of root count as private, too.

    A link to a folder counts like the folder, if the link belongs to this user or to root.
    """
    me, link, info = user(), os.lstat(folder), os.stat(folder)
    if not stat.S_ISDIR(info.st_mode):
        return "it is not a folder"
    if me is None:
        return None
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (me, 0):
        return f"it is a link that belongs to user {link.st_uid}, not to this user, {me}"
    if info.st_uid != me and not (or_of_root and info.st_uid == 0):
        return f"it belongs to user {info.st_uid}, not to this user, {me}"
    if info.st_mode & OTHERS_WRITE:
        return f"others may write there (its mode is {stat.S_IMODE(info.st_mode):04o})"
    return None


def make_private(folder: str | Path) -> None:
    """Creates `folder`, and its parents, with access for this user only.

    Raises OSError if that is not possible. Raises PermissionError if root would create it in another user's home, who
    could then not use it.
    """
    if os.path.isdir(folder):
        return
    existing_parent = Path(folder).parent
    while not existing_parent.exists():
        existing_parent = existing_parent.parent
    if user() == 0 and existing_parent.stat().st_uid != 0:
        raise PermissionError(f"{existing_parent} belongs to user {existing_parent.stat().st_uid}, not to root")
    os.makedirs(Path(folder).parent, 0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)


_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Warns with `message`, but only the first time in this process."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)
