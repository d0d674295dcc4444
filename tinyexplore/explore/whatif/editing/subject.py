"""A kernel that is edited, as it was before: its program, what it runs on, and what it must write."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyexplore.codegen import bytes_moved, flop_count
from tinyexplore.compile.candidate import numbers
from tinyexplore.compile.lowering import compile_optimised
from tinyexplore.device import Buffer, CompiledProgram, Device
from tinyexplore.dtype import DType
from tinyexplore.execute.threads import estimated_ns
from tinyexplore.explore.recording.kept import buffer_types
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.uop import UOp

MOST_WORK = 400_000  # operations that the PYTHON device is requested: half a second or so


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a kernel beside its graphs: `stage` is the one that is edited, `buffers` are the names of its
    buffers, `values` those of its Variables."""

    device: str
    stage: str
    name: str
    buffers: tuple[str, ...]
    values: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class EditSubject:
    """A kernel before the edit: its program, what it runs on, and what is right.

    contents: of its buffers before it runs. right: what it must write, by the buffer's position; `against`: who says
    so.
    """

    spec: ProgramSpec
    program: CompiledProgram
    values: tuple[int, ...]
    names: tuple[tuple[str, DType], ...]
    contents: tuple[bytes, ...]
    right: Mapping[int, bytes]
    against: str
    seconds: float
    work_ns: float


def language_device(stage: str, device: str) -> str:
    """The device that compiles a text."""
    return "CLANG" if stage == "c" else device


def rendered(stage: str, device: str, name: str, uops: Sequence[UOp]) -> ProgramSpec:
    """The program as the text of a stage: C as the explorer lists it, else the device's own."""
    renderer = Device[device].renderer
    if stage == "c" and renderer.language != "c":
        return CRenderer(Device[device].target, Device["CLANG"].renderer.compiler).render(name, uops)
    spec: ProgramSpec = renderer.render(name, uops)
    return spec


def subject_of(
    told: Told, original: UOp, base: tuple[UOp, ...], given: Sequence[bytes | None] | None, most_work: int = MOST_WORK
) -> EditSubject:
    """A kernel compiled and run as it was before the edit. given: what lay in its buffers, where that is known;
    most_work: operations that the reference device is requested."""
    device, stage = told.device, told.stage
    spec = rendered(stage, device, told.name, base)
    program = Device[language_device(stage, device)].compile(spec)
    types = buffer_types(base)
    contents = []
    for position, (dtype, size) in enumerate(types):
        known = given[position] if given is not None else None
        nbytes = size * dtype.itemsize
        if known is None and position in spec.writes:
            known = b"\xff" * nbytes  # every bit set: what is left out shows
        elif known is None:
            pattern = numbers(dtype, position)
            known = (pattern * -(-nbytes // len(pattern)))[:nbytes]
        contents.append(known)
    values = told.values
    flops, moved = flop_count(original), bytes_moved(original)
    work = flops + moved // 4 if isinstance(flops, int) and isinstance(moved, int) else most_work + 1
    work_ns = float("inf")
    if isinstance(flops, int) and isinstance(moved, int):
        work_ns = estimated_ns(flops, moved, spec.target)
    subject = EditSubject(spec, program, values, tuple(zip(told.buffers, [dtype for dtype, _ in types])),
                      tuple(contents), {}, "", 0.0, work_ns)  # fmt: skip
    began = time.perf_counter()
    own = run_once(subject, spec, program)
    seconds = time.perf_counter() - began
    if work <= most_work and device != "PYTHON":
        names = {variable.arg[0]: value for variable, value in zip(spec.variables, values)}
        runner = compile_optimised("PYTHON", Kernel.of(original, Device["PYTHON"].target))
        in_order = tuple(names[variable.arg[0]] for variable in runner.spec.variables)
        reference = replace(subject, values=in_order)
        return replace(
            subject,
            right=run_once(reference, runner.spec, runner.program),
            against="the PYTHON device",
            seconds=seconds,
        )
    return replace(subject, right=own, against="the kernel before the edit", seconds=seconds)


def run_once(subject: EditSubject, spec: ProgramSpec, program: CompiledProgram) -> dict[int, bytes]:
    """What a program writes, by the buffer's position."""
    buffers = plain_buffers(subject)
    program.bind(buffers, subject.values)(0, spec.extent(subject.values) or 1)
    return {position: buffers[position].copyout() for position in sorted(subject.spec.writes)}


def plain_buffers(subject: EditSubject) -> list[Buffer]:
    """Memory as kernels usually have it."""
    device = subject.spec.target.name
    found = []
    for (_, dtype), content in zip(subject.names, subject.contents):
        buffer = Buffer(device, len(content) // dtype.itemsize, dtype).allocate()
        found.append(buffer.copyin(content) if content else buffer)
    return found


__all__ = ["MOST_WORK", "EditSubject", "Told", "language_device", "plain_buffers", "rendered", "run_once", "subject_of"]
