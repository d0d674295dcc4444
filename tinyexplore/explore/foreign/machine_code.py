"""Disassembles the machine code of another compiler."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

_LIMIT_S = 30.0
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")
_SYMBOL = re.compile(r"^[0-9a-f]+ <(.*)>:$")


def disassemble(objects: Path) -> str:
    """Disassembles an object file with `llvm-objdump` or `objdump`; returns "" if neither is installed."""
    program = shutil.which("llvm-objdump") or shutil.which("objdump")
    if program is None:
        return ""
    syntax = ["-M", "intel"] if platform.machine() in ("x86_64", "AMD64") else []
    command = [program, "-d", "--no-show-raw-insn", *syntax, str(objects)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    lines = []
    for line in process.stdout.splitlines():
        if match := _SYMBOL.match(line):
            lines.append(f"{match[1]}:")
        elif match := _INSTRUCTION.match(line.expandtabs(8)):
            lines.append(f"  {match[1]:>5}: {' '.join(match[2].split())}")
    return "".join(f"{line}\n" for line in lines)


__all__ = ["disassemble"]
