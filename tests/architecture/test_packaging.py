"""The wheel: its contents, and that it works without the source tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.patience import seconds

pytestmark = pytest.mark.slow

PROGRAM = """
import tinyexplore
from pathlib import Path
from tinyexplore import Tensor

folder = Path(tinyexplore.__file__).parent
assert "site-packages" in folder.parts, folder
assert sorted(path.name for path in (folder / "static").glob("*.js")), "the front-end bundle is missing"
assert (Tensor([1.0, 2.0, 3.0]) + 1).tolist() == [2.0, 3.0, 4.0]
print("works")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A wheel built from a copy of the tracked files, as someone who clones the repository would."""
    source = tmp_path_factory.mktemp("source") / "tinyexplore"
    skipped = shutil.ignore_patterns(".git", ".venv*", "node_modules", "__pycache__", "build", "dist", ".*_cache")
    shutil.copytree(repository, source, ignore=skipped)
    target = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(source)])
    (built,) = target.glob("*.whl")
    return built


def run(command: list[str], cwd: Path | None = None) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=seconds(600))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path, repository: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(repository).as_posix()
        for path in (repository / "tinyexplore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    notebooks = repository / "notebooks"
    course = (path.relative_to(notebooks).as_posix() for path in notebooks.rglob("*") if path.is_file())
    wanted |= {f"tinyexplore/static/notebooks/{name}" for name in course}
    linked = (re.findall(r"\]\(\.\./(docs/[^)#]+)", page.read_text("utf-8")) for page in notebooks.glob("*.*"))
    wanted |= {f"tinyexplore/static/notebooks/{name}" for names in linked for name in names}
    assert packed == wanted


def test_the_wheel_carries_the_built_front_end(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name, least in {"explorer": 100_000, "standalone": 100_000, "part": 400}.items():
            assert archive.getinfo(f"tinyexplore/static/{name}.js").file_size > least, "run `make bundle`"
        assert "tinyexplore/static/chunks/tuner.js" in archive.namelist()


def test_the_wheel_works_in_a_new_environment(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are borrowed from this environment by a path file: the network is not what is tested."""
    run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")])
    folder = "Scripts" if sys.platform == "win32" else "bin"
    python = str(tmp_path / "venv" / folder / "python")
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]).strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    assert run([python, "-c", PROGRAM], cwd=tmp_path) == "works\n"
