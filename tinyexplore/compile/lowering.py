"""Turns an ast or a Kernel into a Runner: lowers, renders and compiles it, or takes it from a cache."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from weakref import WeakValueDictionary, ref

from tinyexplore.codegen import PASSES, Pass, bytes_moved, flop_count, lower
from tinyexplore.compile.program_cache import ProgramFacts, find_facts, keep_facts, lowering_key
from tinyexplore.device import CompiledProgram, Device
from tinyexplore.execute.runner import Runner
from tinyexplore.kernel import Kernel, Opt, apply_opt
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.gpu import in_other_languages
from tinyexplore.renderer.program import StoredSpec
from tinyexplore.runtime.gpu_assembly import assembly_listings
from tinyexplore.trace import ListingRendered, ProgramCompiled, SourceLine, active_recorder, record_stage
from tinyexplore.uop import UOp
from tinyexplore.uop.ops import multiplications_in
from tinyexplore.uop.symbolic import sint
from tinyexplore.util import Config, Context, config

R = TypeVar("R")

_programs: WeakValueDictionary[tuple[str, str], CompiledProgram] = WeakValueDictionary()


def recompile(device: str, ast: UOp, original: UOp, start: UOp, applied: tuple[Opt, ...]) -> Runner:
    """Returns the Runner of a kernel that was pickled."""
    return compile_optimized(device, Kernel(ast, Device[device].target, original, start, applied))


@dataclass(frozen=True, eq=False)
class LoweringRecipe:
    """How a lowered kernel is rebuilt.

    device: the device that it is for.
    original: the ast as the scheduler wrote it.
    start: the ast before the first Opt.
    applied: its Opts.
    settings: the settings in force at the time.
    kernel_ref: a weak reference to the kernel itself.
    passes: the passes that lowered it.
    """

    device: str
    original: UOp
    start: UOp
    applied: tuple[Opt, ...]
    settings: Config
    kernel_ref: ref[Kernel]
    passes: Sequence[Pass]

    @staticmethod
    def of(device: str, kernel: Kernel, passes: Sequence[Pass]) -> LoweringRecipe:
        return LoweringRecipe(device, kernel.original, kernel.start, kernel.applied, config(), ref(kernel), passes)

    def kernel(self) -> Kernel:
        """Returns the kernel. Rebuilds it if nothing refers to it any more."""
        return self.kernel_ref() or _without_recorder(self.settings, self._rebuild)

    def _rebuild(self) -> Kernel:
        kernel = Kernel(self.start, Device[self.device].target, self.original, self.start)
        for opt in self.applied:
            kernel = apply_opt(kernel, opt)
        return kernel

    def stored(self, spec: ProgramSpec) -> StoredSpec:
        """Returns `spec`, the kernel's program, in a form whose text can be dropped and rebuilt."""
        return StoredSpec.of(spec, self._lower_again)

    def _lower_again(self) -> ProgramSpec:
        return _without_recorder(self.settings, lambda: render_kernel(self.device, self._rebuild(), self.passes))


def render_kernel(device: str, kernel: Kernel, passes: Sequence[Pass] = PASSES) -> ProgramSpec:
    """Returns the rendered program of `kernel`."""
    uops = lower(kernel, passes)

    def render() -> ProgramSpec:
        spec: ProgramSpec = Device[device].renderer.render(kernel.name, uops)
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(ListingRendered(spec, spec.language, spec.lines))
        return spec

    return record_stage("render", kernel.ast, render)


@dataclass(frozen=True, eq=False)
class LoweredKernel:
    """A lowered kernel without its compiled program.

    device: the device that it is for.
    root: the ast that was lowered, or that the cache has lowered.
    make_kernel: returns the Kernel, rebuilt when it is needed.
    spec: its rendered program.
    flops: floating-point operations of one run.
    bytes_moved: bytes read and written in one run.
    operations: `flops`, with each function weighted by its time.
    seconds: seconds that lowering took.
    keep: writes the result of lowering to the disk cache; None if the cache has it.
    """

    device: str
    root: UOp
    make_kernel: Callable[[], Kernel]
    spec: ProgramSpec
    flops: sint
    bytes_moved: sint
    operations: sint
    seconds: float
    keep: Callable[[], None] | None = None

    def compiled(self, number: int | None = None) -> Runner:
        """Compiles the program and returns the Runner. `number`: the number of the kernel."""
        start = time.perf_counter()
        program = record_stage("compile", self.root, lambda: compile_program(self.device, self.spec), kernel=number)
        seconds = self.seconds + time.perf_counter() - start
        return Runner(
            self.device,
            self.make_kernel,
            self.spec,
            program,
            self.flops,
            self.bytes_moved,
            self.operations,
            seconds,
            recompile,
        )


