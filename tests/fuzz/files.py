"""The fuzz of files: each file loads correctly, or raises the exception that the documentation names.

    python -m tests.fuzz.files --count 5000                all of it, in pieces, each in a process of its own
    python -m tests.fuzz.files --parser gguf --only 1234   one case again

A case is known by its parser and number: a good file, damaged by flipped bits, cuts, splices, other numbers or, for
traces, changes of the JSON's values; "columns" are traces as they travel, with tables that do not fit together. Each
has `SECONDS` and each process `MEGABYTES` beyond what it starts with. What is loaded must then do all that is done
with it: tensors are read, traces drawn, asked, replayed and written.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import signal
import struct
import subprocess
import sys
import tarfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.explore import toy
from tests.support.less_memory import set_limit
from tinyexplore import Tensor, explore
from tinyexplore.explore import TraceFormatError, diff, related, rewrite_history, trace_to_json, where
from tinyexplore.explore.exports.html_export import static_html
from tinyexplore.explore.tracefile.chrome import to_chrome_trace
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg
from tinyexplore.explore.tracefile.pictures.pipeline_picture import pipeline_svg
from tinyexplore.explore.tracefile.replay import StageReplay
from tinyexplore.explore.tracefile.trace import trace_from_bytes
from tinyexplore.nn.state import FormatError, gguf_load, safe_load, safe_save, tar_extract, torch_load

SECONDS = 5.0
MEGABYTES = 768
PIECE = 500
FIXTURES = Path(__file__).parents[1] / "fixtures" / "state"
MAX_COMPARED_ELEMENTS = 1 << 16  # elements of a loaded tensor that are read
NUMBERS = (0, 1, 2, 3, 7, 127, 128, 255, 256, 65535, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
VALUES = (
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        5,
        10**6,
        1 << 53,
        1 << 63,
        10**400,
        0.5,
        -0.0,
        1e308,
        "",
        "1",
        "\ud800",
        "<&>\x00",
    ),
    *([], {}, [0], [[0]], {"id": 0}, "x" * 5000, float("nan"), float("inf"), [[[[[[]]]]]]),
)


class TooSlow(BaseException):
    """A case that took longer than `SECONDS`."""


class Failed(AssertionError):
    """A case that did what no file may do; says which, and how to see it again."""


@dataclass(frozen=True)
class Parser:
    """What reads a kind of file: good files, the reader, the one exception it may raise, and what is done then."""

    good: Callable[[], tuple[bytes, ...]]
    load: Callable[[bytes], Any]
    refuses: type[Exception]
    use: Callable[[Any, Random], None]
    mutate: Callable[[bytes, Random], bytes]


# *** good files ***


def _bytes(content: bytes) -> Tensor:
    return Tensor(content) if content else Tensor.zeros(0, dtype="uint8")


@cache
def _arrays() -> dict[str, Tensor]:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    kinds = ("float32", "float16", "int64", "uint8", "bool")
    return {**{kind: Tensor(base.astype(kind)) for kind in kinds}, "empty": Tensor.zeros(0, 3), "one": Tensor(2.5)}


@cache
def _safetensors() -> tuple[bytes, ...]:
    path = Path("fuzz.safetensors")
    safe_save(_arrays(), path, {"format": "pt", "by": "us"})
    content = path.read_bytes()
    path.unlink()
    return (content,)


@cache
def _gguf() -> tuple[bytes, ...]:
    """A header of every kind of value, and tensors plain and quantized, written without a library."""

    def text(words: str) -> bytes:
        return struct.pack("<Q", len(words.encode())) + words.encode()

    def array(kind: int, items: Iterable[bytes]) -> bytes:
        packed = list(items)
        return struct.pack("<IIQ", 9, kind, len(packed)) + b"".join(packed)

    values = [
        text("answer") + struct.pack("<II", 4, 42),
        text("share") + struct.pack("<If", 6, 1.5),
        text("is") + struct.pack("<I?", 7, True),
        text("text") + struct.pack("<I", 8) + text("héllo"),
        text("numbers") + array(5, [struct.pack("<i", n) for n in range(4)]),
        text("words") + array(8, [text("a"), text("bc")]),
        text("general.alignment") + struct.pack("<II", 4, 32),
    ]
    entries, data = [], b""
    for name, kind, shape, size in (("plain", 0, (64, 3), 768), ("half", 1, (64,), 128), ("q4", 2, (64, 3), 108)):
        entries.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data)))
        data += bytes(range(100)) * 8
        data = data[: len(data) - 800 + size] + bytes(-size % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(entries), len(values)) + b"".join(values) + b"".join(entries)
    return (head + bytes(-len(head) % 32) + data,)


@cache
def _torch() -> tuple[bytes, ...]:
    return tuple((FIXTURES / name).read_bytes() for name in ("zip.pt", "legacy.pt", "linear.pt"))


@cache
def _tar() -> tuple[bytes, ...]:
    found = []
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
            for name in ("a.txt", "folder/b.bin", "n" * 90 if kind == tarfile.USTAR_FORMAT else "ü" * 120):
                info = tarfile.TarInfo(name)
                info.size = 700
                archive.addfile(info, io.BytesIO(bytes(700)))
        found.append(file.getvalue())
    return tuple(found)


@cache
def _traces() -> tuple[bytes, ...]:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="PYTHON").realize()
    real = explore(lambda: (x * 2 + 1).sum(0), device="PYTHON").trace
    return tuple(trace_to_json(trace).encode() for trace in (toy.trace(), real))


@cache
def _columns() -> tuple[bytes, ...]:
    """The same traces as they travel, without their compression."""
    return tuple(gzip.decompress(trace_to_bytes(trace_from_bytes(content))) for content in _traces())


# *** damage ***


def damaged(content: bytes, random: Random, where_numbers: int = 2000) -> bytes:
    """One to four of: bits flipped, a piece lost, doubled or moved, the end cut off, another number put in."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        at = random.randrange(min(len(data), random.choice((64, where_numbers, len(data)))))
        size = random.choice((1, 2, 4, 8, 16, 64, 512))
        match random.randrange(7):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                data[at] = random.randrange(256)
            case 2:
                del data[at:]
            case 3:
                del data[at : at + size]
            case 4:
                data[at:at] = data[at : at + size] * random.choice((1, 1, 3, 50))
            case 5:
                other = random.randrange(len(data))
                data[at : at + size] = data[other : other + size]
            case 6:
                width = random.choice((1, 2, 4, 8))
                data[at : at + width] = (random.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(data)


def damaged_trace(content: bytes, random: Random) -> bytes:
    """As `damaged`, or other values in the JSON; compressed (and then, perhaps, damaged) now and then."""
    kind = random.randrange(10)
    if kind == 0:
        return damaged(content, random, len(content))
    if kind == 1:
        return damaged(gzip.compress(content), random)
    data = json.loads(content)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        _change_somewhere(data, random, only_ids=kind >= 5)
    return json.dumps(data).encode()


def damaged_columns(content: bytes, random: Random) -> bytes:
    """As `damaged_trace`, or tables whose columns are lost, doubled, cut, moved, of another length or kind."""
    if random.random() < 0.4:
        return damaged_trace(content, random)
    data = json.loads(content)
    tables = list(_tables_in(data))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        _change_table(random.choice(tables), tables, random)
    text = json.dumps(data).encode()
    return gzip.compress(text) if random.random() < 0.2 else text


def _tables_in(data: Any) -> Iterable[dict[str, Any]]:
    """Every table of `data` that travels in columns, those in cells of others as well."""
    if isinstance(data, dict):
        if isinstance(data.get("columns"), dict):
            yield data
        data = list(data.values())
    if isinstance(data, list):
        for value in data:
            yield from _tables_in(value)


def _change_table(table: dict[str, Any], tables: list[dict[str, Any]], random: Random) -> None:
    columns = table.get("columns")
    if not isinstance(columns, dict) or not columns:
        table["columns"] = {"id": [0]}
        return
    name = random.choice(list(columns))
    column = columns[name]
    place = random.randrange(len(column)) if isinstance(column, list) and column else None
    match random.randrange(9):
        case 0:
            table["rows"] = random.choice((*VALUES, 3, 4, 7, 10**9))
        case 1:
            columns[random.choice(("extra", "id", "src", name))] = columns.pop(name)
        case 2:
            columns[name] = random.choice(VALUES)
        case 3:
            other_table = deepcopy(random.choice(tables))
            table.clear()
            table.update(other_table)
        case 4 if place is not None:
            for other in columns.values():  # one row less, everywhere
                if isinstance(other, list) and place < len(other):
                    del other[place]
            table["rows"] = len(column)
        case 5 if place is not None:
            column.insert(place, column[place])
        case 6 if place is not None:
            column[place] = random.choice(VALUES)
        case _ if place is not None and type(column[place]) is int:
            column[place] += random.choice((-1, 1, 2, -40, 10**6, -(10**400)))
        case _:
            columns[name] = column[::-1] if isinstance(column, list) else [column]


def _change_somewhere(data: Any, random: Random, only_ids: bool) -> None:
    """Walks down to some value and puts another one there; `only_ids`: an id that may do, so that most are read."""
    place = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = random.choice(keys)
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and random.random() < 0.95:
            place = inner
            continue
        break
    if only_ids and (type(inner) is not int or key in ("id", "version")):
        return
    match 4 if only_ids else random.randrange(8):
        case 0 | 1:
            place[key] = random.choice(VALUES)
        case 2 | 3 if isinstance(inner, int):
            place[key] = inner + random.choice((-1, 1, 2, -5, 40))
        case 4 | 5 if isinstance(inner, int):
            place[key] = random.randrange(max(2, inner + 3))
        case 6 if isinstance(place, list):
            place.insert(random.randrange(len(place)), random.choice(place))
        case 6:
            place[random.choice(("extra", "id", key))] = inner
        case _:
            del place[key]


# *** use ***


def use_tensors(found: Any, random: Random) -> None:
    """Reads every tensor that is not larger than a few pages, and the shapes of all."""
    if isinstance(found, Tensor):
        assert found.numel() >= 0 and found.nbytes() >= 0
        repr(found)
        if found.numel() <= MAX_COMPARED_ELEMENTS and random.random() < 0.2:
            assert found.numpy().shape == found.shape
    elif isinstance(found, dict):
        for value in found.values():
            use_tensors(value, random)
    elif isinstance(found, (tuple, list)) and len(found) < 100:
        for value in found:
            if value is not found:
                use_tensors(value, random)


def use_trace(trace: Any, random: Random) -> None:
    """Everything that is made of a trace, at random stages."""
    repr(trace)
    assert trace_from_bytes(trace_to_json(trace).encode()) == trace
    pipeline_svg(trace)
    static_html(trace)
    to_chrome_trace(trace)
    diff(trace, trace)
    where(trace, op="LOAD", kind="uop")
    for stage in random.sample(trace.stages, min(3, len(trace.stages))):
        replay = StageReplay(trace, stage.id)
        for k in {0, replay.count // 2, replay.count}:
            replay.graph_at(k)
        graph_svg(trace, stage=stage.id, which=random.choice(("before", "after")))
    for node in random.sample(trace.nodes, min(3, len(trace.nodes))):
        related(trace, node)
        rewrite_history(trace, node)


PARSERS = {
    "columns": Parser(_columns, trace_from_bytes, TraceFormatError, use_trace, damaged_columns),
    "trace": Parser(_traces, trace_from_bytes, TraceFormatError, use_trace, damaged_trace),
    "torch": Parser(_torch, lambda data: torch_load(_bytes(data)), FormatError, use_tensors, damaged),
    "safetensors": Parser(_safetensors, lambda data: safe_load(_bytes(data)), FormatError, use_tensors, damaged),
    "gguf": Parser(_gguf, lambda data: gguf_load(_bytes(data)), FormatError, use_tensors, damaged),
    "tar": Parser(_tar, lambda data: tar_extract(_bytes(data)), FormatError, use_tensors, damaged),
}


# *** running ***


@contextmanager
def clock(seconds: float) -> Any:
    """Raises TooSlow inside the block once the process has computed that long in it: other processes do not count."""

    def ring(signum: int, frame: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def content_of(name: str, number: int) -> tuple[bytes, Random]:
    """The file of a case, and what further choices are drawn from."""
    random = Random(f"{name} {number}")
    parser = PARSERS[name]
    return parser.mutate(random.choice(parser.good()), random), random


def run_case(name: str, number: int) -> str:
    """ "loaded" or "refused"; Failed for anything else."""
    parser = PARSERS[name]
    content, random = content_of(name, number)
    try:
        with clock(SECONDS):
            try:
                found = parser.load(content)
            except parser.refuses:
                return "refused"
            parser.use(found, random)
            return "loaded"
    except (Exception, TooSlow) as error:
        told = "".join(traceback.format_exception(error)[-6:])
        raise Failed(f"python -m tests.fuzz.files --parser {name} --only {number}\n{told}") from None


def run_cases(name: str, numbers: Iterable[int]) -> Counter[str]:
    """How many were loaded and refused; the good files are loaded first, and must be."""
    for content in PARSERS[name].good():
        PARSERS[name].use(PARSERS[name].load(content), Random(0))
    set_limit(MEGABYTES)
    return Counter(run_case(name, number) for number in numbers)


def run_piece(name: str, first: int, count: int) -> Counter[str]:
    """As `run_cases`, in a process of its own, which may die."""
    command = [sys.executable, "-m", "tests.fuzz.files", "--parser", name, "--first", str(first), "--piece", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Counter(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Status 1 where a case has failed."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.files", description=__doc__)
    options.add_argument("--parser", choices=sorted(PARSERS), help="this one only")
    options.add_argument("--count", type=int, default=5000, help="cases of each parser")
    options.add_argument("--first", type=int, default=0, help="the number of the first case")
    options.add_argument("--only", type=int, help="this case")
    options.add_argument("--piece", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    names = [chosen.parser] if chosen.parser else sorted(PARSERS)
    if chosen.only is not None:
        print(run_case(names[0], chosen.only))
        return 0
    if chosen.piece is not None:
        print(json.dumps(run_cases(names[0], range(chosen.first, chosen.first + chosen.piece))))
        return 0
    failures = 0
    for name in names:
        began, counts = time.perf_counter(), Counter[str]()
        for first in range(chosen.first, chosen.first + chosen.count, PIECE):
            try:
                counts += run_piece(name, first, min(PIECE, chosen.first + chosen.count - first))
            except (Failed, subprocess.TimeoutExpired) as failed:
                failures += 1
                print(failed, flush=True)
        told = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        print(f"{name}: {told} in {time.perf_counter() - began:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
