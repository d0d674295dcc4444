"""A view keeps its old values after a write to its tensor. The first write gives a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.tensor.stale_views import StaleViews


@pytest.fixture(autouse=True)
def nothing_said_yet() -> Iterator[None]:
    before, StaleViews.searches = StaleViews.searches, 100
    yield
    StaleViews.searches = before


def told(program: Callable[[Tensor], Any]) -> list[warnings.WarningMessage]:
    """The warnings while `program` writes to a tensor of shape (4, 3)."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        program(Tensor(np.zeros((4, 3), np.float32)).realize())
    return found


def write_row(x: Tensor, held: Any) -> Any:
    x[0] = 5
    return held


def test_a_view_keeps_its_values_and_warns_once() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    y = x[:2]
    with pytest.warns(UserWarning, match=r"shape \(3,\) .* \(2,\)") as found:
        x[0] = 5
    assert found[0].filename == __file__
    assert (x.tolist(), y.tolist()) == ([5, 2, 3], [1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[1] = 6
    assert y.tolist() == [1, 2]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: write_row(x, x.T),
        lambda x: write_row(x, {"kept": [x.reshape(12)[:2]]}),
        lambda x: [x[1:3], x[:2].assign(Tensor.ones(2, 3))],
        lambda x: [x[:2], x.__setitem__(Tensor([0, 3]), 1.0)],
        lambda x: [x[:2], x.__setitem__(x > 1, 5.0)],
    ],
)
def test_every_kind_of_write_warns(program: Callable[[Tensor], Any]) -> None:
    assert len(told(program)) == 1


@pytest.mark.parametrize(
    "program",
    [
        lambda x: write_row(x, None),
        lambda x: write_row(x, x[1:]),  # of other rows
        lambda x: write_row(x, x[:2] + 1),  # no view
        lambda x: write_row(x, x[:2].clone()),
        lambda x: x.__setitem__(slice(0, 2), x[1:3]),
        lambda x: x.__setitem__(([0, 3], 1), 5.0),
        lambda x: x[:2].assign(x[1:3]),
        lambda x: x[1:3].__iadd__(1),
        lambda x: write_row(x, (x[:2] @ Tensor.ones(3, 2, requires_grad=True)).sum()),  # the tape has the view
    ],
)
def test_writes_that_no_referenced_view_shows_do_not_warn(
    program: Callable[[Tensor], Any],
) -> None:
    assert told(program) == []


def test_steps_that_write_in_a_loop_are_not_searched() -> None:
    x = Tensor(np.zeros((4, 3), np.float32)).realize()
    before = StaleViews.searches
    for row in range(4):
        x[row] = x[row] * 2 + row
    assert StaleViews.searches == before
    assert x.tolist() == [[row] * 3 for row in range(4)]
