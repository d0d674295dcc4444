"""The reads and writes of generated x86 code outside the program's accesses, from the assembly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tinyexplore.renderer import Effort, ProgramSpec
from tinyexplore.runtime.llvm import LLVMCompiler
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Ops, UOp

BYTES = {"byte": 1, "word": 2, "dword": 4, "qword": 8, "tbyte": 10, "xmmword": 16, "ymmword": 32, "zmmword": 64}
OF_TYPE = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_OPERAND = re.compile(r"\b(byte|word|dword|qword|tbyte|xmmword|ymmword|zmmword) ptr (?:\w\w:)?\[([^]]*)\]")
_ACCESS = re.compile(r"(= load|  store)(?: volatile)? (<[^>]+>|\w+)[ ,]")
_MASKED = re.compile(r"@llvm\.masked\.(load|store)\.v(\d+)[fi](\d+)")
_MASK = re.compile(r"\{k\d\}|maskmov")  # masked lanes access no memory
_FROM_TABLE = re.compile(r"\bqword ptr \[rdi(?: \+ \d+)?\]")  # an address of a buffer
_TO_TABLE = re.compile(r"^\s*\w+\s+[er]di\b")  # an instruction after which rdi holds something else
_NO_ACCESS = ("lea", "nop", "prefetch")


@dataclass(frozen=True)
class TooWide:
    """An instruction that accesses more bytes than the program's accesses allow.

    program: name of the kernel.
    instruction: its text in the assembly.
    found: bytes that the instruction accesses.
    asked: bytes that it may access.
    """

    program: str
    instruction: str
    found: int
    asked: int


def wide_accesses(compiler: LLVMCompiler, spec: ProgramSpec) -> tuple[int, list[TooWide]]:
    """Count the buffer accesses in the code of `spec`, and list those that are wider than the IR's accesses.

    At Effort.LEAST, LLVM selects instructions one by one: each may access as many bytes as one access of the IR that
    its UOp depends on. At other levels LLVM merges neighboring accesses and does not say exactly which UOp an
    instruction implements: it may access as many bytes as all of these together, or as any single one. The stack and
    the constants beside the code are LLVM's own. rdi holds the table of buffer addresses until an instruction writes
    it.
    """
    listings = dict(compiler.listings(spec))
    asked = list(_asked(listings["llvm-opt"]))
    is_exact = spec.options.effort is Effort.LEAST
    widest = max((width for width, _ in asked), default=8)
    frame = any("rbp, rsp" in line.text for line in listings["asm"])
    count, found, table = 0, [], True
    for line in listings["asm"]:
        is_address = table and _FROM_TABLE.search(line.text)
        table = table and not _TO_TABLE.search(line.text)
        if is_address:
            continue
        if line.text.strip().startswith(_NO_ACCESS) or _MASK.search(line.text):
            continue
        for size, place in _OPERAND.findall(line.text):
            if re.search(r"\b(rip|rsp)\b" if not frame else r"\b(rip|rsp|rbp)\b", place):
                continue
            count += 1
            uops = set(line.uops[0].toposort()) if len(line.uops) == 1 else set()
            widths = [width for width, made_by in asked if not uops or not made_by or uops.intersection(made_by)]
            most = max(widths, default=8) if is_exact else max(sum(widths), widest)  # 8: of the array of buffers
            if BYTES[size] > most:
                found.append(TooWide(spec.name, line.text.strip(), BYTES[size], most))
    return count, found


def _asked(ir: Iterable[SourceLine]) -> Iterable[tuple[int, tuple[UOp, ...]]]:
    """The width in bytes of every load and store in IR, and the UOps that it implements."""
    for line in ir:
        if "ptr %slot" in line.text:  # the table of buffers
            continue
        uops = tuple(node for node in line.uops if node.op in (Ops.LOAD, Ops.STORE)) if len(line.uops) == 1 else ()
        if masked := _MASKED.search(line.text):
            yield int(masked[2]) * int(masked[3]) // 8, uops
        elif "@llvm.mem" in line.text:
            yield 1 << 20, uops
        elif access := _ACCESS.search(line.text):
            yield type_bytes(access[2]), uops


def type_bytes(text: str) -> int:
    """The size in bytes of a value of an LLVM type."""
    count, _, scalar = text.strip("<>").rpartition(" x ")
    each = OF_TYPE[scalar] if scalar in OF_TYPE else -(-int(scalar[1:]) // 8)
    return int(count or 1) * each
