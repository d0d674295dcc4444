"""BEAM: candidates in worker processes that may crash, on any executor, with results on disk."""

from __future__ import annotations

import concurrent.futures
import json
import math
import multiprocessing
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, numbers, to_numpy
from tests.support.kernels import kernel_of
from tests.support.patience import seconds
from tinyexplore import Tensor, Variable
from tinyexplore.compile import search, search_worker, workers
from tinyexplore.compile.search_worker import (
    CandidateError,
    SearchWorker,
    compiling_lock,
    differ,
    request_of,
    sample_elements,
    timing_lock,
)
from tinyexplore.compile.search_worker import numbers as numbers_of
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.engine import measuring_on
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, apply_opt
from tinyexplore.kernel import search as beam
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.trace import CandidateMeasured, Recorder, SearchEnded, recording
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.util import Context


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Few candidates, and a cache of their own."""
    monkeypatch.setattr(beam, "PER_ROUND", 5)
    monkeypatch.setattr(beam, "MAX_ROUNDS", 2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


class Events(Recorder):
    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def small_matmul(m: int = 24, k: int = 33, n: int = 40) -> tuple[Kernel, np.ndarray]:
    a, b = numbers(m, k), numbers(k, n, seed=1)
    return kernel_of(matmul(from_numpy(a), from_numpy(b)), Device["LLVM"].target), a @ b


def searched(kernel: Kernel, width: int = 1) -> tuple[Kernel, Events]:
    events = Events()
    with recording(events):
        found = search.search_opts("LLVM", kernel, width)
    return found, events


def is_kept(kernel: Kernel, width: int = 1) -> bool:
    starts = (apply_heuristics(kernel), with_merged_axes(with_split_axes(kernel)))
    return search.find_stored(search.search_key("LLVM", starts, width), starts) is not None


# *** the whole of it ***


def test_beam_computes_right_results_and_reports_its_choice() -> None:
    a, b = numbers(31, 17), numbers(17, 50, seed=1)
    events = Events()
    with Context(BEAM=1), recording(events):
        found = to_numpy(matmul(from_numpy(a), from_numpy(b)))
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-5)
    (outcome,) = events.of(SearchEnded)
    assert outcome.tried == len(events.of(CandidateMeasured)) >= 5
    assert outcome.before_seconds < 1 and outcome.after_seconds <= outcome.before_seconds
    assert ("× faster" in outcome.reason) != ("none of" in outcome.reason)


def test_a_cached_result_emits_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = small_matmul()
    first, before = searched(kernel)
    assert is_kept(kernel)
    monkeypatch.setattr(search, "CandidateTimer", None)  # nothing may be measured any more
    second, after = searched(kernel)
    assert second.ast is first.ast
    assert [(e.kernel.applied, e.seconds, e.note) for e in before.of(CandidateMeasured)] == [
        (e.kernel.applied, e.seconds, e.note) for e in after.of(CandidateMeasured)
    ]
    (outcome,) = after.of(SearchEnded)
    assert outcome.reason.endswith("(found by an earlier search)")
    for changed in ({"BEAM_SEED": 3}, {"CACHELEVEL": 0}, {"THREADS": 1}):
        with Context(**changed), pytest.raises(TypeError, match="NoneType"):
            searched(kernel)
    with pytest.raises(TypeError, match="NoneType"):
        searched(kernel, width=2)


def test_an_8_bit_float_is_searched_like_any_other() -> None:
    node = from_numpy(numbers(64)).cast(dtypes.fp8e4m3).contiguous().cast(dtypes.float32).alu(Ops.NEG)
    with Context(BEAM=1):
        to_numpy(node)
    assert numbers_of(dtypes.fp8e5m2, 0) != numbers_of(dtypes.fp8e5m2, 1)
    for dtype in (*dtypes.all, *dtypes.fp8s):
        assert len(numbers_of(dtype, 0)) % dtype.itemsize == 0


def test_unpicklable_kernels_keep_the_default_schedule() -> None:
    odd = storing(UOp(Ops.CONST, dtypes.int64, (), 0)).ast.replace(arg=frozenset({1}))
    _, events = searched(Kernel.of(odd, Device["LLVM"].target))
    (outcome,) = events.of(SearchEnded)
    assert "a UOp with the arg " in outcome.reason
    assert outcome.after_seconds == math.inf


def test_a_width_of_any_size_ends() -> None:
    kernel = kernel_of(from_numpy(numbers(3)).alu(Ops.NEG), Device["LLVM"].target)
    found, events = searched(kernel, width=50)
    assert len(events.of(SearchEnded)) == 1 and found.original is kernel.original


# *** executors ***


def on(executor: Any) -> str:
    kernel, expected = small_matmul(8, 9, 16)
    with measuring_on(executor):
        _, events = searched(kernel)
    assert [event for event in events.of(CandidateMeasured) if math.isinf(event.seconds)] == []
    return events.of(SearchEnded)[0].reason


@pytest.mark.parametrize(
    "make",
    [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor],
    ids=lambda make: make.__name__,
)
def test_any_executor_measures(make: Any) -> None:
    with make(2) as executor:
        assert "measured" in on(executor)


def pids_here() -> set[int]:
    return {worker.process.pid for worker in workers._workers._all}


def test_a_forked_process_has_workers_of_its_own() -> None:
    kernel = storing(index_const(0))
    ask("compile", kernel)
    assert pids_here()
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as forked:
        assert forked.submit(pids_here).result() == set()
    assert "program" in ask("compile", kernel)


def test_the_workers_of_a_dask_cluster_measure() -> None:
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            assert "measured" in on(client.get_executor())


class Silent:
    """Takes work and does nothing."""

    def submit(self, function: Any, /, *arguments: Any) -> concurrent.futures.Future[str]:
        return concurrent.futures.Future()


def test_an_executor_that_times_out_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "QUEUE_LIMIT_S", -search.COMPILE_LIMIT_S)
    kernel, _ = small_matmul()
    with measuring_on(Silent()):
        found, events = searched(kernel)
    (outcome,) = events.of(SearchEnded)
    expected = "no candidate could be measured, so the default schedule is used: the executor gave no answer within 0 s"
    assert outcome.reason == expected and found.ast is outcome.before.ast
    assert not is_kept(kernel)


class Breaking(concurrent.futures.ThreadPoolExecutor):
    """Takes a few requests, and then no more: a pool whose processes died, a cluster that was closed."""

    left = 0

    def submit(self, function: Any, /, *arguments: Any) -> concurrent.futures.Future[str]:
        self.left -= 1
        if self.left < 0:
            raise concurrent.futures.BrokenExecutor("its processes died")
        return super().submit(function, *arguments)


@pytest.mark.parametrize("taken", [0, 6])
def test_a_broken_executor_ends_the_search_and_nothing_is_cached(taken: int) -> None:
    kernel, _ = small_matmul()
    with Breaking(1) as executor, measuring_on(executor):
        executor.left = taken
        found, events = searched(kernel)
    (outcome,) = events.of(SearchEnded)
    reason = "the executor takes no work: BrokenExecutor: its processes died"
    assert reason in {event.note for event in events.of(CandidateMeasured)}
    assert outcome.reason.endswith(reason) is (taken == 0)
    assert not is_kept(kernel)


class Interrupted(Silent):
    def submit(self, function: Any, /, *arguments: Any) -> concurrent.futures.Future[str]:
        raise KeyboardInterrupt


def test_an_interrupt_ends_a_search() -> None:
    with measuring_on(Interrupted()), pytest.raises(KeyboardInterrupt):
        searched(small_matmul()[0])


# *** one candidate ***


def storing(place: UOp, size: int = 8) -> Kernel:
    """A kernel that writes 1.0 somewhere."""
    memory = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, size), (), 0)
    store = UOp(Ops.STORE, dtypes.void, (memory.index(place), UOp.const(dtypes.float32, 1.0)))
    return Kernel.of(UOp.sink(store), Device["LLVM"].target)


def ask(do: str, kernel: Kernel, *others: Kernel, device: str = "LLVM", limit_s: float = 60.0) -> dict[str, Any]:
    request = request_of(do, kernel, device, *others, limit=None)
    return json.loads(workers.ask_worker(request, kernel.ast.digest, limit_s))


def test_a_candidate_that_crashes_hangs_or_fills_memory_ends_alone() -> None:
    outside = storing(index_const(1 << 45))
    assert ask("time", outside, outside)["lost"] == "it crashed its worker (SIGSEGV)"

    endless = storing(UOp.range(1 << 50, Axis(0, AxisKind.GLOBAL)) % index_const(8))
    began = time.monotonic()
    assert ask("time", endless, endless, device="PYTHON", limit_s=4.0)["lost"] == "it took longer than 4 s"
    assert time.monotonic() - began < seconds(30)

    huge = storing(index_const(0), size=1 << 50)
    assert ask("time", huge, huge)["lost"] == "it ran out of memory"

    sound = storing(index_const(0))
    assert ask("time", sound, sound)["seconds"] < 1


def test_a_candidate_with_wrong_results_is_rejected() -> None:
    right, wrong = storing(index_const(0)), storing(index_const(1))
    worker = SearchWorker()
    assert worker.respond(json.loads(request_of("time", right, "LLVM", right, limit=None)))["seconds"] < 1
    with pytest.raises(CandidateError, match=r"its results are wrong \(buffer 0\)"):
        worker.respond(json.loads(request_of("time", wrong, "LLVM", right, limit=None)))


def test_partial_comparisons_cover_every_column() -> None:
    columns = 1024
    found = sample_elements(
        Buffer("LLVM", columns * columns, dtypes.int32).copyin(np.arange(columns**2, dtype=np.int32))
    )
    assert search_worker.MAX_COMPARED_ELEMENTS // 2 < found.size <= search_worker.MAX_COMPARED_ELEMENTS
    assert len(np.unique(found % columns)) == columns


def test_rounding_differences_are_accepted() -> None:
    x = numbers(1000)
    assert not differ(x * np.float32(1 + 1e-6), x, dtypes.float32)
    assert not differ(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]), dtypes.float64)
    assert differ(x[::-1], x, dtypes.float32)
    assert differ(np.arange(5), np.arange(1, 6), dtypes.int32)


def test_a_kernel_for_another_machine_is_refused() -> None:
    kernel = storing(index_const(0))
    request = {**json.loads(request_of("compile", kernel, "LLVM")), "machine": "pdp11"}
    reply = json.loads(workers.ask_worker(json.dumps(request), "", 60.0))
    assert "the request is for pdp11" in reply["lost"]
    assert "lost" in json.loads(workers.ask_worker('{"do": "anything"}', "", 60.0))


def test_a_slow_candidate_is_stopped_after_one_run() -> None:
    kernel, _ = small_matmul()
    worker = SearchWorker()
    reply = worker.respond(json.loads(request_of("time", kernel, "LLVM", kernel, limit=1e-12)))
    assert reply["note"] == "given up after one run"


@pytest.mark.parametrize("crowded", [True, False])
def test_a_time_from_a_busy_machine_is_marked(crowded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "is_crowded", lambda: crowded)
    monkeypatch.setattr(search_worker, "interruptions", lambda: 0)
    kernel = storing(index_const(0))
    reply = SearchWorker().respond(json.loads(request_of("time", kernel, "LLVM", kernel, limit=None)))
    assert reply["disturbed"] is crowded
    assert reply["note"].startswith("something else ran during") is crowded


def test_candidates_that_are_the_same_program_are_timed_once() -> None:
    kernel = kernel_of(from_numpy(numbers(16)).alu(Ops.NEG), Device["LLVM"].target)
    one = apply_opt(kernel, Opt(OptOps.UPCAST, 0, 2))
    with search.CandidateTimer("LLVM", kernel) as timer:
        first, again = timer.time_candidates([one, one], math.inf)
    assert again.seconds == first.seconds < 1
    assert again.note == "the same program as UPCAST(0, 2)"


def test_nothing_compiles_while_something_is_timed() -> None:
    order: list[str] = []

    def compiles() -> None:
        with compiling_lock():
            order.append("compiled")

    with timing_lock():
        other = threading.Thread(target=compiles)
        other.start()
        time.sleep(0.2)
        order.append("timed")
    other.join()
    assert order == ["timed", "compiled"]


# *** progress and messages ***


class Bar:
    """A stand-in for tqdm that records its calls."""

    def __init__(self, **options: Any) -> None:
        self.said = [options["desc"]]
        self.n, self.total, self.open = 0.0, 0, True

    def reset(self, total: int) -> None:
        self.n, self.total = 0.0, total

    def update(self, by: float) -> None:
        self.n += by
        assert by >= 0 and self.n <= self.total

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.said.append(text)

    def close(self) -> None:
        self.open = False


def test_progress_is_a_bar_that_fills_each_round_and_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyexplore.explore.recording.progress import ProgressRecorder

    bars: list[Bar] = []

    def make(**options: Any) -> Bar:
        bars.append(Bar(**options))
        return bars[-1]

    monkeypatch.setattr(search, "progress_recorder", lambda: ProgressRecorder(make))
    searched(small_matmul()[0])
    (bar,) = bars
    assert not bar.open and bar.n == bar.total
    assert bar.said[0].startswith("BEAM r_") and any(text.startswith("best ") for text in bar.said)


def test_progress_is_shown_only_in_terminals_and_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyexplore.explore.recording import progress

    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: False, raising=False)
    assert progress.find_progress() is None
    monkeypatch.setattr(progress, "_is_in_notebook", lambda: True)
    assert isinstance(progress.find_progress(), progress.ProgressRecorder)


def test_the_console_prints_the_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    from tinyexplore.explore.recording.console import ConsoleRecorder

    kernel = storing(index_const(0))
    faster = SearchEnded(kernel, kernel, 2e-6, 1e-6, 7, "2.00× faster than the default schedule")
    nothing = SearchEnded(kernel, kernel, math.inf, math.inf, 0, "no candidate could be measured")
    with Context(DEBUG=2):
        for event in (faster, nothing):
            ConsoleRecorder().record(event)
    said = ["E_1: 2 µs → 1 µs, 2.00× faster than the default schedule", "E_1: no candidate could be measured"]
    assert capsys.readouterr().out == "".join(f"BEAM    {text}\n" for text in said)


def test_a_kernel_of_symbolic_size_keeps_the_default_schedule() -> None:
    events = Events()
    rows = Variable("rows", 1, 16).bind(7)
    part = Tensor(numbers(16, 4), device="LLVM").shrink(((0, rows), (0, 4))).sum(0)
    with Context(BEAM=1), recording(events):
        np.testing.assert_allclose(part.numpy(), numbers(16, 4)[:7].sum(0), rtol=1e-5)
    searches = events.of(SearchEnded)
    assert searches and all("known only when it runs" in event.reason for event in searches)


@pytest.fixture(scope="module", autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    workers.dismiss()
