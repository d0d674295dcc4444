"""Writes an archive of Python modules with their bytecode, so that an import compiles nothing.

The Python that will import them runs this module (`precompilation.py`), so it imports nothing of this package.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import struct
import sys
import zipfile
from collections.abc import Collection

_UNCHECKED = 0b01  # flag: validated by the hash of the source, which is not checked
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_WITH_DOCSTRINGS = ("pyodide/", "_pyodide/")  # these modules read their own docstrings


def add_bytecode(archive: bytes, root: str, loaded: Collection[str]) -> bytes:
    """Returns the modules with bytecode in __pycache__ for those that are `loaded` (files); the sources stay.

    root: the folder of the modules.
    """
    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(output, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            _write_member(target, name, text)
            if (path := f"{root}/{name}") in loaded:
                _write_member(target, importlib.util.cache_from_source(name), _compile_to_bytecode(text, path, 0))
    return output.getvalue()


def to_bytecode(archive: bytes, root: str, loaded: Collection[str]) -> bytes:
    """Returns the modules with bytecode instead of the sources of those that are `loaded` (files), without docstrings.

    root: the archive itself, from which Python imports them.
    """
    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(output, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            if (path := f"{root}/{name}") in loaded:
                level = 0 if name.startswith(_WITH_DOCSTRINGS) else 2
                name, text = f"{name}c", _compile_to_bytecode(text, path, level)
            _write_member(target, name, text)
    return output.getvalue()


def loaded_files() -> set[str]:
    """Returns the files of the modules that this Python has imported."""
    paths = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {file for file in paths if file}


def _write_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), data)


def _compile_to_bytecode(source: bytes, name: str, level: int) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True, optimize=level)
    head = importlib.util.MAGIC_NUMBER + struct.pack("<I", _UNCHECKED) + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


__all__ = ["to_bytecode", "loaded_files", "add_bytecode"]
