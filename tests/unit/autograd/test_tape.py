"""The tape itself: accumulation, modes, depth, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from tinyexplore import Tensor, dtypes
from tinyexplore.autograd import GRADIENTS
from tinyexplore.autograd.rules import REDUCE_GRADIENTS


def test_gradients_add_up_over_uses_and_calls() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * x + x).sum()
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [3, 5]
    y.backward()
    assert x.grad.tolist() == [6, 10]


def test_a_loss_may_be_read_before_it_is_differentiated() -> None:
    x = Tensor([3.0], requires_grad=True)
    hidden = (x * 2).realize()
    loss = (hidden * hidden).sum()
    assert loss.item() == 36
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [24]


def test_assigning_after_use_does_not_change_the_gradient() -> None:
    x = Tensor([3.0], requires_grad=True)
    loss = (x * x).sum()
    x.assign(Tensor([100.0]))
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [6]


def test_in_place_operations_are_on_the_tape() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    before = (y * y).sum()
    y *= 3
    y += x
    assert before.gradient(x)[0].tolist() == [8, 16]
    assert (y * y).sum().gradient(x)[0].tolist() == [98, 196]


def test_no_gradient_flows_through_an_overwritten_value() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.assign(x * 5)
    with pytest.raises(RuntimeError, match=r"shape \(2,\) .*assigned to after"):
        y.sum().backward()
    assert x.grad is None
    assert (y.detach() * x).sum().gradient(x)[0].tolist() == [5, 10]


def test_leaves_without_requires_grad_get_no_gradient() -> None:
    x, w = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=False)
    with Tensor.inference_mode():
        known = x * 2
    (x * w * known * x.detach()).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 32] and w.grad is None and not known.requires_grad


def test_a_chain_of_a_hundred_thousand_operations() -> None:
    x = Tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    (gradient,) = y.gradient(x)
    assert gradient.lazydata.arg == 1.0


def test_gradient_accepts_any_tensor_and_does_not_set_grad() -> None:
    x = Tensor([2.0], requires_grad=True)
    hidden = x * 3
    loss = (hidden * hidden).sum()
    by_hidden, by_x = loss.gradient(hidden, x)
    assert by_hidden.tolist() == [12] and by_x.tolist() == [36]
    assert x.grad is None and hidden.grad is None
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [36]


def test_operations_are_taped_only_if_needed() -> None:
    x = Tensor([2.0])
    assert (x * 3)._ctx is None and x.requires_grad is None
    y = Tensor([2.0], requires_grad=True)
    with Tensor.test():
        assert (y * 3)._ctx is None
    assert (y.detach() * 3)._ctx is None
    assert (y > 1)._ctx is None and y.int()._ctx is None
    assert (y * 3)._ctx is not None


def test_backward_starts_from_a_given_gradient() -> None:
    x = Tensor([[1.0, 2.0]], requires_grad=True)
    (x * 2).backward(Tensor([[3.0, 5.0]]))
    assert x.grad is not None and x.grad.tolist() == [[6, 10]]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64])
def test_a_gradient_has_the_type_of_its_tensor(dtype: object) -> None:
    x = Tensor([1.0, 2.0], dtype=dtype, requires_grad=True)  # type: ignore[arg-type]
    (x.float() * 3).sum().backward()
    assert x.grad is not None and x.grad.dtype is dtype and x.grad.tolist() == [3, 3]


def test_gradients_cross_devices() -> None:
    x = Tensor([1.0, 2.0], device="PYTHON", requires_grad=True)
    (x.llvm() * 3).sum().backward()
    assert x.grad is not None and x.grad.device == "PYTHON" and x.grad.tolist() == [3, 3]


def test_a_moved_tensor_keeps_requires_grad_and_grad() -> None:
    for wanted in (True, False, None):
        x = Tensor([1.0, 2.0], requires_grad=wanted)
        if wanted:
            x.square().sum().backward()
        moved, divided = x.to("PYTHON"), x.shard(("LLVM", "LLVM:1"), 0)
        assert moved.requires_grad is divided.requires_grad is wanted
        assert (moved.grad is None) == (x.grad is None)
        if moved.grad is not None:
            assert (moved.grad.device, moved.grad.tolist()) == ("PYTHON", [2.0, 4.0])


def test_many_uses_of_one_narrow_number_are_summed_in_float32() -> None:
    x = Tensor([1.0], dtype="float16", requires_grad=True)
    x.expand(4096).sum().backward()
    assert x.grad is not None and x.grad.item() == 4096


def test_a_tensor_that_cannot_be_differentiated_raises_an_error() -> None:
    with pytest.raises(RuntimeError, match="reduce it to a scalar"):
        (Tensor([1.0, 2.0], requires_grad=True) * 2).backward()
    x, y = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"targets \[1\] were not used"):
        x.sum().gradient(x, y)
    with pytest.raises(ValueError, match="the gradient has shape"):
        (x * 2).backward(Tensor([1.0, 2.0]))


def test_every_rule_has_a_name_and_states_its_law() -> None:
    for rule in {*GRADIENTS.values(), *REDUCE_GRADIENTS.values()}:
        assert rule.__name__.endswith("_gradient")
        assert rule.__doc__


def test_contiguous_backward_keeps_value_and_gradient() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x.contiguous_backward()
    (y * np.float32(3)).contiguous().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3]


def test_parts_are_written_in_place_without_a_tape() -> None:
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    hidden = w * 2
    with Tensor.inference_mode():
        w[0] = 5.0
        w[1:].assign(Tensor([7.0, 8.0]))
        hidden[0] = w[1]
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [10, 14, 16] and hidden.tolist() == [7, 4, 6]
    with pytest.raises(RuntimeError, match="assigned to after"):
        hidden.sum().backward()


def test_gradients_at_kinks() -> None:
    """Of a smooth function the slope, else that of one piece, as in PyTorch."""
    cases: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
        "elu": (lambda x: x.elu(), 0.0, 1.0),
        "elu of another scale": (lambda x: x.elu(0.5), 0.0, 0.5),
        "celu": (lambda x: x.celu(2.0), 0.0, 1.0),
        "selu": (lambda x: x.selu(), 0.0, 1.67326 * 1.0507),
        "relu6": (lambda x: x.relu6(), 0.0, 0.0),
        "acosh": (lambda x: x.acosh(), 1.0, float("inf")),
    }
    for name, (function, at, slope) in cases.items():
        for marked in (True, None):
            x = Tensor(at, requires_grad=marked)
            assert function(x).gradient(x)[0].item() == pytest.approx(slope), name
    assert Tensor([-1.0]).celu(-1.0).item() == pytest.approx(1 - np.e)  # min(0, -(e - 1))


def test_referenced_intermediates_get_their_gradient() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = (y + 1) * y  # y + 1 is only the tape's
    loss = z.sum()
    loss.backward()
    assert (x.grad.tolist(), y.grad.tolist(), z.grad.tolist()) == ([21.0, 39.0], [7.0, 13.0], [1.0, 1.0])
    assert loss.grad.item() == 1.0
    (only,) = [one for one in z._ctx.inputs if one is not y]
    assert only.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [8.0, 14.0]


def test_backward_without_requires_grad_warns() -> None:
    x = Tensor([1.0, 2.0])
    with pytest.warns(UserWarning, match="nothing .*requires a gradient") as found:
        x.sum().backward()
    assert found[0].filename == __file__ and x.grad is None
    marked = Tensor([1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Tensor.inference_mode():
            (marked * 2).sum().backward()
    assert marked.grad is None
    with pytest.raises(RuntimeError, match="reduce it to a scalar"):
        (x * 2).backward()


def test_ints_may_be_marked_and_get_no_gradient() -> None:
    places = Tensor([1, 2], requires_grad=True)
    weight = Tensor([0.5, 0.25], requires_grad=True)
    (places * weight).sum().backward()
    assert places.grad is None and weight.grad.tolist() == [1.0, 2.0]
