"""Files from the network, kept in a folder of this user's."""

from __future__ import annotations

import os
from pathlib import Path

from tinyexplore.util.config import getenv

_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 30


class FetchError(RuntimeError):
    """A file that could not be had, or is not the one that was meant."""


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/tinyexplore, or ~/.cache/tinyexplore."""
    home = getenv("XDG_CACHE_HOME", "")
    return (Path(home) if home else Path.home() / ".cache") / "tinyexplore"


def fetch(
    url: str,
    name: str | None = None,
    subdir: str | None = None,
    gunzip: bool = False,
    allow_caching: bool = True,
    *,
    checksum: str | None = None,
) -> Path:
    """The file at `url` (http or https), downloaded once; a path that begins with / or . is that file itself.

    `name`, `subdir`: where it is kept among the downloads. `gunzip`: kept unpacked. `checksum`: of what the server
    sends, "sha256:" (or "md5:") and the number in hex; FetchError where it is another, or where the download fails.
    """
    if url.startswith(("/", ".")):
        return Path(url)
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"fetch {url!r}: need http://, https://, or a path that begins with / or .")
    downloads = cache_folder() / "downloads"
    import hashlib  # as here and below: what few programs need must not slow every import

    told = hashlib.sha256(f"{url} {gunzip} {checksum}".encode()).hexdigest()[:32]
    path = downloads / (subdir or "") / (name or told)
    if not path.resolve().is_relative_to(downloads.resolve()):
        raise ValueError(f"fetch: name {name!r} in {subdir!r} leads out of the folder of downloads")
    if allow_caching and path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    import tempfile

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        os.close(handle)
        _download(url, Path(temporary), checksum)
        if gunzip:
            _unpack(Path(temporary), url)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _download(url: str, path: Path, checksum: str | None) -> None:
    import urllib.request

    from tqdm.auto import tqdm

    request = urllib.request.Request(url, headers={"User-Agent": "tinyexplore"})
    kind, _, expected = (checksum or "sha256:").partition(":")
    if kind not in ("sha256", "md5"):
        raise ValueError(f"checksum {checksum!r}: need 'sha256:' or 'md5:' and the number in hex")
    import hashlib

    digest = hashlib.new(kind, usedforsecurity=False)
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
        raise FetchError(f"{url}: {size} of {total} bytes came; try again")
    if checksum is not None and digest.hexdigest() != expected.lower():
        raise FetchError(f"{url} has the {kind} {digest.hexdigest()}, not {expected}: it is not the file meant")


def _unpack(path: Path, url: str) -> None:
    import gzip
    import shutil
    import zlib

    unpacked = path.with_name(path.name + ".unpacked")
    try:
        with gzip.open(path, "rb") as packed, open(unpacked, "wb") as file:
            shutil.copyfileobj(packed, file)
        os.replace(unpacked, path)
    except (OSError, EOFError, zlib.error) as error:
        unpacked.unlink(missing_ok=True)
        raise FetchError(f"{url} does not unpack as gzip: {error}") from error
