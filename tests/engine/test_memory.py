"""Intermediates share memory: between the live bytes and the total bytes, with correct results."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tinyexplore import Context, GlobalCounters, Tensor, TinyJit, nn
from tinyexplore.engine import plan_memory, step_by_step
from tinyexplore.execute.memory import LiveRange, lower_bound, place_live_ranges
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.trace import MemoryPlanned, Recorder, recording

lives = st.builds(
    lambda lines, first, length: LiveRange(lines * 64, first, first + length),
    st.integers(1, 40),
    st.integers(0, 30),
    st.integers(0, 12),
)


@given(st.lists(lives, max_size=40))
def test_overlapping_live_ranges_have_disjoint_memory(found: list[LiveRange]) -> None:
    plan = place_live_ranges(found)
    assert plan.bound_bytes == max(
        (sum(life.nbytes for life in found if life.first <= time <= life.last) for time in range(50)), default=0
    )
    assert plan.bound_bytes <= plan.peak_bytes <= plan.total_bytes
    for place, life in enumerate(found):
        for other in range(place):
            if life.interferes_with(found[other]):
                low, high = sorted((other, place), key=lambda one: plan.offsets[one])
                assert plan.offsets[low] + found[low].nbytes <= plan.offsets[high]


def test_a_chain_needs_two_buffers() -> None:
    plan = place_live_ranges([LiveRange(64, time, time + 1) for time in range(100)])
    assert (plan.peak_bytes, plan.bound_bytes, plan.total_bytes) == (128, 128, 6400)
    assert lower_bound(()) == 0


# *** random programs ***

Program = list[tuple[str, int, int, bool]]
programs = st.lists(
    st.tuples(
        st.sampled_from(["add", "matmul", "flip", "rows", "half", "copy"]),
        st.integers(0, 5),
        st.integers(0, 5),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def run_program(program: Program, x: Tensor, y: Tensor, kept: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Whole numbers in float32, kept small, so that every way to compute them gives the same bits."""
    pool = [x, y]
    for op, first, second, keep in program:
        a, b = pool[-1 - first % len(pool)], pool[-1 - second % len(pool)]
        match op:
            case "add":
                found = a + b
            case "matmul":
                found = a @ b
            case "flip":
                found = a.flip(0).contiguous()
            case "rows":
                found = a - b.sum(axis=1, keepdim=True)
            case "half":
                found = a[:2].contiguous().repeat((2, 1)) * 2
            case _:
                found = a.to("PYTHON").to(a.device) + 1
        pool.append((found - (found / 16).floor() * 16).contiguous())
        if keep:
            kept.append(pool[-1])
    return pool[-1], pool[len(pool) // 2]


def numbers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 8, (4, 4)).astype(np.float32)


