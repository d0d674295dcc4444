"""Edit kernels in a page with engine. The interpreter runs edited linear programs; a page has no compilers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tinyexplore.compile.lowering import further_listings
from tinyexplore.device import Device
from tinyexplore.explore.live.interpreted_devices import INTERPRETER
from tinyexplore.explore.live.interpreter_times import MAX_OPERATIONS, alternate_times
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.tracefile.model import Diagnostic, Difference, EditReport, Listing
from tinyexplore.explore.whatif.editing.client import EditResult, Text
from tinyexplore.explore.whatif.editing.output_comparison import compare_outputs
from tinyexplore.explore.whatif.editing.subject import (
    EditSubject,
    SubjectDescription,
    plain_buffers,
    render_stage,
    run_once,
    subject_of,
)
from tinyexplore.explore.whatif.kernel_variant import count_executed
from tinyexplore.explore.whatif.outcome import CommandRejected
from tinyexplore.renderer import ProgramSpec
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Ops

NAMES = {"c": "C", "llvm": "LLVM IR"}


def try_interpreted(text: Text, captured: CapturedKernel | None) -> EditResult:
    """Interprets an edited linear program, and compares its results with those before the edit.

    It is timed against the original only if the kernel's own device is the interpreter.

    Raises:
        CommandRejected: the text is not a linear program.
    """
    if text.stage != "uops":
        raise CommandRejected(
            f"a page has no compiler for {NAMES[text.stage]}, and a browser runs no machine code. A notebook does "
            "both. Here you can edit the opts and the linear program (UOps)"
        )
    if (work := max(count_executed(text.uops, lanes=True), count_executed(text.base, lanes=True))) > MAX_OPERATIONS:
        raise CommandRejected(f"not run: {work:,} operations, lane by lane, take too long to interpret in a page")
    variables = [node for node in text.base if node.op is Ops.DEFINE_VAR]
    contents = None if captured is None else captured.contents
    values = (
        captured.values if captured is not None and contents is not None else tuple(node.arg[2] for node in variables)
    )
    description = SubjectDescription(text.device, text.stage, text.name, text.names, values)
    subject = subject_of(description, text.original, text.base, contents)
    try:
        return _try_edit(subject, text)
    except Exception as error:  # report any error of the program to the user
        message = f"{type(error).__name__}: {error}"
        return EditResult(EditReport(text.stage, ended=message), (), (), 0.0, message)


def _try_edit(subject: EditSubject, text: Text) -> EditResult:
    """Compiles an edited program for the interpreter, runs it, and compares and times its results."""
    began = time.perf_counter()
    try:
        spec = render_stage("uops", text.device, text.name, text.uops)
        program = Device[text.device].compile(spec)
    except Exception as error:
        edited = EditReport(text.stage, (Diagnostic(0, 0, "error", str(error)),))
        return EditResult(edited, (), (), 0.0, str(error))
    compile_us = round((time.perf_counter() - began) * 1e6, 1)
    outputs = run_once(subject, spec, program)
    comparison = compare_outputs(subject.names, outputs, subject.expected)
    first = None if comparison["first"] is None else Difference(**comparison["first"])
    edited = EditReport(text.stage, against=subject.against, **{**comparison, "first": first})
    times: tuple[float, ...] = ()
    if text.device == INTERPRETER:
        both = ((spec, program), (subject.spec, subject.program))
        times, before = alternate_times([_make_run(subject, kernel_spec, compiled) for kernel_spec, compiled in both])
        edited = replace(edited, before_us=before)
    return EditResult(edited, tuple(_make_listings(spec)), times, compile_us, "")


def _make_run(subject: EditSubject, spec: ProgramSpec, program: Any) -> Callable[[], None]:
    run, stop = program.bind(plain_buffers(subject), subject.values), spec.extent(subject.values) or 1
    return lambda: run(0, stop)


def _make_listings(spec: ProgramSpec) -> list[Listing]:
    """Returns the program in its device's language and in the further languages of its listings."""
    listed: list[tuple[str, Sequence[SourceLine]]] = [(spec.language, spec.lines), *further_listings(spec)]
    return [Listing(language, tuple(line.text for line in lines)) for language, lines in listed]


__all__ = ["try_interpreted"]
