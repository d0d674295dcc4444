"""Encode traces as JSON and decode them. JSON objects use the field names of `explore/tracefile/model.py`."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tinyexplore.explore.tracefile.columns import TableRows, pack_tables, unpack_tables
from tinyexplore.explore.tracefile.derived_tables import with_derived_tables
from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.explore.tracefile.model import TRACE_VERSION, TraceTables
from tinyexplore.explore.tracefile.validation import TraceFormatError, check_trace, constraint_of, hints_of, with_path
from tinyexplore.util.atomic_files import write_whole
from tinyexplore.util.interpreter import collecting_later
from tinyexplore.util.untrusted_data import (
    MEMORY,
    MEMORY_PER_BYTE,
    MEMORY_PER_PACKED_BYTE,
    PIECE_BYTES,
    JsonLimits,
    UntrustedError,
    bounded_json,
    gunzip,
)

Codec = Callable[[Any], Any]
Row = TypeVar("Row")
_GZIP = b"\x1f\x8b"
_NUMBER_LIMIT = 1 << 63  # the limit of every size, time and count


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that a trace must respect when it is decoded.

    nbytes: most bytes of the decompressed JSON text. A training step of a small network needs 12 to 24 million.
    values: most numbers, texts, arrays and objects in the text. That training step has 1.6 million.
    depth: most nested arrays and objects.
    memory: most bytes that decoding a small file may allocate, by an upper estimate. A large file may need more: 16
        bytes for each byte of the file, or 160 if the file is compressed.
    """

    nbytes: int = 256 << 20
    values: int = 10_000_000
    depth: int = 32
    memory: int = MEMORY

    def of_text(self, memory: int) -> JsonLimits:
        """Returns these limits for a JSON text, with at least `memory` bytes of memory allowed."""
        return JsonLimits(self.nbytes, self.values, self.depth, max(self.memory, memory))


LIMITS = Limits()
T = TypeVar("T", bound=TraceTables)


def trace_to_json(trace: TraceTables) -> str:
    """Returns the trace as one JSON object without white space."""
    return _json_text(_make_encoder(TraceTables)(with_derived_tables(trace)))


def tables_from_json(kind: type[T], text: str | bytes, limits: Limits = LIMITS) -> T:
    """Decodes a JSON text into a trace of class `kind`; see `trace_from_json`."""
    return _trace_of(kind, text, limits.of_text(MEMORY_PER_BYTE * len(text)))


def _trace_of(kind: type[T], text: str | bytes | Iterable[bytes], limits: JsonLimits) -> T:
    """Decodes JSON as a trace. Raises TraceFormatError for other data or another version."""
    try:
        data = bounded_json(text, limits)
    except UnicodeEncodeError as error:
        raise TraceFormatError(f"not a trace: the file is not UTF-8 ({error})") from None
    except UntrustedError as error:
        hint = "; larger ones are read with limits=Limits(...)" if "more than" in str(error) else ""
        raise TraceFormatError(f"not a trace: {error}{hint}") from None
    if not isinstance(data, dict) or "version" not in data:
        raise TraceFormatError(f'not a trace: expected a JSON object with "version", found {type(data).__name__}')
    if type(data["version"]) is not int or data["version"] != TRACE_VERSION:
        raise TraceFormatError(
            f"trace version {data['version']!r:.40}: this tinyexplore reads version {TRACE_VERSION}; "
            f"capture again, or open it with the release that wrote it"
        )
    try:
        of_kind: Any = kind
        trace: T = _decode_dataclass(of_kind)(unpack_tables(kind, data, limits.nbytes, limits.memory))
    except TraceFormatError as error:
        raise TraceFormatError(str(error).removeprefix(".")) from None
    check_trace(trace)
    return trace


def row_to_data(row: Any) -> Any:
    """Returns one row of a trace as plain values that `json` can write."""
    kind: Any = type(row)
    return _make_encoder(kind)(row)


