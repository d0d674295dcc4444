"""Splitting: a rewrite of the scheduler that preserves the user's graph and is recorded with its reason."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden.machines import MACHINES, opened
from tinyexplore import Context, Tensor, TinyJit, capture
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule, target_of
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES
from tinyexplore.schedule.splitting import MUCH_TO_REDUCE, split_reductions
from tinyexplore.uop import Ops

N = MUCH_TO_REDUCE


def memory(*shape: int) -> LazyBuffer:
    return LazyBuffer.const(0, dtypes.float32, "LLVM", shape).contiguous()


@pytest.mark.parametrize(
    ("shape", "op", "axes", "partial"),
    [
        ((N,), Ops.ADD, (0,), (1, 256, 1)),
        ((N,), Ops.MAX, (0,), (1, 256, 1)),
        ((N - 1,), Ops.ADD, (0,), None),  # little
        ((262147,), Ops.ADD, (0,), None),  # a prime number: there are no parts of one length
        ((4, N), Ops.ADD, (1,), (4, 1, 256, 1)),
        ((16, N), Ops.ADD, (1,), None),  # results enough for the cores
        ((1 << 14, 64), Ops.ADD, (0,), (1, 256, 1, 64)),  # short rows
        ((512, 512), Ops.MUL, (0, 1), (1, 256, 1, 1)),
    ],
)
def test_a_large_reduction_to_few_results_has_partial_ones_in_memory(
    shape: tuple[int, ...], op: Ops, axes: tuple[int, ...], partial: tuple[int, ...] | None
) -> None:
    total = memory(*shape).reduce(op, axes)
    source, argument = total.src, total.arg
    split = split_reductions([total], NO_WRITES, target_of)
    (found,) = split.outputs
    if partial is None:
        assert found is total and not split.original
        return
    assert found.shape == total.shape and split.original_of(found) is total
    assert found.src[0].base.shape == partial and found.src[0].base.op is Ops.CONTIGUOUS
    assert (total.src, total.arg) == (source, argument), "what the user wrote stays"
    with Context(SPLIT_REDUCEOP=0):
        assert split_reductions([total], NO_WRITES, target_of).outputs == [total]


def test_users_of_a_reduction_read_the_split_one() -> None:
    x = memory(N)
    total = x.reduce(Ops.ADD, (0,))
    centered = x.alu(Ops.MUL, total.expand((N,)))
    spread = centered.reduce(Ops.MAX, (0,))
    split = split_reductions([spread, total], NO_WRITES, target_of)
    assert [split.original_of(node) for node in split.outputs] == [spread, total]
    assert split.original_of(split.outputs[0].src[0].base.src[0].src[0].src[0]) is centered
    outputs = {node for item in create_schedule([spread, total]) for node in item.outputs}
    assert {spread, total} <= outputs


def test_the_trace_shows_the_decision_and_the_users_graph() -> None:
    with opened(MACHINES[0]):
        with capture() as session:
            x = Tensor.empty(N)
            x.max().realize()
        trace = session.trace  # while there is such a machine
    (split,) = [one for stage in trace.stages for one in stage.decisions if one.decision == "split"]
    assert "256 partial results" in split.reason and f"{N} elements to 1 result" in split.reason
    written = trace.nodes[split.node]
    assert written.op == "REDUCE_AXIS" and [trace.nodes[src].shape for src in written.src] == [(N,)]
    made = {link.dst for link in trace.links if link.src == split.node and link.how == "split"}
    assert sorted(trace.nodes[node].op for node in made) == ["CONTIGUOUS", "REDUCE_AXIS", "RESHAPE", "RESHAPE"]
    assert len(trace.kernels) == 2 and trace.kernels[0].roots[0] in made


def test_split_results_equal_whole_ones_in_every_request() -> None:
    values = np.random.default_rng(0).integers(0, 9, (N,)).astype(np.int32)
    x = Tensor(values).realize()

    def asked(x: Tensor) -> tuple[Tensor, ...]:
        running = Tensor.cat(x, x, x, x, x).cumsum()
        return x.sum(), (x - x.max()).sum() + x.min(), running[-3:] * 2, running.sum()

    repeated = np.tile(values, 5).cumsum(dtype=np.int32)
    least, most = values.min(), values.max()
    expected = [values.sum(), (values - most).sum() + least, repeated[-3:] * 2, repeated.sum(dtype=np.int32)]
    for threads in (1, 4):
        with Context(THREADS=threads):
            for _ in range(2):  # the second time by the plan of the first
                for found, right in zip(asked(x), expected):
                    np.testing.assert_array_equal(found.numpy(), right)
            replayed = TinyJit(lambda x: tuple(one.realize() for one in asked(x)))
            for _ in range(4):
                for found, right in zip(replayed(x), expected):
                    np.testing.assert_array_equal(found.numpy(), right)


def test_a_running_sum_is_realized_with_its_users() -> None:
    values = np.arange(1 << 20, dtype=np.int32) % 7
    with Context(THREADS=4):
        running = Tensor(values).cumsum()
        twice = running * 2
        Tensor.realize(running, twice)
        assert running.lazydata.base.is_realized
        np.testing.assert_array_equal(running.numpy(), values.cumsum())
        np.testing.assert_array_equal(twice.numpy(), values.cumsum() * 2)
        np.testing.assert_array_equal(Tensor(values).cumsum().to("PYTHON").to("LLVM").numpy(), values.cumsum())


def test_a_slice_is_assigned_from_a_split_reduction() -> None:
    x, cache = Tensor.ones(N).contiguous().realize(), Tensor.zeros(4).contiguous().realize()
    for at in range(3):
        cache[at] = (x * (at + 1)).sum()
        cache.realize()
    assert cache.tolist() == [N, 2 * N, 3 * N, 0]
