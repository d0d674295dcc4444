"""Readers refuse small files that expand to much memory, while they decompress them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest

from tests.explore import toy
from tests.support.patience import seconds
from tinyexplore.explore import TraceFormatError
from tinyexplore.explore.tracefile.codec import trace_to_json
from tinyexplore.explore.tracefile.trace import trace_from_bytes
from tinyexplore.nn.datasets import mnist
from tinyexplore.nn.state.file import FormatError
from tinyexplore.util.fetch import FetchError, _unpack
from tinyexplore.util.untrusted_data import JsonLimits, UntrustedError, bounded_json
from tinyexplore.widgets.explorer import ExplorerWidget

MIB = 1 << 20
MAX_MB = 200
START = b'{"version":1,"title":'
MEASURE = """
import json, sys
from pathlib import Path
from tinyexplore.explore import Trace, TraceFormatError
from tinyexplore.explore.tracefile import model

def peak_mb():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1000

peaks = {}
for path in map(Path, sys.argv[1:]):
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins at the present size
    before = peak_mb()
    try:
        Trace.load(path)
    except TraceFormatError:
        peaks[path.name] = peak_mb() - before
print(json.dumps(peaks))
"""


def repeated(start: bytes, piece: bytes, megabytes: int, end: bytes = b"") -> bytes:
    """The gzip data of `start`, about this number of MiB of `piece`, and `end`."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = piece * (MIB // len(piece))
    packed = [packer.compress(start), *[packer.compress(block) for _ in range(megabytes)], packer.compress(end)]
    return b"".join(packed) + packer.flush()


BOMBS = {
    "a string": (START + b'"', b"x", 260, b'"}'),
    "a string within the limits": (START + b'"', b"x", 90, b'"}'),
    "a string that ends in a wide character": (START + b'"', b"x", 90, '\U0001f600"}'.encode()),
    "a string of wide characters": (START + b'"', "\u2264".encode(), 110, b'"}'),
    "an escaped string": (START + b'"', b"\\\\", 110, b'"}'),
    "open arrays": (START, b"[", 110),
    "open objects": (START, b'{"a":', 110),
    "empty objects": (b'{"version":1,"nodes":[', b"{},", 110, b"{}]}"),
    "small objects": (b'{"version":1,"nodes":[', b'{"a":1},', 110, b"{}]}"),
    "small objects within the limits": (b'{"version":1,"nodes":[', b'{"a":1},', 4, b"{}]}"),
    "arrays": (b'{"version":1,"nodes":[', b"[],", 110, b"[]]}"),
    "numbers": (b'{"version":1,"nodes":[', b"1.5,", 110, b"1]}"),
    "numbers within the limits": (b'{"version":1,"nodes":[', b"1.5,", 15, b"1]}"),
    "strings": (b'{"version":1,"nodes":[', b'"ab",', 110, b"1]}"),
    "quotes": (START, b'"', 110, b"}"),
    "blanks": (b'{"version":1,', b" \n", 110, b'"title":""}'),
    "blanks within the limits": (b'{"version":1,', b" \n", 90, b'"title":""}'),
    "zeros": (b"", b"\0", 200),
    "gzip in gzip": (b"", gzip.compress(b"[]"), 110),
}


def test_bombs_take_little_memory(tmp_path: Path) -> None:
    for name, parts in BOMBS.items():
        (tmp_path / name).write_bytes(repeated(*parts))
    (tmp_path / "gzip of a bomb").write_bytes(gzip.compress(repeated(*BOMBS["a string"])))
    command = [sys.executable, "-c", MEASURE, *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds(120), check=True)
    peaks = json.loads(done.stdout)
    assert set(peaks) == {*BOMBS, "gzip of a bomb"}
    assert {name: peak for name, peak in peaks.items() if peak > MAX_MB} == {}


def test_rows_of_a_foreign_table_are_made_one_at_a_time() -> None:
    """A million rows that only have ids: the first is refused before the others are made."""
    count = 1_000_000
    data = json.loads(trace_to_json(toy.trace()))
    data["nodes"] = {"rows": count, "columns": {"id": [0, *[1] * (count - 1)]}}
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode())
    del data
    tracemalloc.start()
    try:
        with pytest.raises(TraceFormatError, match=r"nodes\[0\]: Node has no"):
            trace_from_bytes(packed)
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()


def test_one_text_that_many_lines_refer_to_counts_once_for_each() -> None:
    lines = {"rows": 1000, "columns": {"text": [0] * 1000, "nodes": [[]] * 1000}}
    programs = [{"id": 0, "kernel": 0, "language": "c", "lines": lines}]
    data = {"version": 1, "texts": ["x" * MIB], "programs": programs}
    with pytest.raises(TraceFormatError, match="lines have more than"):
        trace_from_bytes(gzip.compress(json.dumps(data).encode()))


def test_the_json_of_a_widget_is_bounded() -> None:
    with pytest.raises(ValueError, match="more than"):
        _ = ExplorerWidget(repeated(*BOMBS["a string"])).trace_json


def test_a_packed_data_set_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(repeated(b"", b"\0", 100))
    with pytest.raises(FormatError, match="96000000 bytes.*gunzip"):
        mnist(folder=tmp_path)


def test_a_download_is_unpacked_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[_unpack.__module__], "_UNPACKED_BYTES", 10 * MIB)
    path = tmp_path / "download"
    path.write_bytes(repeated(b"", b"\0", 20))
    with pytest.raises(FetchError, match="more than"):
        _unpack(path, "https://example.org/x.gz")
    assert list(tmp_path.iterdir()) == [path]


LIMITS = JsonLimits(nbytes=1000, values=10, depth=3)
TEXTS = [
    *[b'{"a": [1, 2, {"b": "c"}]}', rb'["\\", "\"", "\\\"[[[[[[,,,,,,,,,,,,", {"\\\\": "}"}]', b'"[,{"', b"3", b"[]"],
    *['["\u2264", "\U0001f600", "\\ud83d\\ude00"]'.encode(), b" [ [ [ ] ] ] ", b"[1,2,3,4,5,6,7,8,9]"],
]
REFUSED = [
    *[b"[[[[]]]]", b'[{"a": [{}]}]', b"[1,2,3,4,5,6,7,8,9,10,11]", b"{}," * 11, b"[NaN]", b"\0[]", b'"\xff"'],
    *[b'["a', b"[1}", b"]", b"[,]", b'"\\"', b'["a"]' + b" " * 1000, "[\u2264]".encode(), b"", b'"\xe2\x89"'],
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("text", [*TEXTS, *REFUSED])
def test_where_a_piece_ends_changes_nothing(text: bytes, size: int) -> None:
    pieces = iter([text[start : start + size] for start in range(0, len(text), size)])
    if text in TEXTS:
        assert bounded_json(pieces, LIMITS) == json.loads(text)
        return
    with pytest.raises(UntrustedError):
        bounded_json(pieces, LIMITS)
