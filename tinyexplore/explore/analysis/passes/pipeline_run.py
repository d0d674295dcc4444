"""Runs LLVM's pipeline in a child process, and links each line of each text to its UOp."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tinyexplore.explore.analysis.passes import child_process
from tinyexplore.explore.analysis.passes.debug_locations import with_locations
from tinyexplore.explore.analysis.passes.output_parser import PassRun, function_lines, read_runs, read_times
from tinyexplore.explore.analysis.passes.sequence import LLVMPass, LLVMPasses, PassLine, Remark
from tinyexplore.explore.analysis.passes.spills import spills_of
from tinyexplore.explore.tracefile.queries import line_frames
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.renderer.llvm import with_debug_info
from tinyexplore.renderer.program import Effort, ProgramSpec
from tinyexplore.runtime.asm import assembly_lines, program_roots
from tinyexplore.runtime.llvm import CODE_LEVEL, OPTIMIZATION_LEVEL, LLVMCompiler, code_level, compiler_for
from tinyexplore.runtime.tile_registers import request_permission
from tinyexplore.target import NATIVE

LIMIT_S = 60.0  # seconds, for a child process
MAX_BYTES = 64 << 20  # most bytes of a child process's output
LEVELS = ("O0", "O1", "O2", "O3")
_PRINTING = ("-print-changed=quiet", "-print-module-scope", "-opt-disable-enable-verbosity")
_REMARKS = ("-pass-remarks=.*", "-pass-remarks-missed=.*", "-pass-remarks-analysis=.*")
_NAME = re.compile(r"^\s+(?:renamable )?([%$][\w.$-]+)(?::\w+)*(?:\([^)]*\))? = ")
_LOCATED = re.compile(r"^\s+\.loc\s+\d+\s+(\d+)")
_USED = re.compile(r"[%$][\w.-]+")


class LLVMPassesError(RuntimeError):
    """LLVM rejected the module, the options or the CPU. The message is LLVM's."""


@dataclass(frozen=True)
class Pipeline:
    """The options of one LLVM pipeline.

    level: "O0" to "O3" with LLVM's own defaults, or "" for the options with which this package compiles the kernel.
    without: passes to skip, by their option names ("instcombine", "loop-vectorize", "machine-scheduler").
    cpu: the CPU to generate code for, such as "skylake"; "" for that of the capture.
    """

    level: str = ""
    without: tuple[str, ...] = ()
    cpu: str = ""

    def __post_init__(self) -> None:
        if self.level not in ("", *LEVELS):
            raise ValueError(f"level={self.level!r}: give one of {', '.join(LEVELS)}, or nothing for the kernel's own")
        for name in self.without:
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
                raise ValueError(
                    f"without: {name!r} is not the option name of a pass; use a name such as 'instcombine'"
                )

    def __str__(self) -> str:
        text = f"pipeline {self.level}" if self.level else "the kernel's own pipeline"
        return f"{text} without {', '.join(self.without)}" if self.without else text


def kernel_passes(trace: Trace, number: int, spec: ProgramSpec, pipeline: Pipeline) -> LLVMPasses:
    """Returns LLVM's passes on one kernel of a trace.

    Raises:
        ValueError: LLVM does not compile this kernel.
    """
    compiler = _compiler_of(spec, pipeline)
    job = _make_job(compiler, with_debug_info(spec), pipeline, spec)
    try:
        runs, times, assembly = _run(job, spec.name, pipeline)
    except LLVMPassesError as error:
        if not pipeline.cpu or "llvm.x86." not in spec.source:
            raise
        raise LLVMPassesError(
            f"{error} The kernel has instructions of {spec.target.cpu} that {pipeline.cpu} may lack: capture it with "
            f'target="{pipeline.cpu}", and list the passes of that kernel.'
        ) from None
    places = _LineOrigins(trace, number, spec)
    first = PassRun("", spec.name, None)
    function = spec.lines[
        : next(line_number for line_number, line in enumerate(spec.lines) if line.text.startswith("}")) + 1
    ]
    line_of = _make_line_numbering(spec)
    rendered = places.lines([(line.text, line_of(line.uops)) for line in function if line.text], {})
    roots = program_roots(spec.uops)  # for values without a single UOp
    listed = assembly_lines(spec, assembly, arch=compiler.choice.arch)
    machine_code = [(line.text, 0 if line.uops == roots else line_of(line.uops)) for line in listed]
    passes = _make_sequence(first, rendered, runs, times, places, machine_code)
    about = dict.fromkeys(remark for llvm_pass in passes for remark in llvm_pass.remarks)
    spilled_by, spills = spills_of(passes, places.subjects)
    return LLVMPasses(spec.name, compiler.cpu, str(pipeline), passes, tuple(about), spills, spilled_by, _read_version())


