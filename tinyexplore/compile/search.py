"""BEAM: chooses opts by measurement, in worker processes or on any executor. The disk cache stores the results."""

from __future__ import annotations

import concurrent.futures
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from typing import Any, Protocol

from tinyexplore.compile.search_worker import machine_of, request_of
from tinyexplore.compile.workers import ask_worker, dismiss
from tinyexplore.device import Device
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, apply_opt
from tinyexplore.kernel.search import CandidateTime, SearchResult, beam_search, find_replayed
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.runtime.disk_cache import find, keep
from tinyexplore.target import core_count
from tinyexplore.trace import (
    CandidateMeasured,
    Event,
    Recorder,
    SearchEnded,
    SearchProgress,
    active_recorder,
    progress_recorder,
    recording,
)
from tinyexplore.uop import Ops
from tinyexplore.uop.serialization import to_plain
from tinyexplore.util import config
from tinyexplore.util.locks import can_start_threads
from tinyexplore.util.workers import ImmediateExecutor

# the time limit of one compilation, in seconds, on a machine that also runs other programs
COMPILE_LIMIT_S = 60.0
RUN_LIMIT_S = 20.0  # the time limit of a run is these seconds plus 50 times the time of the best candidate
QUEUE_LIMIT_S = 60.0  # an executor may delay a candidate by these seconds
FORMAT = 1  # version of the entries on disk


class Executor(Protocol):
    """Runs the measurements of a search: a `concurrent.futures` executor, or a cluster's equivalent of one."""

    def submit(self, function: Any, /, *arguments: Any) -> Any:
        """Returns a future of `function(*arguments)`: it has `result(timeout)` and `cancel()`."""
        ...


_executor: ContextVar[Executor | None] = ContextVar("tinyexplore_executor", default=None)


@contextmanager
def measuring_on(executor: Executor | None) -> Iterator[None]:
    """Lets searches (BEAM) inside the block compile and run their candidates through `executor` (None: this process).

    The executor must run functions of this package: threads or processes of this machine, or the workers of a cluster
    of machines like this one. A worker on another kind of machine loses its candidates, and reports that.
    """
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def search_opts(device: str, kernel: Kernel, width: int) -> Kernel:
    """Returns `kernel` with the opts that a beam of `width` finds fastest. The default schedule is the baseline.

    The result is stored on disk (except with `CACHELEVEL=0`), under the kernel, the machine, the compiler, the width
    and the seed. A stored result is recorded like a new one.
    """
    if any(node.op is Ops.DEFINE_VAR for node in kernel.nodes):
        return keep_heuristics(kernel, "its sizes are known only when it runs")
    if refusal := refusal_of(device):
        return keep_heuristics(kernel, refusal)
    try:
        to_plain([kernel.ast])
    except TypeError as error:
        return keep_heuristics(kernel, str(error))
    with recording(None):
        starts = (apply_heuristics(kernel), with_merged_axes(with_split_axes(kernel)))
    key = search_key(device, starts, width)
    result = find_stored(key, starts)
    if result is None:
        result = search(device, starts, width, key)
    return record_again(kernel, starts, result)


def refusal_of(device: str) -> str:
    """Returns the reason why this machine cannot run candidates for the current TARGET, or ""."""
    return "" if _executor.get() is not None else Device[device].refusal


def search(device: str, starts: Sequence[Kernel], width: int, key: str) -> SearchResult:
    """Runs a new search. Stores it under `key` if anything could be measured and the measuring process did not end
    early."""
    recorder = SearchRecorder(active_recorder())
    with CandidateTimer(device, starts[0]) as timer, recording(recorder):
        result = beam_search(starts, width, timer, config().BEAM_SEED)
        if timer.progress is not None:
            timer.progress.record(recorder.log[-1].event)
    if not (result.why_lost or timer.gone):
        keep(key, as_bytes(result, recorder.events, starts))
    return result


def keep_heuristics(kernel: Kernel, reason: str) -> Kernel:
    """Returns the result of the heuristics, and records the reason why nothing was measured."""
    kernel_of_heuristics = apply_heuristics(kernel)
    recorder = active_recorder()
    if recorder is not None:
        result = SearchResult(kernel_of_heuristics, math.inf, math.inf, 0, why_lost=reason)
        recorder.record(SearchEnded(kernel_of_heuristics, kernel_of_heuristics, math.inf, math.inf, 0, result.reason))
    return kernel_of_heuristics


