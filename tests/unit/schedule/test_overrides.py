"""The user's cuts and joins: the legal ones, the legality errors of the others, and that no value changes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs import attention, from_numpy, graphs, numbers, softmax
from tinyexplore import Tensor
from tinyexplore.engine import compile_many, create_schedule
from tinyexplore.execute.liveness import writes_now
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_OVERRIDES, Overrides, ScheduleItem, WritePlan, graph_order
from tinyexplore.trace import Recorder, ScheduleDecided, recording
from tinyexplore.uop import Ops

Decisions = dict[LazyBuffer, ScheduleDecided]


def scheduled(
    *outputs: LazyBuffer, overrides: Overrides = NO_OVERRIDES, writes: WritePlan | None = None
) -> tuple[tuple[ScheduleItem, ...], Decisions]:
    """The schedule, and the last word on each node."""
    recorder = Recorder()
    with recording(recorder):
        items = create_schedule(outputs, writes_now(outputs) if writes is None else writes, overrides)
    return items, {event.lazybuffer: event for event in recorder.events if isinstance(event, ScheduleDecided)}


def computed(*outputs: LazyBuffer, overrides: Overrides = NO_OVERRIDES) -> list[np.ndarray]:
    """The values of `outputs`, which stay as they are."""
    items, _ = scheduled(*outputs, overrides=overrides)
    for item in compile_many(items):
        item.run()
    memory = {node: buffer for item in items for node, buffer in zip(item.outputs, item.buffers)}
    return [np.frombuffer(memory[node].copyout(), node.dtype.name).reshape(node.shape) for node in outputs]


def only(output: LazyBuffer, op: Ops, place: int = 0) -> LazyBuffer:
    return [node for node in graph_order([output]) if node.op is op][place]


def cut(*nodes: LazyBuffer) -> Overrides:
    return Overrides(cut=frozenset(nodes))


def join(*nodes: LazyBuffer) -> Overrides:
    return Overrides(join=frozenset(nodes))


def test_a_cut_in_a_chain_makes_two_kernels_with_a_reason() -> None:
    x = from_numpy(numbers(8, 8))
    middle = x.alu(Ops.ADD, x)
    end = middle.alu(Ops.NEG)
    items, told = scheduled(end, overrides=cut(middle))
    assert [item.outputs for item in items] == [(middle,), (end,)]
    assert (told[middle].decision, told[middle].reason, told[middle].legality_error) == ("realize", "you cut here", "")
    np.testing.assert_array_equal(computed(end), computed(end, overrides=cut(middle)))


def test_softmax_is_cut_at_its_exponentials_and_at_a_view() -> None:
    x = softmax(from_numpy(numbers(64, 100)))
    expanded = [node for node in graph_order([x]) if node.op is Ops.EXPAND][-1]
    for node, kernels in ((only(x, Ops.EXP), 2), (only(x, Ops.REDUCE_AXIS), 2), (expanded, 3)):
        items, told = scheduled(x, overrides=cut(node))
        assert len(items) == kernels and told[node].reason == "you cut here"
        np.testing.assert_allclose(computed(x, overrides=cut(node))[0], computed(x)[0], rtol=1e-5)


def test_the_scores_of_a_small_attention_are_joined_at_a_cost() -> None:
    x = attention(*(from_numpy(numbers(40, 16, seed=seed)) for seed in range(3)))
    plain, told = scheduled(x)
    assert len(plain) == 3
    joined: set[LazyBuffer] = set()
    while stored := [node for node, one in told.items() if one.decision == "realize" and node is not x]:
        assert all(told[node].legality_error == "" for node in stored)
        joined.update(stored)
        items, told = scheduled(x, overrides=join(*joined))
    assert len(items) == 1
    assert any(told[node].reason.startswith("you joined here; ") for node in joined)
    np.testing.assert_allclose(computed(x, overrides=join(*joined))[0], computed(x)[0], rtol=1e-4, atol=1e-6)


def test_a_shared_value_can_be_recomputed_in_each_kernel() -> None:
    x = from_numpy(numbers(300, 200))
    shared = x.alu(Ops.EXP)
    outputs = shared.reduce(Ops.ADD, (0,)), shared.reduce(Ops.MAX, (1,))
    plain, told = scheduled(*outputs)
    assert len(plain) == 3 and told[shared].reason.startswith("2 kernels read it") and told[shared].legality_error == ""
    joined, told = scheduled(*outputs, overrides=join(shared))
    assert len(joined) == 2 and told[shared].decision == "duplicate"
    for mine, plain_values in zip(computed(*outputs, overrides=join(shared)), computed(*outputs)):
        np.testing.assert_allclose(mine, plain_values, rtol=1e-4)


def test_a_contiguous_node_can_be_fused_again() -> None:
    x = from_numpy(numbers(16, 8))
    kept = x.permute((1, 0)).contiguous()
    end = kept.reduce(Ops.ADD, (0,))
    assert len(scheduled(end)[0]) == 2
    items, told = scheduled(end, overrides=join(kept))
    assert len(items) == 1 and told[kept].decision == "fuse"
    np.testing.assert_allclose(computed(end, overrides=join(kept)), computed(end), rtol=1e-5)


def test_an_output_that_its_reader_stores_is_cut_off_and_joined() -> None:
    x = from_numpy(numbers(64, 32))
    first = x.alu(Ops.ADD, x)
    last = first.alu(Ops.NEG)
    (both,), told = scheduled(first, last)
    assert both.outputs == (last, first)
    assert "also stores it" in told[first].reason
    items, told = scheduled(first, last, overrides=cut(first))
    assert len(items) == 2 and "you also cut" in told[first].reason
    assert told[first].legality_error == ""
    for mine, plain in zip(computed(first, last, overrides=cut(first)), computed(first, last)):
        np.testing.assert_array_equal(mine, plain)


def running(x: LazyBuffer) -> LazyBuffer:
    return LazyBuffer(Ops.SCAN_AXIS, x.dtype, x.shape, (x,), (Ops.ADD, 1), x.device)


def legality_error(outputs: tuple[LazyBuffer, ...], node: LazyBuffer) -> str:
    """The legality error of joining `node`. An override that joins it changes nothing."""
    items, told = scheduled(*outputs)
    again, told_again = scheduled(*outputs, overrides=join(node))
    assert len(items) == len(again) and told[node].decision == told_again[node].decision == "realize"
    assert told[node].legality_error == told_again[node].legality_error != ""
    return told[node].legality_error


def test_an_illegal_join_names_the_rule() -> None:
    x = from_numpy(numbers(64, 32))
    scan = running(x)
    assert "a scan carries state" in legality_error((scan.alu(Ops.NEG),), scan)
    rows = x.reduce(Ops.ADD, (1,))
    scaled = x.alu(Ops.ADD, rows.expand(x.shape))
    assert "another shape or order" in legality_error((rows, scaled), rows)
    one = x.alu(Ops.EXP)
    left, right = one.alu(Ops.NEG).permute((1, 0)).contiguous(), one.alu(Ops.ADD, one)
    shared = legality_error((one, left, right), one)
    assert "it has several uses" in shared


def test_another_devices_memory_is_not_joined() -> None:
    x = from_numpy(numbers(8, 8)).alu(Ops.NEG)
    moved = LazyBuffer(Ops.COPY, x.dtype, x.shape, (x,), x.device, "PYTHON")
    end = moved.alu(Ops.EXP)
    assert "copied from LLVM to PYTHON" in legality_error((end,), moved)
    assert "also reads it" in legality_error((end,), x)


def test_a_gathered_table_stays_in_memory() -> None:
    table = from_numpy(numbers(10)).alu(Ops.NEG)
    index = from_numpy(np.array([[3, 1], [2, 0], [9, 9], [5, 4]], np.int32))
    shape = table.reshape((1, 1, 10)).expand((4, 2, 10))
    against = legality_error((shape.gather(index),), table)
    assert "a copy, gather or write" in against and "another shape or order" in against


@pytest.mark.parametrize("change", ["cut", "join"])
def test_no_read_moves_past_a_write(change: str) -> None:
    """A value of before a write, read after it: whatever is cut or joined, it is the value of before."""

    def program() -> tuple[Tensor, Tensor]:
        x = Tensor(numbers(6, 8)).realize()
        before = (x * 2).exp()
        x[2:4] = 7.0
        return x, (before + x.sum(0)).reshape(6, 8)

    def outputs_and_nodes() -> tuple[list[LazyBuffer], list[LazyBuffer]]:
        outputs = [one.lazydata.base for one in program()]
        return outputs, [one for one in graph_order(outputs) if one.buffer is None and one.op is not Ops.CONST]

    expected = [one.numpy() for one in program()]
    for place in range(len(outputs_and_nodes()[1])):
        outputs, nodes = outputs_and_nodes()
        if nodes[place].op in (Ops.IOTA, Ops.WRITE):
            continue
        found = computed(*outputs, overrides=cut(nodes[place]) if change == "cut" else join(nodes[place]))
        for mine, right in zip(found, expected):
            np.testing.assert_allclose(mine.reshape(right.shape), right, rtol=1e-5)


def test_a_split_reduction_is_cut_where_the_user_wrote_it() -> None:
    x = from_numpy(numbers(1024, 1024))
    inside = x.alu(Ops.ADD, x)
    total = inside.reduce(Ops.ADD, (0, 1))
    plain, _ = scheduled(total)
    items, told = scheduled(total, overrides=cut(inside))
    assert len(items) == len(plain) + 1 and told[inside].reason == "you cut here"
    np.testing.assert_allclose(computed(total, overrides=cut(inside))[0], computed(total)[0], rtol=1e-3)


def test_with_nothing_overridden_the_kernels_are_the_same() -> None:
    x = attention(*(from_numpy(numbers(40, 16, seed=seed)) for seed in range(3)))
    assert [item.ast for item in scheduled(x)[0]] == [item.ast for item in create_schedule([x], overrides=Overrides())]


@settings(max_examples=350, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(max_ops=9), st.integers(0, 1 << 16))
def test_no_value_changes_wherever_a_random_graph_is_cut_and_joined(graph: LazyBuffer, seed: int) -> None:
    if graph.buffer is not None or not graph.size:
        return
    chance = random.Random(seed)
    nodes = [node for node in graph_order([graph]) if node.buffer is None and node.op is not Ops.CONST]
    chosen = {node: chance.randrange(3) for node in nodes}
    overrides = Overrides(
        frozenset(node for node, choice in chosen.items() if choice == 1),
        frozenset(node for node, choice in chosen.items() if choice == 2),
    )
    items, told = scheduled(graph, overrides=overrides)
    stored = {node for item in items for node in item.outputs}
    for node, choice in chosen.items():
        if node not in told:
            continue
        kept = told[node].equal_to or node  # the node that it is computed with, where it was merged
        if kept not in told:  # nothing reads it: it is empty, or its readers mask all of it
            continue
        if choice == 1:
            assert kept in stored
        if choice == 2 and not told[kept].legality_error and chosen.get(kept) != 1:
            is_joined = any(len(item.outputs) > 1 and kept in item.outputs for item in items)
            others = [other for other in told if told[other].equal_to is kept]
            assert kept not in stored or is_joined or any(chosen.get(other) == 1 for other in others)
    (mine,), (plain,) = computed(graph, overrides=overrides), computed(graph)
    np.testing.assert_allclose(mine, plain, rtol=1e-4, atol=1e-4)
