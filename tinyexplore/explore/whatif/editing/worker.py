"""The worker process that compiles, runs and times edited kernels. It survives the crash of an edit.

`client.py` starts it. It reads requests from standard input, one per line, and writes one line for each, like the
workers of a search (`compile/search_worker.py`). It computes and caches the expected results. Edited code runs in a
process that it forks (`sandbox.py`).
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tinyexplore.compile.lowering import further_listings
from tinyexplore.compile.search_worker import PATIENCE_S, mark_expendable, sample_alternately, timing_lock
from tinyexplore.device import CompiledProgram, Device
from tinyexplore.execute.threads import run_divided
from tinyexplore.explore.whatif.editing.faults import Mailbox, limit_resources, list_unprotected
from tinyexplore.explore.whatif.editing.guard_pages import GuardedBuffer, make_guarded_buffers
from tinyexplore.explore.whatif.editing.output_comparison import compare_outputs
from tinyexplore.explore.whatif.editing.sandbox import Report, run_in_sandbox
from tinyexplore.explore.whatif.editing.subject import (
    EditSubject,
    SubjectDescription,
    language_device,
    plain_buffers,
    render_stage,
    subject_of,
)
from tinyexplore.renderer import ProgramSpec
from tinyexplore.trace import SourceLine
from tinyexplore.uop import UOp
from tinyexplore.uop.serialization import from_plain
from tinyexplore.util import Context

COMPILE_S = 30.0
EDIT_SAMPLES = 20
PATIENCE = 20  # time limit, as a multiple of the original's time
MAX_CACHED_KERNELS = 8  # most kernels in the cache


class EditedKernels:
    """A cache of the most recently edited kernels."""

    def __init__(self) -> None:
        self.subjects: dict[str, EditSubject] = {}

    def respond(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the response to a request of `client.py`."""
        with Context(**request["settings"]):
            original, *uops = from_plain(request["graphs"])
            base, edited = tuple(uops[: request["base"]]), tuple(uops[request["base"] :])
            subject = self.subjects.pop(request["key"], None) or _make_subject(request, original, base)
            self.subjects[request["key"]] = subject
            while len(self.subjects) > MAX_CACHED_KERNELS:
                del self.subjects[next(iter(self.subjects))]

            def work(report: Report, mailbox: Mailbox) -> None:
                try_in_worker(subject, request, edited, report, mailbox)

            run = run_in_sandbox(work, COMPILE_S)
            reply = {name: run.reported[name] for name in run.reported if name not in ("places", "spare", "failed")}
            return {**reply, "ended": run.failure, "against": subject.against, "unprotected": list_unprotected()}


def _make_subject(request: Mapping[str, Any], original: UOp, base: tuple[UOp, ...]) -> EditSubject:
    description = SubjectDescription(
        request["device"], request["stage"], request["name"], tuple(request["buffers"]), tuple(request["values"])
    )
    return subject_of(description, original, base, contents_of(request))


def contents_of(request: Mapping[str, Any]) -> list[bytes | None] | None:
    """Returns the contents of the buffers when the kernel was captured; None if they were not stored."""
    if request["inputs"] is None:
        return None
    path, sizes = request["inputs"]
    contents: list[bytes | None] = []
    with open(path, "rb") as file:
        for size in sizes:
            contents.append(None if size is None else file.read(size))
    return contents


# *** in the forked process ***


