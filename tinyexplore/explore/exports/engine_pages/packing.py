"""Pack files for a page with engine: compressed, in base85, each in its own block that no browser runs."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from base64 import b85encode
from collections.abc import Iterator
from pathlib import Path

from tinyexplore.explore.exports.engine_pages.precompilation import with_first_bytecode
from tinyexplore.explore.exports.engine_pages.pyodide import PYODIDE_FILES, PYODIDE_LOCK

PACKAGE = Path(__file__).resolve().parents[3]
# the page has the front end already; front ends of other frameworks need packages that a page lacks
_LEFT_OUT = {"static", "__pycache__", "frontends", "onnx.py"}
# the only files of this package that a page needs: the rows of panels
_WIDGETS = {"widgets/__init__.py", "widgets/panels.py"}
# not needed in a page: the command line, generators of files of the repository, and writers of pages
_NOT_PACKED = {"cli.py", "__main__.py", "explore/glossary.py", "explore/schema.py"}
_NOT_PACKED |= {
    f"explore/exports/engine_pages/{name}.py" for name in ("bytecode", "packing", "page", "precompilation", "pyodide")
}
_STDLIB, _ENGINE = "python_stdlib.zip", "tinyexplore.zip"
# servers and mail, tests, debuggers and terminal prompts, processes, configuration files, and replacements of
UNUSED_MODULES = frozenset(
    # modules written in C
    "_pydatetime _pyio antigravity argparse bdb cmd code compileall configparser cProfile doctest email "
    "ensurepip fileinput filecmp ftplib getpass gettext imaplib mailbox mailcap mimetypes modulefinder "
    "multiprocessing netrc "
    "nturl2path optparse pdb plistlib poplib profile pstats pty py_compile pyclbr pydoc pydoc_data _pyrepl "
    "rlcompleter runpy sched shelve smtplib socketserver sqlite3 ssl symtable tabnanny this tomllib trace tracemalloc "
    "tty turtle unittest wave webbrowser wsgiref xmlrpc zipapp zoneinfo".split()
)
_UNUSED_MODULE_PARTS = (
    *(
        "xml/",
        "http/client",
        "http/server",
        "http/cookie",
        "urllib/request",
        "urllib/robotparser",
        "logging/config",
        "logging/handlers",
        "concurrent/futures/process",
        "ctypes/_aix",
        "ctypes/macholib",
    ),
    *("ctypes/wintypes", "asyncio/__main__", "asyncio/proactor", "asyncio/tools", "asyncio/windows"),
)
_CODE_PAGES = (
    *("cp", "iso", "mac_", "koi8", "kz1048", "ptcp", "tis_", "hp_", "palmos"),
    *("big5", "euc_", "gb", "hz", "johab", "shift_jis"),
)
_NO_TAG = bytes.maketrans(b"<", b",")
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def packed_engine() -> bytes:
    """Returns this package as an uncompressed zip archive, equal for equal files. `data_block` compresses it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path in engine_files():
            name = f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}"
            archive.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), path.read_bytes())
    return file.getvalue()


def engine_files() -> Iterator[Path]:
    """Yields all files that the engine and the explorer need to run."""
    for path in sorted(PACKAGE.rglob("*")):
        inside = path.relative_to(PACKAGE)
        of_no_use = path.suffix in (".pyc", ".ll") or inside.as_posix() in _NOT_PACKED  # only LLVM compiles .ll files
        of_no_use |= inside.parts[0] == "widgets" and inside.as_posix() not in _WIDGETS
        if path.is_file() and not _LEFT_OUT.intersection(inside.parts) and not of_no_use:
            yield path


def write_python_blocks(folder: Path) -> str:
    """Returns Pyodide's files and the engine as blocks of a page, precompiled if possible."""
    files = {name: (folder / name).read_bytes() for name in PYODIDE_FILES}
    files[_STDLIB], files[_ENGINE] = with_first_bytecode(folder, slim_stdlib(files[_STDLIB]), packed_engine())
    lock = json.loads((folder / PYODIDE_LOCK).read_text(encoding="utf-8"))
    files[PYODIDE_LOCK] = json.dumps({"info": lock["info"], "packages": {}}).encode()  # there are no packages to load
    return "\n".join(data_block(name, data) for name, data in files.items())


def slim_stdlib(archive: bytes) -> bytes:
    """Returns the standard library without modules that a page cannot use.

    The archive is uncompressed, since `data_block` compresses it.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as target, zipfile.ZipFile(file, "w") as source:
        for name in sorted(target.namelist()):
            if _is_needed(name):
                source.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), target.read(name))
    return file.getvalue()


def _is_needed(name: str) -> bool:
    top, _, inside = name.partition("/")
    if top == "encodings":
        return not inside.startswith(_CODE_PAGES) or inside == "cp437.py"  # the encoding of archives
    return top.removesuffix(".py") not in UNUSED_MODULES and not name.startswith(_UNUSED_MODULE_PARTS)


def data_block(name: str, data: bytes) -> str:
    """Embeds compressed `data` in a page under `name`, in base85 with characters that cannot end a script.

    widgets/src/live/worker.ts reads it.
    """
    text = b85encode(gzip.compress(data, compresslevel=9, mtime=0)).translate(_NO_TAG).decode()
    return f'<script type="application/octet-stream+base85" data-carried="{name}">{text}</script>'


__all__ = ["data_block", "engine_files", "packed_engine", "write_python_blocks", "slim_stdlib"]