def module_passes(source: str | Path, pipeline: Pipeline, function: str = "") -> LLVMPasses:
    """Returns LLVM's passes on any module, given as the path of an LLVM IR file or as its text.

    If the module has debug information, lines link to the source program.
    """
    text = _read_source(source)
    defined = re.findall(r"^define [^\n]*?@([\w.$-]+)\(", text, re.MULTILINE)
    if not defined:
        raise ValueError("the module defines no function; only a module with a function can be compiled")
    if function and function not in defined:
        raise ValueError(f"the module defines no function {function!r}; it defines: {', '.join(defined[:8])}")
    name = function or defined[0]
    compiler = compiler_for(pipeline.cpu or NATIVE)
    located = with_locations(text)
    try:
        runs, times, assembly = _run(_make_job(compiler, located, pipeline, None), name, pipeline)
    except LLVMPassesError:
        if located == text:
            raise
        located = text  # an instruction spans several lines: LLVM reports errors in the original module
        runs, times, assembly = _run(_make_job(compiler, text, pipeline, None), name, pipeline)
    places = _LineOrigins.of_module(text, located != text)
    lines = list(function_lines(located, name))
    machine_code = _read_plain_assembly(assembly, name)
    passes = _make_sequence(PassRun("", name, None), places.lines(lines, {}), runs, times, places, machine_code)
    about = dict.fromkeys(remark for llvm_pass in passes for remark in llvm_pass.remarks)
    spilled_by, spills = spills_of(passes, places.subjects)
    return LLVMPasses(name, compiler.cpu, str(pipeline), passes, tuple(about), spills, spilled_by, _read_version())


def _read_source(source: str | Path) -> str:
    if isinstance(source, Path) or "\n" not in source:
        path = Path(source)
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path} has more than {MAX_BYTES >> 20} MiB")
        return path.read_text("utf-8", errors="replace")
    return source


def _make_job(compiler: LLVMCompiler, ir: str, pipeline: Pipeline, spec: ProgramSpec | None) -> dict[str, Any]:
    """Returns the job for the child process, with the options that this process uses."""
    effort = Effort.FULL if spec is None else spec.options.effort
    uses_kernel_options = not pipeline.level and spec is not None
    level = LEVELS.index(pipeline.level) if pipeline.level else OPTIMIZATION_LEVEL if effort is Effort.FULL else -1
    is_default = not uses_kernel_options and level >= 2
    return {
        "ir": ir,
        "triple": compiler.triple,
        "cpu": compiler.cpu,
        "features": compiler.features,
        "abi": compiler.abi,
        "level": level,
        "branches": spec is not None and spec.options.branches,
        "code_level": code_level(effort) if uses_kernel_options else max(level, 0) if pipeline.level else CODE_LEVEL,
        "loop_vectorization": uses_kernel_options or is_default,
        "slp_vectorization": is_default,
        "loop_unrolling": is_default,
    }


def _run(
    job: Mapping[str, Any], function: str, pipeline: Pipeline
) -> tuple[list[PassRun], dict[tuple[str, int], float], str]:
    """Returns the passes with their texts and remarks, the times, and the assembly, from two parallel processes."""
    disabled = [f"-opt-disable={','.join(pipeline.without) or 'none'}"]
    syntax = ["-x86-asm-syntax=intel"] if "x86" in job["triple"] else []
    jobs = [
        {**job, "options": [*syntax, *disabled, *_PRINTING, *_REMARKS], "what": "assembly"},
        {**job, "options": [*disabled, "-time-passes-per-run"], "what": "times"},
    ]
    (assembly, errors), (report, _) = _run_children(jobs)
    return read_runs(errors, function), read_times(_text(report)), _text(assembly)


def _run_children(jobs: Sequence[Mapping[str, Any]]) -> list[tuple[bytes, str]]:
    """Runs a child process for each job, in parallel; returns their standard output and standard error."""
    request_permission()  # children inherit the permission to use tile registers
    children: list[_ChildProcess] = []
    try:
        for job in jobs:
            children.append(_ChildProcess(job))
        return [child.end() for child in children]
    finally:
        for one_child in children:
            one_child.stop()


def _text(printed: bytes) -> str:
    return printed.decode("utf-8", "replace")


