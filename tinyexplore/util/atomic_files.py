"""Writes files completely or not at all. After an error or an interrupt, the earlier file is unchanged."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | Path, data: bytes) -> Path:
    """Writes `data` beside `path` and renames it into place. A link stays; its target is replaced.

    A path that is not a regular file (a pipe, /dev/stdout) is written directly, and so is a file in a folder without
    permission to add files. Every OSError names `path`.
    """
    path = Path(path)
    try:
        _write(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return path


def _write(path: Path, data: bytes) -> None:
    """Writes a temporary file and renames it, so that `path` has all of `data` or its old content."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    temporary = str(path.with_name(f".new-{os.urandom(8).hex()}"))
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with open(handle, "wb") as file:
            file.write(data)
        with suppress(OSError):  # a new file has no mode to preserve
            os.chmod(temporary, path.stat().st_mode & 0o7777)
        os.replace(temporary, path)
    except PermissionError:
        path.write_bytes(data)
    finally:
        try:
            os.unlink(temporary)  # not a Python function: an interrupt arrives at the beginning of one
        except OSError:
            pass


__all__ = ["write_whole"]
