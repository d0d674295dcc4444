"""Reads JSON and gzip data of unknown origin. Checks size and structure during decompression."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, BinaryIO

PIECE_BYTES = 1 << 20
MEMORY = 192 << 20  # bytes of memory that a small input may take
MEMORY_PER_BYTE = 16  # bytes of memory per byte of JSON text: traces of whole networks take 12 to 14
# bytes of memory per byte of compressed JSON text: traces of whole networks take 90 to 140
MEMORY_PER_PACKED_BYTE = 160

_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")  # +1 and -1 as signed bytes
_JSON_BYTES = b"[]{}:, \t\r\n0123456789+-.Eetrufalsn"  # the bytes allowed outside strings
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that do not begin a character
_BELOW_U0100 = bytes(range(0xC4))
_BELOW_U10000 = bytes(range(0xF0))

# bytes that CPython takes for one value, including its position in a growing array or dict
_VALUE = 48
_STRING = 56
_ARRAY = 64
_OBJECT = 240


class UntrustedError(ValueError):
    """Raised for data that is damaged or exceeds a limit. The message says which."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits of a JSON text.

    nbytes: bytes of the decompressed text.
    values: number of numbers, texts, arrays and objects.
    depth: nested arrays and objects.
    memory: bytes that the text and its values may take, by an upper estimate.
    """

    nbytes: int
    values: int
    depth: int
    memory: int = MEMORY


def gunzip(file: BinaryIO, nbytes: int) -> Iterator[bytes]:
    """Decompresses `file` in pieces of at most 1 MiB. Raises UntrustedError for damage and after more than `nbytes`
    bytes."""
    total = 0
    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
        while True:
            try:
                piece = unpacked.read(PIECE_BYTES)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise UntrustedError(f"the gzip data is damaged ({error})") from None
            if not piece:
                return
            total += len(piece)
            if total > nbytes:
                raise UntrustedError(f"it has more than {nbytes} bytes, decompressed")
            yield piece


def bounded_json(
    source: str | bytes | Iterable[bytes],
    limits: JsonLimits,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """Returns the value of a JSON text in UTF-8 that is within `limits`. Raises UntrustedError otherwise.

    Rejects NaN and infinities, which JSON does not have.

    Args:
        source: the text, or an iterator of its pieces.
        limits: the limits.
        pairs: builds an object from its (name, value) pairs.
    """
    text = _check(source, limits)
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:  # ValueError also for ints with thousands of digits
        raise UntrustedError(f"the text is not JSON ({error})") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number: only finite numbers are allowed")


def _check(source: str | bytes | Iterable[bytes], limits: JsonLimits) -> str:
    """Returns the text of `source`, which is within `limits`. Decodes each piece after checking it."""
    scan = _Scan(limits)
    if isinstance(source, str):
        for start in range(0, len(source), PIECE_BYTES):
            scan.add(source[start : start + PIECE_BYTES].encode())
        return source
    pieces = _split_pieces(source) if isinstance(source, bytes) else source
    decoder = codecs.getincrementaldecoder("utf-8")()
    texts = []
    try:
        for piece in pieces:
            scan.add(piece)
            texts.append(decoder.decode(piece))
        texts.append(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        raise UntrustedError(f"the text is not JSON ({error})") from None
    return "".join(texts)


def _split_pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))


class _Scan:
    """Counts the parts of a JSON text piece by piece, and rejects the text at the first exceeded limit.

    It splits by methods of bytes, which are much faster than a parser. `json.loads` finds all other errors.
    """

    def __init__(self, limits: JsonLimits) -> None:
        self.limits = limits
        self.backslash = b""  # the last byte of a piece, if it escapes the first byte of the next piece
        self.in_string = False
        self.depth = 0
        self.nbytes = 0
        self.characters = 0
        self.width = 1  # bytes per character in a Python str: 1, 2 or 4
        self.strings = self.commas = self.arrays = self.objects = 0

    def add(self, piece: bytes) -> None:
        self._count_text(piece)
        structure = self._remove_strings(piece)
        if structure.translate(None, delete=_JSON_BYTES):
            raise UntrustedError("the text is not JSON (a character outside of a string)")
        self.commas += structure.count(b",")
        self.arrays += structure.count(b"[")
        self.objects += structure.count(b"{")
        if self.commas + self.arrays + self.objects > self.limits.values:
            raise UntrustedError(f"it has more than {self.limits.values} values")
        self._count_depth(structure)
        if self._estimate_memory() > self.limits.memory:
            raise UntrustedError(f"reading it may take more than {self.limits.memory} bytes of memory")

    def _count_text(self, piece: bytes) -> None:
        self.nbytes += len(piece)
        if self.nbytes > self.limits.nbytes:
            raise UntrustedError(f"it has more than {self.limits.nbytes} bytes")
        if piece.isascii():
            self.characters += len(piece)
            return
        self.characters += len(piece.translate(None, delete=_CONTINUATION))
        if piece.translate(None, delete=_BELOW_U10000):
            self.width = 4
        elif piece.translate(None, delete=_BELOW_U0100):
            self.width = max(self.width, 2)

    def _remove_strings(self, piece: bytes) -> bytes:
        data = self.backslash + piece
        self.backslash = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        data = data[: len(data) - len(self.backslash)]
        alternating = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        structure = b"".join(alternating[1::2] if self.in_string else alternating[::2])
        self.strings += len(alternating) // 2
        self.in_string ^= len(alternating) % 2 == 0
        return structure

    def _count_depth(self, structure: bytes) -> None:
        steps = memoryview(structure.translate(_STEPS, delete=_OTHERS)).cast("b")
        deepest = max(accumulate(steps, initial=self.depth))
        self.depth += sum(steps)
        if deepest > self.limits.depth:
            raise UntrustedError(f"it is nested more than {self.limits.depth} deep")

    def _estimate_memory(self) -> int:
        """Returns an upper estimate of the memory of the text (twice: as text, and as strings in values) and of its
        values."""
        values = _VALUE * self.commas + _STRING * self.strings + _ARRAY * self.arrays + _OBJECT * self.objects
        return 2 * self.width * self.characters + values
