"""Downloads files into a private folder of this user."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from tinyexplore.util.private_folder import cache_folder, make_private, warn_once, why_not_private
from tinyexplore.util.untrusted_data import UntrustedError, gunzip

_CHUNK_BYTES = 1 << 20
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")  # the beginning of an absolute path of Windows
_TIMEOUT_S = 30
_UNPACKED_BYTES = 1 << 30  # most unpacked bytes of any file
# largest ratio of unpacked to packed bytes of a large file: archives of pictures and weights have 1 to 5
_UNPACKED_RATIO = 50


class FetchError(RuntimeError):
    """Raised for a file that cannot be downloaded, or is not the expected one."""


def fetch(
    url: str,
    name: str | None = None,
    subdir: str | None = None,
    gunzip: bool = False,
    allow_caching: bool = True,
    *,
    checksum: str | None = None,
) -> Path:
    """Returns the path of the file at `url` (http or https), downloaded once.

    A path that begins with / or . or a drive (C:\\) is that file itself.

    Args:
        name, subdir: the name and the folder among the downloads. If the cache folder cannot be used, they last as long
        as the process.
        gunzip: whether to store it unpacked.
        checksum: of the downloaded bytes, "sha256:" (or "md5:") and the number in hex.

    Raises:
        FetchError: the checksum differs, or the download fails.
    """
    if not isinstance(url, str):
        raise TypeError(f"fetch {url!r} ({type(url).__name__}): need a URL or a path, as text")
    if url.startswith(("/", ".")) or _DRIVE.match(url):
        return Path(url)
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"fetch {url!r}: need http://, https://, or a path that begins with / or .")
    digest = hashlib.sha256(f"{url} {gunzip} {checksum}".encode()).hexdigest()[:32]
    for downloads in kept_folders():
        path = downloads / (subdir or "") / (name or digest)
        if not path.resolve().is_relative_to(downloads.resolve()):
            raise ValueError(f"fetch: name {name!r} in {subdir!r} is outside the download folder")
        if allow_caching and path.is_file():
            return path
        with suppress(OSError):
            make_private(path.parent)
        if os.access(path.parent, os.W_OK):
            break
    temporary = path.with_name(f".new-{os.urandom(8).hex()}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _download(url, temporary, checksum)
        if gunzip:
            _unpack(temporary, url)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def kept_folders() -> Iterator[Path]:
    """Yields the folders for downloads. The first is in the cache folder, if that exists and is private.

    The second is deleted when the process ends. Downloads may be executed, so no other user may write to the folder.
    """
    try:
        folder = cache_folder() / "downloads"
        make_private(folder.parent)
        refused_folder, reason = folder.parent, why_not_private(folder.parent, or_of_root=True)
        # other users can access the path up to this folder
        if reason is None and folder.is_dir() and folder.parent.stat().st_mode & 0o011:
            refused_folder, reason = folder, why_not_private(folder, or_of_root=True)
        if reason is None:
            yield folder
        else:
            warn_once(
                f"Downloads are not cached in {refused_folder}: {reason}. Make the folder private (chown, chmod go-w), "
                "or choose another folder (XDG_CACHE_HOME)."
            )
    except (OSError, RuntimeError, ValueError) as error:  # the last two: this user has no home, or a relative one
        warn_once(f"Downloads are not cached after this process: {error}. Choose another folder (XDG_CACHE_HOME).")
    yield _temporary_folder(os.getpid())


@cache
def _temporary_folder(process: int) -> Path:
    """Creates a folder that this process removes at its exit."""
    import shutil
    import tempfile

    def remove() -> None:
        if os.getpid() == process:  # and not a child of it
            shutil.rmtree(folder, ignore_errors=True)

    folder = Path(tempfile.mkdtemp(prefix="tinyexplore-"))
    atexit.register(remove)
    return folder


def _download(url: str, path: Path, checksum: str | None) -> None:
    """Downloads `url` to `path`, and checks its length and checksum. Raises FetchError."""
    import urllib.request

    from tqdm.auto import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "tinyexplore"})
    algorithm, _, expected = (checksum or "sha256:").partition(":")
    if algorithm not in ("sha256", "md5"):
        raise ValueError(f"checksum {checksum!r}: need 'sha256:' or 'md5:' and the number in hex")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer, open(path, "wb") as file:
            length = answer.headers.get("Content-Length")
            total = int(length) if length else None
            with tqdm(total=total, unit="B", unit_scale=True, desc=url.rpartition("/")[2], delay=1) as progress:
                while chunk := answer.read(_CHUNK_BYTES):
                    file.write(chunk)
                    digest.update(chunk)
                    progress.update(len(chunk))
    except OSError as error:
        raise FetchError(f"{url} could not be fetched: {error}") from error
    size = path.stat().st_size
    if total is not None and size != total:
        raise FetchError(f"{url}: received {size} of {total} bytes; try again")
    if checksum is not None and digest.hexdigest() != expected.lower():
        raise FetchError(
            f"{url} has the {algorithm} {digest.hexdigest()}, not {expected}: the file is not the expected one"
        )


def _unpack(path: Path, url: str) -> None:
    """Decompresses a gzip file in place, up to a limit of its size. Raises FetchError."""
    unpacked = path.with_name(path.name + ".unpacked")
    most_bytes = max(_UNPACKED_BYTES, _UNPACKED_RATIO * path.stat().st_size)
    try:
        with open(path, "rb") as packed, open(unpacked, "wb") as file:
            for content in gunzip(packed, most_bytes):
                file.write(content)
        os.replace(unpacked, path)
    except (OSError, UntrustedError) as error:
        raise FetchError(f"{url} does not unpack as gzip: {error}") from error
    finally:
        unpacked.unlink(missing_ok=True)
