"""Finds the values that the register allocator spills, and their UOps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tinyexplore.explore.analysis.passes.sequence import LLVMPass, PassLine, Spill

_STORE = re.compile(r"\(store \(s(\d+)\) into %stack\.(\d+)[,) ]")
_LOAD = re.compile(r"\(load \(s(\d+)\) from %stack\.(\d+)[,) ]")
_BLOCK = re.compile(r"bb\.\d+\.?([\w.$-]*)")
_DEFINED = re.compile(r"\s+(?:[a-z-]+ )*(%\d+)[\w.]*:\w+(?:\([^)]*\))? = (.*)")
_REGISTER = re.compile(r"%\d+")
_COPIED = re.compile(r"COPY (%\d+)[\w.]*(?::\w+)?(?:,|$)")


def spills_of(passes: Sequence[LLVMPass], subjects: Mapping[int, str]) -> tuple[str, list[Spill]]:
    """Returns the first pass after which values are stored on the stack, and these values; ("", []) without spills.

    subjects: the IR of the UOps, by position from 1.
    """
    for llvm_pass in passes:
        if llvm_pass.stage != "machine IR" or not llvm_pass.changed:
            continue
        spills = _find_spills(llvm_pass.lines, subjects)
        if spills:
            return llvm_pass.name, spills
    return "", []


@dataclass
class _StackSlot:
    """A stack slot.

    bits: the bits of an access.
    stores, loads: the lines that access it.
    registers: the virtual registers from which it is stored and to which it is loaded.
    blocks: the blocks of these lines, in order.
    """

    bits: int
    stores: list[PassLine] = field(default_factory=list)
    loads: list[PassLine] = field(default_factory=list)
    registers: list[str] = field(default_factory=list)
    blocks: dict[str, None] = field(default_factory=dict)


def _find_spills(lines: Sequence[PassLine], subjects: Mapping[int, str]) -> list[Spill]:
    """Returns the spilled values by stack slot, each with the UOp that computes it."""
    slots = _find_slots(lines)
    definitions: dict[str, list[tuple[PassLine, str]]] = {}
    for line in lines if slots else ():
        if match := _DEFINED.match(line.text):
            definitions.setdefault(match[1], []).append((line, match[2]))
    spills = []
    for number, slot in slots.items():
        if not slot.stores or not slot.loads:
            continue
        line = _find_computing_line(slot.registers, definitions) or _find_first_line_of_uop(slot.stores)
        subject = "" if line.uop is None else subjects.get(line.uop + 1, "")
        counts = (slot.bits // 8, len(slot.stores), len(slot.loads))
        spills.append(Spill(number, *counts, line.uop, subject, line.python, tuple(slot.blocks)))
    return spills


def _find_slots(lines: Sequence[PassLine]) -> dict[int, _StackSlot]:
    """Returns the accessed stack slots, by number."""
    slots: dict[int, _StackSlot] = {}
    block = ""
    for line in lines:
        if not line.text.startswith(" "):
            match = _BLOCK.match(line.text)
            block = (match[1] or match[0]) if match else block
        for pattern in (_STORE, _LOAD):
            for access in pattern.finditer(line.text):
                slot = slots.setdefault(int(access[2]), _StackSlot(int(access[1])))
                (slot.stores if pattern is _STORE else slot.loads).append(line)
                slot.registers += _find_moved_registers(line.text)
                if block:
                    slot.blocks[block] = None
    return slots


def _find_moved_registers(text: str) -> list[str]:
    """Returns the register that a line stores to the stack or loads from it; none if the line also computes."""
    registers = dict.fromkeys(_REGISTER.findall(text.split(" :: ")[0]))
    return list(registers) if len(registers) == 1 else []


def _find_computing_line(
    registers: Sequence[str], definitions: Mapping[str, Sequence[tuple[PassLine, str]]]
) -> PassLine | None:
    """Returns the line that computes the value of these registers; None if no line of a UOp does.

    A constant with which the value begins, such as the 0 of an accumulator, does not count.
    """
    return next((line for line in _find_computations(registers, definitions) if line.uop is not None), None)


def _find_computations(
    registers: Sequence[str], definitions: Mapping[str, Sequence[tuple[PassLine, str]]]
) -> Iterator[PassLine]:
    """Yields the lines that compute these registers, followed by those of the registers that they copy."""
    pending = list(dict.fromkeys(registers))
    visited = set(pending)
    for register in pending:
        for line, right in definitions.get(register, ()):
            if copied := _COPIED.match(right):
                if copied[1] not in visited:
                    visited.add(copied[1])
                    pending.append(copied[1])
            elif _REGISTER.search(right) and not _LOAD.search(right):
                yield line


def _find_first_line_of_uop(lines: Sequence[PassLine]) -> PassLine:
    return next((line for line in lines if line.uop is not None), lines[0])


__all__ = ["spills_of"]
