"""Facts from a kernel's assembly: the number of instructions, the vector registers, and the busiest loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyexplore.explore.tracefile.result_display import DisplayableRow

_WORD = re.compile(r"[\w.$]+")
_X86 = re.compile(r"\b([xyz])mm(\d+)\b")
_X86_BITS = {"x": 128, "y": 256, "z": 512}
_X86_SCALAR = re.compile(r"(?:ss|sd|sh)$|^v?mov[dq]$|^v?cvtt?s[sd]2")
_ARM = re.compile(r"\b([vqzdsh])(\d+)\b")
_ARM_VECTOR = re.compile(r"\b(?:v\d+\.|q\d+\b|z\d+\.)")
_RISCV = re.compile(r"\bv(\d+)\b")
_GROUPED = re.compile(r"\bm([248])\b")
_MOVED = re.compile(r"^v(?:mv|l|s)(\d+)r")


@dataclass(frozen=True, slots=True, repr=False)
class Instructions(DisplayableRow):
    """Counts of one listing in assembly.

    total: the number of instructions.
    vector: the number of instructions that compute or move several values.
    widest_bits: the most bits that one instruction processes.
    registers: the numbers of the used vector registers; a register group counts all its registers.
    loop: the first and the last line of the innermost loop with most vector instructions, None for none.
    in_loop: the number of instructions of that loop.
    vector_in_loop: the number of vector instructions of that loop.
    """

    total: int
    vector: int
    widest_bits: int
    registers: tuple[int, ...]
    loop: tuple[int, int] | None
    in_loop: int
    vector_in_loop: int


def instructions_of(lines: Sequence[str], arch: str, vector_bits: int) -> Instructions:
    """Counts the instructions in `lines`, formatted as in listings: labels at the margin, instructions indented.

    vector_bits: the width of a vector register of the CPU in bits.
    """
    read = {"x86_64": _read_x86, "aarch64": _read_arm, "riscv64": _read_riscv}[arch](lines, vector_bits)
    instructions = dict(read)
    used = sorted({register for bits, registers in instructions.values() for register in registers if bits})
    loop = _find_busiest_loop(lines, instructions)
    inside = [number for number in instructions if loop is not None and loop[0] <= number <= loop[1]]
    return Instructions(
        total=len(instructions),
        vector=sum(bits > 0 for bits, _ in instructions.values()),
        widest_bits=max((bits for bits, _ in instructions.values()), default=0),
        registers=tuple(used),
        loop=loop,
        in_loop=len(inside),
        vector_in_loop=sum(instructions[number][0] > 0 for number in inside),
    )


Read = Iterator[tuple[int, tuple[int, set[int]]]]  # line → (bits that it processes, 0 for no vector; registers)


def _split(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    for line_number, line in enumerate(lines):
        if line[:1] == " ":
            mnemonic, _, operands = line.strip().partition(" ")
            yield line_number, mnemonic, operands.strip()


def _read_x86(lines: Sequence[str], vector_bits: int) -> Read:
    for line_number, mnemonic, operands in _split(lines):
        named = _X86.findall(operands)
        bits = max((_X86_BITS[kind] for kind, _ in named), default=0)
        is_scalar = bits == 128 and _X86_SCALAR.search(mnemonic) is not None
        yield line_number, (0 if is_scalar else bits, {int(number) for _, number in named})


def _read_arm(lines: Sequence[str], vector_bits: int) -> Read:
    for line_number, _, operands in _split(lines):
        is_vector = _ARM_VECTOR.search(operands) is not None
        named = {int(number) for kind, number in _ARM.findall(operands)} if is_vector else set()
        yield line_number, (vector_bits if is_vector else 0, named)


def _read_riscv(lines: Sequence[str], vector_bits: int) -> Read:
    """Reads RISC-V: an instruction processes the register group of the previous `vsetvli` (m2 is a group of two)."""
    group = 1
    for line_number, mnemonic, operands in _split(lines):
        if mnemonic.startswith("vset"):
            grouping = _GROUPED.search(operands)
            group = int(grouping[1]) if grouping else 1
            yield line_number, (0, set())
            continue
        moved = _MOVED.search(mnemonic)
        count = int(moved[1]) if moved else group
        is_vector = mnemonic.startswith("v")
        firsts = [int(number) for number in _RISCV.findall(operands)] if is_vector else []
        yield (
            line_number,
            (vector_bits * count if is_vector else 0, {first + k for first in firsts for k in range(count)}),
        )


def hot_loop(
    lines: Sequence[str], arch: str, vector_bits: int, depth: int = 0, weights: Sequence[float] = ()
) -> list[int]:
    """Returns the lines of the busiest loop, in order; empty without loops.

    depth: the nesting depth of loops in the linear program. A deeper loop of the assembly is a cold path, such as the
        scalar fallback of `sin`, and is ignored.
    weights: the work of each innermost loop of the linear program in order. They decide if the assembly has the same
        number of loops.
    """
    parsed = dict({"x86_64": _read_x86, "aarch64": _read_arm, "riscv64": _read_riscv}[arch](lines, vector_bits))
    loops = _find_loops(lines, parsed)
    candidates = [loop for loop in loops if not depth or sum(_contains(other, loop) for other in loops) <= depth]
    innermost = _find_innermost_loops(candidates)
    if not innermost:
        return []
    if len(innermost) == len(weights):
        ordered = sorted(innermost)
        chosen = ordered[max(range(len(ordered)), key=lambda index: weights[index])]
    else:
        chosen = max(innermost, key=lambda loop: _count_vectors(parsed, loop))
    rare = [loop for loop in loops if loop != chosen and _contains(chosen, loop)]
    rare += _find_skipped_regions(lines, parsed, chosen, rare)
    inside = range(chosen[0], chosen[1] + 1)
    return [number for number in inside if not any(region[0] <= number <= region[1] for region in rare)]


def _find_skipped_regions(
    lines: Sequence[str],
    parsed: dict[int, tuple[int, set[int]]],
    loop: tuple[int, int],
    rare: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Returns the regions that a jump in `loop` skips together with a cold loop: they are on the same cold path."""
    labels = {line[:-1]: number for number, line in enumerate(lines) if line[:1] != " " and line.endswith(":")}
    regions = []
    for number in parsed:
        words = _WORD.findall(lines[number])
        goal = labels.get(words[-1]) if words else None
        if goal is None or words[0] in ("jmp", "b") or not loop[0] <= number <= loop[1]:
            continue
        if number < goal <= loop[1]:
            regions.append((number + 1, goal - 1))
        elif goal == loop[0] and number < loop[1]:
            regions.append((number + 1, loop[1]))
    return [region for region in regions if any(_contains(region, loop_region) for loop_region in rare)]


