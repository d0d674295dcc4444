"""What a compiler says of a program that it refuses."""

from __future__ import annotations

import re


class CompileError(RuntimeError):
    """A compiler refused a program: its words, and the line of the source."""


def compile_error(compiler: str, words: str, source: str, place: str) -> CompileError:
    """The error of a `compiler` that said `words`, with the first line that it is about.

    place: a regular expression that finds that line's number, its only group, in `words`.
    """
    match = re.search(place, words)
    lines = source.splitlines()
    shown = ""
    if match is not None and 1 <= int(match[1]) <= len(lines):
        shown = f"\nline {match[1]}: {lines[int(match[1]) - 1].strip()}"
    return CompileError(f"{compiler} could not compile the kernel:\n{words.strip()}{shown}")


__all__ = ["CompileError", "compile_error"]
