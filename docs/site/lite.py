"""The first part of the course in JupyterLite: notebooks that run in the browser, without an installation or a network.

The folder has JupyterLab, Python for browsers (Pyodide, as pages with engine have it), and the packages that a lesson
imports, among them this one. Pyodide's lock file lists them, so a kernel loads them from the folder and from nowhere
else. There is no NumPy and no LLVM: kernels run on the PYTHON device.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tinyexplore
from tinyexplore.explore.exports.engine_pages.pyodide import PYODIDE_FILES, PYODIDE_LOCK, find_pyodide

PACKAGE = Path(tinyexplore.__file__).resolve().parent
NOTEBOOKS = PACKAGE.parent / "notebooks"
LESSONS = tuple(sorted(NOTEBOOKS.glob("0[1-6]_*.ipynb")))

# Pure Python packages from PyPI that a kernel imports. micropip has the version of Pyodide's own list.
PYTHON = "3.14"
DOWNLOADED = (
    *("micropip==0.11.1", "ipython", "ipython_pygments_lexers", "traitlets"),
    *(
        "matplotlib-inline",
        "prompt_toolkit",
        "wcwidth",
        "pygments",
        "stack_data",
        "pure_eval",
        "executing",
        "asttokens",
    ),
    *("jedi", "parso", "comm", "ipywidgets", "anywidget", "psygnal", "typing_extensions", "tqdm"),
)
# Packages that the kernel of JupyterLite installs at its start, and those that lessons need in addition.
LOADED = ("micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython", "ipywidgets", "tinyexplore")

# Sizes for an interpreter: by lesson, text and its replacement.
SMALLER: Mapping[str, tuple[tuple[str, str], ...]] = {
    "01_first_look": (("Tensor.rand(256, 256)", "Tensor.rand(24, 24)"),),
    "02_tensors_are_lazy": (("Tensor.rand(2048, 2048)", "Tensor.rand(32, 32)"),),
}
FURTHER = {
    "01_first_look": " The listing of machine code is not there, and opts make an interpreter slower, not faster.",
    "02_tensors_are_lazy": " Megabytes are fewer than in the text, and a sum of so few numbers is not split in two.",
    "05_a_kernel_is_a_loop_nest": " The view has no machine code.",
}
NOTE = """> **This notebook runs in your browser**, on the PYTHON device: an interpreter of kernels, about a thousand \
times slower than compiled code. Some tensors are smaller than in the text, times are those of the interpreter, and \
LLVM, threads and counters of the processor are missing.{further} The whole course: `make lab`."""
README = """# The course, in your browser

Open a lesson in the list on the left, and press `Shift+Enter` to run a cell. The first cell takes about ten seconds.

{lessons}

Nothing is installed and nothing leaves this browser. Lessons 7 to 28 need compiled kernels, so they are not here: \
`make lab` has them.
"""


@dataclass(frozen=True)
class Wheel:
    """A package in the folder of Pyodide.

    file: its name, such as "comm-0.2.3-py3-none-any.whl".
    name: of the package, normalized.
    version: of the package.
    digest: SHA-256 of the file, in hexadecimal.
    needs: normalized names of the packages that it requires.
    """

    file: str
    name: str
    version: str
    digest: str
    needs: tuple[str, ...]

    def lock_entry(self, available: set[str]) -> dict[str, Any]:
        """The entry of the package in Pyodide's lock file. Requirements that are not `available` are left out."""
        return {
            "name": self.name,
            "version": self.version,
            "file_name": self.file,
            "install_dir": "site",
            "sha256": self.digest,
            "package_type": "package",
            "imports": [],
            "depends": sorted(available.intersection(self.needs)),
            "unvendored_tests": False,
        }


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wheel_of(path: Path) -> Wheel:
    """The metadata of a wheel. Optional requirements are left out: some name a package that needs this one, and
    Pyodide waits forever for packages that need each other."""
    with zipfile.ZipFile(path) as archive:
        place = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        head = archive.read(place).decode("utf-8").partition("\n\n")[0]
    fields = dict(re.findall(r"^(Name|Version): (.+)$", head, re.MULTILINE))
    needs = re.findall(r"^Requires-Dist: ([\w.-]+)(.*)$", head, re.MULTILINE)
    names = tuple(normalized(name) for name, condition in needs if "extra ==" not in condition)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(path.name, normalized(fields["Name"]), fields["Version"], digest, names)


