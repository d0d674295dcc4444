"""Files and NumPy arrays as devices: viewed, copied and written, without computation; and files from the network."""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, quick
from tinyexplore import Device, GlobalCounters, Tensor, dtypes, fetch
from tinyexplore.device import UnknownDevice
from tinyexplore.lazy import StorageError
from tinyexplore.util import FetchError

DEVICES = [name for name in HOW if name != "reference"]
ARRAY = np.arange(96, dtype=np.float32).reshape(8, 12)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "Values.bin"
    found.write_bytes(ARRAY.tobytes())
    return found


def stored(path: Path) -> Tensor:
    return Tensor(path).bitcast(dtypes.float32).reshape(8, 12)


VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: x[2:5],
    lambda x: x[3],
    lambda x: x[3, 5],
    lambda x: x[:, 4],
    lambda x: x.T,
    lambda x: x.T[2:4],
    lambda x: x[::-1, 1::3],
    lambda x: x[2:4].reshape(4, 6)[1:3],
    lambda x: x[5:5],
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("offset", [0, 1, 8])
@pytest.mark.parametrize("view", range(len(VIEWS)))
def test_a_view_of_a_file_is_copied_in_its_order(tmp_path: Path, view: int, offset: int, device: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"." * offset + ARRAY.tobytes())
    whole = Tensor(path)[offset:].bitcast(dtypes.float32).reshape(8, 12)
    seen = VIEWS[view](whole)
    assert seen.device == f"DISK:{path}"
    np.testing.assert_array_equal(seen.numpy(), VIEWS[view](ARRAY))
    np.testing.assert_array_equal((seen.to(device) * 2).numpy(), VIEWS[view](ARRAY) * 2)
    assert path.read_bytes()[offset:] == ARRAY.tobytes()


