"""Each missing system feature, one by one: programs still compute, replay, store and display the same results."""

from __future__ import annotations

import json
import ntpath
import os
import subprocess
import sys
from functools import cache
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import pytest

import tinyexplore
from tests.engine.elsewhere import HIDES
from tests.support.patience import seconds
from tinyexplore.device import Device
from tinyexplore.explore.recording import sources
from tinyexplore.renderer.program import CompileOptions, Effort
from tinyexplore.runtime import llvm
from tinyexplore.util.fetch import fetch

ROOT = Path(tinyexplore.__file__).parents[1]
# what is not there then: the pool of native threads, replays that never enter Python
LACKING = {
    "threads of the system": [False, True],
    "clock of the system": [True, False],
    "clocks by number": [True, False],
    "the library of the process": [True, False],
    "windows": [False, False],
}
# of the others several at once: a process each would take a minute more, and a failure names the few that it can be
TOGETHER = (
    ("affinity", "users", "links", "unloading"),
    ("forks", "file locks", "replacing", "modes of opening"),
    ("cores of threads", "flags of mmap"),
    ("mmap",),
)


def outcome(folder: Path, *hidden: str, flags: tuple[str, ...] = (), cache: Path | None = None) -> dict[str, Any]:
    """The output of the program in a process without `hidden`."""
    env = {name: value for name, value in os.environ.items() if name not in ("DEVICE", "TARGET")}
    env |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache or folder / "cache"), "CACHELEVEL": "1"}
    command = [sys.executable, *flags, "-m", "tests.engine.elsewhere", str(folder), *hidden]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=seconds(300))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@cache
def usual(folder: Path) -> dict[str, Any]:
    return outcome(folder)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """With all that this system has."""
    found = usual(tmp_path_factory.getbasetemp())
    assert found["trace"] is True and len(found["explored"]) >= 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [*((name,) for name in LACKING), *TOGETHER], ids=", ".join)
def test_results_are_equal_without_optional_parts_of_the_system(
    hidden: tuple[str, ...], expected: dict[str, Any], tmp_path: Path
) -> None:
    found = outcome(tmp_path, *hidden)
    assert found.pop("found") == LACKING.get(hidden[0], [True, True])
    assert found == {name: value for name, value in expected.items() if name != "found"}
    kept = [entry for entry in (tmp_path / "cache").rglob("*") if entry.is_file()]
    assert len(kept) > 5  # the disk cache works, too


def test_every_optional_part_is_hidden_once() -> None:
    assert sorted([*LACKING, *(name for names in TOGETHER for name in names)]) == sorted([*HIDES, "windows"])


def test_the_disk_cache_works_on_windows(expected: dict[str, Any], tmp_path: Path) -> None:
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        assert outcome(tmp_path / run, "windows", cache=tmp_path)["replays"] == expected["replays"]


def test_no_file_is_read_or_written_in_the_encoding_of_the_system(expected: dict[str, Any], tmp_path: Path) -> None:
    flags = ("-X", "warn_default_encoding", "-W", "error::EncodingWarning")
    assert outcome(tmp_path, flags=flags)["losses"] == expected["losses"]


def test_paths_with_a_drive_letter_are_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Device.canonicalize(r"disk:C:\data\Weights.bin") == r"DISK:C:\data\Weights.bin"
    assert fetch(r"C:\data\weights.bin") == Path(r"C:\data\weights.bin") and fetch("d:/w.bin") == Path("d:/w.bin")
    windows = SimpleNamespace(path=ntpath, sep="\\", getcwd=lambda: r"C:\Users\me\project")
    monkeypatch.setattr(sources, "os", windows)
    monkeypatch.setattr(sources, "Path", PureWindowsPath)
    monkeypatch.setattr(sources, "PACKAGE_PARENT", r"C:\Python\Lib\site-packages")
    assert sources.source_name(r"C:\Users\me\project\nets\train.py") == "nets/train.py"
    assert sources.source_name(r"D:\elsewhere\train.py") == "train.py"
    assert sources.source_name(r"C:\Python\Lib\site-packages\tinyexplore\nn\linear.py") == "tinyexplore/nn/linear.py"


def test_machine_code_with_an_undefined_symbol_is_a_link_error(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = llvm.compiler_for(llvm.NATIVE)
    text = "declare void @nowhere_to_be_found()\ndefine void @f() {\n  call void @nowhere_to_be_found()\n  ret void\n}"
    with pytest.raises(RuntimeError, match="symbols"):
        compiler.link("f", [compiler.object_code(text, CompileOptions(Effort.LIGHT))], ("f",))