def try_in_worker(
    subject: EditSubject, request: Mapping[str, Any], uops: tuple[UOp, ...], report: Report, mailbox: Mailbox
) -> None:
    """Compiles the edit, runs it twice between guard pages, compares the results, and times it against the original."""
    stage, device = request["stage"], request["device"]
    nbytes = sum(map(len, subject.contents))
    limit_s = max(request["limit_s"], PATIENCE * subject.seconds)
    spare = limit_resources(nbytes, 4 * limit_s + COMPILE_S)
    report({"phase": "compile", "spare": spare})
    began = time.perf_counter()
    try:
        if request["object"] is not None:
            spec = subject.spec
            program = load_program(spec, request["cpu"], b64decode(request["object"]))
        else:
            spec = edited_spec(subject, stage, device, request["text"], uops)
            program = Device[language_device(stage, device)].compile(spec)
    except Exception as error:
        report({"compiler_error": str(error)})
        return
    report({"compile_us": round((time.perf_counter() - began) * 1e6, 1)})
    if request["object"] is not None:
        report({"compile_us": 0.0})  # it was compiled before
    text = [(spec.language, [line.text for line in spec.lines])]
    report({"listings": text})
    mailbox.listen()
    outputs: dict[int, bytes] = {}
    for at_start in (False, True):
        with make_guarded_buffers(
            subject.names, subject.contents, subject.spec.writes, spec.aligned, at_start=at_start
        ) as memory:
            report({"phase": "run", "places": [block.place_data() for block in memory], "limit_s": limit_s})
            bound = program.bind([block.buffer(device) for block in memory], subject.values)
            bound(0, spec.extent(subject.values) or 1)
            if message := next((message for block in memory if (message := block.overrun())), ""):
                report({"overrun": message})
                return
            if not at_start:
                outputs = written_contents(memory, subject.spec.writes)
    report({"phase": "compare", **compare_outputs(subject.names, outputs, subject.expected)})
    report({"phase": "time", "places": [], "limit_s": max(2 * PATIENCE_S, 3 * EDIT_SAMPLES * limit_s / PATIENCE)})
    times, before = alternate_run_times(subject, spec, program)
    report({"times_us": times, "before_us": before, "phase": "list", "limit_s": COMPILE_S})
    report({"listings": text + later_listings(stage, device, spec), "phase": "done"})


def load_program(spec: ProgramSpec, cpu: str, code: bytes) -> CompiledProgram:
    """Loads the program of an object file that LLVM generated for a CPU.

    Raises:
        RuntimeError: this machine cannot run it.
    """
    from tinyexplore.runtime.llvm import compiler_for  # noqa: PLC0415  only of kernels that LLVM compiles

    compiler = compiler_for(cpu)
    if compiler.refusal:
        raise RuntimeError(compiler.refusal)
    program: CompiledProgram = compiler.load(spec, code)
    return program


def written_contents(memory: Sequence[GuardedBuffer], writes: frozenset[int]) -> dict[int, bytes]:
    return {position: memory[position].content() for position in sorted(writes)}


def edited_spec(subject: EditSubject, stage: str, device: str, text: str, uops: tuple[UOp, ...]) -> ProgramSpec:
    """Returns the program of the edit."""
    if stage == "uops":
        return render_stage(stage, device, subject.spec.name, uops)
    return replace(subject.spec, lines=tuple(SourceLine(line, ()) for line in text.splitlines()))


def later_listings(stage: str, device: str, spec: ProgramSpec) -> list[tuple[str, list[str]]]:
    """Returns the texts of the later stages, from the compilers."""
    try:
        listings = further_listings(spec) if stage == "uops" else Device[language_device(stage, device)].listings(spec)
    except Exception:  # a listing that fails is omitted; the result matters more
        return []
    return [(language, [line.text for line in lines]) for language, lines in listings]


def alternate_run_times(
    subject: EditSubject, spec: ProgramSpec, program: CompiledProgram
) -> tuple[list[float], list[float]]:
    """Returns the microseconds of runs of the edit and of the original, measured alternately."""
    runs: list[Callable[[], None]] = []
    for own_spec, program_of in ((spec, program), (subject.spec, subject.program)):
        bound, extent = program_of.bind(plain_buffers(subject), subject.values), own_spec.extent(subject.values)
        runs.append(lambda bound=bound, extent=extent: run_divided(bound, extent, subject.work_ns))  # type: ignore[misc]
    with timing_lock():
        edit_s, before_s = sample_alternately(runs, EDIT_SAMPLES)
    return [round(seconds * 1e6, 3) for seconds in edit_s], [round(seconds * 1e6, 3) for seconds in before_s]


# *** the process ***


def main() -> None:
    """Responds to requests from standard input until it ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with responses
    mark_expendable()
    with suppress(ImportError):
        import numpy  # noqa: F401, PLC0415  once, and not in each process that compares
    edited_kernels = EditedKernels()
    for line in sys.stdin:
        seconds, _, request = line.partition(" ")
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            faulthandler.dump_traceback_later(float(seconds), exit=True, file=nowhere)
            try:
                reply = edited_kernels.respond(json.loads(request))
            except Exception as error:
                reply = {"lost": f"{type(error).__name__}: {error}"}
            faulthandler.cancel_dump_traceback_later()
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
