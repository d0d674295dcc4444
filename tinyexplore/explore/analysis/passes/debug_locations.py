"""Adds debug locations to LLVM IR that has none: each instruction is located at its own line of the text."""

from __future__ import annotations

import re

_LABEL = re.compile(r'^(?:[\w.$-]+|"[^"]*"):')
_DEFINED = re.compile(r"^define .*@([\w.$-]+|\"[^\"]*\")\(")
_NUMBERED = re.compile(r"^!(\d+) = ", re.MULTILINE)


def with_locations(text: str) -> str:
    """Returns `text` with the line of each instruction as its debug location.

    The text is unchanged if it has locations, or if an instruction spans several lines.
    """
    if "!dbg" in text or "DICompileUnit" in text:
        return text
    first = max((int(number) for number in _NUMBERED.findall(text)), default=-1) + 1
    lines: list[str] = []
    scopes: list[str] = []
    locations: dict[tuple[int, int], int] = {}
    is_inside, opened = False, False
    base = first + 4
    for number, line in enumerate(text.splitlines(), 1):
        body = line.split(";")[0].rstrip() if '"' not in line else line.rstrip()
        if not is_inside and (match := _DEFINED.match(line)) and body.endswith("{"):
            is_inside = True
            scopes.append(match[1].strip('"'))
            lines.append(f"{body[:-1]}!dbg !{_number_scope(base, len(scopes) - 1)} {{")
            continue
        if is_inside and line.startswith("}"):
            is_inside = False
        elif is_inside and body.strip() and not _LABEL.match(body.strip()):
            opened = opened or body.endswith("[")
            if opened and not body.endswith("]"):
                lines.append(line)
                continue
            opened = False
            location = locations.setdefault((len(scopes) - 1, number), len(locations))
            lines.append(f"{body}, !dbg !{base + 2 * location + 1}")
            continue
        lines.append(line)
    if not locations:
        return text
    return "\n".join([*lines, *_write_metadata(text, first, base, scopes, locations)]) + "\n"


def _number_scope(base: int, number: int) -> int:
    """Returns the metadata number of a function's scope: even numbers are functions, odd ones locations."""
    return base + 2 * number


def _write_metadata(
    text: str, first: int, base: int, scopes: list[str], locations: dict[tuple[int, int], int]
) -> list[str]:
    """Returns the lines of LLVM debug metadata: a unit, a file, the scopes and the locations."""
    unit, file, kind, flag = first, first + 1, first + 2, first + 3
    rows = [
        f"!{unit} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{file}, isOptimized: true, "
        "runtimeVersion: 0, emissionKind: LineTablesOnly)",
        f'!{file} = !DIFile(filename: "module", directory: "")',
        f"!{kind} = !DISubroutineType(types: !{{}})",
        f'!{flag} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f"!llvm.dbg.cu = !{{!{unit}}}",
    ]
    if "!llvm.module.flags" not in text:
        rows.append(f"!llvm.module.flags = !{{!{flag}}}")
    rows += [
        f'!{_number_scope(base, number)} = distinct !DISubprogram(name: "{name}", scope: !{file}, file: !{file}, '
        f"line: 0, type: !{kind}, scopeLine: 0, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})"
        for number, name in enumerate(scopes)
    ]
    rows += [
        f"!{base + 2 * location + 1} = !DILocation(line: {number}, scope: !{_number_scope(base, scope)})"
        for (scope, number), location in locations.items()
    ]
    return rows


__all__ = ["with_locations"]
