"""The dump of another compiler as named texts, from one file, a folder, or a bundle that `Dump.save` wrote.

A dump is untrusted text. `Dump.load` limits its size, and never loads a pickle.
"""

from __future__ import annotations

import gzip
import io
import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinyexplore.util.atomic_files import write_whole
from tinyexplore.util.untrusted_data import JsonLimits, UntrustedError, bounded_json, gunzip

BUNDLE = "tinyexplore dump"  # the key that identifies a bundle; its value is the version of the format
BUNDLE_VERSION = 1
_GZIP = b"\x1f\x8b"
_TEXT_SUFFIXES = frozenset((".txt", ".log", ".json", ".ll", ".mlir", ".py", ".s", ".ptx", ".ttir", ".ttgir", ".llir"))


class ForeignError(ValueError):
    """No reader recognizes the dump, or it exceeds a limit. The message names the content and the valid formats."""


@dataclass(frozen=True, slots=True)
class DumpLimits:
    """Limits of the dumps that a reader accepts.

    nbytes: most bytes of all texts together, decompressed.
    files: most texts in a folder or bundle.
    lines: most lines of all stages together.
    nodes: most nodes of the trace.
    steps: most rewrites.
    depth: most nested brackets, blocks or calls.
    columns: most characters of a line; the rest is cut.
    seconds: most seconds of wall time for reading.
    """

    nbytes: int = 64 << 20
    files: int = 2_000
    lines: int = 400_000
    nodes: int = 400_000
    steps: int = 400_000
    depth: int = 200
    columns: int = 4_000
    seconds: float = 60.0


DUMP_LIMITS = DumpLimits()


@dataclass(frozen=True)
class Dump:
    """Named texts of one compilation.

    compiler: the compiler whose reader wrote it ("tinygrad", "jax", …); "" for files of unknown origin.
    version: the version of that compiler, "" if unknown.
    title: the name of the compiled program.
    files: text by name; names have "/" between folders.
    facts: further facts as text, by name: "target", "median_us".
    """

    compiler: str
    version: str
    title: str
    files: Mapping[str, str]
    facts: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: str | Path) -> Path:
        """Writes the dump as a bundle: gzipped JSON, equal for equal dumps."""
        data = {BUNDLE: BUNDLE_VERSION, "compiler": self.compiler, "version": self.version, "title": self.title}
        text = json.dumps({**data, "facts": dict(self.facts), "files": dict(self.files)}, separators=(",", ":"))
        write_whole(Path(path), gzip.compress(text.encode(), compresslevel=9, mtime=0))
        return Path(path)

    @staticmethod
    def load(path: str | Path, limits: DumpLimits = DUMP_LIMITS) -> Dump:
        """Loads the dump in a folder, a bundle or a single file, gzipped or plain.

        Raises:
            ForeignError: the file is a pickle, is damaged, or exceeds a limit.
            OSError: the file cannot be read.
        """
        path = Path(path)
        if path.is_dir():
            return Dump("", "", path.name, _read_folder(path, limits))
        with path.open("rb") as file:
            if path.stat().st_size > limits.nbytes:
                raise ForeignError(f"{path.name} has more than {limits.nbytes} bytes; pass limits=DumpLimits(nbytes=…)")
            data = file.read(limits.nbytes + 1)
        return Dump.of_bytes(data, path.name, limits)

    @staticmethod
    def of_bytes(data: bytes, name: str, limits: DumpLimits = DUMP_LIMITS) -> Dump:
        """Loads the dump in the bytes of a file with this name."""
        try:
            if data[:2] == _GZIP:
                data = b"".join(gunzip(io.BytesIO(data), limits.nbytes))
            if data[:1] == b"\x80" or name.endswith((".pkl", ".pickle")):
                raise ForeignError(
                    f"{name} is a pickle, which runs code when it is loaded. Record with tinyexplore instead: "
                    "explore.tinygrad(f, save='rewrites.json.gz')"
                )
            if data[:1] == b"{" and BUNDLE.encode() in data[:40]:
                memory = max(192 << 20, 16 * len(data))
                return _read_bundle(bounded_json(data, JsonLimits(limits.nbytes, 4 * limits.files, 4, memory)), limits)
        except UntrustedError as error:
            raise ForeignError(f"{name}: {error}") from None
        return Dump("", "", name, {name: data.decode("utf-8", errors="replace")})


def is_json(path: str | Path) -> bool:
    """Whether a file, gzipped or plain, begins with a JSON object that is no bundle, like a trace."""
    with Path(path).open("rb") as file:
        head = file.read(4096)
    if head[:2] == _GZIP:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 64)
        except zlib.error:
            return False
    return head.lstrip()[:1] == b"{" and BUNDLE.encode() not in head[:64]


def _read_folder(folder: Path, limits: DumpLimits) -> dict[str, str]:
    """Returns the texts of a folder and its subfolders, without symbolic links and other kinds of files."""
    files: dict[str, str] = {}
    total = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix not in _TEXT_SUFFIXES:
            continue
        total += path.stat().st_size
        if len(files) >= limits.files or total > limits.nbytes:
            raise ForeignError(f"{folder.name} has more than {limits.files} texts or {limits.nbytes} bytes")
        files[path.relative_to(folder).as_posix()] = path.read_text("utf-8", errors="replace")
    return files


def _read_bundle(data: Any, limits: DumpLimits) -> Dump:
    """Returns the dump in a bundle, which is checked against the limits."""
    texts = [data.get(name, "") for name in ("compiler", "version", "title")]
    tables = [data.get(name, {}) for name in ("files", "facts")]
    is_of_texts = all(isinstance(text, str) for text in texts) and all(
        isinstance(table, dict) and all(isinstance(text, str) for text in table.values()) for table in tables
    )
    if data[BUNDLE] != BUNDLE_VERSION or not is_of_texts:
        raise ForeignError(f"the bundle is damaged, or of another version than {BUNDLE_VERSION}")
    if len(tables[0]) > limits.files:
        raise ForeignError(f"the bundle has more than {limits.files} texts; pass limits=DumpLimits(files=…)")
    return Dump(*texts, *tables)


class Budget:
    """Counts what a reader creates, and raises at the first exceeded limit: `budget.spend("lines", 40)`."""

    def __init__(self, limits: DumpLimits) -> None:
        self.limits = limits
        self._spent = {"lines": 0, "nodes": 0, "steps": 0}
        self._end = time.monotonic() + limits.seconds

    def spend(self, what: str, count: int = 1) -> None:
        """Adds `count` to "lines", "nodes" or "steps". Raises ForeignError above a limit or after the time limit."""
        self._spent[what] += count
        limit = getattr(self.limits, what)
        if self._spent[what] > limit:
            raise ForeignError(f"the dump has more than {limit} {what}; pass limits=DumpLimits({what}=…)")
        self.check_time()

    def check_time(self) -> None:
        """Raises ForeignError after the time limit."""
        if time.monotonic() > self._end:
            raise ForeignError(
                f"reading the dump takes more than {self.limits.seconds:g} s; pass limits=DumpLimits(seconds=…)"
            )

    def check_depth(self, depth: int) -> None:
        """Raises ForeignError if the nesting is too deep."""
        if depth > self.limits.depth:
            raise ForeignError(
                f"the dump is nested more than {self.limits.depth} deep; pass limits=DumpLimits(depth=…)"
            )


__all__ = ["DUMP_LIMITS", "Budget", "Dump", "DumpLimits", "ForeignError", "is_json"]
