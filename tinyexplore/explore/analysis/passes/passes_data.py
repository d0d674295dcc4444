"""LLVM's passes as data, for the panel and for pages: each line once, each text as edits of the previous one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from tinyexplore.explore.analysis.passes.pipeline_run import LEVELS, Pipeline
from tinyexplore.explore.analysis.passes.sequence import LLVMPass, LLVMPasses, PassLine, Remark, Spill
from tinyexplore.explore.tracefile.columns import packed_forms

CPUS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "skylake-avx512", "znver4", "neoverse-n1", "apple-m1", "sifive-x280")
"""Some CPUs that the panel offers; `passes(cpu=…)` takes any."""


@dataclass(frozen=True, slots=True)
class PassData:
    """One run of a pass.

    number: its position in the pipeline.
    name: LLVM's name.
    argument: the option name that disables it, "" if there is none.
    stage: its input: "IR", "machine IR"; "assembly" for the end.
    changed: whether it changed the text.
    begins: whether the previous text is in another language, so that the whole text is new.
    change: lines added and removed, as text.
    seconds: its CPU time, None if LLVM does not measure it.
    edits: the changes to the previous text: (first line, lines removed, numbers of new lines). Each line number is the
        difference from the previous one.
    remarks: its optimization remarks.
    """

    number: int
    name: str
    argument: str
    stage: str
    changed: bool
    begins: bool
    change: str
    seconds: float | None
    edits: tuple[tuple[int, ...], ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class PackedLines:
    """Texts of lines as `tracefile.columns` packs them.

    forms: the texts without their numbers.
    form: the form of each text.
    numbers: the numbers of all texts, as differences from the previous text of the form.
    """

    forms: tuple[str, ...]
    form: tuple[int, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PassesData:
    """LLVM's passes over a kernel.

    kernel: the name of the kernel.
    number: its number in the trace.
    cpu: the CPU that code was generated for.
    pipeline: the pipeline that LLVM ran, as text.
    lines: every line that occurs; texts refer to lines by number.
    line_uops: the UOp of each line, as the difference from the previous one; -1 stands for none.
    uops: for each UOp with lines its position and its nodes. A position is the difference from the previous row, a node
        the difference from the previous node.
    passes: all passes that ran, in order.
    seconds: the CPU time of all passes that LLVM times.
    instructions: the number of instructions in the assembly.
    spills: the values that are stored on the stack.
    spilled_by: the pass that spilled them.
    levels, cpus: the choices of the panel.
    """

    kernel: str
    number: int
    cpu: str
    pipeline: str
    lines: PackedLines
    line_uops: tuple[int, ...]
    uops: tuple[tuple[int, ...], ...]
    passes: tuple[PassData, ...]
    seconds: float
    instructions: int
    spills: tuple[Spill, ...]
    spilled_by: str
    levels: tuple[str, ...] = LEVELS
    cpus: tuple[str, ...] = CPUS


def passes_data(passes: LLVMPasses, number: int) -> PassesData:
    """Returns the data to send for the passes of kernel `number`."""
    line_numbers: dict[tuple[str, int | None], int] = {}  # line → number, in the order of first occurrence
    uops: dict[int, tuple[int, ...]] = {}
    rows = []
    before: list[int] = []
    for llvm_pass in passes:
        line_ids = before
        if llvm_pass.changed:
            line_ids = [line_numbers.setdefault((line.text, line.uop), len(line_numbers)) for line in llvm_pass.lines]
            uops.update((line.uop, line.nodes) for line in llvm_pass.lines if line.uop is not None)
        rows.append(_make_row(llvm_pass, before, line_ids))
        before = line_ids
    return PassesData(
        passes.kernel,
        number,
        passes.cpu,
        passes.pipeline,
        PackedLines(*packed_forms([text for text, _ in line_numbers])),
        tuple(_take_differences([-1 if uop is None else uop for _, uop in line_numbers])),
        _pack_uops(uops),
        tuple(rows),
        passes.seconds,
        sum(_is_instruction(line) for line in passes[-1].lines),
        passes.spills,
        passes.spilled_by,
    )


def _pack_uops(uops: dict[int, tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    uop_numbers = sorted(uops)
    nodes = _take_differences([node for uop in uop_numbers for node in uops[uop]])
    rows, start = [], 0
    for uop in uop_numbers:
        end = start + len(uops[uop])
        rows.append(tuple(nodes[start:end]))
        start = end
    return tuple((step, *row) for step, row in zip(_take_differences(uop_numbers), rows, strict=True))


def _make_row(llvm_pass: LLVMPass, before: list[int], after: list[int]) -> PassData:
    return PassData(
        llvm_pass.number,
        llvm_pass.name,
        llvm_pass.argument,
        llvm_pass.stage,
        llvm_pass.changed,
        llvm_pass.begins,
        llvm_pass.change,
        llvm_pass.seconds,
        _list_edits([] if llvm_pass.begins else before, after, len(before)) if llvm_pass.changed else (),
        llvm_pass.remarks,
    )


def _list_edits(before: list[int], after: list[int], length: int) -> tuple[tuple[int, ...], ...]:
    """Returns the edits from `before` to `after`; in a new language, all `length` earlier lines are removed."""
    if not before:
        return ((0, length, *_take_differences(after)),)
    codes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return tuple(
        (low, high - low, *_take_differences(after[start:end]))
        for tag, low, high, start, end in codes
        if tag != "equal"
    )


def _take_differences(numbers: Sequence[int]) -> list[int]:
    """Returns the difference of each number from the previous one."""
    return [number - before for number, before in zip(numbers, (0, *numbers), strict=False)]


def _is_instruction(line: PassLine) -> bool:
    return line.text.startswith(" ") and bool(line.text.strip()) and not line.text.strip().startswith(".")


__all__ = ["PassData", "PassesData", "Pipeline", "passes_data"]