def object_code(spec: ProgramSpec, pipeline: Pipeline) -> tuple[LLVMCompiler, bytes]:
    """Compiles a kernel with another pipeline. Returns the compiler that can load the object file, and the file.

    Raises:
        ValueError: LLVM does not compile this kernel.
    """
    compiler = _compiler_of(spec, pipeline)
    disabled = f"-opt-disable={','.join(pipeline.without) or 'none'}"
    job = {**_make_job(compiler, spec.source, pipeline, spec), "options": [disabled], "what": "object"}
    ((code, _),) = _run_children([job])
    return compiler, code


def _compiler_of(spec: ProgramSpec, pipeline: Pipeline) -> LLVMCompiler:
    if not spec.source.lstrip().startswith(("define", "declare", "@", "target", ";", "!")):
        raise ValueError(f"{spec.name} is not compiled by LLVM here: {spec.target.name} has no LLVM IR to follow")
    return compiler_for(pipeline.cpu or spec.target.target_setting.partition(",")[0] or NATIVE)


class _ChildProcess:
    """A child process with its job. It starts immediately and writes to files, so that no thread needs to read."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._until = time.monotonic() + LIMIT_S
        self._job, self._printed, self._errors_file = (tempfile.TemporaryFile() for _ in range(3))
        self._job.write(json.dumps(job).encode("utf-8", "replace"))
        self._job.seek(0)
        command = [sys.executable, "-I", str(child_process.__file__)]
        try:
            self._process = subprocess.Popen(command, stdin=self._job, stdout=self._printed, stderr=self._errors_file)
        except OSError as error:  # a browser's Python has no processes
            self._close()
            raise LLVMPassesError(f"LLVM's passes are listed by another process, and none can start: {error}") from None

    def end(self) -> tuple[bytes, str]:
        """Waits for the end of the process, and returns its standard output and standard error."""
        try:
            code = self._process.wait(max(0.0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise LLVMPassesError(f"LLVM was not done after {LIMIT_S:.0f} s") from None
        errors = _text(_read_file(self._errors_file)[-MAX_BYTES:])
        if code:
            raise LLVMPassesError(errors.strip().splitlines()[-1] if errors.strip() else f"exit code {code}")
        return _read_file(self._printed)[:MAX_BYTES], errors

    def stop(self) -> None:
        """Kills the process if it still runs, and removes its files."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        for file in (self._job, self._printed, self._errors_file):
            file.close()


