"""Finds or downloads Pyodide, the Python for browsers in a page with engine.

It is downloaded once from its npm package, and is never part of this package.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tinyexplore.util import fetch, getenv
from tinyexplore.util.fetch import kept_folders
from tinyexplore.util.private_folder import make_private

PYODIDE_VERSION = "314.0.7"
_INTEGRITY = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="  # sha512
PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
PYODIDE_LOCK = "pyodide-lock.json"
_ALL_FILES = (*PYODIDE_FILES, PYODIDE_LOCK, "package.json")
_NPM_TIMEOUT_S = 300


class PyodideMissing(RuntimeError):
    """Pyodide was not found and could not be downloaded; the message lists the alternatives."""


def find_pyodide(folder: str | Path | None = None) -> Path:
    """Returns the folder with Pyodide's files.

    The search order is: `folder` (a folder, or the package as .tgz), $PYODIDE, the version in a checkout's front end,
    an earlier download, and a new download from npm's registry.
    """
    location = str(folder) if folder is not None else getenv("PYODIDE", "")
    if location:
        return _read_package(Path(location).expanduser())
    if not missing_files_reason(_find_checkout()):
        return _find_checkout()
    return _unpack_once(PYODIDE_VERSION, _fetch_package)


def _find_checkout() -> Path:
    return Path(__file__).resolve().parents[4] / "widgets" / "node_modules" / "pyodide"


def missing_files_reason(folder: Path) -> str:
    """Returns the reason why `folder` has no Pyodide for a page with engine, or "" if it has one."""
    missing = [name for name in _ALL_FILES if not (folder / name).is_file()]
    if missing:
        return f"{folder} has no {', '.join(missing)}"
    version = json.loads((folder / "package.json").read_text(encoding="utf-8")).get("version", "")
    if version.partition(".")[0] != PYODIDE_VERSION.partition(".")[0]:
        return f"{folder} is Pyodide {version}; pages with engine are made with {PYODIDE_VERSION}"
    return ""


def _unpack_once(name: str, package: Callable[[], bytes]) -> Path:
    """Returns the folder with the unpacked `package`; unpacks it into a private folder on the first call."""
    folder = Path()
    for directory in kept_folders():
        folder = directory / f"pyodide-{name}"
        if not missing_files_reason(folder):
            return folder
        with suppress(OSError):
            make_private(directory)
        if os.access(directory, os.W_OK):
            break
    _unpack_files(package(), folder)
    return folder


def _read_package(path: Path) -> Path:
    if path.is_file():
        data = path.read_bytes()
        path = _unpack_once(hashlib.sha256(data).hexdigest()[:16], lambda: data)
    if reason := missing_files_reason(path):
        raise PyodideMissing(f"{reason}; pass the folder of the npm package pyodide@{PYODIDE_VERSION}, unpacked")
    return path


def _fetch_package() -> bytes:
    """Downloads and checks the npm package, with npm if installed, else from the registry in npm's settings."""
    try:
        data = _fetch_by_npm() if shutil.which("npm") else _fetch_by_https()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise PyodideMissing(
            f"a page with engine contains Pyodide {PYODIDE_VERSION}. Pyodide is not installed, and the download failed "
            f"({error}). Run `npm pack pyodide@{PYODIDE_VERSION}` on a machine with a network, and pass that file or "
            "its folder: pyodide=… or --pyodide …, or PYODIDE=… in the environment"
        ) from error
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    if digest != _INTEGRITY:
        raise PyodideMissing(
            f"the registry's pyodide@{PYODIDE_VERSION} is not the package that was published under that name "
            f"(sha512-{digest}): it was discarded"
        )
    return data


def _fetch_by_npm() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"pyodide@{PYODIDE_VERSION}", "--silent", "--pack-destination", folder]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_NPM_TIMEOUT_S)
        packed = sorted(Path(folder).glob("*.tgz"))
        if process.returncode or not packed:
            raise RuntimeError(f"npm pack: {process.stderr.strip()[-300:] or f'status {process.returncode}'}")
        return packed[0].read_bytes()


def _fetch_by_https() -> bytes:
    registry = getenv("NPM_CONFIG_REGISTRY", "") or getenv("npm_config_registry", "")
    if not registry:
        raise RuntimeError("npm is not installed, and NPM_CONFIG_REGISTRY does not name a registry")
    path = fetch(f"{registry.rstrip('/')}/pyodide/-/pyodide-{PYODIDE_VERSION}.tgz")
    return path.read_bytes()


def _unpack_files(package: bytes, folder: Path) -> None:
    """Unpacks the files that a page with engine needs from `package` into `folder`, atomically."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        with tarfile.open(fileobj=io.BytesIO(package)) as archive:
            for name in _ALL_FILES:
                try:
                    file = archive.extractfile(f"package/{name}")
                except KeyError:
                    file = None
                if file is None:
                    raise PyodideMissing(f"the package has no {name}: it is not pyodide@{PYODIDE_VERSION}")
                (fresh / name).write_bytes(file.read())
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(fresh, folder)


__all__ = ["PYODIDE_FILES", "PYODIDE_LOCK", "PYODIDE_VERSION", "PyodideMissing", "find_pyodide", "missing_files_reason"]
