"""What a live page carries of Python, compiled ahead: a browser takes seconds for that, and a reader waits for them.

Bytecode is of one version of Python, so the page's own makes it, under Node (once for an engine; it is kept in the
cache folder). Where there is no Node a page carries sources, and its first answer comes some seconds later.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tinyexplore.util import cache_folder
from tinyexplore.util.private import make_private

ENGINE_ROOT = "/engine"  # where a page unpacks it: widgets/src/live/worker.ts
_TIMEOUT_S = 180
_SCRIPT = """
import { readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
const [pyodide, work, root] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${pyodide}/`, env: { HOME: "/", PYTHONNODEBUGRANGES: "1" } });
for (const name of ["stdlib", "engine"]) python.FS.writeFile(`/${name}.given`, await readFile(`${work}/${name}`));
python.runPython(await readFile(`${work}/bytecode.py`, "utf8"));
python.runPython(`
from pathlib import Path
zipfile.ZipFile("/engine.given").extractall("${root}")
sys.path.insert(0, "${root}")
import tinyexplore.explore.live.serving
import tinyexplore.explore.why.rules
loaded = loaded_files()
stdlib = next(path for path in sys.path if path.endswith(".zip"))
Path("/stdlib.made").write_bytes(as_bytecode(Path("/stdlib.given").read_bytes(), stdlib, loaded))
Path("/engine.made").write_bytes(with_bytecode(Path("/engine.given").read_bytes(), "${root}", loaded))
`);
for (const name of ["stdlib", "engine"]) await writeFile(`${work}/${name}.made`, python.FS.readFile(`/${name}.made`));
"""


def precompiled(pyodide: Path, stdlib: bytes, engine: bytes) -> tuple[bytes, bytes]:
    """Two archives with the bytecode of what the first answer takes: in the place of sources in the standard library,
    beside them in the engine. As they were given where Node is not installed, or does not start this Pyodide."""
    node = shutil.which("node")
    if node is None:
        return stdlib, engine
    compiler = Path(__file__).with_name("bytecode.py").read_bytes()
    digest = hashlib.sha256()
    for part in ((pyodide / "package.json").read_bytes(), compiler, stdlib, engine):
        digest.update(hashlib.sha256(part).digest())
    folder = cache_folder() / f"live-{digest.hexdigest()[:16]}"
    if not folder.is_dir() and not _make(node, pyodide, compiler, {"stdlib": stdlib, "engine": engine}, folder):
        return stdlib, engine
    return (folder / "stdlib").read_bytes(), (folder / "engine").read_bytes()


def _make(node: str, pyodide: Path, compiler: bytes, archives: dict[str, bytes], folder: Path) -> bool:
    """Compiles both into `folder`, whole or not at all; whether that came off."""
    make_private(folder.parent)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work, fresh = Path(name), Path(name) / "fresh"
        (work / "bytecode.py").write_bytes(compiler)
        (work / "compile.mjs").write_text(_SCRIPT, encoding="utf-8")
        for archive, data in archives.items():
            (work / archive).write_bytes(data)
        command = [node, str(work / "compile.mjs"), str(pyodide), str(work), ENGINE_ROOT]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode:
            return False
        fresh.mkdir()
        for archive in archives:
            os.replace(work / f"{archive}.made", fresh / archive)
        _forget_older(folder)
        try:
            os.replace(fresh, folder)
        except OSError:  # another process made the same
            return folder.is_dir()
    return True


def _forget_older(folder: Path) -> None:
    """Those of earlier engines, and of this one's earlier versions."""
    for path in folder.parent.glob("live-*"):
        if path != folder:
            shutil.rmtree(path, ignore_errors=True)


__all__ = ["ENGINE_ROOT", "precompiled"]
