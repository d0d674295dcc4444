"""Grouped steps: one native call, and no memory for dead intermediates."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyexplore import Context, GlobalCounters, Tensor
from tinyexplore.execute.plan import Plan, plans, walk
from tinyexplore.execute.step_group import MAX_BYTES, MAX_STEPS, StepGroup
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR


@pytest.fixture(autouse=True)
def no_plans() -> None:
    plans.cache_clear()
    gc.collect()


STEPS = {
    "rows": lambda x: x - x.sum(1, keepdim=True),
    "columns": lambda x: x.flip(0) - x.sum(0, keepdim=True),
    "stored": lambda x: (x * 3).contiguous(),
    "turned": lambda x: x.reshape((4, 6)).permute((1, 0)).reshape((6, 4)) - 1,
    "running": lambda x: x.cumsum(0) if isinstance(x, Tensor) else np.cumsum(x, 0),
}


def by_numpy(name: str, x: np.ndarray) -> np.ndarray:
    match name:
        case "rows":
            found = x - x.sum(1, keepdims=True)
        case "columns":
            found = x[::-1] - x.sum(0, keepdims=True)
        case "stored":
            found = x * 3
        case "turned":
            found = x.reshape(4, 6).T.reshape(6, 4) - 1
        case _:
            found = np.cumsum(x, 0)
    return found % 5  # whole numbers that stay small: every way to compute them gives the same bits


def by_us(name: str, x: Tensor) -> Tensor:
    return STEPS[name](x) % 5


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=9),
    st.lists(st.sets(st.integers(0, 8)), min_size=2, max_size=4),
    st.lists(st.sets(st.integers(0, 8)), min_size=4, max_size=4),
)
def test_referenced_tensors_have_their_values(
    names: list[str], holders: list[set[int]], others: list[set[int]]
) -> None:
    """The same graph again and again, held in other places each time: its values, and those of what is made of them."""
    for turn, (held, made_of) in enumerate(zip(holders, others)):
        array = np.random.default_rng(turn).integers(0, 5, (6, 4)).astype(np.float32)
        x, expected = Tensor(array), array
        wanted: list[tuple[Tensor, np.ndarray]] = []
        for place, name in enumerate(names):
            x, expected = by_us(name, x), by_numpy(name, expected)
            if place in held:
                wanted.append((x, expected))
            if place in made_of:
                wanted.append((x * 2, expected * 2))  # in a graph of its own
        x.realize()
        for tensor, value in reversed(wanted):
            np.testing.assert_array_equal(tensor.numpy(), value)
        np.testing.assert_array_equal(x.numpy(), expected)


def kernels_of(run: object) -> int:
    GlobalCounters.reset()
    run()  # type: ignore[operator]
    return GlobalCounters.kernel_count


def test_referenced_intermediates_are_computed_once() -> None:
    for turn in range(3):
        x = Tensor(np.full((6, 4), turn + 1.0, np.float32))
        first = (x - x.sum(1, keepdim=True)).contiguous()
        between = first.flip(0) + 1  # fused into the next kernel, and held
        last = (between.sum(0, keepdim=True) * between).contiguous()
        end = last.flip(1).sum(1)
        if turn == 1:
            del between, first, last
            assert kernels_of(end.realize) > 1
            continue
        del first, last
        end.realize()
        assert kernels_of(between.realize) == 1, "what it is made of is there"
        assert between.tolist() == [[1 - 3 * (turn + 1.0)] * 4] * 6


def chain(x: Tensor, length: int) -> Tensor:
    for _ in range(length):
        x = (x.flip(0) - x.sum(0, keepdim=True)) % 5
    return x


def plan_of(x: Tensor) -> Plan:
    graph = walk([x.lazydata])
    assert graph is not None
    found = plans.find(graph)
    assert found is not None
    return found


def test_a_hundred_kernels_are_one_call_and_take_one_block_of_memory() -> None:
    x = Tensor.randint(8, 8, high=5).float().realize()
    expected = x.numpy()
    for _ in range(80):
        expected = (expected[::-1] - expected.sum(0, keepdims=True)) % 5
    chain(x, 80).realize()
    plan = plan_of(chain(x, 80))
    units = [unit for lanes in plan.groups or () for lane in lanes for unit in lane]
    assert plan.count > 80 and all(isinstance(unit, StepGroup) for unit in units)
    assert len(units) == -(-plan.count // MAX_STEPS)
    before = HOST_ALLOCATOR.used_bytes
    allocated: list[int] = []
    allocate = HOST_ALLOCATOR.allocate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tinyexplore.execute.step_group._get_allocate", lambda device: lambda n: allocated.append(n) or allocate(n)
        )
        plan.groups = None
        found = chain(x, 80).realize()
        assert len(allocated) <= 4 * len(units)  # the shared block, and what crosses from group to group
        assert sum(allocated) < 80 * 256
    np.testing.assert_array_equal(found.numpy(), expected)
    assert HOST_ALLOCATOR.used_bytes - before <= 256


def test_a_group_holds_no_large_results() -> None:
    size = MAX_BYTES // 8
    x = Tensor(np.ones((2, size), np.float32)).realize()
    chain(x, 6).realize()
    plan = plan_of(chain(x, 6))
    units = [unit for lanes in plan.groups or () for lane in lanes for unit in lane]
    assert max(sum(made.nbytes for made in unit.outputs) for unit in units) <= max(MAX_BYTES, 8 * size)
    assert len(units) > 4


def test_a_memory_error_midway_leaves_a_graph_that_can_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With results that fill several groups, so that some of it is done when the memory ends."""
    array = np.arange(2 * MAX_BYTES // 16, dtype=np.float32).reshape(2, -1) % 7
    allocate = HOST_ALLOCATOR.allocate

    def graph() -> tuple[Tensor, Tensor]:
        held = chain(Tensor(array), 3)
        return held, chain(held, 4)

    for pair in (graph(), graph()):
        pair[1].realize()
    expected = [tensor.numpy() for tensor in pair]
    for left in range(12):
        remaining = [left]

        def giving_out(nbytes: int, remaining: list[int] = remaining) -> object:
            remaining[0] -= 1
            if remaining[0] == -1:
                raise MemoryError("no more")
            return allocate(nbytes)

        plans.cache_clear()
        graph()[1].realize()
        held, last = graph()
        plan = plan_of(last)
        with monkeypatch.context() as patch:
            patch.setattr(HOST_ALLOCATOR, "allocate", giving_out)
            plan.groups = None
            if left < 5:
                with pytest.raises(MemoryError):
                    last.realize()
            else:
                try:
                    last.realize()
                except MemoryError:
                    pass
        assert not plan.running
        np.testing.assert_array_equal(last.numpy(), expected[1])
        np.testing.assert_array_equal(held.numpy(), expected[0])


def test_a_later_result_does_not_read_a_part_written_in_place() -> None:
    for turn in range(4):
        x = Tensor(np.arange(24, dtype=np.float32).reshape(6, 4) + turn).realize() + 0
        x.realize()
        old = x.sum(0)
        kept = (old * 2).contiguous()
        x[2:4] = kept
        found = (x.sum(1) + 1).contiguous()
        (found - found.sum()).realize()
        expected = np.arange(24, dtype=np.float32).reshape(6, 4) + turn
        total = expected.sum(0)
        expected[2:4] = total * 2
        np.testing.assert_array_equal(x.numpy(), expected)
        np.testing.assert_array_equal(old.numpy(), total)
        np.testing.assert_array_equal(found.numpy(), expected.sum(1) + 1)


@pytest.mark.parametrize("settings_", [{"THREADS": 1}, {"THREADS": 3}, {"NOOPT": 1}])
def test_groups_run_with_other_options(settings_: dict[str, int]) -> None:
    x = Tensor(np.arange(24, dtype=np.float32).reshape(6, 4))
    expected = chain(x, 5).numpy()
    with Context(**settings_):
        for _ in range(3):
            np.testing.assert_array_equal(chain(x, 5).numpy(), expected)
