"""Runner: one compiled kernel, ready for any buffers; and the way from a Kernel to it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tinyexplore.codegen import bytes_moved, flop_count, lower
from tinyexplore.device import CompiledProgram, Device
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.trace import Compiled, Rendered, SourceLine, active_recorder, staged

_programs: dict[tuple[str, str], CompiledProgram] = {}


@dataclass(frozen=True, eq=False)
class Runner:
    """A compiled kernel: `spec` is its program, `flops` and `bytes_moved` the least that one run costs."""

    device: str
    kernel: Kernel
    spec: ProgramSpec
    program: CompiledProgram
    flops: int
    bytes_moved: int
    compile_seconds: float


def compile_optimised(device: str, kernel: Kernel, start: float | None = None) -> Runner:
    """A Runner of `kernel` as it is, with the opts that it has."""
    start = time.perf_counter() if start is None else start
    interface = Device[device]
    uops = lower(kernel)
    recorder = active_recorder()

    def render() -> ProgramSpec:
        spec = interface.renderer.render(kernel.name, uops)
        if recorder is not None:
            recorder.record(Rendered(spec, spec.language, spec.lines))
        return spec

    spec = staged("render", kernel.ast, render)
    program = staged("compile", kernel.ast, lambda: compile_program(device, spec))
    flops, moved = flop_count(kernel.original), bytes_moved(kernel.original)
    return Runner(device, kernel, spec, program, flops, moved, time.perf_counter() - start)


def further_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """For display: the program as C, whatever the device's own language is, and what the device can show of it.

    Nothing of this happens while a program is recorded: who shows the recording asks for it.
    """
    interface = Device[spec.target.name]
    listings = [(language, lines) for language, lines in interface.listings(spec) if language != spec.language]
    if "c" not in (spec.language, *(language for language, _ in listings)):
        listings.insert(0, ("c", CRenderer(spec.target).render(spec.name, spec.uops).lines))
    return listings


def compile_program(device: str, spec: ProgramSpec) -> CompiledProgram:
    """The machine code of `spec`, made now or found: equal content is compiled once."""
    key = (device, spec.key)
    start = time.perf_counter()
    program = _programs.get(key)
    cached = program is not None
    if program is None:
        program = _programs[key] = Device[device].compile(spec)
    recorder = active_recorder()
    if recorder is not None:
        recorder.record(Compiled(spec, time.perf_counter() - start, cached))
    return program
