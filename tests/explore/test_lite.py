"""The lessons that run in a browser without NumPy and LLVM.

`python -m tests.support.site_check FOLDER` runs them in JupyterLite itself, on the site that `make site` wrote.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docs.site import lite
from tests.support.patience import seconds

# A Python without packages that a browser's does not have: as if they were not installed.
WITHOUT = """
import json, sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ("numpy", "llvmlite") else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Finder if one is PathFinder else one for one in sys.meta_path]
names = {"__name__": "lesson"}
for number, cell in enumerate(json.load(sys.stdin)["cells"]):
    if cell["cell_type"] == "code":
        text = "".join(cell["source"])
        code = "\\n".join(line for line in text.splitlines() if not line.startswith("%"))
        exec(compile(code, f"cell {number}", "exec", dont_inherit=True), names)
assert not {"numpy", "llvmlite"} & set(sys.modules)
"""


@pytest.mark.notebook
@pytest.mark.parametrize("path", lite.LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_without_numpy_and_llvm(path: Path, repository: Path) -> None:
    notebook = json.dumps(lite.in_the_browser(path))
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, cwd=repository, input=notebook, capture_output=True, text=True, timeout=seconds(120))
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_lesson_lists_missing_features_at_its_top() -> None:
    for path in lite.LESSONS:
        notebook = lite.in_the_browser(path)
        note = "".join(notebook["cells"][1]["source"])
        assert "PYTHON device" in note and "LLVM" in note
        assert [cell for cell in notebook["cells"] if cell.get("outputs")] == []


def test_sizes_are_replaced_where_they_are_too_large_for_an_interpreter() -> None:
    texts = {path.stem: json.dumps(lite.in_the_browser(path)["cells"]) for path in lite.LESSONS}
    assert set(lite.SMALLER) <= set(texts)
    for name, pairs in lite.SMALLER.items():
        assert [before for before, after in pairs if before in texts[name] or after not in texts[name]] == []


def test_a_replaced_text_that_a_lesson_does_not_have_is_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "01_first_look.ipynb"
    empty.write_text('{"cells": [], "metadata": {}}')
    with pytest.raises(ValueError, match="01_first_look"):
        lite.in_the_browser(empty)


def test_a_wheel_in_the_lock_file_needs_what_is_available_and_not_optional(tmp_path: Path) -> None:
    metadata = """Metadata-Version: 2.1
Name: One_Package
Version: 1.5
Requires-Dist: Traitlets >=5
Requires-Dist: pexpect>4; sys_platform != "win32"
Requires-Dist: ipykernel; extra == "notebook"

Requires-Dist: not a field
"""
    path = tmp_path / "one_package-1.5-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one_package-1.5.dist-info/METADATA", metadata)
    wheel = lite.wheel_of(path)
    assert (wheel.name, wheel.version, wheel.needs) == ("one-package", "1.5", ("traitlets", "pexpect"))
    entry = wheel.lock_entry({"traitlets", "ipykernel", "one-package"})
    assert (entry["file_name"], entry["depends"]) == (path.name, ["traitlets"])


def test_the_engine_is_a_wheel_with_its_front_end(tmp_path: Path) -> None:
    wheel = lite.wheel_of(lite.write_engine_wheel(tmp_path))
    assert wheel.name == "tinyexplore" and "anywidget" in wheel.needs
    with zipfile.ZipFile(tmp_path / wheel.file) as archive:
        names = set(archive.namelist())
    assert {"tinyexplore/static/explorer.js", "tinyexplore/course.py"} <= names
    assert [name for name in names if "__pycache__" in name or name.endswith(".ipynb")] == []
