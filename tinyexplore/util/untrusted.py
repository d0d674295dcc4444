"""JSON and gzip by whoever: what they would take of time and memory is known before they take it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))


class UntrustedError(ValueError):
    """Data that is damaged, or larger than the reader allows; says which, and where the limit is."""


def bounded_gunzip(data: bytes, nbytes: int) -> bytes:
    """What gzip has compressed, up to `nbytes`: past them nothing more is decompressed."""
    stream = zlib.decompressobj(wbits=31)  # with gzip's header and checksum
    try:
        found = stream.decompress(data, nbytes + 1)
    except zlib.error as error:
        raise UntrustedError(f"the gzip data is damaged ({error})") from None
    if len(found) > nbytes:
        raise UntrustedError(f"it has more than {nbytes} bytes, decompressed")
    if not stream.eof or stream.unused_data:
        raise UntrustedError(f"the gzip data is damaged ({'bytes follow its end' if stream.eof else 'it is cut off'})")
    return found


def bounded_json(
    data: bytes, *, values: int, depth: int, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value of a JSON text in UTF-8 with at most that many values, nested at most `depth` deep.

    NaN and infinities, which are no JSON, are refused. `pairs`: makes an object of its (name, value) pairs.
    """
    _check_structure(data, values, depth)
    try:
        return json.loads(data.decode(), parse_constant=_no_constant, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:  # of ints with thousands of digits, too
        raise UntrustedError(f"the text is not JSON ({error})") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _check_structure(data: bytes, values: int, depth: int) -> None:
    """Counts what stands outside of strings, by methods of bytes, which is quicker than reading it."""
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    found = bare.count(b'"') // 2
    if found <= 2 * values:
        outside = b"".join(bare.split(b'"')[::2])
        found = outside.count(b",") + outside.count(b"[") + outside.count(b"{")
    if found > values:
        raise UntrustedError(f"it has more than {values} values")
    brackets = outside.translate(None, delete=_OTHERS)
    for _ in range(depth):  # each round closes what is innermost
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets.count(b"[") + brackets.count(b"{") > depth:
        raise UntrustedError(f"it is nested more than {depth} deep")
