"""What a live page carries as text: files, compressed, in base64, each in a block of its own that no browser runs."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

from tinyexplore.explore.live.pyodide import PYODIDE_FILES, PYODIDE_LOCK

PACKAGE = Path(__file__).resolve().parents[2]
_LEFT_OUT = {"static", "widgets", "__pycache__"}  # the page has the front end already
_STDLIB = "python_stdlib.zip"
_OF_NO_USE = frozenset(  # servers and mail, tests, debuggers and prompts on a terminal
    "bdb doctest ensurepip ftplib imaplib mailbox pdb poplib pydoc pydoc_data _pyrepl smtplib unittest wsgiref "
    "xmlrpc".split()
)
_BEFORE_ALL = (1980, 1, 1, 0, 0, 0)


def packed_engine() -> bytes:
    """This package as a zip archive, equal for equal files; not compressed, because the whole of it will be."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path in engine_files():
            name = f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}"
            archive.writestr(zipfile.ZipInfo(name, _BEFORE_ALL), path.read_bytes())
    return file.getvalue()


def engine_files() -> Iterator[Path]:
    """All that the engine and the explorer need to run."""
    for path in sorted(PACKAGE.rglob("*")):
        parts = path.relative_to(PACKAGE).parts
        if path.is_file() and not _LEFT_OUT.intersection(parts) and path.suffix != ".pyc":
            yield path


def pyodide_blocks(folder: Path) -> str:
    """Pyodide's files as blocks of a page."""
    files = {name: (folder / name).read_bytes() for name in PYODIDE_FILES}
    files[_STDLIB] = slim_stdlib(files[_STDLIB])
    lock = json.loads((folder / PYODIDE_LOCK).read_text(encoding="utf-8"))
    files[PYODIDE_LOCK] = json.dumps({"info": lock["info"], "packages": {}}).encode()  # there are no packages to load
    return "\n".join(block(name, data) for name, data in files.items())


def slim_stdlib(archive: bytes) -> bytes:
    """The standard library without what serves nobody in a page; not compressed, because the whole of it will be."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(file, "w") as kept:
        for name in sorted(given.namelist()):
            if name.partition("/")[0].removesuffix(".py") not in _OF_NO_USE:
                kept.writestr(zipfile.ZipInfo(name, _BEFORE_ALL), given.read(name))
    return file.getvalue()


def block(name: str, data: bytes) -> str:
    """`data` in a page, under `name`: widgets/src/live/engine.ts reads it."""
    text = b64encode(gzip.compress(data, compresslevel=9, mtime=0)).decode()
    return f'<script type="application/octet-stream+base64" data-carried="{name}">{text}</script>'


__all__ = ["block", "engine_files", "packed_engine", "pyodide_blocks", "slim_stdlib"]
