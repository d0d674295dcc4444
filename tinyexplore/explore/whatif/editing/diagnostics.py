"""Parses the diagnostics of compilers about a text, each with its line and column."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tinyexplore.explore.tracefile.model import Diagnostic

_PLACED = re.compile(r"^<(?:stdin|string)>:(\d+):(?:(\d+):)? *(fatal error|error|warning|note): *(.*)$")
_UNDEFINED = re.compile(r"undefined (?:symbol|reference)[: ]+[`']?(\w+)")
_SYMBOLS = re.compile(r"Symbols not found: \[ *([^\]]*?) *\]")
_DEFINED = re.compile(r"^\s*(%[\w.$-]+)\s*=")
MAX_DIAGNOSTICS = 20


def c_diagnostics(output: str, lines: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Parses the messages of gcc, clang or the linker. `lines` is the source."""
    diagnostics = []
    for text in output.splitlines():
        placed = _PLACED.match(text.strip())
        if placed is not None:
            level = "error" if "error" in placed[3] else placed[3]
            diagnostics.append(Diagnostic(int(placed[1]), int(placed[2] or 0), level, placed[4]))
    if not diagnostics and (undefined := _UNDEFINED.search(output)):
        return (_diagnose_undefined_name(undefined[1], lines),)
    return tuple(diagnostics[:MAX_DIAGNOSTICS]) or (_diagnose_without_position(output),)


def llvm_diagnostics(output: str, lines: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Parses the messages of LLVM's parser (with a position), verifier (with instructions) or linker."""
    for text in output.splitlines():
        start = text.find("<string>:")
        placed = _PLACED.match(text[start:]) if start >= 0 else None
        if placed is not None:
            return (Diagnostic(int(placed[1]), int(placed[2] or 0), "error", placed[4]),)
    if missing := _SYMBOLS.search(output):
        return (_diagnose_undefined_name(missing[1].split(",")[0].strip(), lines),)
    messages = [text for text in output.splitlines() if text.strip()]
    message = messages[0].strip() if messages else "LLVM gives no reason"
    return (Diagnostic(_line_of(messages[1:], lines), 0, "error", message),)


def _line_of(printed: Sequence[str], lines: Sequence[str]) -> int:
    """Returns the number of the first line that contains one of the `printed` instructions; 0 if there is none."""
    for text in printed:
        plain = " ".join(text.split())
        for number, line in enumerate(lines, 1):
            if plain and " ".join(line.split()) == plain:
                return number
    for text in printed:
        defined = _DEFINED.match(text)
        for number, line in enumerate(lines, 1):
            definition = _DEFINED.match(line)
            if defined is not None and definition is not None and definition[1] == defined[1]:
                return number
    return 0


def _diagnose_undefined_name(name: str, lines: Sequence[str]) -> Diagnostic:
    """Returns the diagnostic of an undefined name, at its first occurrence."""
    for number, line in enumerate(lines, 1):
        column = line.find(name)
        if column >= 0:
            return Diagnostic(number, column + 1, "error", f"nothing defines {name!r}")
    return Diagnostic(0, 0, "error", f"nothing defines {name!r}")


def _diagnose_without_position(output: str) -> Diagnostic:
    messages = [text.strip() for text in output.splitlines() if text.strip()]
    return Diagnostic(0, 0, "error", " · ".join(messages[:4])[:400] or "the compiler gives no reason")


__all__ = ["c_diagnostics", "llvm_diagnostics"]
