"""Full, unwritable and missing folders: computations continue with one warning, and writers leave no partial file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import seconds
from tests.widgets.sample_traces import sample_trace
from tinyexplore.cli import EXPORTS
from tinyexplore.device import DeviceUnavailable
from tinyexplore.explore import Explorer
from tinyexplore.runtime import clang
from tinyexplore.util.atomic_files import write_whole

PROGRAM = """
import os, warnings
from tinyexplore import Tensor
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for size in map(int, os.environ.get("SIZES", "3 5").split()):
        x = Tensor.full((size, size), 2.0).contiguous()
        assert (x @ x).tolist() == [[4.0 * size] * size] * size
    print(len([one for one in caught if "cache" in str(one.message)]))
"""


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk with a few free blocks at most."""
    place = tmp_path / "full"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def warnings_of(device: str, **environment: str) -> int:
    """How many warnings of the cache a program gives that computes on `device`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "DEVICE": device, "CACHELEVEL": "1", **environment},
        capture_output=True,
        text=True,
        timeout=seconds(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("device", ["LLVM", "CLANG"])
def test_a_file_instead_of_the_cache_folder(device: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert warnings_of(device, XDG_CACHE_HOME=str(tmp_path / "file")) == 1
    (tmp_path / "tinyexplore").write_bytes(b"")
    assert warnings_of(device, XDG_CACHE_HOME=str(tmp_path)) == 1


@pytest.mark.parametrize("device", ["LLVM", "CLANG"])
def test_a_cache_on_a_full_disk(device: str, full: Path) -> None:
    assert warnings_of(device, XDG_CACHE_HOME=str(full)) == 1
    assert not [path for path in full.rglob("*") if path.parent.name == ".new"]


def test_a_search_whose_results_cannot_be_stored(tmp_path: Path) -> None:
    (tmp_path / "tinyexplore").write_bytes(b"")
    assert warnings_of("LLVM", BEAM="1", SIZES="3", XDG_CACHE_HOME=str(tmp_path)) == 1


def test_a_cache_that_is_mounted_for_reading(full: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(full)], check=True)
    assert warnings_of("LLVM", XDG_CACHE_HOME=str(full)) == 1


def test_a_c_compiler_with_a_full_or_missing_tmpdir(full: Path, tmp_path: Path) -> None:
    assert warnings_of("CLANG", TMPDIR=str(full), XDG_CACHE_HOME=str(tmp_path)) == 0
    assert warnings_of("CLANG", TMPDIR=str(tmp_path / "none"), XDG_CACHE_HOME=str(tmp_path)) == 0
    assert warnings_of("CLANG", TMPDIR="/dev/null", CACHELEVEL="0") == 0


def test_a_folder_that_fills_up_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setattr(clang, "_temporary_folders", lambda: [str(first), str(second)])
    folders = clang.WorkFolders()
    folder = folders.current()
    assert Path(folder.name).parent == first
    folders.give_up(folder, "No space left on device", OSError())
    assert Path(folders.current().name).parent == second
    folders.give_up(folders.current(), "No space left on device", OSError("the linker failed"))
    with pytest.raises(DeviceUnavailable, match="first: No space left.*second: No space left.*TMPDIR"):
        folders.current()


def test_exports_to_a_full_disk_leave_no_partial_file(full: Path) -> None:
    trace = sample_trace()
    (full / "fill").write_bytes(bytes(8 << 10))
    writers = {suffix: write for suffix, (_, write) in EXPORTS.items() if suffix not in (".png", ".pdf")}
    for suffix, write in {**writers, ".html": lambda trace, path: Explorer(trace).to_html(path)}.items():
        path = full / f"out{suffix}"
        path.write_bytes(b"earlier")
        try:
            write(trace, path)
        except OSError as error:
            assert error.filename == str(path)
            assert path.read_bytes() == b"earlier"
        path.unlink()
        assert [path.name for path in full.iterdir()] == ["fill"]
    with pytest.raises(OSError, match=r"No space left.*: .*trace\.json"):
        trace.save(full / "trace.json")
    assert [path.name for path in full.iterdir()] == ["fill"]


def test_an_interrupt_preserves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sample_trace().save(tmp_path / "trace.json.gz")
    before = path.read_bytes()

    def interrupted(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Explorer(sample_trace(), title="new").save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_links_modes_and_pipes_are_preserved(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o640
    write_whole("/dev/null", b"data")
    assert not Path("/dev/null").is_file()
