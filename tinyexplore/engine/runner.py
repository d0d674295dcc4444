"""ExecItems: what a schedule becomes, kernels compiled once and run on their buffers."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any
from weakref import WeakSet, ref

from tinyexplore.device import Buffer, Device
from tinyexplore.engine.compile import Runner, compile_optimised, compiling_ahead, compiling_aside, prepare
from tinyexplore.engine.lowered import is_as_written
from tinyexplore.engine.search import searched
from tinyexplore.engine.threads import thread_count
from tinyexplore.kernel import Kernel, hand_coded
from tinyexplore.lazy import LazyBuffer, Since, note_since
from tinyexplore.schedule import ScheduleItem
from tinyexplore.trace import Ran, Recorder, StageBegan, StageEnded, active_recorder, staged
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import sint, value_of
from tinyexplore.util import GlobalCounters, config
from tinyexplore.util.interpreter import collect_now, collecting_later

LEAST_ROOM_BYTES = 256 << 10  # of a result that is worth it
MOST_ROOM_BYTES = 8 << 20  # of several together: some may never be wanted
STEP_BYTES = 1 << 20  # a tenth of a millisecond


@dataclass(eq=False)
class ExecItem:
    """A runner (None: a copy between devices) and its buffers. `kernel`: its number in the recording, if any.
    `values`: those of the kernel's Variables."""

    item: ScheduleItem
    runner: Runner | None
    kernel: int | None
    buffers: tuple[Buffer, ...]
    bound: Callable[[int, int], None] | None = field(default=None, repr=False)
    values: tuple[int, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "bound": None}  # addresses mean something in this process only

    def run(self) -> None:
        """Once, on all its threads; told as `Ran` where a recorder listens."""
        start = time.perf_counter()
        self.execute()
        seconds = time.perf_counter() - start
        GlobalCounters.add(1, self.flops, self.bytes_moved, seconds)
        recorder = active_recorder()
        if recorder is not None:
            recorder.record(Ran(self, seconds, self.bytes_moved, self.flops))

    @property
    def flops(self) -> int:
        return 0 if self.runner is None else self._now(self.runner.flops)

    @property
    def bytes_moved(self) -> int:
        return 2 * self.buffers[0].nbytes if self.runner is None else self._now(self.runner.bytes_moved)

    def _now(self, cost: sint) -> int:
        return value_of(cost, dict(zip(self.item.variables, self.values)))

    def execute(self) -> None:
        if self.runner is None:
            to, source = self.buffers
            to.allocate().copyin(source.memoryview())
            return
        if self.bound is None:
            self.bound = self.runner.program.bind(self.buffers, self.values)
        self.runner.run(self.bound, self.values)

    def measure(self, repeat: int) -> list[float]:
        """Seconds of each of `repeat` further runs (a kernel writes the same again)."""
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            self.execute()
            seconds.append(time.perf_counter() - start)
        return seconds


# *** compiling ***

RunnerKey = tuple[str, UOp, tuple[int, ...], int]
_runners: dict[RunnerKey, Runner] = {}


def _runner_key(item: ScheduleItem) -> RunnerKey:
    assert item.ast is not None
    settings = config()
    chosen = (settings.NOOPT, settings.BEAM, settings.BEAM_SEED, settings.TC, settings.TC_OPT, settings.TRANSCENDENTAL)
    device = item.device.partition(":")[0]  # further instances of a device have its programs
    return device, item.ast, chosen, thread_count()


Ahead = dict[RunnerKey, Callable[[Recorder], Runner]]  # what was compiled before its turn, and tells of it then


def compile_item(item: ScheduleItem, ahead: Ahead | None = None) -> ExecItem:
    """The ExecItem of a ScheduleItem: compiled now, or found among the kernels compiled before."""
    if item.ast is None:
        return ExecItem(item, None, None, item.buffers)
    values = item.arguments(item.bound)
    key = _runner_key(item)
    recorder = active_recorder()
    if recorder is not None:
        return _compile_told(item, values, key, recorder, ahead or {})
    runner = _runners.get(key)
    if runner is None:
        runner = _runners[key] = compile_kernel(key[0], item.ast)
    return ExecItem(item, runner, None, item.buffers, values=values)


