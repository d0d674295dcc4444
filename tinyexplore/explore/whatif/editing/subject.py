"""A kernel before its edit: the program, the inputs, and the expected results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyexplore.codegen import bytes_moved, flop_count
from tinyexplore.compile.lowering import compile_optimized
from tinyexplore.compile.search_worker import numbers
from tinyexplore.device import Buffer, CompiledProgram, Device
from tinyexplore.dtype import DType
from tinyexplore.execute.threads import estimated_ns
from tinyexplore.explore.recording.captured_kernel import buffer_types
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.uop import UOp

MAX_OPERATIONS = 400_000  # most operations for the PYTHON device, about half a second


@dataclass(frozen=True, slots=True)
class SubjectDescription:
    """The data that the worker gets in addition to a kernel's graphs.

    device: the device that runs it.
    stage: the stage that is edited.
    name: the name of the program.
    buffers: the names of its buffers.
    values: the values of its Variables.
    """

    device: str
    stage: str
    name: str
    buffers: tuple[str, ...]
    values: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class EditSubject:
    """A kernel before the edit, with its inputs and expected results.

    spec: the rendered program.
    program: the compiled program.
    values: the values of its Variables.
    names: (name, element type) of each buffer.
    contents: the contents of its buffers before it runs.
    expected: the expected bytes of each written buffer, by position.
    against: the source of the expected results.
    seconds: the time of one run.
    work_ns: the estimated time of one run, in nanoseconds.
    """

    spec: ProgramSpec
    program: CompiledProgram
    values: tuple[int, ...]
    names: tuple[tuple[str, DType], ...]
    contents: tuple[bytes, ...]
    expected: Mapping[int, bytes]
    against: str
    seconds: float
    work_ns: float


def language_device(stage: str, device: str) -> str:
    """Returns the device that compiles the text of a stage."""
    return "CLANG" if stage == "c" else device


def render_stage(stage: str, device: str, name: str, uops: Sequence[UOp]) -> ProgramSpec:
    """Renders the program as the text of a stage: C for "c", else the device's own language."""
    renderer = Device[device].renderer
    if stage == "c" and renderer.language != "c":
        return CRenderer(Device[device].target, Device["CLANG"].renderer.compiler).render(name, uops)
    spec: ProgramSpec = renderer.render(name, uops)
    return spec


def subject_of(
    description: SubjectDescription,
    original: UOp,
    base: tuple[UOp, ...],
    contents_given: Sequence[bytes | None] | None,
    most_work: int = MAX_OPERATIONS,
) -> EditSubject:
    """Compiles and runs a kernel as it was before the edit.

    contents_given: the contents of its buffers, if they were captured.
    most_work: most operations for the reference device; a larger kernel is its own reference.
    """
    device, stage = description.device, description.stage
    spec = render_stage(stage, device, description.name, base)
    program = Device[language_device(stage, device)].compile(spec)
    types = buffer_types(base)
    contents = []
    for position, (dtype, size) in enumerate(types):
        content = contents_given[position] if contents_given is not None else None
        nbytes = size * dtype.itemsize
        if content is None and position in spec.writes:
            content = b"\xff" * nbytes  # all bits set, so that a missing write is visible
        elif content is None:
            pattern = numbers(dtype, position)
            content = (pattern * -(-nbytes // len(pattern)))[:nbytes]
        contents.append(content)
    values = description.values
    flops, moved = flop_count(original), bytes_moved(original)
    work = flops + moved // 4 if isinstance(flops, int) and isinstance(moved, int) else most_work + 1
    work_ns = float("inf")
    if isinstance(flops, int) and isinstance(moved, int):
        work_ns = estimated_ns(flops, moved, spec.target)
    subject = EditSubject(spec, program, values, tuple(zip(description.buffers, [dtype for dtype, _ in types])),
                      tuple(contents), {}, "", 0.0, work_ns)  # fmt: skip
    began = time.perf_counter()
    outputs_of_run = run_once(subject, spec, program)
    seconds = time.perf_counter() - began
    if work <= most_work and device != "PYTHON":
        names = {variable.arg[0]: value for variable, value in zip(spec.variables, values)}
        runner = compile_optimized("PYTHON", Kernel.of(original, Device["PYTHON"].target))
        in_order = tuple(names[variable.arg[0]] for variable in runner.spec.variables)
        reference = replace(subject, values=in_order)
        return replace(
            subject,
            expected=run_once(reference, runner.spec, runner.program),
            against="the PYTHON device",
            seconds=seconds,
        )
    return replace(subject, expected=outputs_of_run, against="the kernel before the edit", seconds=seconds)


def run_once(subject: EditSubject, spec: ProgramSpec, program: CompiledProgram) -> dict[int, bytes]:
    """Runs a program once, and returns the contents of the buffers that it writes, by position."""
    buffers = plain_buffers(subject)
    program.bind(buffers, subject.values)(0, spec.extent(subject.values) or 1)
    return {position: buffers[position].copyout() for position in sorted(subject.spec.writes)}


def plain_buffers(subject: EditSubject) -> list[Buffer]:
    """Returns memory without guard pages, with the kernel's inputs."""
    device = subject.spec.target.name
    buffers = []
    for (_, dtype), content in zip(subject.names, subject.contents):
        buffer = Buffer(device, len(content) // dtype.itemsize, dtype).allocate()
        buffers.append(buffer.copyin(content) if content else buffer)
    return buffers


__all__ = [
    "MAX_OPERATIONS",
    "EditSubject",
    "SubjectDescription",
    "language_device",
    "plain_buffers",
    "render_stage",
    "run_once",
    "subject_of",
]
