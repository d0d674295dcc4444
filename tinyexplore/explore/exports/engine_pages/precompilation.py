"""Compiles the Python modules of a page with engine ahead of time. A browser would take seconds.

Bytecode depends on the version of Python, so the page's own Python generates it, under Node. The result is stored in
the disk cache, signed. Without Node, a page carries sources, and its first response takes some seconds longer.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from tinyexplore.runtime import disk_cache

ENGINE_ROOT = "/engine"  # the folder in the page: widgets/src/live/worker.ts
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
import tinyexplore.explore.live.page_server
import tinyexplore.explore.analysis.explanations.rules
loaded = loaded_files()
stdlib = next(path for path in sys.path if path.endswith(".zip"))
Path("/stdlib.made").write_bytes(to_bytecode(Path("/stdlib.given").read_bytes(), stdlib, loaded))
Path("/engine.made").write_bytes(add_bytecode(Path("/engine.given").read_bytes(), "${root}", loaded))
`);
for (const name of ["stdlib", "engine"]) await writeFile(`${work}/${name}.made`, python.FS.readFile(`/${name}.made`));
"""


def with_first_bytecode(pyodide: Path, stdlib: bytes, engine: bytes) -> tuple[bytes, bytes]:
    """Returns both archives with the bytecode of the modules that a page needs first.

    Bytecode replaces the sources of the standard library and is added to those of the engine. If Node is not installed
    or cannot start this Pyodide, both archives are returned unchanged.
    """
    node = shutil.which("node")
    if node is None:
        return stdlib, engine
    compiler = Path(__file__).with_name("bytecode.py").read_bytes()
    digest = hashlib.sha256()
    for part in ((pyodide / "package.json").read_bytes(), compiler, stdlib, engine):
        digest.update(hashlib.sha256(part).digest())
    names = [f"live-{archive}-{digest.hexdigest()[:32]}" for archive in ("stdlib", "engine")]
    entries = [disk_cache.find(name) for name in names]
    if entries[0] is not None and entries[1] is not None:
        return zlib.decompress(entries[0]), zlib.decompress(entries[1])
    compiled = _compile_archives(node, pyodide, compiler, {"stdlib": stdlib, "engine": engine})
    if compiled is None:
        return stdlib, engine
    for name, data in zip(names, compiled):
        disk_cache.keep(name, zlib.compress(data, 1))
    return compiled


def _compile_archives(
    node: str, pyodide: Path, compiler: bytes, archives: Mapping[str, bytes]
) -> tuple[bytes, bytes] | None:
    """Compiles both archives with Node and Pyodide; returns None if that fails."""
    try:
        with tempfile.TemporaryDirectory(prefix="tinyexplore-") as name:
            work = Path(name)
            (work / "bytecode.py").write_bytes(compiler)
            (work / "compile.mjs").write_text(_SCRIPT, encoding="utf-8")
            for archive, data in archives.items():
                (work / archive).write_bytes(data)
            command = [node, str(work / "compile.mjs"), str(pyodide), str(work), ENGINE_ROOT]
            if subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S).returncode:
                return None
            return (work / "stdlib.made").read_bytes(), (work / "engine.made").read_bytes()
    except (OSError, subprocess.TimeoutExpired):
        return None


__all__ = ["ENGINE_ROOT", "with_first_bytecode"]