def record_again(kernel: Kernel, starts: Sequence[Kernel], result: SearchResult) -> Kernel:
    """Returns the kernel of the result, rebuilt opt by opt, so that each opt is recorded."""
    if result.kernel.ast is starts[0].ast:
        return apply_heuristics(kernel)
    step = with_merged_axes(with_split_axes(kernel))
    if step.ast is not result.kernel.start:
        return result.kernel
    for number, opt in enumerate(result.kernel.applied):
        step = apply_opt(step, opt, result.source if number == 0 else "")
    return step


def default_executor() -> concurrent.futures.Executor:
    """Returns threads that wait for this process's workers, or the calling thread if no thread can start."""
    return concurrent.futures.ThreadPoolExecutor(core_count()) if can_start_threads() else ImmediateExecutor()


class SearchRecorder(Recorder):
    """Stores the events of a search, and passes them on."""

    def __init__(self, outer: Recorder | None) -> None:
        super().__init__()
        self.outer = outer

    def record(self, event: Event) -> None:
        super().record(event)
        if self.outer is not None:
            self.outer.record(event)


class CandidateTimer:
    """The clock of one search. It compiles candidates in parallel, and times each different program once.

    Without an executor, threads of this process wait for its workers, and candidates are timed one after the other,
    each against the best so far. With an executor, all candidates of a round are submitted at the same time.
    """

    def __init__(self, device: str, start: Kernel) -> None:
        self.device = device
        self.start = start
        executor = _executor.get()
        self.own = default_executor() if executor is None else None
        self.executor: Any = executor or self.own
        self.programs: dict[str, tuple[Kernel, CandidateTime]] = {}
        self.progress = progress_recorder()
        self.gone = ""

    def __enter__(self) -> CandidateTimer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self.own is not None:
            self.own.shutdown(wait=kind is None, cancel_futures=True)
        if kind is None:
            return
        if self.own is not None:
            dismiss()  # interrupted: no work continues in the background
        if self.progress is not None:
            count = len(self.programs)
            self.progress.record(SearchEnded(self.start, self.start, math.inf, math.inf, count, "interrupted"))

    # *** the interface of a search ***

    def time_candidates(self, kernels: Sequence[Kernel], best: float) -> Iterator[CandidateTime]:
        """Implements `kernel.search.Clock`."""
        compiled: list[dict[str, Any]] = []
        futures = [self.submit("compile", kernel, COMPILE_LIMIT_S) for kernel in kernels]
        for future in futures:
            self.show(len(compiled), 0, len(kernels), best)
            compiled.append(self.reply(future, COMPILE_LIMIT_S))
        waiting: dict[str, Any] = {}
        if self.own is None:
            for kernel, reply in zip(kernels, compiled):
                if "program" in reply and reply["program"] not in {*self.programs, *waiting}:
                    waiting[reply["program"]] = self.submit_timing(kernel, best)
        for number, (kernel, reply) in enumerate(zip(kernels, compiled)):
            self.show(len(kernels), number, len(kernels), best)
            timing = self.timing(kernel, reply, best, waiting)
            best = min(best, timing.seconds)
            yield timing
        self.show(len(kernels), len(kernels), len(kernels), best)

    def compare_two(self, first: Kernel, second: Kernel) -> tuple[float, float]:
        """Implements `kernel.search.Clock`. If the duel cannot take place, returns the earlier times."""
        limit = run_limit(self.time_of(first))
        reply = self.reply(self.submit("duel", first, limit, second), limit)
        if "lost" in reply:
            return self.time_of(first), self.time_of(second)
        first_seconds, second_seconds = reply["seconds"]
        return float(first_seconds), float(second_seconds)

    # *** implementation ***

    def timing(self, kernel: Kernel, compiled: dict[str, Any], best: float, waiting: dict[str, Any]) -> CandidateTime:
        """Returns the time of one candidate, given the result of compiling it. `waiting`: timings that were
        submitted."""
        if "lost" in compiled:
            return CandidateTime(math.inf, compiled["lost"])
        program = compiled["program"]
        if program in self.programs:
            equal_kernel, timing = self.programs[program]
            opts = ", ".join(map(str, equal_kernel.applied)) or "no opts"
            return CandidateTime(timing.seconds, f"the same program as {opts}")
        future = waiting.get(program) or self.submit_timing(kernel, best)
        reply = self.reply(future, run_limit(best))
        if "lost" in reply:
            timing = CandidateTime(math.inf, reply["lost"])
        else:
            timing = CandidateTime(float(reply["seconds"]), reply["note"], reply["disturbed"])
        self.programs[program] = (kernel, timing)
        return timing

    def time_of(self, kernel: Kernel) -> float:
        return next((timing.seconds for timed, timing in self.programs.values() if timed.ast is kernel.ast), math.inf)

    def submit_timing(self, kernel: Kernel, best: float) -> Any:
        limit = None if math.isinf(best) else best
        return self.submit("time", kernel, run_limit(best), self.start, limit=limit)

    def submit(self, do: str, kernel: Kernel, limit_s: float, *further_kernels: Kernel, **fields: Any) -> Any:
        """Submits a request. Returns a future of the response, for `reply`."""
        if self.gone:
            return concurrent.futures.Future()
        request = request_of(do, kernel, self.device, *further_kernels, **fields)
        try:
            return self.executor.submit(ask_worker, request, kernel.ast.digest, limit_s)
        except Exception as error:  # the pool is broken, or the client is closed
            self.gone = f"the executor takes no work: {type(error).__name__}: {error}"
            return concurrent.futures.Future()

    def reply(self, future: Any, limit_s: float) -> dict[str, Any]:
        """Returns the reply of a worker; {"lost": why} if the executor has no reply."""
        if self.gone:
            future.cancel()
            return {"lost": self.gone}
        patience = limit_s + QUEUE_LIMIT_S
        try:
            response: dict[str, Any] = json.loads(future.result(patience))
            if not response.keys() & {"lost", "program", "seconds"}:
                raise ValueError(f"unexpected response of a worker: {response}")
            return response
        except (TimeoutError, concurrent.futures.TimeoutError):
            future.cancel()
            self.gone = f"the executor gave no answer within {patience:.0f} s"
            return {"lost": self.gone}
        except Exception as error:
            return {"lost": f"{type(error).__name__}: {error}"}

    def show(self, compiled: int, measured: int, candidates: int, best: float) -> None:
        if self.progress is not None:
            self.progress.record(SearchProgress(self.start, compiled, measured, candidates, best))


