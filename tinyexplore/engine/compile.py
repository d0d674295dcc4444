"""Runner: one compiled kernel, ready for any buffers; and the way from a Kernel to it."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

from tinyexplore.codegen import bytes_moved, flop_count, lower
from tinyexplore.device import CompiledProgram, Device
from tinyexplore.engine.lowered import Facts, find_facts, keep_facts, lowering_key
from tinyexplore.engine.threads import estimated_ns, run_divided
from tinyexplore.kernel import Kernel, Opt
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.target import core_count
from tinyexplore.trace import Compiled, Recorder, Rendered, SourceLine, active_recorder, recording, staged
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import sint, value_of
from tinyexplore.util import Config, Context, config
from tinyexplore.util.interpreter import switching_quickly

R = TypeVar("R")

HEAD_START_SECONDS = 1e-3  # what a thread that compiles needs before it is in the compiler

_programs: dict[tuple[str, str], CompiledProgram] = {}


@dataclass(frozen=True, eq=False)
class Runner:
    """A compiled kernel: `spec` is its program, `flops` and `bytes_moved` the least that one run costs (arithmetic
    with its Variables, where it has some).

    `make_kernel` gives the Kernel, which is made when somebody asks for it.
    """

    device: str
    make_kernel: Callable[[], Kernel]
    spec: ProgramSpec
    program: CompiledProgram
    flops: sint
    bytes_moved: sint
    compile_seconds: float

    @cached_property
    def kernel(self) -> Kernel:
        """The ast and its opts."""
        return self.make_kernel()

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
    flops, moved = flop_count(kernel.original), bytes_moved(kernel.original)
    return Runner(device, lambda: kernel, spec, program, flops, moved, time.perf_counter() - start)


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


@dataclass(frozen=True, eq=False)
class Prepared:
    """A kernel on its way: all of a Runner but the program.

    `keep` writes to disk what lowering came to, if it may, best while the program is compiled; None where there is
    nothing to write, because it was found there, say.
    """

    device: str
    make_kernel: Callable[[], Kernel]
    spec: ProgramSpec
    flops: sint
    bytes_moved: sint
    start: float
    keep: Callable[[], None] | None = None

    def compiled(self) -> Runner:
        """The Runner, compiled here and now."""
        runner = self.runner(compile_program(self.device, self.spec))
        if self.keep is not None:
            self.keep()
        return runner

    def runner(self, program: CompiledProgram) -> Runner:
        seconds = time.perf_counter() - self.start
        return Runner(self.device, self.make_kernel, self.spec, program, self.flops, self.bytes_moved, seconds)


def prepare(device: str, ast: UOp, choose: Callable[[], Kernel], *, may_keep: Callable[[], bool]) -> Prepared:
    """`ast` lowered, with the opts that `choose` finds: now, or in an earlier process, if it kept the result.

    may_keep: whether what is kept counts, and may be added to; it is asked when there is something to find, or else
    while the program is compiled. Nothing may be recorded: a recording wants to see every stage.
    """
    assert active_recorder() is None
    start = time.perf_counter()
    key = lowering_key(device, ast)
    facts = find_facts(key) if key is not None else None
    if facts is not None and may_keep():
        settings = config()  # as they are here and now
        make_kernel = cache(lambda: _alone(settings, choose))
        spec = facts.spec(device, lambda: _alone(settings, lambda: lowered(device, make_kernel())))
        return Prepared(device, make_kernel, spec, facts.flops, facts.bytes_moved, start)
    kernel = choose()
    spec = lowered(device, kernel)
    flops, moved = flop_count(kernel.original), bytes_moved(kernel.original)
    prepared = Prepared(device, lambda: kernel, spec, flops, moved, start)
    if key is None or not isinstance(flops, int) or not isinstance(moved, int) or spec.variables:
        return prepared

    def keep() -> None:
        if may_keep():
            keep_facts(key, Facts.of(spec, flops, moved))

    return replace(prepared, keep=keep)


def _alone(settings: Config, work: Callable[[], R]) -> R:
    """`work()` under `settings`, with nobody listening. (A copied context would keep what a TinyJit captures alive.)"""

    def under_settings() -> R:
        with Context(**dict(zip(Config.__dataclass_fields__, settings.values))):
            return work()

    return contextvars.Context().run(under_settings)


@contextmanager
def compiling_aside() -> Iterator[Callable[[str, Callable[[], Kernel]], Callable[[Recorder], Runner]]]:
    """Inside the block, a function that lowers a kernel and has it compiled by another thread, while this one lowers
    the next, for a recording that is to hear of it later. What it returns tells all, and gives the Runner or raises
    what went wrong. When the block ends, all are compiled.
    """
    compilers: _Compilers[tuple[CompiledProgram, float]] = _Compilers()

    def compile_later(device: str, choose: Callable[[], Kernel]) -> Callable[[Recorder], Runner]:
        lowering, compiling = Recorder(), Recorder()
        start = time.perf_counter()
        with recording(lowering):
            kernel = choose()
            spec = lowered(device, kernel)
        lowering_seconds = time.perf_counter() - start

        def compile_told() -> tuple[CompiledProgram, float]:
            began = time.perf_counter()
            with recording(compiling):
                program = staged("compile", kernel.ast, lambda: compile_program(device, spec))
            return program, time.perf_counter() - began

        future = compilers.submit(contextvars.copy_context(), compile_told)

        def tell(recorder: Recorder) -> Runner:
            recorder.retell(lowering)
            recorder.retell(compiling)
            program, seconds = future.result()
            flops, moved = flop_count(kernel.original), bytes_moved(kernel.original)
            return Runner(device, lambda: kernel, spec, program, flops, moved, lowering_seconds + seconds)

        return tell

    with switching_quickly():
        try:
            yield compile_later
        finally:
            compilers.have_all_cores()
            wait(compilers.running)


class _Compilers(Generic[R]):
    """Work for the threads that compile. They leave one core to the thread that lowers, until it has no more work."""

    def __init__(self) -> None:
        self.running: list[Future[R]] = []
        self._cores = threading.Semaphore(max(1, core_count() - 1))

    def submit(self, context: contextvars.Context, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """`work` of `arguments` in `context`, when a core is free."""

        def in_turn() -> R:
            with self._cores:
                return work(*arguments)

        future = _compiler_threads().submit(context.run, in_turn)
        self.running.append(future)
        return future

    def have_all_cores(self) -> None:
        """Called once, by who lowered, when it only waits."""
        if core_count() > 1:
            self._cores.release()


class Ahead:
    """Kernels compiled by other threads, while this one goes on."""

    def __init__(self) -> None:
        self._context = contextvars.copy_context()  # the threads compile under the configuration in force here
        self._compilers: _Compilers[CompiledProgram] = _Compilers()
        self._shared: Callable[[], None] | None = None  # what this thread may do of the last one

    def compile_later(self, prepared: Prepared, *, is_last: bool = False) -> Callable[[], Runner]:
        """Has `prepared` compiled; what it returns waits for the Runner, or raises what went wrong. is_last: this
        thread, which has nothing else to do then, does a part of it in `meanwhile`, if it can be divided."""
        if is_last and core_count() > 1:
            self._shared = Device[prepared.device].share(prepared.spec)
        program = self._compilers.submit(self._context.copy(), compile_program, prepared.device, prepared.spec)
        return lambda: prepared.runner(program.result())

    def is_compiling(self) -> bool:
        """True until all that was given is compiled."""
        return not all(future.done() for future in self._compilers.running)

    def meanwhile(self, works: Sequence[Callable[[], None]]) -> None:
        """All is lowered. Does `works`, which nobody waits for, while there is something to wait for: the compiler
        first, which asks for the interpreter some ten times before it goes on without. Before these, its part of what
        is compiled last."""
        self._compilers.have_all_cores()
        wait(self._compilers.running[-1:], HEAD_START_SECONDS)
        if self._shared is not None:
            self._shared()
        for work in works:
            work()


@contextmanager
def compiling_ahead() -> Iterator[Ahead]:
    """Inside the block kernels are compiled by other threads, while this one lowers the next."""
    with switching_quickly():
        yield Ahead()


@cache
def _compiler_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(core_count(), thread_name_prefix="tinyexplore-compile")


def start_compilers() -> None:
    """Has two of the threads that compile wait for work: to start one takes half a millisecond of the first kernel, and
    more where the others are in the compiler."""
    count = min(core_count(), 2)
    all_there = threading.Barrier(count)  # else the first would do the work of all
    for _ in range(count):
        _compiler_threads().submit(all_there.wait, 1.0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compiler_threads.cache_clear)  # a forked child has none of its parent's threads


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
