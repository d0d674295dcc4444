"""Every notebook runs from top to bottom in a fresh kernel and prints what the committed file shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.models import need_models
from tests.support.patience import seconds

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

# Memory addresses and the like, which no rerun repeats.
SANITIZE = """
[addresses]
regex: 0x[0-9a-f]{6,16}
replace: 0xADDRESS
"""


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_prints_what_is_committed(notebook: Path, tmp_path: Path) -> None:
    text = notebook.read_text()
    if "minilm" in text:
        need_models()
    if "magika" in text:
        need_models("magika", "onnx")
    (tmp_path / "sanitize.cfg").write_text(SANITIZE)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path), "--color=no", "-q"]
    command += ["--nbval-sanitize-with", str(tmp_path / "sanitize.cfg"), str(notebook)]
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=seconds(1500))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_executed(notebook: Path) -> None:
    """A reader on GitHub sees the pictures: every code cell was run, in order, and none raised."""
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"] == []


def test_the_quickstart_begins_with_a_picture_and_is_short() -> None:
    """The first code cell shows a picture; a question comes last; nothing tests the product."""
    cells = json.loads(next(path for path in NOTEBOOKS if path.stem == "00_quickstart").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) <= 15
    html = ["".join(output.get("data", {}).get("text/html", "")) for output in code[0]["outputs"]]
    assert any("<img" in text and "image/svg+xml" in text for text in html)
    asking = [i for i, cell in enumerate(code) if ".question(" in "".join(cell["source"])]
    assert asking == [len(code) - 1]
    assert [cell["id"] for cell in code if "assert " in "".join(cell["source"])] == []
