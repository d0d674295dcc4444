"""Kernels that differ only in the offset of their first read share a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.graphs import numbers
from tinyexplore import Tensor, TinyJit, Variable
from tinyexplore.engine import schedule
from tinyexplore.explore import explore
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import Ops

STEPS = 6


def recurrent(x: Tensor, h: Tensor, w: Tensor, u: Tensor) -> Tensor:
    """A tanh cell over the first axis of `x`."""
    for step in range(x.shape[0]):
        h = (x[step] @ w + h @ u).tanh()
    return h


def operands(steps: int = STEPS) -> tuple[np.ndarray, ...]:
    return numbers(steps, 8, 16), numbers(8, 16), numbers(16, 16) / 16, numbers(16, 16) / 16


def items_of(*results: Tensor) -> Sequence[ScheduleItem]:
    return schedule([result.lazydata for result in results])


def expected(x: np.ndarray, h: np.ndarray, w: np.ndarray, u: np.ndarray) -> np.ndarray:
    for row in x:
        h = np.tanh(row @ w + h @ u)
    return h


def test_the_steps_of_a_recurrent_network_are_one_program() -> None:
    items = items_of(recurrent(*[Tensor(one) for one in operands()]))
    assert len(items) == STEPS and len({item.ast for item in items}) == 1
    assert [list(item.starts.values()) for item in items] == [[step] for step in range(STEPS)]
    for item in items:
        assert item.variables == tuple(item.starts) and item.free_variables == ()
        (start,) = item.variables
        assert start.arg == ("start1", 0, STEPS - 1)


def test_the_steps_of_its_gradient_are_one_program() -> None:
    x, h, w, u = (Tensor(one) for one in operands(24))
    items = items_of(*recurrent(x, h, w.requires_grad_(), u.requires_grad_()).square().sum().gradient(w, u))
    assert len(items) > 48 and len({item.ast for item in items}) < 10


ROWS: dict[str, Callable[[Tensor], list[Tensor]]] = {
    "rows": lambda x: [x[row].sin() for row in (0, 3, 5)],
    "rows from behind": lambda x: [x[row].flip(0).sin() for row in (5, 1)],
    "every second column": lambda x: [x[row, ::2].sin() for row in (1, 2)],
    "windows": lambda x: [x[row].unfold(0, 3, 1).sum(1) for row in (2, 4)],
    "padded": lambda x: [x[row].pad((2, 1)).exp() for row in (0, 4)],
    "two of one buffer": lambda x: [x[row] * x[row + 2] for row in (0, 1, 3)],
    "at different distances": lambda x: [x[row] * x[2 * row] for row in (0, 1, 2)],
    "picked": lambda x: [x[row][Tensor([3, 0, 2])] * 2 for row in (1, 5)],
    "columns": lambda x: [x[:, column].exp() for column in (0, 7)],
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("device", ["LLVM", "PYTHON", "CLANG"])
def test_values_are_those_of_kernels_of_their_own(name: str, device: str) -> None:
    data = numbers(6, 10)
    results = ROWS[name](Tensor(data, device=device).realize())
    apart = [one.numpy() for one in ROWS[name](Tensor(data, device=device).realize())]
    results[0].realize(*results[1:])
    for together, alone in zip(results, apart):
        np.testing.assert_array_equal(together.numpy(), alone)


def test_a_step_of_the_argument_is_as_long_as_all_places_allow() -> None:
    """So it is known which loads start at a cache line."""
    x = Tensor(numbers(9, 64))
    items = items_of(*[x[row].sin() for row in (1, 4, 7)])
    (ast,) = {item.ast for item in items}
    assert ast is not None
    assert [list(item.starts.values()) for item in items] == [[1], [4], [7]]
    (start,) = ast.find(Ops.DEFINE_VAR)
    assert start.arg == ("start1", 0, 7)
    assert any(64 in [src.arg for src in node.src if src.op is Ops.CONST] for node in ast.find(Ops.MUL))


def test_other_differences_need_separate_programs() -> None:
    x = Tensor(numbers(4, 64))
    for results in ([x[0].sin(), x[1].cos()], [x[0].sin()], [x[0] * 2.0, x[1] * 3.0]):
        assert all(not item.starts for item in items_of(*results))
    taken = Variable("start1", 1, 64).bind(32)
    shrunk = [x[row].shrink(((0, taken),)).sin() for row in (0, 1)]
    assert all(not item.starts for item in items_of(*shrunk))  # the user has a Variable of that name


def test_other_memory_and_replays_begin_at_the_same_places() -> None:
    """A plan that is found again, and a captured call, get other buffers."""
    captured = TinyJit(recurrent)
    for seed in range(5):
        arrays = [one + seed / 8 for one in operands()]
        tensors = [Tensor(one).realize() for one in arrays]
        right = expected(*arrays)
        np.testing.assert_allclose(recurrent(*tensors).numpy(), right, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(captured(*tensors).numpy(), right, rtol=1e-5, atol=1e-5)


def test_start_offsets_work_with_a_variable_of_the_user() -> None:
    """Its value is another in each call; where the kernels begin is not."""
    x = Tensor(numbers(4, 64)).realize()
    captured = TinyJit(lambda size: [x[row].shrink(((0, size),)).sum().realize() for row in range(4)])
    length = Variable("length", 1, 64)
    for value in (3, 17, 64, 8):
        sums = [one.item() for one in captured(length.bind(value))]
        np.testing.assert_allclose(sums, x.numpy()[:, :value].sum(1), rtol=1e-5, atol=1e-5)


def test_a_recording_has_the_start_offset_of_each_kernel() -> None:
    x, h, w, u = (Tensor(one).realize() for one in operands())
    trace = explore(recurrent, x, h, w, u).trace
    assert len(trace.kernels) == STEPS
    assert [kernel.same_as for kernel in trace.kernels] == [None] + [trace.kernels[0].id] * (STEPS - 1)