def rows_from_data(kind: type[Row], data: list[Any]) -> tuple[Row, ...]:
    """Decodes rows that `row_to_data` encoded. Each row is checked; references between rows are not."""
    of_kind: Any = kind
    decode = _decode_dataclass(of_kind)
    return tuple(decode(row) for row in data)


def trace_to_bytes(trace: TraceTables) -> bytes:
    """Returns the trace as gzipped JSON with its tables stored as columns.

    Widgets, exports and .json.gz files use this form. Equal traces give equal bytes.
    """
    with collecting_later():
        data = pack_tables(TraceTables, _make_encoder(TraceTables)(with_derived_tables(trace)))
        return gzip.compress(_json_text(data).encode(), compresslevel=9, mtime=0)


def _json_text(data: Any) -> str:
    return well_formed(json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False))


def tables_from_bytes(kind: type[T], data: bytes, limits: Limits = LIMITS) -> T:
    """Decodes a trace from JSON text, gzipped or plain."""
    return _decode_file(kind, io.BytesIO(data), len(data), limits)


def _decode_file(kind: type[T], file: BinaryIO, nbytes: int, limits: Limits) -> T:
    """Decodes the trace in `file`, whose size is `nbytes` bytes."""
    start = file.read(len(_GZIP))
    file.seek(0)
    if start != _GZIP:
        return _trace_of(kind, iter(partial(file.read, PIECE_BYTES), b""), limits.of_text(MEMORY_PER_BYTE * nbytes))
    return _trace_of(kind, gunzip(file, limits.nbytes), limits.of_text(MEMORY_PER_PACKED_BYTE * nbytes))


def save_trace(trace: TraceTables, path: str | Path) -> Path:
    """Writes `trace` to `path` atomically: gzipped if the name ends in ".gz", else plain JSON."""
    path = Path(path)
    data = trace_to_bytes(trace) if path.suffix == ".gz" else trace_to_json(trace).encode()
    return write_whole(path, data)


def load_tables(kind: type[T], path: str | Path, limits: Limits = LIMITS) -> T:
    """Loads the trace in a file. The content, not the file name, decides whether it is decompressed."""
    try:
        with open(path, "rb") as file:
            return _decode_file(kind, file, os.fstat(file.fileno()).st_size, limits)
    except TraceFormatError as error:
        raise TraceFormatError(f"{path}: {error}") from error


# *** codecs, created once per type from the model's annotations ***


def _return_unchanged(value: Any) -> Any:
    return value


