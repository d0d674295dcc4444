"""Traces to JSON and back: plain objects under the field names of `explore/model.py`."""

from __future__ import annotations

import dataclasses
import gzip
import json
import types
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tinyexplore.explore import model
from tinyexplore.explore.model import TRACE_VERSION, Trace

Codec = Callable[[Any], Any]


class TraceFormatError(ValueError):
    """Data that is not a trace of this version; says what was found and what would do."""


def trace_to_json(trace: Trace) -> str:
    """The trace as one JSON object, without white space."""
    return json.dumps(_encoder(Trace)(trace), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def trace_from_json(text: str | bytes) -> Trace:
    """The trace that `trace_to_json` wrote; equal (`==`) to the one it was given."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise TraceFormatError(f"not a trace: the text is not JSON ({error})") from error
    if not isinstance(data, dict) or "version" not in data:
        raise TraceFormatError(f'not a trace: expected a JSON object with "version", found {type(data).__name__}')
    if data["version"] != TRACE_VERSION:
        raise TraceFormatError(
            f"trace version {data['version']!r}: this tinyexplore reads version {TRACE_VERSION}; "
            f"capture again, or open it with the release that wrote it"
        )
    return _decode_dataclass(Trace)(data)


def trace_to_bytes(trace: Trace) -> bytes:
    """The gzipped JSON: what travels in a widget, in an export and in a .json.gz file; equal for equal traces."""
    return gzip.compress(trace_to_json(trace).encode(), compresslevel=9, mtime=0)


def trace_from_bytes(data: bytes) -> Trace:
    """A trace from JSON text, compressed or not."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise TraceFormatError(f"not a trace: the gzip data is damaged ({error})") from error
    return trace_from_json(data)


def save_trace(trace: Trace, path: str | Path) -> Path:
    """Writes `trace` to `path`: gzipped where the name ends in ".gz", else plain JSON."""
    path = Path(path)
    data = trace_to_bytes(trace) if path.suffix == ".gz" else trace_to_json(trace).encode()
    path.write_bytes(data)
    return path


def load_trace(path: str | Path) -> Trace:
    """The trace in a file, compressed or not, whatever its name."""
    try:
        return trace_from_bytes(Path(path).read_bytes())
    except TraceFormatError as error:
        raise TraceFormatError(f"{path}: {error}") from error


# *** codecs, made once per type from the model's annotations ***


def _identity(value: Any) -> Any:
    return value


@cache
def _encoder(kind: Any) -> Codec:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _encode_dataclass(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _optional(_encoder(_without_none(arguments))) if type(None) in arguments else _identity
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _encoder(arguments[0])
        if item is _identity:
            return _identity  # json writes a tuple as an array
        return lambda values: [item(value) for value in values]
    return _identity


@cache
def _encode_dataclass(kind: type) -> Codec:
    hints = _hints(kind)
    fields = [(name, _encoder(hint)) for name, hint in hints.items()]
    plain = [name for name, encode in fields if encode is _identity]
    nested = [(name, encode) for name, encode in fields if encode is not _identity]

    def encode(value: Any) -> dict[str, Any]:
        found = {name: getattr(value, name) for name in plain}
        for name, encode_field in nested:
            found[name] = encode_field(getattr(value, name))
        return found

    return encode


@cache
def _decoder(kind: Any) -> Codec:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if type(None) in arguments:
            return _optional(_decoder(_without_none(arguments)))
        return _of_types(arguments)
    if origin is tuple:
        return _decode_tuple(arguments)
    if kind is float:
        return _to_float
    return _of_type(kind)


def _decode_tuple(arguments: tuple[Any, ...]) -> Codec:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _decoder(arguments[0])

        def decode_many(values: Any) -> tuple[Any, ...]:
            return tuple([item(value) for value in _array(values)])

        return decode_many
    items = [_decoder(argument) for argument in arguments]

    def decode_each(values: Any) -> tuple[Any, ...]:
        if len(_array(values)) != len(items):
            raise TraceFormatError(f"expected {len(items)} values, found {values!r}")
        return tuple([decode(value) for decode, value in zip(items, values, strict=True)])

    return decode_each


@cache
def _decode_dataclass(kind: type) -> Codec:
    decoders = [(name, _decoder(hint)) for name, hint in _hints(kind).items()]
    optional = {field.name for field in dataclasses.fields(kind) if field.default is not dataclasses.MISSING}

    def decode(data: Any) -> Any:
        if not isinstance(data, dict):
            raise TraceFormatError(f"expected an object for {kind.__name__}, found {type(data).__name__}")
        values = {}
        for name, decode_field in decoders:
            if name in data:
                try:
                    values[name] = decode_field(data[name])
                except TraceFormatError as error:
                    raise TraceFormatError(f"{kind.__name__}.{name}: {error}") from None
            elif name not in optional:
                raise TraceFormatError(f"{kind.__name__} has no {name!r}")
        return kind(**values)

    return decode


def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, vars(model))
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _without_none(arguments: tuple[Any, ...]) -> Any:
    (kind,) = (argument for argument in arguments if argument is not type(None))
    return kind


def _optional(codec: Codec) -> Codec:
    if codec is _identity:
        return _identity
    return lambda value: None if value is None else codec(value)


def _array(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise TraceFormatError(f"expected an array, found {type(values).__name__}")
    return values


def _to_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TraceFormatError(f"expected a number, found {value!r}")
    return float(value)


def _of_type(kind: type) -> Codec:
    return _of_types((kind,))


def _of_types(kinds: tuple[type, ...]) -> Codec:
    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TraceFormatError(f"expected {' or '.join(kind.__name__ for kind in kinds)}, found {value!r}")
        return value

    return check
