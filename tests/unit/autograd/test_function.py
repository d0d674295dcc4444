"""User-defined operations with user-defined gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Function
from tinyexplore.uop import Ops


class Product(Function):
    """x · y, whose gradients come out twice as large: it shows whose rule was used."""

    def forward(self, x: Any, y: Any, keep: bool = True) -> LazyBuffer:
        self.x, self.y = x, y
        return x.alu(Ops.MUL, y)

    def backward(self, gradient: Any) -> Any:
        twice = gradient.alu(Ops.ADD, gradient)
        assert self.needs_input_grad[0] is not False
        return twice.alu(Ops.MUL, self.y), twice.alu(Ops.MUL, self.x)


class Same(Function):
    """x, with the gradient turned round."""

    def forward(self, x: Any) -> LazyBuffer:
        return x

    def backward(self, gradient: Any) -> Any:
        return gradient.alu(Ops.NEG)


X, Y = np.array([1.0, 2.0, -3.0], np.float32), np.array([4.0, 0.5, 2.0], np.float32)


def test_the_gradient_is_computed_by_the_functions_backward() -> None:
    x, y = Tensor(X, requires_grad=True), Tensor(Y, requires_grad=True)
    made = Product.apply(x, y, keep=False)
    (made * 3).sum().backward()
    np.testing.assert_allclose(made.numpy(), X * Y)
    np.testing.assert_allclose(x.grad.numpy(), 6 * Y)
    np.testing.assert_allclose(y.grad.numpy(), 6 * X)
    turned = Tensor(X, requires_grad=True)
    (Same.apply(turned) * 2 + turned).sum().backward()
    np.testing.assert_allclose(turned.grad.numpy(), np.full(3, -1.0))


def test_unmarked_inputs_get_gradients_from_backward_too() -> None:
    x, y = Tensor(X), Tensor(Y)
    (found,) = Product.apply(x, y).sum().gradient(x)
    np.testing.assert_allclose(found.numpy(), 2 * Y)


def test_gradients_of_a_function_can_be_differentiated_again() -> None:
    x = Tensor(X, requires_grad=True)
    (first,) = Product.apply(x, x).sum().gradient(x)  # 4 x by its rule
    np.testing.assert_allclose(first.numpy(), 4 * X)
    (second,) = (first * first).sum().gradient(x)  # 2 · 4x · 4
    np.testing.assert_allclose(second.numpy(), 32 * X)


def test_misuse_raises_an_error() -> None:
    class OneTooFew(Product):
        def backward(self, gradient: Any) -> Any:
            return gradient

    class OfAnotherShape(Same):
        def backward(self, gradient: Any) -> Any:
            return gradient.reshape((3, 1))

    x = Tensor(X, requires_grad=True)
    with pytest.raises(ValueError, match="OneTooFew.backward gave 1 gradients for 2 inputs"):
        OneTooFew.apply(x, x).sum().backward()
    with pytest.raises(ValueError, match=r"OfAnotherShape.backward .*\(3, 1\) for .*\(3,\)"):
        OfAnotherShape.apply(x).sum().backward()
    with pytest.raises(TypeError, match="Same.apply: .*one tensor"):
        Same.apply()
    with pytest.raises(NotImplementedError, match="Function has no forward"):
        Function.apply(x)