@cache
def _make_encoder(hint: Any) -> Codec:
    """Returns the function that encodes values of a type."""
    kind, _ = constraint_of(hint)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _encode_dataclass(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _make_optional(_make_encoder(_drop_none(arguments))) if type(None) in arguments else _return_unchanged
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _make_encoder(arguments[0])
        if item is _return_unchanged:
            return _return_unchanged  # json writes a tuple as an array
        return lambda values: [item(value) for value in values]
    return _return_unchanged


@cache
def _encode_dataclass(kind: type) -> Codec:
    fields = [(name, _make_encoder(hint)) for name, hint in hints_of(kind).items()]
    plain = [name for name, encode in fields if encode is _return_unchanged]
    nested = [(name, encode) for name, encode in fields if encode is not _return_unchanged]

    def encode(value: Any) -> dict[str, Any]:
        fields = {name: getattr(value, name) for name in plain}
        for name, encode_field in nested:
            fields[name] = encode_field(getattr(value, name))
        return fields

    return encode


@cache
def _make_decoder(hint: Any) -> Codec:
    """Returns the function that decodes and checks values of a type."""
    kind, _ = constraint_of(hint)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if type(None) in arguments:
            return _make_optional(_make_decoder(_drop_none(arguments)))
        return _decode_either({argument: _make_decoder(argument) for argument in arguments})
    if origin is tuple:
        return _decode_tuple(arguments)
    return {float: _to_float, int: _to_int, str: _to_text, bool: _to_bool}[kind]


def _decode_tuple(arguments: tuple[Any, ...]) -> Codec:
    """Returns the function that decodes an array as a tuple."""
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _make_decoder(arguments[0])

        def decode_many(values: Any) -> tuple[Any, ...]:
            try:
                return tuple([item(value) for value in _check_array(values)])
            except TraceFormatError:
                # decode one by one, so that the error names the position
                return _decode_each([item] * len(_check_array(values)), values)

        return decode_many
    items = [_make_decoder(argument) for argument in arguments]

    def decode_each(values: Any) -> tuple[Any, ...]:
        if len(_check_array(values)) != len(items):
            raise TraceFormatError(f"expected {len(items)} values, found {len(values)}")
        return _decode_each(items, values)

    return decode_each


def _decode_each(decoders: list[Codec], values: list[Any] | TableRows) -> tuple[Any, ...]:
    decoded = []
    for number, (decode, value) in enumerate(zip(decoders, values, strict=True)):
        try:
            decoded.append(decode(value))
        except TraceFormatError as error:
            raise with_path(f"[{number}]", error) from None
    return tuple(decoded)


@cache
def _decode_dataclass(kind: type) -> Codec:
    """Returns the function that decodes an object as a dataclass. Missing fields get their defaults."""
    decoders = [(name, _make_decoder(hint)) for name, hint in hints_of(kind).items()]
    optional = {field.name for field in dataclasses.fields(kind) if field.default is not dataclasses.MISSING}

    def decode(data: Any) -> Any:
        if not isinstance(data, dict):
            raise TraceFormatError(f"expected an object for {kind.__name__}, found {_describe_value(data)}")
        values = {}
        for name, decode_field in decoders:
            if name in data:
                try:
                    values[name] = decode_field(data[name])
                except TraceFormatError as error:
                    raise with_path(f".{name}", error) from None
            elif name not in optional:
                raise TraceFormatError(f"{kind.__name__} has no {name!r}")
        return kind(**values)

    return decode


def _drop_none(arguments: tuple[Any, ...]) -> Any:
    (kind,) = (argument for argument in arguments if argument is not type(None))
    return kind


def _make_optional(codec: Codec) -> Codec:
    if codec is _return_unchanged:
        return _return_unchanged
    return lambda value: None if value is None else codec(value)


def _decode_either(decoders: dict[type, Codec]) -> Codec:
    def decode(value: Any) -> Any:
        if type(value) not in decoders:
            raise TraceFormatError(
                f"expected {' or '.join(kind.__name__ for kind in decoders)}, found {_describe_value(value)}"
            )
        return decoders[type(value)](value)

    return decode


def _check_array(values: Any) -> list[Any] | TableRows:
    if not isinstance(values, (list, TableRows)):
        raise TraceFormatError(f"expected an array, found {_describe_value(values)}")
    return values


def _to_float(value: Any) -> float:
    if type(value) is float and isfinite(value):
        return value
    if type(value) is not int:
        raise TraceFormatError(f"expected a finite number, found {_describe_value(value)}")
    return float(_to_int(value))


def _to_int(value: Any) -> int:
    if type(value) is not int:
        raise TraceFormatError(f"expected int, found {_describe_value(value)}")
    if not -_NUMBER_LIMIT < value < _NUMBER_LIMIT:
        raise TraceFormatError(f"expected an int of at most 64 bits, found one of {value.bit_length()} bits")
    return value


def _to_text(value: Any) -> str:
    if type(value) is not str:
        raise TraceFormatError(f"expected str, found {_describe_value(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise TraceFormatError(f"half of a surrogate pair in the text {value!a:.40}") from None
    return value


def _to_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise TraceFormatError(f"expected bool, found {_describe_value(value)}")
    return value


def _describe_value(value: Any) -> str:
    return f"{type(value).__name__}" if isinstance(value, (list, dict)) else f"{value!a:.40}"