def write_engine_wheel(folder: Path) -> Path:
    """This package as a wheel, without the notebooks that an installed one has."""
    version = tinyexplore.__version__
    info = f"tinyexplore-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: tinyexplore\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {name}\n" for name in ("anywidget", "tqdm", "pygments"))
    path = folder / f"tinyexplore-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PACKAGE.rglob("*")):
            inside = file.relative_to(PACKAGE)
            if file.is_file() and "__pycache__" not in inside.parts and "notebooks" not in inside.parts:
                archive.write(file, f"tinyexplore/{inside.as_posix()}")
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def download(folder: Path) -> None:
    """The packages from the index that pip is configured for."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--platform", "any", "--python-version", PYTHON, "--dest", str(folder)]
    subprocess.run([*command, *DOWNLOADED], check=True)


def kernel_wheels() -> Iterator[Path]:
    """The kernel of JupyterLite, in its extension of JupyterLab."""
    extension = Path(sys.prefix, "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension")
    wheels = {path.name.partition("-")[0]: path for path in sorted((extension / "static" / "pypi").glob("*.whl"))}
    yield from wheels.values()  # of two versions of a package, the later


def write_pyodide(folder: Path, pyodide: Path) -> None:
    """Pyodide and the packages, with a lock file that lists these and no others."""
    folder.mkdir(parents=True)
    for name in PYODIDE_FILES:
        shutil.copy(pyodide / name, folder / name)
    download(folder)
    write_engine_wheel(folder)
    for path in kernel_wheels():
        shutil.copy(path, folder / path.name)
    wheels = [wheel_of(path) for path in sorted(folder.glob("*.whl"))]
    available = {wheel.name for wheel in wheels}
    lock = json.loads((pyodide / PYODIDE_LOCK).read_text(encoding="utf-8"))
    lock["packages"] = {wheel.name: wheel.lock_entry(available) for wheel in wheels}
    (folder / PYODIDE_LOCK).write_text(json.dumps(lock), encoding="utf-8")


def in_the_browser(path: Path) -> dict[str, Any]:
    """A lesson for the interpreter: with a note at its top, smaller sizes, and no outputs of another machine.

    Raises:
        ValueError: a text of SMALLER is not in the lesson.
    """
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    cells = notebook["cells"]
    for before, after in SMALLER.get(path.stem, ()):
        having = [cell for cell in cells if cell["cell_type"] == "code" and before in "".join(cell["source"])]
        if not having:
            raise ValueError(f"{path.name} has no {before!r}")
        for cell in having:
            cell["source"] = "".join(cell["source"]).replace(before, after)
    for cell in cells:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    note = NOTE.format(further=FURTHER.get(path.stem, ""))
    cells.insert(1, {"cell_type": "markdown", "id": "in-the-browser", "metadata": {}, "source": note})
    notebook["metadata"]["kernelspec"] = {"display_name": "Python", "language": "python", "name": "python"}
    return notebook


def write_contents(folder: Path) -> None:
    """The lessons, and a page that lists them."""
    folder.mkdir(parents=True)
    links = []
    for path in LESSONS:
        notebook = in_the_browser(path)
        (folder / path.name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")
        title = "".join(notebook["cells"][0]["source"]).splitlines()[0].lstrip("# ")
        links.append(f"- [{title}]({path.name})")
    (folder / "README.md").write_text(README.format(lessons="\n".join(links)), encoding="utf-8")


def write_lite(folder: Path, sources: Path, pyodide: str | Path | None = None) -> Path:
    """JupyterLite in `folder`. A server of static files must serve it: its kernel is a worker, which no page from a
    disk may start.

    Args:
        folder: where to write; an earlier one is replaced.
        sources: a folder for what JupyterLite is built from.
        pyodide: see `find_pyodide`.

    Returns:
        the page of JupyterLab.

    Raises:
        subprocess.CalledProcessError: a package could not be downloaded, or JupyterLite could not be built.
    """
    folder, sources = folder.resolve(), sources.resolve()
    for one in (folder, sources):
        shutil.rmtree(one, ignore_errors=True)
    write_contents(sources / "files")
    write_pyodide(sources / "static" / "pyodide", find_pyodide(pyodide))
    kernel = {"loadPyodideOptions": {"packages": list(LOADED)}, "disablePyPIFallback": True}
    settings = {
        "appName": "tinyexplore",
        "exposeAppInBrowser": True,  # for tests
        "defaultKernelName": "python",
        "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel},
    }
    lite = {"jupyter-lite-schema-version": 0, "jupyter-config-data": settings}
    (sources / "jupyter-lite.json").write_text(json.dumps(lite, indent=1), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(sources), "--apps", "lab"]
    command += ["--contents", str(sources / "files"), "--output-dir", str(folder), "--no-sourcemaps"]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        done.check_returncode()
    return folder / "lab" / "index.html"