def run_limit(best: float) -> float:
    """Returns the time limit, in seconds, to compile, check and time a candidate."""
    return COMPILE_LIMIT_S + RUN_LIMIT_S + (0.0 if math.isinf(best) else 50 * best)


# *** on disk ***


def search_key(device: str, starts: Sequence[Kernel], width: int) -> str:
    """Returns the cache key of a search: equal if kernel, machine, compiler, version, width and seed are equal."""
    settings = config()
    key_parts = [FORMAT, _package_version(), device, machine_of(device), width, settings.BEAM_SEED, settings.THREADS]
    key_parts.append(to_plain([starts[0].original, *(start.ast for start in starts)]))
    return blake2b(json.dumps(key_parts).encode(), digest_size=20).hexdigest()


@cache
def _package_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (start-up: it loads a parser of mail)

    try:
        return version("tinyexplore")
    except PackageNotFoundError:  # a checkout that is not installed; the kernels in the key still reflect most changes
        return ""


def as_bytes(result: SearchResult, events: Sequence[Event], starts: Sequence[Kernel]) -> bytes:
    """Returns the cache entry of a search: the choice and every candidate, each as its start and its opts."""

    def candidate_fields(kernel: Kernel) -> list[Any]:
        start = next(number for number, start in enumerate(starts) if start.start is kernel.start)
        return [start, [[opt.op.name, opt.axis, opt.amount] for opt in kernel.applied]]

    measured = [
        [*candidate_fields(event.kernel), None if math.isinf(event.seconds) else event.seconds, event.note]
        for event in events
        if isinstance(event, CandidateMeasured)
    ]
    choice = [*candidate_fields(result.kernel), result.seconds, result.start_seconds, result.tried, result.disturbed]
    return json.dumps({"chosen": choice, "measured": measured}).encode()


def find_stored(key: str, starts: Sequence[Kernel]) -> SearchResult | None:
    """Returns the outcome of an earlier search, and records its candidates again; None if there is none."""
    content = find(key)
    if content is None:
        return None
    data = json.loads(content)

    def kernel(start: int, opts: list[Any]) -> Kernel | None:
        return find_replayed(starts[start], [Opt(OptOps[op], axis, amount) for op, axis, amount in opts])

    with recording(None):
        start, opts, *outcome = data["chosen"]
        chosen_kernel = kernel(start, opts)
    if chosen_kernel is None:
        return None
    result = SearchResult(chosen_kernel, *outcome)
    recorder = active_recorder()
    if recorder is not None:
        for start, opts, seconds, note in data["measured"]:
            with recording(None):
                candidate = kernel(start, opts)
            if candidate is not None:
                recorder.record(CandidateMeasured(candidate, math.inf if seconds is None else seconds, note))
        reason = f"{result.reason} (found by an earlier search)"
        recorder.record(
            SearchEnded(starts[0], chosen_kernel, result.start_seconds, result.seconds, result.tried, reason)
        )
    return result


__all__ = ["CandidateTimer", "Executor", "measuring_on", "search_opts"]