def prepare(device: str, ast: UOp, choose: Callable[[], Kernel], may_reuse: Callable[[], bool]) -> LoweredKernel:
    """Lowers `ast` with the opts that `choose` finds, or reuses the stored result of an earlier process.

    may_reuse: whether entries on disk are valid and new ones may be stored. It is called only if there is an entry to
    read or to store.
    """
    start = time.perf_counter()
    key = lowering_key(device, ast)
    facts = find_facts(key) if key is not None else None
    if facts is not None and may_reuse():
        settings = config()  # the current settings
        spec = facts.spec(device, lambda: _without_recorder(settings, lambda: render_kernel(device, choose())))
        seconds = time.perf_counter() - start
        work = (facts.flops, facts.bytes_moved, facts.operations)
        return LoweredKernel(device, ast, lambda: _without_recorder(settings, choose), spec, *work, seconds)
    prepared = prepare_optimized(device, choose(), start)
    flops, moved_bytes, operations = prepared.flops, prepared.bytes_moved, prepared.operations
    if not (isinstance(flops, int) and isinstance(moved_bytes, int) and isinstance(operations, int)):
        return prepared
    if key is None or prepared.spec.variables:
        return prepared

    def keep() -> None:
        if may_reuse():
            keep_facts(key, ProgramFacts.of(prepared.spec, flops, moved_bytes, operations))

    return replace(prepared, keep=keep)


def prepare_optimized(
    device: str, kernel: Kernel, start: float | None = None, passes: Sequence[Pass] = PASSES
) -> LoweredKernel:
    """Lowers `kernel` with its current opts."""
    start = time.perf_counter() if start is None else start
    recipe = LoweringRecipe.of(device, kernel, passes)
    spec = recipe.stored(render_kernel(device, kernel, passes))
    flops, moved_bytes = flop_count(kernel.original), bytes_moved(kernel.original)
    operations = flop_count(kernel.original, multiplications_in)
    return LoweredKernel(
        device, kernel.ast, recipe.kernel, spec, flops, moved_bytes, operations, time.perf_counter() - start
    )


def compile_optimized(device: str, kernel: Kernel, passes: Sequence[Pass] = PASSES) -> Runner:
    """Returns a Runner of `kernel` with its current opts. No cache stores it."""
    return prepare_optimized(device, kernel, passes=passes).compiled()


def compile_given(device: str, kernel: Kernel, uops: Sequence[UOp]) -> Runner:
    """Returns a Runner of a given linear program for `kernel`."""
    spec: ProgramSpec = Device[device].renderer.render(kernel.name, tuple(uops))
    return LoweredKernel(device, kernel.ast, lambda: kernel, spec, 0, 0, 0, 0.0).compiled()


def _without_recorder(settings: Config, work: Callable[[], R]) -> R:
    """Calls `work` under `settings`, without a recorder, and returns its result.

    It does not copy the context, because that would keep what a TinyJit captures alive.
    """

    def under_settings() -> R:
        with Context(**dict(zip(Config.__dataclass_fields__, settings.values))):
            return work()

    return contextvars.Context().run(under_settings)


def further_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Returns listings for display: the program as C, and the listings that the device can show of it.

    For a GPU's program also its assembly, if LLVM supports the GPU, and the other GPU languages. A recording does not
    include these listings; they are made when the recording is shown.
    """
    interface = Device.device_for(spec.target)
    if spec.target.has_local:
        return [*assembly_listings(spec), *in_other_languages(spec)]
    listings = [(language, lines) for language, lines in interface.listings(spec) if language != spec.language]
    if "c" not in (spec.language, *(language for language, _ in listings)):
        listings.insert(0, ("c", CRenderer(spec.target).render(spec.name, spec.uops).lines))
    return listings


def compile_program(device: str, spec: ProgramSpec) -> CompiledProgram:
    """Returns the machine code of `spec`: compiled now, or reused if it is referenced, because equal content exists
    once.

    Drops its text if that can be rebuilt.
    """
    key = (device, spec.key)
    start = time.perf_counter()
    program = _programs.get(key)
    cached = program is not None
    if program is None:
        program = _programs[key] = Device[device].compile(spec)
    if isinstance(spec, StoredSpec):
        spec.forget_text()
    recorder = active_recorder()
    if recorder is not None:
        recorder.record(ProgramCompiled(spec, time.perf_counter() - start, cached, program.code_bytes))
    return program
