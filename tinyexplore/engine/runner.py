"""Runner: one compiled kernel, ready for any buffers; and the pool of threads that its THREAD axis is divided among."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from tinyexplore.codegen import bytes_moved, flop_count, lower
from tinyexplore.device import Buffer, CompiledProgram, Device, DeviceInterface
from tinyexplore.kernel import Kernel, hand_coded
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import core_count
from tinyexplore.trace import (
    Compiled,
    Ran,
    Recorder,
    Rendered,
    SourceLine,
    StageBegan,
    StageEnded,
    active_recorder,
    staged,
)
from tinyexplore.uop import UOp
from tinyexplore.util import config


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


@dataclass(eq=False)
class ExecItem:
    """A runner (None: a copy between devices) and its buffers. `kernel`: its number in the recording, if any."""

    item: ScheduleItem
    runner: Runner | None
    kernel: int | None
    buffers: tuple[Buffer, ...]
    bound: Callable[[int, int], None] | None = field(default=None, repr=False)

    def run(self) -> None:
        """Once, on all its threads; told as `Ran` where a recorder listens."""
        recorder = active_recorder()
        start = time.perf_counter()
        self.execute()
        if recorder is not None:
            flops = self.runner.flops if self.runner is not None else 0
            moved = self.runner.bytes_moved if self.runner is not None else 2 * self.buffers[0].nbytes
            recorder.record(Ran(self, time.perf_counter() - start, moved, flops))

    def execute(self) -> None:
        if self.runner is None:
            to, source = self.buffers
            to.allocate().copyin(source.memoryview())
            return
        if self.bound is None:
            self.bound = self.runner.program.bind(self.buffers)
        run_divided(self.bound, self.runner.spec.thread_extent)

    def measure(self, repeat: int) -> list[float]:
        """Seconds of each of `repeat` further runs (a kernel writes the same again)."""
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            self.execute()
            seconds.append(time.perf_counter() - start)
        return seconds


# *** threads ***

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def thread_count() -> int:
    """Threads that one kernel may use: `THREADS`, or one per core."""
    return config().THREADS or core_count()


def _pool(workers: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="tinyexplore")
        return _pools[workers]


def run_divided(bound: Callable[[int, int], None], extent: int | None) -> None:
    """`bound` over 0 … extent in equal parts, one for each thread; which part is whose never varies."""
    if extent is None:
        bound(0, 1)
        return
    parts = min(thread_count(), extent)
    if parts <= 1:
        bound(0, extent)
        return
    edges = [extent * part // parts for part in range(parts + 1)]
    pool = _pool(parts - 1)
    waiting: list[Future[None]] = [pool.submit(bound, edges[part], edges[part + 1]) for part in range(1, parts)]
    bound(edges[0], edges[1])
    for future in waiting:
        future.result()


# *** compiling ***

_runners: dict[tuple[str, UOp, int, int, int], Runner] = {}
_programs: dict[tuple[str, str], CompiledProgram] = {}


def compile_item(item: ScheduleItem) -> ExecItem:
    """The ExecItem of a ScheduleItem: compiled now, or found among the kernels compiled before."""
    if item.ast is None:
        return ExecItem(item, None, None, item.buffers)
    settings = config()
    key = (item.device, item.ast, settings.NOOPT, settings.BEAM, thread_count())
    recorder = active_recorder()
    if recorder is not None:
        return _compile_told(item, key, recorder)
    runner = _runners.get(key)
    if runner is None:
        runner = _runners[key] = compile_kernel(item.device, item.ast)
    return ExecItem(item, runner, None, item.buffers)


def _compile_told(item: ScheduleItem, key: tuple[str, UOp, int, int, int], recorder: Recorder) -> ExecItem:
    """A recording wants to see every stage: each kernel is lowered anew, once per recording."""
    number = recorder.next_kernel()
    assert item.ast is not None
    recorder.record(StageBegan("kernel", item, number))
    start = time.perf_counter()
    try:
        runner = recorder.kernels.get(key)
        if runner is None:
            runner = recorder.kernels[key] = _runners[key] = compile_kernel(item.device, item.ast)
    finally:
        recorder.record(StageEnded("kernel", item.ast, time.perf_counter() - start))
    return ExecItem(item, runner, number, item.buffers)


def compile_kernel(device: str, ast: UOp) -> Runner:
    """From an ast to a Runner: choose opts, lower, render, compile."""
    start = time.perf_counter()
    interface = Device[device]
    kernel = Kernel.of(ast, interface.target)
    if not config().NOOPT:
        kernel = staged("optimise", ast, lambda: hand_coded(kernel))
    return compile_optimised(device, kernel, start)


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
    if recorder is not None:
        for language, lines in staged("list", kernel.ast, lambda: further_listings(interface, spec)):
            recorder.record(Rendered(spec, language, lines))
    flops, moved = flop_count(kernel.original), bytes_moved(kernel.original)
    return Runner(device, kernel, spec, program, flops, moved, time.perf_counter() - start)


def further_listings(interface: DeviceInterface, spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """For display: the program as C, whatever the device's own language is, and what the device can show of it."""
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


def execute_all(items: Sequence[ScheduleItem]) -> None:
    """Every item in order, each compiled when its turn comes; a buffer is let go after its last reader."""
    remaining = list(reversed(items))
    while remaining:
        item = remaining.pop()
        compile_item(item).run()
        for node, buffer in zip(item.outputs, item.buffers):
            node.buffer = buffer
            node.src = ()