def _read_file(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _make_line_numbering(spec: ProgramSpec) -> Callable[[Sequence[Any]], int]:
    """Returns a function from the UOps of a line to its debug line: the position of its first UOp from 1, or 0."""
    line_of = _number_uops(spec)
    return lambda uops: line_of.get(uops[0], 0) if uops else 0


def _number_uops(spec: ProgramSpec) -> dict[Any, int]:
    return {node: number for number, node in enumerate(spec.uops, 1)}


class _LineOrigins:
    """Maps lines of LLVM's text to UOps, nodes of the trace and lines of Python."""

    def __init__(self, trace: Trace | None, kernel: int, spec: ProgramSpec | None) -> None:
        self.nodes: dict[int, tuple[int, ...]] = {}
        self.python: dict[int, tuple[str, ...]] = {}
        self.subjects: dict[int, str] = {}
        if trace is None or spec is None:
            return
        owner = trace.kernels[kernel].same_as
        listing = next(
            program
            for program in trace.programs
            if program.language == "llvm" and program.kernel == (kernel if owner is None else owner)
        )
        line_of = _number_uops(spec)
        for line_number, (line, row) in enumerate(zip(spec.lines, listing.lines)):
            number = line_of.get(line.uops[0]) if line.uops and line.text.startswith("  ") else None
            if number is not None and number not in self.nodes and row.nodes:
                frames = line_frames(trace, listing.id, line_number)
                self.nodes[number] = row.nodes
                self.python[number] = tuple(f"{trace.sources[frame.source].name}:{frame.line}" for frame in frames)
                self.subjects[number] = line.text.strip()

    @classmethod
    def of_module(cls, text: str, is_located: bool) -> _LineOrigins:
        """Locates a module's lines in its own text (`is_located`), or in the text that its debug information names."""
        places = cls(None, 0, None)
        if is_located:
            for number, line in enumerate(text.splitlines(), 1):
                if line.startswith((" ", "\t")):
                    places.subjects[number] = line.strip()
                    places.nodes[number] = ()
        return places

    def subject(self, line: int) -> tuple[int | None, str]:
        """Returns the UOp and the IR of a remark's line."""
        return (line - 1 if line in self.nodes else None), self.subjects.get(line, "")

    def lines(self, texts: Iterable[tuple[str, int]], line_of: dict[str, int]) -> tuple[PassLine, ...]:
        """Links lines to their origins.

        A line without debug information follows, in this order: the value that it defines, the same line of the
        previous text, its operands, the previous line of its block, its users.

        line_of: the origins of names and lines so far; this method extends it.
        """
        numbers = []
        last = 0
        for text, number in texts:
            if not text.startswith(" "):
                last = 0
                numbers.append((text, 0))
                continue
            name = _NAME.match(text)
            number = number or (line_of.get(name[1], 0) if name else 0) or line_of.get(text, 0)
            number = number or next((line_of[used] for used in _USED.findall(text) if used in line_of), 0) or last
            if number:
                last = line_of[text] = number
                if name:
                    line_of[name[1]] = number
            numbers.append((text, number))
        return tuple(self._make_line(text, number) for text, number in _inherit_origins_from_readers(numbers))

    def _make_line(self, text: str, number: int) -> PassLine:
        uop = number - 1 if number else None
        return PassLine(text, uop, self.nodes.get(number, ()), self.python.get(number, ()))


def _inherit_origins_from_readers(lines: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Links each line without an origin to the first user of its value, such as for a constant or an argument."""
    reader: dict[str, int] = {}
    readers_first = []
    for text, number in reversed(lines):
        name = _NAME.match(text)
        if name and not number and text.startswith(" "):
            number = reader.get(name[1], 0)
        if number:
            used = _USED.findall(text)
            reader.update(dict.fromkeys(used[1:] if name else used, number))
        readers_first.append((text, number))
    return readers_first[::-1]


def _make_sequence(
    first: PassRun,
    rendered: tuple[PassLine, ...],
    runs: Sequence[PassRun],
    times: Mapping[tuple[str, int], float],
    places: _LineOrigins,
    assembly: Sequence[tuple[str, int]],
) -> list[LLVMPass]:
    """Returns the passes in order, each with its lines. A pass without a dump has the lines of the previous one."""
    line_of = {
        defined[1]: line.uop + 1 for line in rendered if line.uop is not None and (defined := _NAME.match(line.text))
    }
    passes = [LLVMPass(0, "as rendered", "", "IR", True, None, rendered, begins=True)]
    named: dict[str, str] = {run.argument: run.dump.name for run in runs if run.dump is not None and run.argument}
    count: dict[str, int] = {}
    current, is_machine, is_own = rendered, False, True
    for run in runs:
        name = run.dump.name if run.dump is not None else named.get(run.argument, run.argument)
        count[name] = count.get(name, 0) + 1
        if run.on != "loop":  # LLVM does not name the function: it is that of the previous pass
            is_own = not run.functions or first.on in run.functions
        if not is_own:
            continue
        begins = run.dump is not None and run.dump.is_machine and not is_machine
        if begins:
            is_machine, line_of = True, {}
        lines = current if run.dump is None or not run.dump.lines else places.lines(run.dump.lines, line_of)
        changed = [line.text for line in lines] != [line.text for line in current]
        lines = lines if changed else current
        stage = "machine IR" if is_machine else "IR"
        seconds = times.get((name, count[name]))
        remarks = tuple(Remark(text, *places.subject(line)) for line, text in run.remarks)
        passes.append(
            LLVMPass(len(passes), name, run.argument, stage, changed, seconds, lines, current, begins, remarks)
        )
        current = lines
    end = places.lines(assembly, {})
    passes.append(LLVMPass(len(passes), "assembly", "", "assembly", True, None, end, current, True))
    return passes


def _read_version() -> str:
    """Returns LLVM's version from llvmlite."""
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))


def _read_plain_assembly(assembly: str, name: str) -> list[tuple[str, int]]:
    """Returns the instructions and labels of one function, each with the line of its location."""
    lines: list[tuple[str, int]] = []
    inside, number = False, 0
    for line in assembly.expandtabs(8).splitlines():
        if line.startswith((f"{name}:", f"_{name}:")):
            inside = True
        if inside and line.startswith((".Lfunc_end", "Lfunc_end")):
            break
        if match := _LOCATED.match(line):
            number = int(match[1])
        text = line.split("#")[0].rstrip()
        if inside and text.strip() and not text.strip().startswith((".cfi", ".loc", ".p2align", ".size", ".file")):
            lines.append((text, number if text.startswith(" ") else 0))
    return lines


__all__ = ["LEVELS", "LLVMPassesError", "Pipeline", "kernel_passes", "module_passes", "object_code"]
