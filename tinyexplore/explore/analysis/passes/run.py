"""Runs LLVM's pipeline in a child process and links each line of each text to the UOp that it was made for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyexplore.explore.analysis.passes import child
from tinyexplore.explore.analysis.passes.reading import PassRun, read_remarks, read_runs, read_times
from tinyexplore.explore.analysis.passes.sequence import LLVMPass, LLVMPasses, PassLine, Remark
from tinyexplore.explore.tracefile.query import line_frames
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.renderer.llvm import with_debug_info
from tinyexplore.renderer.program import Effort, ProgramSpec
from tinyexplore.runtime.asm import assembly_lines, program_roots
from tinyexplore.runtime.llvm import CODE_LEVEL, OPTIMISATION_LEVEL, LLVMCompiler, code_level, compiler_for
from tinyexplore.runtime.tile_registers import allowed
from tinyexplore.target import NATIVE

LIMIT_S = 60.0  # of a child process
MOST_BYTES = 64 << 20  # of what one prints
LEVELS = ("O0", "O1", "O2", "O3")
_PRINTING = ("-print-changed=quiet", "-print-module-scope", "-opt-disable-enable-verbosity")
_REMARKS = ("-pass-remarks=.*", "-pass-remarks-missed=.*", "-pass-remarks-analysis=.*")
_NAME = re.compile(r"^\s+(?:renamable )?([%$][\w.$-]+)(?::\w+)*(?:\([^)]*\))? = ")
_USED = re.compile(r"[%$][\w.-]+")


class LLVMPassesError(RuntimeError):
    """LLVM refused the module, the options or the CPU; the message is LLVM's."""


@dataclass(frozen=True)
class Pipeline:
    """What LLVM is asked to do.

    level: "" for what this package asks of it when it compiles the kernel, or "O0" to "O3" with LLVM's own defaults.
    without: passes that do not run, by their option names ("instcombine", "loop-vectorize", "machine-scheduler").
    cpu: a CPU that code is generated for, such as "skylake"; "" for that of the capture.
    """

    level: str = ""
    without: tuple[str, ...] = ()
    cpu: str = ""

    def __post_init__(self) -> None:
        if self.level not in ("", *LEVELS):
            raise ValueError(f"level={self.level!r}: give one of {', '.join(LEVELS)}, or nothing for the kernel's own")
        for name in self.without:
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
                raise ValueError(f"without: {name!r} is no option name of a pass, such as 'instcombine'")

    def __str__(self) -> str:
        text = f"pipeline {self.level}" if self.level else "the kernel's own pipeline"
        return f"{text} without {', '.join(self.without)}" if self.without else text


def kernel_passes(trace: Trace, number: int, spec: ProgramSpec, pipeline: Pipeline) -> LLVMPasses:
    """What LLVM makes of one kernel of a trace. ValueError for a kernel that LLVM does not compile."""
    if not spec.source.lstrip().startswith(("define", "declare", "@", "target", ";", "!")):
        raise ValueError(f"kernel {number} is not compiled by LLVM here: {spec.target.name} has no LLVM IR to follow")
    compiler = compiler_for(pipeline.cpu or spec.target.chosen.partition(",")[0] or NATIVE)
    job = _job(compiler, with_debug_info(spec), pipeline, spec)
    texts, times, assembly = _run(job, spec.name, pipeline)
    runs, remarks = texts
    places = _Places(trace, number, spec)
    first = PassRun("", spec.name, None)
    function = spec.lines[: next(at for at, line in enumerate(spec.lines) if line.text.startswith("}")) + 1]
    line_of = _numbers(spec)
    rendered = places.lines([(line.text, line_of(line.uops)) for line in function if line.text], {})
    roots = program_roots(spec.uops)  # what stands for no single UOp
    listed = assembly_lines(spec, assembly, arch=compiler.choice.arch)
    machine_code = [(line.text, 0 if line.uops == roots else line_of(line.uops)) for line in listed]
    passes = _sequence(first, rendered, runs, times, places, machine_code)
    about = [Remark(text, *places.subject(line)) for line, text in remarks]
    return LLVMPasses(spec.name, compiler.cpu, str(pipeline), passes, about)