def test_only_the_requested_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    size = 1 << 38  # sparse: too large to read
    with open(path, "wb") as file:
        file.truncate(size)
        file.seek(size // 2)
        file.write(bytes(range(64)))
    before = GlobalCounters.mem_used
    part = Tensor(path)[size // 2 : size // 2 + 64].to("LLVM").realize()
    assert GlobalCounters.mem_used == before + 64
    assert part.tolist() == list(range(64))
    rows = Tensor(path).reshape(1 << 10, -1)
    assert rows[512, 3:9].tolist() == [3, 4, 5, 6, 7, 8]
    assert rows[511:513, 0:2].to("LLVM").tolist() == [[0, 0], [0, 1]]


def test_files_are_written_by_assigning_and_by_moving_there(path: Path, tmp_path: Path) -> None:
    expected = ARRAY.copy()
    x = stored(path)
    x[2].assign(Tensor.full((12,), 7.0))
    x[0, 3] = 5
    x[4:6] = Tensor.arange(12).float() * 2
    expected[2], expected[0, 3], expected[4:6] = 7, 5, np.arange(12) * 2
    np.testing.assert_array_equal(np.fromfile(path, np.float32).reshape(8, 12), expected)
    new = Tensor.empty(3, 2, dtype="int16", device=f"disk:{tmp_path}/new")
    new.assign(Tensor([[1, 2], [3, 4], [5, 6]], dtype="int16", device="PYTHON"))
    assert (tmp_path / "new").read_bytes() == np.arange(1, 7, dtype=np.int16).tobytes()
    moved = (Tensor.arange(4) * 3).to(f"DISK:{tmp_path}/moved")
    assert not (tmp_path / "moved").exists() and moved[1:].to("PYTHON").tolist() == [3, 6, 9]
    moved.realize()
    assert np.fromfile(tmp_path / "moved", np.int32).tolist() == moved.tolist() == [0, 3, 6, 9]
    going = Tensor([1, 2, 3], dtype="uint8").to(f"DISK:{tmp_path}/going")
    going[0:2] = [13, 12]  # what it writes to is there first
    assert (tmp_path / "going").read_bytes() == bytes(going.tolist()) == bytes([13, 12, 3])
    Tensor([1, 2], device=f"DISK:{tmp_path}/lazy")
    assert not (tmp_path / "lazy").exists()


@quick
@given(st.data())
def test_bits_are_read_as_any_dtype(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("bits") / "x"
    content = os.urandom(96)
    path.write_bytes(content)
    for _ in range(4):
        dtype = data.draw(st.sampled_from(["int8", "uint16", "int32", "uint64"]))
        start = data.draw(st.integers(0, 12)) * 8
        found = Tensor(path)[start:].reshape(-1, 8).bitcast(dtype)
        assert found.tolist() == np.frombuffer(content[start:], dtype).reshape(-1, 8 // found.element_size()).tolist()


def test_numpy_arrays_have_a_device() -> None:
    x = Tensor(ARRAY, device="NPY")
    assert x.device == "NPY" and (x[1].to("LLVM") + 1).tolist() == (ARRAY[1] + 1).tolist()
    assert Tensor(2.5, device="npy").to("LLVM").item() == 2.5
    assert (Tensor([1, 2]) + 1).to("NPY").tolist() == [2, 3]
    other = np.arange(6, dtype=np.int32)
    blob = Tensor.from_blob(other.ctypes.data, (2, 3), dtype="int32")
    assert (blob + 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ValueError, match="not aligned to int32"):
        Tensor.from_blob(other.ctypes.data + 1, (1,), dtype="int32")


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x.sum(),
        lambda x: x.cast("int32"),
        lambda x: x @ x.T,
        lambda x: x.relu(),
        lambda x: x[[1, 2]],
        lambda x: x.cumsum(0),
        lambda x: x.T.bitcast("int32"),
        lambda x: x.T.assign(Tensor.ones(12, 8)),
    ],
)
def test_storage_computes_nothing(path: Path, use: Callable[[Tensor], Any]) -> None:
    with pytest.raises(StorageError, match="on DISK:.*: (storage is only viewed|.*whole rows)|DISK"):
        use(stored(path))


def test_operations_on_storage_raise_an_error(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="on LLVM and DISK:"):
        Tensor.ones(8, 12, device="LLVM") + stored(path)
    with pytest.raises(RuntimeError, match="NPY only stores values"):
        (Tensor.arange(3, device="NPY") * 2).realize()
    with pytest.raises(FileNotFoundError):
        Tensor(tmp_path / "nowhere")
    with pytest.raises(OSError, match="is not a file"):
        Tensor(tmp_path)
    with pytest.raises(ValueError, match="not a whole number of int64"):
        (tmp_path / "odd").write_bytes(b"12345")
        Tensor(tmp_path / "odd", dtype="int64")
    with pytest.raises(ValueError, match="a whole number of 8 bytes"):
        stored(path)[:, :3].reshape(-1)[:3].reshape(1, 3).bitcast("int64")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(stored(path).lazydata.base.buffer)
    with pytest.raises(UnknownDevice, match="supported: .*DISK, NPY"):
        Tensor.ones(1, device="TAPE:x")
    assert not {"DISK", "NPY"} & set(Device.names()), "they are no devices to compute on"


# *** the network ***


class Answers(BaseHTTPRequestHandler):
    content = bytes(range(200))
    asked: list[str] = []
    served: dict[str, bytes] = {}

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        body = gzip.compress(self.content) if self.path.endswith(".gz") else self.content
        body = self.served.get(self.path, body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (self.path == "/short") * 10))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(Answers, "asked", [])
    with serving() as address:
        yield address


def test_a_file_is_fetched_once_and_checked(server: str, tmp_path: Path) -> None:
    right = "sha256:" + hashlib.sha256(Answers.content).hexdigest()
    found = Tensor.from_url(f"{server}/a.bin", checksum=right)
    assert found.device.startswith(f"DISK:{tmp_path}/cache/tinyexplore/downloads/")
    assert found[100:103].tolist() == [100, 101, 102]
    assert Tensor.from_url(f"{server}/a.bin", checksum=right, device="PYTHON").numpy().tobytes() == Answers.content
    assert Answers.asked == ["/a.bin"]
    assert fetch(f"{server}/b.gz", "b", "sub", gunzip=True).read_bytes() == Answers.content
    assert fetch(f"{server}/a.bin", checksum=right, allow_caching=False).is_file() and len(Answers.asked) == 3
    assert fetch("/a/path") == Path("/a/path")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes here")
@pytest.mark.parametrize("which", ["tinyexplore", "tinyexplore/downloads"])
def test_downloads_in_a_folder_that_others_can_write_are_not_used(server: str, tmp_path: Path, which: str) -> None:
    fetch(f"{server}/a.bin", "name").write_bytes(b"something else")
    assert fetch(f"{server}/a.bin", "name").read_bytes() == b"something else"
    (tmp_path / "cache" / "tinyexplore").chmod(0o755)
    (tmp_path / "cache" / which).chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"not cached in .*{which}: "):
        found = fetch(f"{server}/a.bin", "name")
    assert found.read_bytes() == Answers.content and not found.is_relative_to(tmp_path)
    assert fetch(f"{server}/a.bin", "name") == found, "until the process ends"
    found.unlink()


def test_without_a_cache_folder_downloads_last_as_long_as_the_process(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    found = fetch(f"{server}/a.bin", "name", "sub")
    assert found.read_bytes() == Answers.content and Answers.asked == ["/a.bin"]
    assert fetch(f"{server}/a.bin", "name", "sub") == found and Answers.asked == ["/a.bin"]
    found.unlink()


def test_a_wrong_download_is_refused_and_not_stored(server: str, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="md5 .* not 00: "):
        fetch(f"{server}/a.bin", checksum="md5:00")
    with pytest.raises(FetchError, match="could not be fetched: HTTP Error 404"):
        fetch(f"{server}/missing")
    with pytest.raises(FetchError, match="could not be fetched|200 of 210 bytes"):
        fetch(f"{server}/short")
    with pytest.raises(FetchError, match="does not unpack as gzip"):
        fetch(f"{server}/a.bin", gunzip=True)
    with pytest.raises(ValueError, match="outside the download folder"):
        fetch(f"{server}/a.bin", "../../x")
    with pytest.raises(ValueError, match="need 'sha256:' or 'md5:'"):
        fetch(f"{server}/a.bin", checksum="abc")
    with pytest.raises(ValueError, match="need http://"):
        fetch("ftp://example.org/x")
    assert [entry for entry in (tmp_path / "cache").rglob("*") if entry.is_file()] == []