def _find_loops(lines: Sequence[str], parsed: dict[int, tuple[int, set[int]]]) -> list[tuple[int, int]]:
    """Returns the loops, each from its label to the last jump back to the label."""
    labels = {line[:-1]: number for number, line in enumerate(lines) if line[:1] != " " and line.endswith(":")}
    ends: dict[int, int] = {}
    for number in parsed:
        goal = _WORD.findall(lines[number])[-1:]
        start = labels.get(goal[0], number) if goal else number
        if start < number:
            ends[start] = number
    return sorted(ends.items())


def _find_innermost_loops(loops: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [loop for loop in loops if not any(other != loop and _contains(loop, other) for other in loops)]


def _count_vectors(parsed: dict[int, tuple[int, set[int]]], loop: tuple[int, int]) -> tuple[int, int]:
    inside = [number for number in parsed if loop[0] <= number <= loop[1]]
    return sum(parsed[number][0] > 0 for number in inside), len(inside)


def _find_busiest_loop(lines: Sequence[str], parsed: dict[int, tuple[int, set[int]]]) -> tuple[int, int] | None:
    return max(
        _find_innermost_loops(_find_loops(lines, parsed)), key=lambda loop: _count_vectors(parsed, loop), default=None
    )


def _contains(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


__all__ = ["Instructions", "hot_loop", "instructions_of"]
