"""A view runs its program again for data that a panel needs and the capture did not record."""

from __future__ import annotations

import pytest

from tinyexplore import Tensor
from tinyexplore.explore import Explorer, capture, explore


def asked(view: Explorer, **question: object) -> dict[str, object]:
    """The response of the view's widget to a request."""
    found: list[dict[str, object]] = []
    view.widget._answer(question, found.append)
    return found[0]


def test_the_second_run_saves_the_inputs() -> None:
    x = Tensor([[1.5, -2.0], [0.25, 4.0]]).realize()
    view = explore(lambda: x * 2, repeat=1, title="twice")
    payload = view.widget.payload
    assert "error" in asked(view, ask="debug", kernel=0)
    assert asked(view, ask="again", kernel=0, keep_inputs=True) == {"kernel": 0}
    state = asked(view, ask="debug", kernel=0)
    values = [cell for tensor in state["tensors"] for cell in str(tensor).split()]  # type: ignore[attr-defined]
    assert any("1.5" in cell for cell in values) and state["note"] == ""
    assert view.widget.payload != payload and view.trace.title == "twice"
    assert view.result.tolist() == [[3.0, -4.0], [0.5, 8.0]]


def test_the_second_run_measures_samples_and_ceilings() -> None:
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: (x @ x).relu(), repeat=1)
    assert asked(view, ask="verdicts")["rows"] == []
    assert "error" not in asked(view, ask="again", repeat=3)
    assert all(run.warm and len(run.times_us) == 3 for run in view.trace.runs)
    rows = asked(view, ask="verdicts")["rows"]
    assert len(rows) == len(view.trace.kernels)  # type: ignore[arg-type]


def test_the_kernel_is_found_by_its_title_where_its_number_changes() -> None:
    x, w = Tensor.rand(32, 16), Tensor.rand(16, 8)  # computed first, in two kernels that the second run has not

    def product() -> Tensor:
        return (x @ w).relu()

    view = explore(product, repeat=1)
    number = next(kernel.id for kernel in view.trace.kernels if not kernel.title.startswith("input"))
    assert number > 0
    assert asked(view, ask="again", kernel=number, keep_inputs=True) == {"kernel": 0}
    assert view.widget.cursor["kernel"] == 0 and len(view.trace.kernels) == 1


def test_an_exception_does_not_change_the_view() -> None:
    calls: list[int] = []

    def once() -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise KeyError("no second time")
        return Tensor([1.0, 2.0]) + 1

    view = explore(once, repeat=1)
    payload, kernels = view.widget.payload, view.trace.kernels
    response = asked(view, ask="again", repeat=2)
    assert "no second time" in str(response["error"]) and len(calls) == 2
    assert view.widget.payload == payload and view.trace.kernels == kernels


def test_a_capture_without_a_function_cannot_run_again() -> None:
    with capture() as view:
        (Tensor([1.0, 2.0]) + 1).realize()
    assert not view.widget.runs_again
    assert "cannot run again" in str(asked(view, ask="again")["error"])
    assert explore(lambda: Tensor([1.0]) + 1, repeat=1).widget.runs_again
    lazy = explore(Tensor([1.0, 2.0]) + 1, repeat=1)  # a tensor is realized once
    assert not lazy.widget.runs_again


def test_branches_of_the_first_run_are_not_used_in_the_second() -> None:
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: (x + 1).sum(1), repeat=1)
    view.kernels[0].apply(view.kernels[0].available_opts()[0])
    assert view.widget.branches or view.trace.branches
    asked(view, ask="again", keep_inputs=True)
    assert view.trace.branches == () and view.widget.branches == [] and view.widget.places == {}
    view.kernels[0].apply(view.kernels[0].available_opts()[0])
    assert len(view.trace.branches) > 0


@pytest.mark.parametrize("options", [{"keep_inputs": "yes"}, {"repeat": -1}, {"kernel": "first"}])
def test_malformed_requests_are_errors(options: dict[str, object]) -> None:
    view = explore(lambda: Tensor([1.0, 2.0]) + 1, repeat=1)
    assert "error" in asked(view, ask="again", **options)
