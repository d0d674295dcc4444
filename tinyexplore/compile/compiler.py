"""Compiles a schedule to ExecItems: each kernel comes from the cache, or is optimized, lowered and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count

from tinyexplore.compile.lowering import prepare
from tinyexplore.compile.program_cache import find_facts, is_as_written, lowering_key
from tinyexplore.compile.reuse import ReuseScope, current_cache_scope
from tinyexplore.compile.runner_cache import RunnerKey, runners
from tinyexplore.compile.search import search_opts
from tinyexplore.compile.threads import CompilerThreads
from tinyexplore.device import Device
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.threads import thread_count
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import NATIVE
from tinyexplore.trace import CacheHit, NativeFallback, active_recorder, record_stage, recording, stage
from tinyexplore.uop import UOp
from tinyexplore.util import Context, config


def runner_key(item: ScheduleItem) -> RunnerKey:
    assert item.ast is not None
    settings = config()
    opts = (settings.NOOPT, settings.BEAM, settings.BEAM_SEED, settings.TC, settings.TC_OPT, settings.ALLOW_TF32)
    device = Device.runs_programs_of(item.device)
    return device, item.ast, (settings.TARGET, settings.TRANSCENDENTAL, *opts), thread_count()


_numbers = count()


def compile_many(items: Sequence[ScheduleItem]) -> list[ExecItem]:
    """Returns an ExecItem for each of `items`. Its kernel is compiled now or comes from the cache.

    Other threads compile kernels while this one lowers the next. A search (BEAM) has the machine to itself.
    """
    scope, is_searching = current_cache_scope(), config().BEAM > 0
    may_reuse = cache(is_as_written) if scope.plans is not None else lambda: False  # evaluated once for all items
    ready: list[ExecItem] = []
    waiting: dict[RunnerKey, Callable[[], Runner]] = {}
    keeping: list[Callable[[], None]] = []
    keys = [None if item.ast is None else runner_key(item) for item in items]
    cached = {key: runner for key in dict.fromkeys(keys) if key and (runner := scope.kernels.find(key)) is not None}
    missing = {key for key in keys if key and key not in cached}
    at_once = is_searching or len(missing) < 2
    with CompilerThreads(at_once=at_once) as compilers:
        for item, key in zip(items, keys):
            number = next(_numbers)
            ready.append(ExecItem(item, None, number, item.buffers, values=item.arguments(item.bound)))
            if key is None:
                continue
            with stage("kernel", item, number, item.ast):
                if key in cached or key in waiting:
                    continue
                record_known(number, key, scope)
                prepared = prepare(key[0], key[1], partial(choose_opts, key[0], key[1]), may_reuse)
                waiting[key] = compilers.submit(partial(prepared.compiled, number))
                if prepared.keep is not None:
                    keeping.append(prepared.keep)
        for keep in keeping:
            keep()
    for key, finish in waiting.items():
        cached[key] = finish()
        scope.kernels.keep(key, cached[key])
    for exec_item, key in zip(ready, keys):
        exec_item.runner = cached[key] if key is not None else None
    return ready


def record_known(number: int, key: RunnerKey, scope: ReuseScope) -> None:
    """Records whether the cache would have had the kernel, if a recorder is attached to a step-by-step run."""
    if (recorder := active_recorder()) and scope.plans is None:
        lowering = lowering_key(key[0], key[1])
        if runners.find(key) is not None:
            recorder.record(CacheHit(number, "in this process"))
        elif lowering is not None and find_facts(lowering) is not None:
            recorder.record(CacheHit(number, "on disk"))


def compile_item(item: ScheduleItem) -> ExecItem:
    """Compiles one item like `compile_many`."""
    (runner,) = compile_many([item])
    return runner


def run_item(item: ExecItem) -> ExecItem:
    """Runs `item` and returns the ExecItem that ran.

    If this machine cannot execute its program and native code may replace it, runs that and records the reason.
    """
    refusal = "" if item.runner is None else item.runner.program.refusal
    if not refusal or not current_cache_scope().stands_in:
        item.run()
        return item
    with recording(None), Context(TARGET=NATIVE, BEAM=0):
        native = compile_item(item.item)
        native.execute()
    if recorder := active_recorder():
        recorder.record_gone()
        recorder.record(NativeFallback(item, refusal))
    return native


def choose_opts(device: str, ast: UOp) -> Kernel:
    """Returns the kernel of `ast` with its opts: from a search, from the heuristics, or none."""
    kernel = Kernel.of(ast, Device[device].target)
    settings = config()
    if settings.NOOPT:
        return kernel
    if settings.BEAM:
        return record_stage("optimize", ast, lambda: search_opts(device, kernel, settings.BEAM))
    return record_stage("optimize", ast, lambda: apply_heuristics(kernel))


__all__ = ["choose_opts", "compile_item", "compile_many", "run_item"]
