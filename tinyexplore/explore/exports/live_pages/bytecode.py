"""An archive of Python modules with bytecode, so that who imports them compiles nothing. The Python that will import
them runs this (`precompiled.py`), so it knows nothing of ours."""

from __future__ import annotations

import importlib.util
import io
import marshal
import struct
import sys
import zipfile
from collections.abc import Collection

_UNCHECKED = 0b01  # by the hash of the source, which nobody compares
_BEFORE_ALL = (1980, 1, 1, 0, 0, 0)
_WITH_DOCSTRINGS = ("pyodide/", "_pyodide/")  # which read their own


def with_bytecode(archive: bytes, root: str, loaded: Collection[str]) -> bytes:
    """Modules that will lie in the folder `root`: those that are `loaded` (files) beside their bytecode, in
    __pycache__."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(made, "w") as kept:
        for name in given.namelist():
            text = given.read(name)
            _write(kept, name, text)
            if (path := f"{root}/{name}") in loaded:
                _write(kept, importlib.util.cache_from_source(name), _bytecode(text, path, 0))
    return made.getvalue()


def as_bytecode(archive: bytes, root: str, loaded: Collection[str]) -> bytes:
    """Modules that are imported from the archive itself, which will be `root`: bytecode in the place of those that are
    `loaded` (files), without docstrings."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(made, "w") as kept:
        for name in given.namelist():
            text = given.read(name)
            if (path := f"{root}/{name}") in loaded:
                level = 0 if name.startswith(_WITH_DOCSTRINGS) else 2
                name, text = f"{name}c", _bytecode(text, path, level)
            _write(kept, name, text)
    return made.getvalue()


def loaded_files() -> set[str]:
    """The files of the modules that this Python has imported."""
    found = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {file for file in found if file}


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _BEFORE_ALL), data)


def _bytecode(source: bytes, name: str, level: int) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True, optimize=level)
    head = importlib.util.MAGIC_NUMBER + struct.pack("<I", _UNCHECKED) + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


__all__ = ["as_bytecode", "loaded_files", "with_bytecode"]
