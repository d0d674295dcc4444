"""Runner: one compiled kernel, ready for any buffers; and the way from a Kernel to it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyexplore.codegen import bytes_moved, flop_count, lower
from tinyexplore.device import CompiledProgram, Device
from tinyexplore.engine.threads import estimated_ns, run_divided
from tinyexplore.kernel import Kernel, Opt
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.target import core_count
from tinyexplore.trace import Compiled, Rendered, SourceLine, active_recorder, staged
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import sint, value_of

# While one thread lowers, the one that compiles asks for the interpreter between its calls into the compiler, some ten
# for a kernel; with Python's own 5 ms, it would wait longer than it works.
SWITCH_SECONDS = 1e-4

_programs: dict[tuple[str, str], CompiledProgram] = {}


@dataclass(frozen=True, eq=False)
class Runner:
    """A compiled kernel: `spec` is its program, `flops` and `bytes_moved` the least that one run costs (arithmetic
    with its Variables, where it has some)."""

    device: str
    kernel: Kernel
    spec: ProgramSpec
    program: CompiledProgram
    flops: sint
    bytes_moved: sint
    compile_seconds: float

    def run(self, bound: Callable[[int, int], None], values: Sequence[int] = ()) -> None:
        """`bound`, which is this program bound to buffers and `values`, once, on as many threads as it is worth."""
        run_divided(bound, self.spec.extent(values), self.work_ns(values))

    def __reduce__(self) -> tuple[Any, ...]:
        """Without machine code: that is made again where it is wanted, or found on disk."""
        kernel = self.kernel
        return _compiled_again, (self.device, kernel.ast, kernel.original, kernel.start, kernel.applied)

    def work_ns(self, values: Sequence[int]) -> float:
        """About how long one core takes for these values of its Variables."""
        flops, moved = self.flops, self.bytes_moved
        if type(flops) is int and type(moved) is int:
            return estimated_ns(flops, moved)
        known = dict(zip(self.spec.variables, values))
        return estimated_ns(value_of(self.flops, known), value_of(self.bytes_moved, known))


def _compiled_again(device: str, ast: UOp, original: UOp, start: UOp, applied: tuple[Opt, ...]) -> Runner:
    return compile_optimised(device, Kernel(ast, Device[device].target, original, start, applied))


def compile_optimised(device: str, kernel: Kernel, start: float | None = None) -> Runner:
    """A Runner of `kernel` as it is, with the opts that it has."""
    start = time.perf_counter() if start is None else start
    spec = lowered(device, kernel)
    program = staged("compile", kernel.ast, lambda: compile_program(device, spec))
    return runner_of(device, kernel, spec, program, start)


def lowered(device: str, kernel: Kernel) -> ProgramSpec:
    """The source of `kernel`."""
    uops = lower(kernel)

    def render() -> ProgramSpec:
        spec = Device[device].renderer.render(kernel.name, uops)
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(Rendered(spec, spec.language, spec.lines))
        return spec

    return staged("render", kernel.ast, render)


def runner_of(device: str, kernel: Kernel, spec: ProgramSpec, program: CompiledProgram, start: float) -> Runner:
    flops, moved = flop_count(kernel.original), bytes_moved(kernel.original)
    return Runner(device, kernel, spec, program, flops, moved, time.perf_counter() - start)


@contextmanager
def compiling_ahead() -> Iterator[Callable[[str, Kernel], Callable[[], Runner]]]:
    """Inside the block, a function that lowers a kernel and has it compiled by another thread meanwhile.

    It returns what waits for the Runner, or raises what went wrong. Nothing may be recorded: events would mix.
    """
    assert active_recorder() is None
    context = copy_context()  # the thread compiles under the configuration in force here

    def compile_later(device: str, kernel: Kernel) -> Callable[[], Runner]:
        start = time.perf_counter()
        spec = lowered(device, kernel)
        program = _compilers().submit(context.copy().run, compile_program, device, spec)
        return lambda: runner_of(device, kernel, spec, program.result(), start)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, SWITCH_SECONDS))
    try:
        yield compile_later
    finally:
        sys.setswitchinterval(interval)


@cache
def _compilers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(core_count(), thread_name_prefix="tinyexplore-compile")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compilers.cache_clear)  # a forked child has none of its parent's threads


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