def module_passes(source: str | Path, pipeline: Pipeline, function: str = "") -> LLVMPasses:
    """What LLVM makes of any module: a path of a file of LLVM IR, or its text.

    Lines lead to the lines of the program that the module was made from, where it has debug information.
    """
    text = _text_of(source)
    defined = re.findall(r"^define [^\n]*?@([\w.$-]+)\(", text, re.MULTILINE)
    if not defined:
        raise ValueError("the module defines no function")
    if function and function not in defined:
        raise ValueError(f"the module defines no function {function!r}; it defines: {', '.join(defined[:8])}")
    name = function or defined[0]
    compiler = compiler_for(pipeline.cpu or NATIVE)
    job = _job(compiler, text, pipeline, None)
    (runs, remarks), times, assembly = _run(job, name, pipeline)
    places = _Places(None, 0, None)
    lines, inside = [], False
    for line in text.splitlines():
        inside = inside or (line.startswith("define") and f"@{name}(" in line)
        if inside and line.strip():
            lines.append((re.sub(r",? !dbg !\d+", "", line), 0))
        if line.startswith("}"):
            inside = False
    machine_code = [(line, 0) for line in _plain_assembly(assembly, name)]
    passes = _sequence(PassRun("", name, None), places.lines(lines, {}), runs, times, places, machine_code)
    return LLVMPasses(name, compiler.cpu, str(pipeline), passes, [Remark(text, None) for _, text in remarks])


def _text_of(source: str | Path) -> str:
    if isinstance(source, Path) or "\n" not in source:
        path = Path(source)
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} has more than {MOST_BYTES >> 20} MiB")
        return path.read_text("utf-8", errors="replace")
    return source


def _job(compiler: LLVMCompiler, ir: str, pipeline: Pipeline, spec: ProgramSpec | None) -> dict[str, Any]:
    """What the child process needs to compile as this one does."""
    effort = Effort.FULL if spec is None else spec.options.effort
    own = not pipeline.level and spec is not None
    level = LEVELS.index(pipeline.level) if pipeline.level else OPTIMISATION_LEVEL if effort is Effort.FULL else -1
    is_default = not own and level >= 2
    return {
        "ir": ir,
        "triple": compiler.triple,
        "cpu": compiler.cpu,
        "features": compiler.features,
        "abi": compiler.abi,
        "level": level,
        "branches": spec is not None and spec.options.branches,
        "code_level": code_level(effort) if own else max(level, 0) if pipeline.level else CODE_LEVEL,
        "loop_vectorization": own or is_default,
        "slp_vectorization": is_default,
        "loop_unrolling": is_default,
    }


def _run(
    job: Mapping[str, Any], function: str, pipeline: Pipeline
) -> tuple[tuple[list[PassRun], list[tuple[int, str]]], dict[tuple[str, int], float], str]:
    """The passes with their texts, and the remarks; the times; the assembly. Three processes side by side."""
    disabled = [f"-opt-disable={','.join(pipeline.without) or 'none'}"]
    syntax = ["-x86-asm-syntax=intel"] if "x86" in job["triple"] else []
    jobs = [
        {**job, "options": [*syntax, *disabled, *_PRINTING], "is_timed": False},
        {**job, "options": [*disabled, "-time-passes-per-run"], "is_timed": True},
        {**job, "options": [*disabled, *_REMARKS], "is_timed": False},
    ]
    allowed()  # children inherit the leave to use tile registers
    with ThreadPoolExecutor(len(jobs)) as pool:
        (assembly, said), (report, _), (_, remarks) = pool.map(_ask, jobs)
    return (read_runs(said, function), read_remarks(remarks)), read_times(report), assembly


def _ask(job: Mapping[str, Any]) -> tuple[str, str]:
    """What a child process prints: on standard output, and on standard error."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(child.__file__)],
            input=json.dumps(job).encode("utf-8", "replace"),
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LLVMPassesError(f"LLVM was not done after {LIMIT_S:.0f} s") from None
    said = done.stderr[-MOST_BYTES:].decode("utf-8", "replace")
    if done.returncode:
        raise LLVMPassesError(said.strip().splitlines()[-1] if said.strip() else f"exit code {done.returncode}")
    return done.stdout[:MOST_BYTES].decode("utf-8", "replace"), said


def _numbers(spec: ProgramSpec) -> Callable[[Sequence[Any]], int]:
    """Gives the line of debug information of a listing's line: the place of its first UOp, from 1; 0 without one."""
    places = _places_of(spec)
    return lambda uops: places.get(uops[0], 0) if uops else 0


def _places_of(spec: ProgramSpec) -> dict[Any, int]:
    return {node: number for number, node in enumerate(spec.uops, 1)}


