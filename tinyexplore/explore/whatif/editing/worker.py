"""The process that compiles, runs and times edited kernels: warm for the next edit, whatever the last one did.

Started by `asking.py`; reads requests from standard input, one a line, and writes one line for each, as the workers of
a search do (`compile/candidate.py`). It computes what is right, and keeps it; what was edited runs in a process forked
for it (`apart.py`).
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tinyexplore.codegen import bytes_moved, flop_count
from tinyexplore.compile.candidate import SAMPLE_S, alone, expendable, numbers, sample
from tinyexplore.compile.lowering import compile_optimised, further_listings
from tinyexplore.device import Buffer, CompiledProgram, Device
from tinyexplore.dtype import DType
from tinyexplore.execute.threads import estimated_ns, run_divided
from tinyexplore.explore.kept import buffer_types
from tinyexplore.explore.whatif.editing.apart import Tell, apart
from tinyexplore.explore.whatif.editing.faults import Mailbox, limit, unprotected
from tinyexplore.explore.whatif.editing.fences import Fenced, fenced
from tinyexplore.explore.whatif.editing.verdict import compared
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.trace import SourceLine
from tinyexplore.uop import UOp
from tinyexplore.uop.plain import from_plain
from tinyexplore.util import Context

COMPILE_S = 30.0
MOST_WORK = 400_000  # operations that the PYTHON device is asked for: half a second or so
SAMPLES, SAMPLING_S = 20, 0.3
PATIENCE = 20  # as many times what the original takes
REMEMBERED = 8  # kernels


@dataclass(frozen=True, eq=False)
class Subject:
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


class Bench:
    """What the worker remembers of the kernels that were edited last."""

    def __init__(self) -> None:
        self.subjects: dict[str, Subject] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to a request of `asking.py`."""
        with Context(**request["settings"]):
            original, *uops = from_plain(request["graphs"])
            base, edited = tuple(uops[: request["base"]]), tuple(uops[request["base"] :])
            subject = self.subjects.pop(request["key"], None) or subject_of(request, original, base)
            self.subjects[request["key"]] = subject
            while len(self.subjects) > REMEMBERED:
                del self.subjects[next(iter(self.subjects))]

            def work(tell: Tell, mailbox: Mailbox) -> None:
                tried(subject, request, edited, tell, mailbox)

            found = apart(work, COMPILE_S)
            reply = {name: found.told[name] for name in found.told if name not in ("places", "spare", "failed")}
            return {**reply, "ended": found.ended, "against": subject.against, "unprotected": unprotected()}


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


def subject_of(request: Mapping[str, Any], original: UOp, base: tuple[UOp, ...]) -> Subject:
    """The kernel of a request, compiled and run as it was before the edit."""
    device, stage = request["device"], request["stage"]
    spec = rendered(stage, device, request["name"], base)
    program = Device[language_device(stage, device)].compile(spec)
    types = buffer_types(base)
    given = contents_of(request)
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
    values = tuple(request["values"])
    flops, moved = flop_count(original), bytes_moved(original)
    work = flops + moved // 4 if isinstance(flops, int) and isinstance(moved, int) else MOST_WORK + 1
    work_ns = float("inf")
    if isinstance(flops, int) and isinstance(moved, int):
        work_ns = estimated_ns(flops, moved, spec.target)
    subject = Subject(spec, program, values, tuple(zip(request["buffers"], [dtype for dtype, _ in types])),
                      tuple(contents), {}, "", 0.0, work_ns)  # fmt: skip
    began = time.perf_counter()
    own = run_once(subject, spec, program)
    seconds = time.perf_counter() - began
    if work <= MOST_WORK and device != "PYTHON":
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


def contents_of(request: Mapping[str, Any]) -> list[bytes | None] | None:
    """What lay in the buffers when the kernel was captured; None where that was not kept."""
    if request["inputs"] is None:
        return None
    path, sizes = request["inputs"]
    found: list[bytes | None] = []
    with open(path, "rb") as file:
        for size in sizes:
            found.append(None if size is None else file.read(size))
    return found


def run_once(subject: Subject, spec: ProgramSpec, program: CompiledProgram) -> dict[int, bytes]:
    """What a program writes, by the buffer's position."""
    buffers = plain_buffers(subject)
    program.bind(buffers, subject.values)(0, spec.extent(subject.values) or 1)
    return {position: buffers[position].copyout() for position in sorted(subject.spec.writes)}


