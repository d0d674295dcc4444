"""A graph that differs from an earlier one only in its buffers is neither scheduled nor compiled again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs import from_numpy, graphs, matmul, numbers, to_numpy
from tests.reference import evaluate
from tinyexplore import Tensor, engine
from tinyexplore.device import Buffer
from tinyexplore.dtype import dtypes
from tinyexplore.execute.plan import Plan, Plans, plans, walk
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.trace import ProgramCompiled, Recorder, StageBegan, recording
from tinyexplore.uop import Ops
from tinyexplore.util import Context, GlobalCounters


@contextmanager
def nothing_scheduled() -> Iterator[None]:
    """Whatever is realized in the block has a plan already."""

    def refuse(outputs: object) -> None:
        raise AssertionError("scheduled again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "create_schedule", refuse)
        yield


def copied(node: LazyBuffer, seed: int) -> LazyBuffer:
    """The same graph over other buffers with other numbers; what shared a node or a buffer shares one again."""
    rng = np.random.default_rng(seed)
    nodes: dict[LazyBuffer, LazyBuffer] = {}
    buffers: dict[Buffer, Buffer] = {}

    def copy(one: LazyBuffer) -> LazyBuffer:
        if one in nodes:
            return nodes[one]
        if one.buffer is not None:
            if one.buffer not in buffers:
                values = rng.integers(-4, 5, one.buffer.size).astype(one.dtype.name)
                buffers[one.buffer] = from_numpy(values, one.device).buffer
            found = LazyBuffer.from_buffer(buffers[one.buffer], one.shape)
        else:
            found = LazyBuffer(one.op, one.dtype, one.shape, tuple(map(copy, one.src)), one.arg, one.device)
        nodes[one] = found
        return found

    return copy(node)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs("LLVM"), st.integers(0, 1 << 16))
def test_a_plan_agrees_with_numpy(node: LazyBuffer, seed: int) -> None:
    again = copied(node, seed)
    with np.errstate(all="ignore"):
        expected = evaluate(again)
    to_numpy(node)
    known = len(plans)
    found = to_numpy(again)
    assert len(plans) == known
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-4, atol=1e-4)


def test_two_outputs_and_their_intermediate_get_buffers() -> None:
    def outputs(seed: int) -> tuple[LazyBuffer, LazyBuffer, LazyBuffer, np.ndarray]:
        x = numbers(33, 20, seed=seed)
        middle = from_numpy(x).reduce(Ops.ADD, (0,)).contiguous()
        spread = middle.expand((5, 20))
        return middle, spread.alu(Ops.MUL, spread), middle.alu(Ops.NEG), x.sum(0)

    engine.realize(outputs(0)[1:3])
    middle, square, negative, total = outputs(1)
    with nothing_scheduled():
        engine.realize([square, negative])
    assert middle.is_realized and square.src == negative.src == ()
    for node, expected in ((middle, total), (square, total**2), (negative, -total)):
        np.testing.assert_allclose(to_numpy(node), np.broadcast_to(expected, node.shape), rtol=1e-4, atol=1e-4)


def test_every_difference_but_the_buffers_is_another_structure() -> None:
    x, y = from_numpy(numbers(4, 4)), from_numpy(numbers(4, 4, seed=1))

    def const(value: float) -> LazyBuffer:
        return LazyBuffer.const(value, dtypes.float32, "LLVM", (4, 4))

    total = x.reduce(Ops.ADD, (0,))
    realized = x.alu(Ops.EXP)
    engine.realize([realized])
    different = [
        [x.alu(Ops.ADD, y)],
        [x.alu(Ops.ADD, x)],
        [x.alu(Ops.MUL, y)],
        [x.alu(Ops.ADD, y).alu(Ops.NEG)],
        [x.alu(Ops.ADD, LazyBuffer.from_buffer(x.buffer, (16,)).reshape((4, 4)))],
        [x.alu(Ops.ADD, const(1.0))],
        [x.alu(Ops.ADD, const(2.0))],
        [x.alu(Ops.ADD, const(0.0))],
        [x.alu(Ops.ADD, const(-0.0))],
        [x.alu(Ops.ADD, const(float("nan")))],
        [x.alu(Ops.ADD, y.cast(dtypes.int32).cast(dtypes.float32))],
        [total],
        [x.reduce(Ops.ADD, (1,))],
        [x.reduce(Ops.MAX, (0,))],
        [x.scan(Ops.ADD, 0)],
        [total.expand((4, 4)).alu(Ops.ADD, x)],
        [total.expand((4, 4)).alu(Ops.ADD, x), total],
        [total, total.expand((4, 4)).alu(Ops.ADD, x)],
        [realized.alu(Ops.ADD, y), x.alu(Ops.EXP)],
        [x.alu(Ops.EXP).alu(Ops.ADD, y)],
        [x.permute((1, 0)).alu(Ops.ADD, y)],
        [x.flip((0,)).alu(Ops.ADD, y)],
        [x.flip((1,)).alu(Ops.ADD, y)],
        [x.copy_to_device("PYTHON")],
        [x.copy_to_device("CLANG")],
        [from_numpy(numbers(4, 4), "PYTHON").alu(Ops.ADD, from_numpy(numbers(4, 4), "PYTHON"))],
        [from_numpy(numbers(2, 8)).alu(Ops.ADD, from_numpy(numbers(2, 8)))],
        [x.cast(dtypes.int32).bitcast(dtypes.uint32)],
        [x.bitcast(dtypes.int32).bitcast(dtypes.uint32)],
        [x.cast(dtypes.int32).bitcast(dtypes.float32)],
    ]
    keys = [walk(outputs).key for outputs in different]
    assert len(set(keys)) == len(keys)
    with Context(NOOPT=1):
        assert walk([x.alu(Ops.ADD, y)]).key not in keys
    assert walk([from_numpy(numbers(4, 4, seed=2)).alu(Ops.ADD, from_numpy(numbers(4, 4, seed=3)))]).key == keys[0]


def test_zeros_of_different_sign_have_different_plans() -> None:
    zeros = from_numpy(np.array([0.0, -0.0], np.float32))
    for value in (0.0, -0.0, 0.0, -0.0):
        held = LazyBuffer.const(value, dtypes.float32, "LLVM", (2,))
        one = LazyBuffer.const(1.0, dtypes.float32, "LLVM", (2,))
        sign = one.alu(Ops.FDIV, zeros.alu(Ops.ADD, held))
        with np.errstate(all="ignore"):
            wanted = 1 / (np.array([0.0, -0.0], np.float32) + np.float32(value))
        np.testing.assert_array_equal(to_numpy(sign), wanted)


def test_an_assigned_tensor_is_read_from_its_current_buffer() -> None:
    state, step = Tensor([1.0, 2.0]).realize(), Tensor([0.5, 0.25]).realize()
    state.assign(state * 2 + step).realize()
    with nothing_scheduled():
        for _ in range(3):
            state.assign(state * 2 + step).realize()
    assert state.tolist() == [16 + 0.5 * 15, 32 + 0.25 * 15]


def test_a_recording_sees_every_stage_of_a_graph_that_has_a_plan() -> None:
    def run() -> None:
        engine.realize([from_numpy(numbers(6, 7)).alu(Ops.EXP).reduce(Ops.ADD, (0,))])

    run()
    recorder = Recorder()
    with engine.step_by_step(), recording(recorder):
        run()
    stages = [event.stage for event in recorder.events if isinstance(event, StageBegan)]
    assert {"schedule", "kernel", "optimize", "simplify", "linearize", "render", "compile"} <= set(stages)
    assert sum(isinstance(event, ProgramCompiled) for event in recorder.events) == 1


def test_a_plan_can_be_used_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer may do so: it can run at any allocation."""

    def chain(start: float) -> LazyBuffer:
        x = from_numpy(np.full(7, start, np.float32))
        return x.alu(Ops.ADD, x).contiguous().alu(Ops.MUL, x).contiguous().alu(Ops.NEG)

    engine.realize([chain(1)])
    found: list[float] = []
    allocate = Buffer.allocate

    def asking(buffer: Buffer) -> Buffer:
        place = len(found)
        if place < 3:
            found.append(0)
            found[place] = to_numpy(chain(place + 1))[0]
        return allocate(buffer)

    monkeypatch.setattr(Buffer, "allocate", asking)
    with nothing_scheduled():
        assert to_numpy(chain(10)).tolist() == [-200] * 7
    assert found == [-2, -8, -18]
    assert to_numpy(chain(5)).tolist() == [-50] * 7