def compile_all(items: Sequence[ScheduleItem]) -> list[Runner | None]:
    """The runners of `items` (None for copies). What is to be compiled is compiled while the next is lowered."""
    keys = [None if item.ast is None else _runner_key(item) for item in items]
    missing = dict.fromkeys(key for key in keys if key is not None and key not in _runners)
    if config().BEAM:  # a search wants a quiet machine for its measurements
        for key in missing:
            _runners[key] = compile_kernel(key[0], key[1])
    elif missing:
        may_keep = cache(is_as_written)  # once for all of them
        with compiling_ahead() as ahead, collecting_later():
            waiting = {}
            keeping = []
            last = next(reversed(missing))
            for key in missing:
                prepared = prepare(key[0], key[1], partial(choose_opts, key[0], key[1]), may_keep=may_keep)
                if prepared.keep is None and len(missing) == 1:
                    waiting[key] = prepared.compiled  # nothing to be done meanwhile
                    continue
                waiting[key] = ahead.compile_later(prepared, is_last=key is last and prepared.keep is not None)
                if prepared.keep is not None:
                    keeping.append(prepared.keep)
            ahead.meanwhile([*keeping, collect_now, partial(make_room, items, ahead.is_compiling)] if keeping else [])
            _runners.update({key: finish() for key, finish in waiting.items()})
    return [None if key is None else _runners[key] for key in keys]


def make_room(items: Sequence[ScheduleItem], may_go_on: Callable[[], bool]) -> None:
    """Has the system clear pages for what `items` fill, while `may_go_on()`: their allocators have that memory in stock
    then. For 2 MiB it takes a tenth of a millisecond, in which all threads of a first run would wait."""
    kernels = [item for item in items if item.ast is not None]
    results = [buffer for item in kernels for buffer in item.buffers[: len(item.outputs)] if not buffer.is_allocated]
    left = results[0].nbytes if len(results) == 1 else MOST_ROOM_BYTES
    for device, nbytes in dict.fromkeys((buffer.device, buffer.nbytes) for buffer in results):
        if LEAST_ROOM_BYTES <= nbytes <= left:
            left -= nbytes
            with suppress(MemoryError):  # which is told where it is missed
                memory = Device.allocator(device).allocate(nbytes)
                for start in range(0, nbytes, STEP_BYTES):
                    if not may_go_on():
                        return
                    ctypes.memset(memory.address + start, 0, min(STEP_BYTES, nbytes - start))


def _compile_told(
    item: ScheduleItem, values: tuple[int, ...], key: RunnerKey, recorder: Recorder, ahead: Ahead
) -> ExecItem:
    """A recording wants to see every stage: each kernel is lowered anew, once per recording."""
    number = recorder.next_kernel()
    assert item.ast is not None
    recorder.record(StageBegan("kernel", item, number))
    start = recorder.now()
    try:
        runner = recorder.kernels.get(key)
        if runner is None:
            tell = ahead.pop(key, None)
            runner = compile_kernel(key[0], item.ast) if tell is None else tell(recorder)
            recorder.kernels[key] = _runners[key] = runner
    finally:
        recorder.record(StageEnded("kernel", item.ast, recorder.now() - start))
    return ExecItem(item, runner, number, item.buffers, values=values)


def _compile_ahead(items: Sequence[ScheduleItem], recorder: Recorder) -> Ahead:
    """What a recording of `items` is going to compile, each kernel compiled while the next is lowered.

    The recorder hears of each when its turn comes, as if that were the time. So runs are timed on a quiet machine.
    """
    keys = [_runner_key(item) for item in items if item.ast is not None]
    missing = [key for key in dict.fromkeys(keys) if key not in recorder.kernels]
    ahead: Ahead = {}
    if len(missing) < 2 or config().BEAM:  # there is nothing to do meanwhile, or the machine is to be quiet
        return ahead
    with recorder.pausing(), collecting_later(), compiling_aside() as compile_later:
        for key in missing:
            try:
                ahead[key] = compile_later(key[0], partial(choose_opts, key[0], key[1]))
            except Exception:  # its turn comes, and what went wrong is told then
                break
    return ahead


