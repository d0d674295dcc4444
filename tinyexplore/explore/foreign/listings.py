"""Reads lines of LLVM IR and of assembly (including PTX), each with the user's line from its debug data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tinyexplore.explore.foreign.trace_builder import Operation, Place

_DEBUG = re.compile(r",? !dbg !(\d+)")
_METADATA = re.compile(r",? !(?!dbg)[\w.]+ !\d+")
_NAMED = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)\s*$")
_FIELD = re.compile(r'(\w+): (?:!(\d+)|"([^"]*)"|(\w+))')
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+) (\d+)(?: (\d+))?(.*)$")
_INLINED = re.compile(r"inlined_at (\d+) (\d+) (\d+)")
_DIRECTIVE = re.compile(r"^\s*(?:\.(?!L)[a-z]|#|//|;|$)")
_LIBRARY = re.compile(r"/(?:site-packages|dist-packages|lib/python3\.\d+|tinyexplore/explore/foreign)/|^<frozen ")
_MAX_INLINED_CALLS = 64  # most nested inlined calls


def is_library(file: str) -> bool:
    """Whether a file belongs to an installed package. The user's own line is then the call of the package."""
    return _LIBRARY.search(file) is not None


def llvm_ir(text: str, function: str = "") -> list[Operation]:
    """Returns the lines of the functions that a module defines, without metadata.

    function: only the function with this name; "" for all.
    """
    place_of = _read_debug_places(text)
    lines: list[Operation] = []
    is_inside = False
    for line in text.splitlines():
        if line.startswith("define") and (not function or f"@{function}(" in line or f'@"{function}"(' in line):
            is_inside = True
        if not is_inside or line.lstrip().startswith(("#dbg", ";")):
            continue
        debug = _DEBUG.search(line)
        clean = _METADATA.sub("", _DEBUG.sub("", line)).partition("; preds = ")[0].rstrip()
        if clean:
            is_instruction = clean.startswith(" ") and not clean.rstrip().endswith(":")
            location = place_of(int(debug[1])) if debug and is_instruction else None
            lines.append(Operation(clean, place=location))
        if line.startswith("}"):
            is_inside = False
    return lines


def remove_debug_data(text: str) -> tuple[str, dict[int, Place]]:
    """Returns a module of LLVM IR without debug data but with the same number of lines, and the position of each line.

    Lines are counted from 0.
    """
    place_of = _read_debug_places(text)
    locations: dict[int, Place] = {}
    lines = []
    for number, line in enumerate(text.splitlines()):
        if (debug := _DEBUG.search(line)) and (location := place_of(int(debug[1]))) is not None:
            locations[number] = location
        if named := _NAMED.match(line):
            lines.append(f"!{named[1]} = !{{}}")  # other metadata may refer to it
        else:
            is_debug = line.startswith("!llvm.dbg") or "#dbg_" in line[:20]
            lines.append("" if is_debug else _DEBUG.sub("", line))
    return "\n".join(lines), locations


def _read_debug_places(text: str) -> Callable[[int], Place | None]:
    """Returns a function from a DILocation number to its position; for inlined library code, the user's call."""
    rows: dict[int, tuple[str, dict[str, str]]] = {}
    for line in text.splitlines():
        if line.startswith("!") and (match := _NAMED.match(line)):
            fields = {name: number or string or word for name, number, string, word in _FIELD.findall(match[3])}
            rows[int(match[1])] = (match[2], fields)
    cached: dict[int, Place | None] = {}

    def row(number: str) -> tuple[str, dict[str, str]]:
        return rows.get(int(number), ("", {})) if number.isdigit() else ("", {})

    def file_of(scope: str) -> tuple[str, str]:
        """Returns the file and the function of a scope."""
        file = function = ""
        for _ in range(_MAX_INLINED_CALLS):
            kind, fields = row(scope)
            if not file and fields.get("file", "").isdigit():
                _, named = row(fields["file"])
                folder = named.get("directory", "")
                file = "/".join(filter(None, (folder, named.get("filename", ""))))
            if kind == "DISubprogram":
                function = fields.get("name", "")
                break
            scope = fields.get("scope", "")
        return file, function

    def location(number: int) -> Place | None:
        if number in cached:
            return cached[number]
        innermost, call_site, own_code = None, str(number), None
        for _ in range(_MAX_INLINED_CALLS):
            _, fields = row(call_site)
            if not fields.get("line", "").isdigit():
                break
            file, function = file_of(fields.get("scope", ""))
            location_here = Place(file, int(fields["line"]), function) if file and int(fields["line"]) else None
            innermost = innermost or location_here
            if location_here is not None and not is_library(file):
                own_code = location_here
                break
            call_site = fields.get("inlinedAt", "")
        cached[number] = own_code or innermost
        return cached[number]

    return location


def assembly(text: str) -> list[Operation]:
    """Returns the lines of an assembler text without directives, each with the position of the previous `.loc`."""
    files: dict[str, str] = {}
    for line in text.splitlines():  # PTX names its files at the end
        if match := _FILE.match(line):
            files[match[1]] = "/".join(filter(None, (match[2], match[3])))
    return list(_yield_assembly_lines(text, files))


def _yield_assembly_lines(text: str, files: dict[str, str]) -> Iterator[Operation]:
    """Yields the lines of an assembly listing, each with the position in its last `.loc` directive."""
    location: Place | None = None
    user: dict[tuple[str, str], tuple[str, str]] = {}  # position in a library → the position of the inlined call
    for line in text.splitlines():
        if match := _LOCATION.match(line):
            position = (match[1], match[2])
            if inlined := _INLINED.search(match[4]):
                user[position] = (inlined[1], inlined[2])
            for _ in range(_MAX_INLINED_CALLS):
                if position not in user or not is_library(files.get(position[0], "")):
                    break
                position = user[position]
            file, number = files.get(position[0], ""), int(position[1])
            location = Place(file, number) if file and number else None
            continue
        clean = re.sub(r"\s+(?:#|//) .*$", "", line.rstrip()).expandtabs(8)
        if not clean.strip() or _DIRECTIVE.match(line):
            continue
        is_label = clean.rstrip().endswith(":") and not clean.startswith(" ")
        if is_label and not clean.startswith(("$L", ".L", "L")):
            location = None  # a new function begins
        yield Operation(clean, place=None if is_label else location)


__all__ = ["assembly", "is_library", "llvm_ir", "remove_debug_data"]