def run_in_numpy(program: Program, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    pool = [x, y]
    for op, first, second, _ in program:
        a, b = pool[-1 - first % len(pool)], pool[-1 - second % len(pool)]
        rows = np.tile(a[:2], (2, 1)) * 2
        found = {"add": a + b, "matmul": a @ b, "flip": a[::-1], "rows": a - b.sum(axis=1, keepdims=True)}
        value = found.get(op, rows if op == "half" else a + 1)
        pool.append(value - np.floor(value / 16) * 16)
    return pool


@settings(
    max_examples=12,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(programs)
def test_programs_replay_correctly_in_shared_memory(program: Program) -> None:
    kept: list[Tensor] = []

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        kept.clear()
        return run_program(program, x, y, kept)

    with Context(DEVICE="LLVM"):
        jit = TinyJit(step)
        for seed in range(4):
            x, y = numbers(seed), numbers(seed + 100)
            result = jit(Tensor(x), Tensor(y))
            expected = run_in_numpy(program, x, y)
            for found, wanted in zip(result, (expected[-1], expected[len(expected) // 2])):
                np.testing.assert_array_equal(found.numpy(), wanted)
            if seed == 1:
                computed = [tensor.lazydata.is_realized for tensor in kept]
            wanted_kept = [value for value, (*_, keep) in zip(expected[2:], program) if keep]
            for number, (tensor, wanted) in enumerate(zip(kept, wanted_kept)):
                if seed < 2 or computed[number]:  # what the function computed and put aside is not overwritten
                    np.testing.assert_array_equal(tensor.numpy(), wanted)
    assert jit.captured is not None
    for plan in jit.captured.memory:
        assert plan.bound_bytes <= plan.peak_bytes <= plan.total_bytes


# *** lazily ***


@contextmanager
def peak_of_used_bytes() -> Iterator[Callable[[], int]]:
    gc.collect()
    before = GlobalCounters.mem_used
    GlobalCounters.reset()
    yield lambda: GlobalCounters.mem_peak - before


def test_lazy_intermediates_are_freed_after_their_last_reader() -> None:
    size = 2 << 20
    start = Tensor(np.arange(size // 4, dtype=np.float32)).realize()
    with peak_of_used_bytes() as peak:
        x = start
        for step in range(10):
            x = (x.flip(0) + step).contiguous()
        x.realize()
        assert peak() == 2 * size
    np.testing.assert_array_equal(x.numpy(), np.arange(size // 4, dtype=np.float32) + 45)


# *** a transformer block ***


def test_a_training_step_of_a_transformer_block_takes_little_more_than_is_live() -> None:
    batch, length, width, heads = 2, 16, 32, 4
    Tensor.manual_seed(1)
    first, second = nn.LayerNorm(width), nn.LayerNorm(width)
    projections = [nn.Linear(width, width) for _ in range(4)]
    up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    parameters = nn.state.get_parameters([first, second, projections, up, down])
    for parameter in parameters:
        parameter.requires_grad = True

    def split(x: Tensor) -> Tensor:
        return x.reshape(batch, length, heads, width // heads).transpose(1, 2)

    def loss_and_gradients(x: Tensor) -> list[Tensor]:
        normed = first(x)
        q, k, v = (split(project(normed)) for project in projections[:3])
        attended = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + projections[3](attended)
        loss = (x + down(up(second(x)).gelu())).square().mean()
        return [loss, *loss.gradient(*parameters)]

    x = Tensor.randn(batch, length, width).realize()
    expected = [tensor.numpy() for tensor in loss_and_gradients(x)]
    jit = TinyJit(loss_and_gradients)
    for _ in range(3):
        found = jit(x)
    for tensor, wanted in zip(found, expected):
        np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-4, atol=1e-6)
    assert jit.captured is not None
    (plan,) = jit.captured.memory
    assert plan.bound_bytes <= plan.peak_bytes <= 1.05 * plan.bound_bytes < plan.total_bytes


def test_the_plan_of_a_schedule() -> None:
    x = Tensor(np.ones(1 << 16, dtype=np.float32)).realize()
    y = ((x.flip(0) + 1).contiguous().flip(0) * 2).contiguous().flip(0) + 1
    items = y.contiguous().schedule()
    plan = plan_memory(items, live=[items[-1].buffers[0]])
    assert (plan.total_bytes, plan.bound_bytes, plan.peak_bytes) == (1 << 19, 1 << 19, 1 << 19)


def test_memory_plans_are_recorded_and_shown(capsys: pytest.CaptureFixture) -> None:
    def work() -> Tensor:
        x = Tensor.arange(1000, dtype="float32").contiguous()
        return ((x.flip(0) + 1).contiguous().flip(0) * 2).contiguous().flip(0).contiguous()

    recorder = Recorder()
    with step_by_step(), recording(recorder):
        work().realize()
    (plan,) = (event.plan for event in recorder.events if isinstance(event, MemoryPlanned))
    assert (len(plan.live_ranges), plan.peak_bytes) == (3, 2 * 4032)
    (use,) = build_trace(recorder).memory
    assert (use.total_bytes, use.bound_bytes, use.peak_bytes) == (3 * 4032, 2 * 4032, 2 * 4032)
    assert use.lives == ((4032, 0, 1, 0), (4032, 1, 2, 4032), (4032, 2, 3, 0))
    with Context(DEBUG=2):
        jit = TinyJit(lambda: work().realize())
        for _ in range(2):
            jit()
    line = "memory: 3 intermediates of 12.1 KB in 8.064 KB (at least 8.064 KB live at once)\n"
    assert capsys.readouterr().out.count(line) == 3  # two schedules, and what was captured