def compile_kernel(device: str, ast: UOp) -> Runner:
    """From an ast to a Runner: choose opts, lower, render, compile."""
    if active_recorder() is None:
        return prepare(device, ast, partial(choose_opts, device, ast), may_keep=is_as_written).compiled()
    start = time.perf_counter()
    # a recorder keeps every node, and each search for garbage would look through all of them; measuring takes its time
    with nullcontext() if config().BEAM else collecting_later():
        return compile_optimised(device, choose_opts(device, ast), start)


def choose_opts(device: str, ast: UOp) -> Kernel:
    """The kernel of `ast` with the opts that it is to have: measured, by the heuristics, or none."""
    kernel = Kernel.of(ast, Device[device].target)
    settings = config()
    if settings.NOOPT:
        return kernel
    if settings.BEAM:
        return staged("optimise", ast, lambda: searched(device, kernel, settings.BEAM))
    return staged("optimise", ast, lambda: hand_coded(kernel))


# *** capturing ***


@dataclass(eq=False)
class Capture:
    """What was run while it was listening: the ExecItems in order, and every LazyBuffer that they computed or read.

    `owners`: which LazyBuffer's value lies in a buffer that was written. Neither is kept alive: a buffer whose owner
    is gone is nobody's, and may be used for something else as soon as its last reader ran. given: buffers that belong
    to the capture alone, by one value each: parts of them may be written in place.
    """

    items: list[ExecItem] = field(default_factory=list)
    used: WeakSet[LazyBuffer] = field(default_factory=WeakSet)
    owners: dict[Buffer, ref[LazyBuffer]] = field(default_factory=dict)
    given: set[Buffer] = field(default_factory=set)

    def may_overwrite(self, buffer: Buffer) -> bool:
        """True for memory that nothing but this capture uses: written in it, or given to it."""
        return buffer in self.owners or buffer in self.given

    def owned(self) -> list[Buffer]:
        """The buffers written whose values somebody still holds."""
        return [buffer for buffer, owner in self.owners.items() if owner() is not None]

    def add(self, done: ExecItem) -> None:
        """Keeps `done`, without the graph that it came from."""
        for node in done.item.members:
            self.used.add(node)
            self.used.update(node.src)
        for node, buffer in zip(done.item.outputs, done.buffers):
            self.owners[buffer] = ref(node)
        item = replace(done.item, outputs=(), members=(), values=(), reads=())
        self.items.append(ExecItem(item, done.runner, None, done.buffers, done.bound, done.values))


_capture: ContextVar[Capture | None] = ContextVar("tinyexplore_capture", default=None)


def capture_variable() -> ContextVar[Capture | None]:
    """Where `active_capture` looks."""
    return _capture


def active_capture() -> Capture | None:
    """The capture listening here, or None."""
    return _capture.get()


@contextmanager
def capturing(capture: Capture | None) -> Iterator[Capture | None]:
    """What runs inside the block is added to `capture` (None: an outer one is left out)."""
    token = _capture.set(capture)
    try:
        yield capture
    finally:
        _capture.reset(token)


# *** running ***


def execute_all(items: Sequence[ScheduleItem], since: Since | None = None) -> None:
    """Every item in order. In a recording, each is told as compiled when its turn comes. `since`: how old what they
    read is, where that is known.

    A list is emptied on the way, so that what nobody else holds is let go after its last reader: memory of the
    intermediates serves those that come later.
    """
    recorder = active_recorder()
    ahead: Ahead = {}
    if recorder is None:
        compile_all(items)
    else:
        ahead = _compile_ahead(items, recorder)
    waiting = items if isinstance(items, list) else list(items)
    waiting.reverse()
    while waiting:
        _execute(waiting.pop(), ahead, since)


def _execute(item: ScheduleItem, ahead: Ahead, since: Since | None) -> None:
    compiled = compile_item(item, ahead)
    compiled.run()
    capture = active_capture()
    if capture is not None:
        capture.add(compiled)
    for node, buffer in zip(item.outputs, item.buffers):
        node.buffer = buffer
        node.src = ()
        if since is not None:
            note_since(node, since)
