"""Runs functions of the front end in node, on JSON, so that tests can compare them with Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDGETS = Path(__file__).resolve().parents[2] / "widgets"
ESBUILD = WIDGETS / "node_modules" / ".bin" / "esbuild"


def missing() -> str | None:
    """The reason why TypeScript cannot run here, or None."""
    if shutil.which("node") is None:
        return "there is no node"
    if not ESBUILD.exists():
        return "widgets/node_modules has no esbuild: run `npm ci` in widgets/"
    return None


def run_typescript(folder: Path, script: str, cases: Sequence[Any]) -> list[Any]:
    """The results of `script` for each case.

    `script` is the body of a module with a function `run(testCase)`; it imports from "src/…" of the front end.
    """
    entry = folder / "entry.ts"
    bundle = folder / "bundle.mjs"
    (folder / "cases.json").write_text(json.dumps(cases))
    entry.write_text(
        script.replace('from "src/', f'from "{WIDGETS.as_posix()}/src/')
        + '\nimport { readFileSync } from "node:fs";\n'
        + "const cases = JSON.parse(readFileSync(process.argv[2], 'utf8'));\n"
        + "console.log(JSON.stringify(cases.map(run)));\n"
    )
    command = [str(ESBUILD), str(entry), "--bundle", "--platform=node", "--format=esm"]
    command += ["--loader:.py=text", f"--outfile={bundle}"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    done = subprocess.run(["node", str(bundle), str(folder / "cases.json")], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)