def plain_buffers(subject: Subject) -> list[Buffer]:
    """Memory as kernels usually have it."""
    device = subject.spec.target.name
    found = []
    for (_, dtype), content in zip(subject.names, subject.contents):
        buffer = Buffer(device, len(content) // dtype.itemsize, dtype).allocate()
        found.append(buffer.copyin(content) if content else buffer)
    return found


# *** in a process of its own ***


def tried(subject: Subject, request: Mapping[str, Any], uops: tuple[UOp, ...], tell: Tell, mailbox: Mailbox) -> None:
    """Compiles the edit, runs it twice between fences, compares, and times it beside the original."""
    stage, device = request["stage"], request["device"]
    nbytes = sum(map(len, subject.contents))
    patience_s = max(request["limit_s"], PATIENCE * subject.seconds)
    spare = limit(nbytes, 4 * patience_s + COMPILE_S)
    tell({"phase": "compile", "spare": spare})
    began = time.perf_counter()
    try:
        spec = edited_spec(subject, stage, device, request["text"], uops)
        program = Device[language_device(stage, device)].compile(spec)
    except Exception as error:
        tell({"complaint": str(error)})
        return
    tell({"compile_us": round((time.perf_counter() - began) * 1e6, 1)})
    text = [(spec.language, [line.text for line in spec.lines])]
    tell({"listings": text})
    mailbox.listen()
    found: dict[int, bytes] = {}
    for at_start in (False, True):
        with fenced(subject.names, subject.contents, subject.spec.writes, spec.aligned, at_start=at_start) as memory:
            tell({"phase": "run", "places": [one.as_place() for one in memory], "patience_s": patience_s})
            bound = program.bind([one.buffer(device) for one in memory], subject.values)
            bound(0, spec.extent(subject.values) or 1)
            if words := next((words for one in memory if (words := one.overrun())), ""):
                tell({"overrun": words})
                return
            if not at_start:
                found = written(memory, subject.spec.writes)
    tell({"phase": "compare", **compared(subject.names, found, subject.right)})
    tell({"phase": "time", "places": [], "patience_s": max(4.0, 3 * SAMPLES * patience_s / PATIENCE)})
    times, before = in_turns(subject, spec, program)
    tell({"times_us": times, "before_us": before, "phase": "list", "patience_s": COMPILE_S})
    tell({"listings": text + further(stage, device, spec), "phase": "done"})


def written(memory: Sequence[Fenced], writes: frozenset[int]) -> dict[int, bytes]:
    return {position: memory[position].content() for position in sorted(writes)}


def edited_spec(subject: Subject, stage: str, device: str, text: str, uops: tuple[UOp, ...]) -> ProgramSpec:
    """The program of the edit."""
    if stage == "uops":
        return rendered(stage, device, subject.spec.name, uops)
    return replace(subject.spec, lines=tuple(SourceLine(line, ()) for line in text.splitlines()))


def further(stage: str, device: str, spec: ProgramSpec) -> list[tuple[str, list[str]]]:
    """All that compilers make of the text of a stage."""
    try:
        found = further_listings(spec) if stage == "uops" else Device[language_device(stage, device)].listings(spec)
    except Exception:  # a listing that cannot be made is left out: what counts is the result
        return []
    return [(language, [line.text for line in lines]) for language, lines in found]


def in_turns(subject: Subject, spec: ProgramSpec, program: CompiledProgram) -> tuple[list[float], list[float]]:
    """Microseconds of one run of the edit and of the original, measured in turns."""
    runs: list[Callable[[], None]] = []
    for one, made in ((spec, program), (subject.spec, subject.program)):
        bound, extent = made.bind(plain_buffers(subject), subject.values), one.extent(subject.values)
        runs.append(lambda bound=bound, extent=extent: run_divided(bound, extent, subject.work_ns))  # type: ignore[misc]
    times: tuple[list[float], list[float]] = ([], [])
    with alone():
        first = [sample(run, 1)[0] for run in runs]
        calls = [max(1, round(SAMPLE_S / max(seconds, 1e-7))) for seconds in first]
        began = time.perf_counter()
        while len(times[0]) < SAMPLES and (not times[0] or time.perf_counter() - began + sum(first) < SAMPLING_S):
            for place, run in enumerate(runs):
                times[place].append(round(sample(run, calls[place])[0] * 1e6, 3))
    return times


# *** the process ***


def main() -> None:
    """Until nobody asks any more."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed is no answer
    expendable()
    with suppress(ImportError):
        import numpy  # noqa: F401, PLC0415  once, and not in each process that compares
    bench = Bench()
    for line in sys.stdin:
        seconds, _, request = line.partition(" ")
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            faulthandler.dump_traceback_later(float(seconds), exit=True, file=nowhere)
            try:
                reply = bench.answer(json.loads(request))
            except Exception as error:
                reply = {"lost": f"{type(error).__name__}: {error}"}
            faulthandler.cancel_dump_traceback_later()
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
