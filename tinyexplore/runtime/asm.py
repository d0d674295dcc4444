"""Reads assembly from LLVM and C compilers: attributes each line to the UOps that it comes from, and removes
directives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.trace import SourceLine
from tinyexplore.uop import AxisKind, Ops, UOp

UopsOfLine = Callable[[int], tuple[UOp, ...]]

_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_DEBUG = re.compile(r",? !dbg !(\d+)")
_METADATA = re.compile(r", !(?!dbg)[\w.]+ !\d+")
_LABEL = re.compile(r"^(\.?[\w.$]+):")
_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_COMMENTS = {"aarch64": "//", "hip": ";"}  # in ARM's operands, #4 is a number
_BLOCK_COMMENT = re.compile(r"\s*; preds = .*$")


def program_roots(uops: Sequence[UOp]) -> tuple[UOp, ...]:
    """Returns the stores and loops of a program. They represent the whole program for a line that belongs to no single
    UOp.

    Cold paths are left out: a program has one for each sine, and many of their lines belong to no single UOp.
    """
    return tuple(
        node for node in uops if node.op is Ops.STORE or node.op is Ops.RANGE and node.arg.kind is not AxisKind.RARE
    )


def program_head(uops: Sequence[UOp]) -> tuple[UOp, ...]:
    """Returns the nodes for the first line of a GPU kernel: its arguments, work-items, stores and loops."""
    operations = (Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.STORE, Ops.RANGE, Ops.SPECIAL)
    return tuple(node for node in uops if node.op in operations)


def uop_of_line(spec: ProgramSpec) -> UopsOfLine:
    """Returns a function from line numbers of debug information (index + 1) to UOps.

    0 and numbers outside the program mean the whole program.
    """
    roots = program_roots(spec.uops)

    def find(line: int) -> tuple[UOp, ...]:
        return (spec.uops[line - 1],) if 1 <= line <= len(spec.uops) else roots

    return find


def optimized_ir_lines(spec: ProgramSpec, ir: str) -> tuple[SourceLine, ...]:
    """Returns the kernel's function from printed IR with debug locations, without the metadata."""
    texts = ir.splitlines()
    line_of = {match[1]: int(match[2]) for text in texts if (match := _LOCATION.match(text))}
    find = uop_of_line(spec)
    start = next(number for number, text in enumerate(texts) if text.startswith("define") and f"@{spec.name}(" in text)
    lines = []
    for text in texts[start:]:
        if text.lstrip().startswith(("#dbg", ";")):
            continue
        debug = _DEBUG.search(text)
        clean = _METADATA.sub("", _DEBUG.sub("", text))
        clean = _BLOCK_COMMENT.sub("", re.sub(r" #\d+", "", clean)).rstrip()
        if text.startswith("define"):
            lines.append(SourceLine(clean, find(0)))
        elif debug is not None:
            lines.append(SourceLine(clean, find(line_of.get(debug[1], 0))))
        else:
            lines.append(SourceLine(clean, find(0) if clean.startswith(" ") else ()))
        if text.startswith("}"):
            break
    return tuple(lines)


def assembly_lines(
    spec: ProgramSpec, assembly: str, find: UopsOfLine | None = None, arch: str = ""
) -> tuple[SourceLine, ...]:
    """Returns the kernel's instructions and the labels that they jump to.

    find: maps `.loc` lines to UOps.
    arch: the architecture of the instructions, if it is not the kernel's target.
    """
    find = find or uop_of_line(spec)
    comment = rf"\s+{_COMMENTS.get(arch or spec.target.arch, '#')}"
    texts = assembly.splitlines()
    names = (f"{spec.name}:", f"_{spec.name}:")
    start = next(number for number, text in enumerate(texts) if text.startswith(names))
    source_lines: list[SourceLine] = [SourceLine(f"{spec.name}:", find(0))]
    line = 0
    for text in texts[start + 1 :]:
        location = _LOC.match(text)
        if location is not None:
            line = int(location[1])
            continue
        stripped = text.strip()
        label = _LABEL.match(text)
        if label is not None and label[1].startswith((".Lfunc_end", "Lfunc_end", ".LFE")):
            break
        if stripped.startswith((".size", ".cfi_endproc")):
            break
        if label is not None:
            source_lines.append(SourceLine(f"{label[1]}:", find(line)))
            continue
        if not stripped or stripped.startswith((".", "#", "//", ";", "@")):
            continue
        instruction = re.split(comment, stripped.expandtabs(8))[0]
        mnemonic, _, operands = instruction.partition(" ")
        source_lines.append(SourceLine(f"    {mnemonic:<12} {operands.strip()}".rstrip(), find(line)))
    used_words = {
        word for line in source_lines if line.text[:1] == " " for word in re.findall(r"\.?[\w.$]+", line.text)
    }
    return tuple(
        line
        for line in source_lines
        if line.text[:1] == " " or line.text[:-1] in used_words or line.text[:-1] == spec.name
    )


def amdgcn_lines(spec: ProgramSpec, text: str) -> tuple[SourceLine, ...]:
    """Returns the instructions of a kernel for AMD's GPUs, without the tables around them."""
    find = uop_of_line(spec)
    head, *instructions = assembly_lines(spec, text, lambda line: find(line) if line else ())
    return (head._replace(uops=program_head(spec.uops)), *instructions)


def ptx_lines(spec: ProgramSpec, text: str) -> tuple[SourceLine, ...]:
    """Returns a whole PTX program, as ptxas accepts it, with source locations attached to the lines and without
    comments."""
    find = uop_of_line(spec)
    head = program_head(spec.uops)
    assembly: list[SourceLine] = []
    line: int | None = None
    for full_line in text.splitlines():
        location = _LOC.match(full_line)
        if location is not None:
            line = int(location[1])
            continue
        line_text = full_line.split("//", 1)[0].rstrip()
        if not line_text or line_text.lstrip().startswith((".file", ".section", "$L__tmp", "$L__func")):
            continue
        if ".entry" in line_text:
            assembly.append(SourceLine(line_text, head))
        elif line_text.startswith("\t") and line is not None:
            mnemonic, _, operands = line_text.strip().partition(" \t" if " \t" in line_text else "\t")
            assembly.append(SourceLine(f"    {mnemonic:<16} {operands}".rstrip(), find(line) if line else ()))
        else:
            assembly.append(SourceLine(line_text.expandtabs(4), ()))
    return tuple(assembly)