class _Places:
    """Leads lines to UOps, nodes of the trace and lines of Python."""

    def __init__(self, trace: Trace | None, kernel: int, spec: ProgramSpec | None) -> None:
        self.nodes: dict[int, tuple[int, ...]] = {}
        self.python: dict[int, tuple[str, ...]] = {}
        self.subjects: dict[int, str] = {}
        if trace is None or spec is None:
            return
        owner = trace.kernels[kernel].same_as
        listing = next(
            one
            for one in trace.programs
            if one.language == "llvm" and one.kernel == (kernel if owner is None else owner)
        )
        places = _places_of(spec)
        for at, (line, row) in enumerate(zip(spec.lines, listing.lines)):
            place = places.get(line.uops[0]) if line.uops and line.text.startswith("  ") else None
            if place is not None and place not in self.nodes and row.nodes:
                frames = line_frames(trace, listing.id, at)
                self.nodes[place] = row.nodes
                self.python[place] = tuple(f"{trace.sources[one.source].name}:{one.line}" for one in frames)
                self.subjects[place] = line.text.strip()

    def subject(self, line: int) -> tuple[int | None, str]:
        """The UOp of a remark's line, and its IR."""
        return (line - 1 if line in self.nodes else None), self.subjects.get(line, "")

    def lines(self, texts: Iterable[tuple[str, int]], known: dict[str, int]) -> tuple[PassLine, ...]:
        """Lines with what they lead to. One without debug information follows the value that it defines, else the
        same line of the text before, else what it reads, else the line before it in its block.

        known: what names and lines led to until now; it is completed.
        """
        found = []
        last = 0
        for text, number in texts:
            if not text.startswith(" "):
                last = 0
                found.append(PassLine(text, None))
                continue
            name = _NAME.match(text)
            number = number or (known.get(name[1], 0) if name else 0) or known.get(text, 0)
            number = number or next((known[used] for used in _USED.findall(text) if used in known), 0) or last
            if number:
                last = known[text] = number
                if name:
                    known[name[1]] = number
            place = number - 1 if number else None
            found.append(PassLine(text, place, self.nodes.get(number, ()), self.python.get(number, ())))
        return tuple(found)


def _sequence(
    first: PassRun,
    rendered: tuple[PassLine, ...],
    runs: Sequence[PassRun],
    times: Mapping[tuple[str, int], float],
    places: _Places,
    assembly: Sequence[tuple[str, int]],
) -> list[LLVMPass]:
    known = {
        defined[1]: line.uop + 1 for line in rendered if line.uop is not None and (defined := _NAME.match(line.text))
    }
    passes = [LLVMPass(0, "as rendered", "", "IR", True, None, rendered, begins=True)]
    named: dict[str, str] = {run.argument: run.dump.name for run in runs if run.dump is not None and run.argument}
    count: dict[str, int] = {}
    now, is_machine = rendered, False
    for run in runs:
        name = run.dump.name if run.dump is not None else named.get(run.argument, run.argument)
        count[name] = count.get(name, 0) + 1
        begins = run.dump is not None and run.dump.is_machine and not is_machine
        if begins:
            is_machine, known = True, {}
        lines = now if run.dump is None or not run.dump.lines else places.lines(run.dump.lines, known)
        changed = [line.text for line in lines] != [line.text for line in now]
        stage = "machine IR" if is_machine else "IR"
        took = times.get((name, count[name]))
        passes.append(LLVMPass(len(passes), name, run.argument, stage, changed, took, lines, now, begins))
        now = lines
    end = places.lines(assembly, {})
    passes.append(LLVMPass(len(passes), "assembly", "", "assembly", True, None, end, now, True))
    return passes


def _plain_assembly(assembly: str, name: str) -> list[str]:
    """The instructions and labels of one function."""
    lines, inside = [], False
    for line in assembly.expandtabs(8).splitlines():
        if line.startswith((f"{name}:", f"_{name}:")):
            inside = True
        if inside and line.startswith((".Lfunc_end", "Lfunc_end")):
            break
        text = line.split("#")[0].rstrip()
        if inside and text.strip() and not text.strip().startswith((".cfi", ".loc", ".p2align", ".size", ".file")):
            lines.append(text)
    return lines


__all__ = ["LEVELS", "LLVMPassesError", "Pipeline", "kernel_passes", "module_passes"]
