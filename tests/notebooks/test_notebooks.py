"""Every notebook runs from top to bottom in a fresh kernel, and its output equals the committed output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.models import need_models
from tests.support.patience import seconds

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

# those of the course: their exercises have checks
LESSONS = [path for path in NOTEBOOKS if "tinyexplore.course" in path.read_text(encoding="utf-8")]

# Memory addresses and the like, which no rerun repeats.
SANITIZE = """
[addresses]
regex: 0x[0-9a-f]{6,16}
replace: 0xADDRESS
"""


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_prints_the_committed_output(notebook: Path, tmp_path: Path) -> None:
    text = notebook.read_text()
    if "import torch" in text:
        pytest.importorskip("torch", reason="`make torch` installs PyTorch and runs this notebook")
    if "minilm" in text:
        need_models()
    if "magika" in text:
        need_models("magika", "onnx")
    (tmp_path / "sanitize.cfg").write_text(SANITIZE)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"]
    command += [
        "-p",
        "nbval.plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "--color=no",
        "-q",
    ]
    command += ["--nbval-sanitize-with", str(tmp_path / "sanitize.cfg"), str(notebook)]
    # the other plugins of this environment take 5 s of CPU time to load; options for them would be unknown
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    environment |= {"IPYTHONDIR": str(tmp_path / "ipython"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=seconds(1500))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_executed(notebook: Path) -> None:
    """A reader on GitHub sees the pictures: every code cell was run, in order, and none raised."""
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"] == []


def test_the_first_lesson_begins_with_a_picture() -> None:
    """The first code cell shows a picture; questions come after it."""
    cells = json.loads(next(path for path in NOTEBOOKS if path.stem == "01_first_look").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    html = ["".join(output.get("data", {}).get("text/html", "")) for output in code[0]["outputs"]]
    assert any("<img" in text and "image/svg+xml" in text for text in html)
    asking = [place for place, cell in enumerate(code) if ".question(" in "".join(cell["source"])]
    assert asking == [len(code) - 1]


@pytest.mark.parametrize("notebook", LESSONS, ids=lambda path: path.stem)
def test_is_stored_without_the_front_end(notebook: Path) -> None:
    """Static pictures are stored. The state of widgets, which contains the front end's code, is not."""
    assert "widgets" not in json.loads(notebook.read_text())["metadata"]


def test_the_contents_list_every_lesson_with_its_title(repository: Path) -> None:
    page = (repository / "notebooks" / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"^\| \[(.*?)\]\((\S+\.ipynb)\) \|", page, re.MULTILINE)
    titles = {}
    for path in NOTEBOOKS:
        titles[path.name] = "".join(json.loads(path.read_text())["cells"][0]["source"]).splitlines()[0].lstrip("# ")
    assert {path.name for path in LESSONS} <= {name for _, name in links}
    assert [(name, title) for title, name in links if titles.get(name) != title] == []
