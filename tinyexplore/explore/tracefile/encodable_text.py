"""Makes text encodable as UTF-8: file names and texts from programs may contain lone surrogates."""

from __future__ import annotations

import re
from pathlib import Path

from tinyexplore.util.atomic_files import write_whole

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def well_formed(text: str) -> str:
    """Returns `text` with U+FFFD for each lone surrogate; a pair of surrogates becomes its character.

    Python decodes invalid UTF-8 bytes of a file name as lone surrogates (PEP 383).
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def for_xml(text: str) -> str:
    """Returns `text` with U+FFFD for each character that XML 1.0 forbids, such as NUL and escape."""
    return _NOT_IN_XML.sub("\ufffd", well_formed(text))


def for_terminal(text: str) -> str:
    """Returns `text` without control characters: terminal escapes and bidi controls appear as `\\u001b`.

    Line feeds and tabs stay. The escapes are those of JSON, so JSON text stays valid JSON.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t\u00a0\u202f" else _escape(character)
        for character in text
    )


def _escape(letter: str) -> str:
    code = ord(letter)
    units = [code] if code < 0x10000 else [0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)]
    return "".join(f"\\u{unit:04x}" for unit in units)


def write_text(path: str | Path, text: str) -> Path:
    """Writes `text` as UTF-8, atomically, with U+FFFD for each lone surrogate."""
    return write_whole(path, well_formed(text).encode())


class PageText(str):
    """The text of a page. A notebook displays its size instead of the text, which would fill many screens."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<page of {len(self) / 1e3:,.0f} kB; print() shows its text>"


__all__ = ["PageText", "for_terminal", "for_xml", "well_formed", "write_text"]