def test_planned_work_is_counted() -> None:
    def run() -> tuple[int, int, int]:
        GlobalCounters.reset()
        engine.realize([matmul(from_numpy(numbers(16, 8)), from_numpy(numbers(8, 4))).contiguous().alu(Ops.NEG)])
        return GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem

    first = run()
    assert first == run() and min(first) > 0
    with engine.step_by_step():
        assert first == run()


def test_plans_hold_no_memory() -> None:
    def run() -> list[weakref.ref[object]]:
        x = from_numpy(numbers(9, 9))
        y = x.alu(Ops.EXP).contiguous().alu(Ops.NEG)
        engine.realize([y])
        return [weakref.ref(thing) for thing in (x, y, x.buffer, y.buffer, y.buffer.memory)]

    run()
    gc.disable()
    try:
        assert [found() for found in run()] == [None] * 5
    finally:
        gc.enable()


def test_memory_of_intermediates_is_reused_within_a_plan() -> None:
    """A chain of ten large results needs three of them at once."""
    nbytes = 2 << 20
    x = node = from_numpy(np.ones((512, nbytes // 2048), np.float32))
    for _ in range(10):
        node = node.reshape((nbytes // 2048, 512)).permute((1, 0)).alu(Ops.ADD, x).contiguous()
    HOST_ALLOCATOR.empty_cache()
    before = HOST_ALLOCATOR.used_bytes
    engine.realize([node])
    most = HOST_ALLOCATOR.used_bytes + HOST_ALLOCATOR.cached_bytes - before
    assert most <= 3 * nbytes


def test_the_least_recently_used_plan_is_evicted() -> None:
    kept = Plans()
    x = from_numpy(numbers(3))
    found = [walk([x.alu(op)]) for op in (Ops.EXP, Ops.LOG, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF)]
    plan = Plan([], 0, 0, 0, 0, (), tuple, nbytes=200 << 10)
    with Context(KERNEL_MB=1):  # room for five
        for graph in found[:5]:
            kept.keep(graph, plan)
        assert kept.find(found[0]) is not None
        kept.keep(found[5], plan)
    assert [kept.find(graph) is not None for graph in found] == [True, False, True, True, True, True]


def test_a_kernel_that_does_not_compile_raises_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: str, spec: object) -> None:
        raise RuntimeError("no such instruction")

    def graph() -> LazyBuffer:
        return from_numpy(numbers(5, 11)).alu(Ops.SIN).contiguous().alu(Ops.COS)

    with monkeypatch.context() as patch:
        patch.setattr("tinyexplore.compile.lowering.compile_program", broken)
        with pytest.raises(RuntimeError, match="no such instruction"):
            to_numpy(graph())
    np.testing.assert_allclose(to_numpy(graph()), np.cos(np.sin(numbers(5, 11))), rtol=1e-5)
