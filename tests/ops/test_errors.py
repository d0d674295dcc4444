"""Every class of misuse: one kind of exception, raised at the call, that says what was found and what would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyexplore import Context, Tensor
from tinyexplore.device.registry import UnknownDevice
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.errors import ArgumentError, IndexShapeError, OperandError


def x() -> Tensor:
    return Tensor.ones(2, 3)


def elsewhere() -> Tensor:
    return Tensor.ones(2, 3, device="PYTHON")


def graded() -> Tensor:
    return Tensor([1.0, 2.0], requires_grad=True)


Case = tuple[Callable[[], Any], type[Exception], str]

SHAPES: list[Case] = [
    (lambda: x() + Tensor.ones(4), ShapeError, r"add: shapes \(2, 3\) and \(4,\) do not broadcast: axis -1 has sizes"),
    (lambda: x().maximum(Tensor.ones(2)), ShapeError, "maximum: shapes .* do not broadcast"),
    (lambda: (x() > 0).where(Tensor.ones(4), 0), ShapeError, "where: shapes .* do not broadcast"),
    (lambda: x().masked_fill(Tensor([True, False]), 0), ShapeError, "where: shapes .* do not broadcast"),
    (lambda: x() @ x(), ShapeError, r"last axis of the first \(3\) must equal the last but one of the second \(2\)"),
    (lambda: x().linear(Tensor.ones(4, 2)), ShapeError, r"\(3\) must equal the last but one of the second \(4\)"),
    (lambda: x().reshape(5), ShapeError, r"reshape \(2, 3\) to \(5,\): 6 elements are not 5"),
    (lambda: x().reshape(-1, -1), ShapeError, "only one size can be -1"),
    (lambda: x().reshape(-1, 4), ShapeError, "6 elements do not divide by 4"),
    (lambda: x().expand(4, 3), ShapeError, "only axes of size 1"),
    (lambda: x().permute(0, 0), ShapeError, r"need each of 0\.\.1 once"),
    (lambda: x().shrink(((0, 5), None)), ShapeError, "need 0 ≤ start ≤ stop ≤ size"),
    (lambda: x().pad(((1, 1),)), ShapeError, "need one .* per axis"),
    (lambda: x().pad((1, 2, 3)), ShapeError, "need pairs of ints"),
    (lambda: x().repeat(2), ShapeError, "need one non-negative number per axis"),
    (lambda: x().split([1, 3], 1), ShapeError, "they add up to 4"),
    (lambda: x().unflatten(1, (2, 2)), ShapeError, "3 elements do not fit"),
    (lambda: x().unfold(1, 5, 1), ShapeError, "they do not fit"),
    (lambda: x().diagonal(0, 1, 1), ShapeError, "need two different axes"),
    (lambda: Tensor.ones(3).tril(), ShapeError, "need two axes at least"),
    (lambda: Tensor.ones(2, 2, 2).diag(), ShapeError, "need a vector or a matrix"),
    (lambda: x().cat(Tensor.ones(2, 4)), ShapeError, "all other axes must agree"),
    (lambda: x().stack(Tensor.ones(3)), ShapeError, "they must be equal"),
    (lambda: Tensor.einsum("ij,jk->ik", x(), x()), ShapeError, "'j' is 3 and 2"),
    (lambda: x().gather(0, Tensor([[0, 0, 0, 0]])), ShapeError, "too large"),
    (lambda: x().conv2d(Tensor.ones(1, 1, 2, 2)), ShapeError, "need as many axes in both"),
    (lambda: x().max_pool2d((9, 9)), ShapeError, "add padding or take a smaller kernel"),
    (lambda: Tensor(1.0).max_pool2d(), ShapeError, "it has too few axes"),
    (lambda: x().cross_entropy(Tensor([1, 2, 3])), ShapeError, r"need \(2,\)"),
    (lambda: x().sparse_categorical_crossentropy(Tensor([1])), ShapeError, r"need \(2,\)"),
    (lambda: x().scaled_dot_product_attention(Tensor.ones(2, 4), x()), ShapeError, "matmul of shapes"),
    (lambda: x().assign(Tensor.ones(2)), ShapeError, "assign: shapes .* do not broadcast"),
    (lambda: x().assign(Tensor.ones(4, 2, 3)), ShapeError, "assign a tensor of shape .* must expand to it"),
    (lambda: x().unfold(0, 1, 0), ShapeError, "windows of 1, step 0: they do not fit"),
    (lambda: x().gelu(approximate="erf"), ValueError, "choose 'tanh' or 'none'"),
    (lambda: Tensor.full((2, -1), 0), ValueError, "sizes cannot be negative"),
    (lambda: Tensor.ones((2, 2), 2), ValueError, r"made of ints; found \(2, 2\) \(tuple\)"),
    (lambda: x().reshape(3, 2, None), TypeError, "made of ints; found None"),
    (lambda: Tensor.ones(0).max(), ValueError, "there is no max of nothing"),
    (lambda: Tensor([[1], [1, 2]]), ValueError, "ragged list"),
    (lambda: x().item(), ValueError, "it has 6 elements, not one"),
]
AXES: list[Case] = [
    (lambda: x().sum(5), IndexError, r"axis 5 of a tensor of shape \(2, 3\): choose one of -2\.\.1"),
    (lambda: x().mean(-3), IndexError, "axis -3"),
    (lambda: x().softmax(7), IndexError, "axis 7"),
    (lambda: x().argmax(2), IndexError, "axis 2"),
    (lambda: x().cumsum(2), IndexError, "axis 2"),
    (lambda: Tensor(1.0).cumsum(1), IndexError, "axis 1"),
    (lambda: Tensor(1.0).cumprod(-2), IndexError, "axis -2"),
    (lambda: Tensor(1.0).cummax(1), IndexError, "axis 1"),
    (lambda: Tensor(1.0).logcumsumexp(1), IndexError, "axis 1"),
    (lambda: x().sort(3), IndexError, "axis 3"),
    (lambda: x().transpose(0, 3), IndexError, "axis 3"),
    (lambda: x().unsqueeze(4), IndexError, r"choose one of -3\.\.2"),
    (lambda: x().flip(4), IndexError, "axis 4"),
    (lambda: x().sum((0, 0)), ShapeError, "one stands there twice"),
    (lambda: x().sum(1.5), TypeError, "need an int"),
    (lambda: x().sum("a"), TypeError, "axis 'a' .*: need ints"),
    (lambda: x().topk(9), ValueError, "need 0 ≤ k ≤ 3"),
]
TYPES: list[Case] = [
    (lambda: x() + "a", TypeError, "unsupported operand"),
    (lambda: x().add(None), OperandError, "add of a Tensor and NoneType None: need a Tensor, a number or an array"),
    (lambda: x() < "a", TypeError, "not supported between"),
    (lambda: "a" in x(), OperandError, "eq|comparison"),
    (lambda: Tensor(1.0).cat(Tensor(2.0)), IndexError, r"join them with stack\(\)"),
    (lambda: x().cat(3), TypeError, "cat of a Tensor and int 3: need Tensors"),
    (lambda: x() @ 3, TypeError, "unsupported operand"),
    (lambda: x() & x(), OperandError, "and of float32 tensors: bits are for ints and bools"),
    (lambda: x() << 1, OperandError, "left shift of float32"),
    (lambda: Tensor([True]) - True, OperandError, r"use \^"),
    (lambda: Tensor([2]) ** -1, ArgumentError, "cast to float first"),
    (lambda: Tensor([2]) << -1, ValueError, "negative count"),
    (lambda: x().cast("float33"), ValueError, "unknown dtype 'float33'; known: bool"),
    (lambda: x().one_hot(3), OperandError, "one_hot of a float32 tensor: need ints"),
    (lambda: x().gather(0, x()), OperandError, "gather by a tensor of float32: need ints"),
    (lambda: Tensor([1], requires_grad=True), TypeError, "only floats have gradients"),
    (lambda: x().assign(Tensor([[1, 2, 3], [1, 2, 3]])), OperandError, "cast it first"),
    (lambda: Tensor("a"), OperandError, "cannot be made of str"),
    (lambda: Tensor([1, None]), TypeError, "NoneType"),
    (lambda: Tensor(np.array(["a"])), TypeError, "cannot become a Tensor"),
    (lambda: Tensor([2**40], dtype="int32"), OverflowError, "does not fit in int32"),
    (lambda: Tensor.arange(2**33, 2**33 + 2), OverflowError, "does not fit in int32"),
    (lambda: Tensor.arange(3, -2, -1, dtype="uint8"), OverflowError, "-1 does not fit in uint8"),
    (lambda: Tensor.rand(2, dtype="int32"), ValueError, "randint gives ints"),
    (lambda: Tensor.manual_seed("a"), TypeError, "manual_seed 'a' .*: need an int"),  # type: ignore[arg-type]
    (lambda: x().reshape(2.0, 3), TypeError, "made of ints; found 2.0"),
    (lambda: bool(x()), TypeError, r"use .any\(\) or .all\(\)"),
    (lambda: x().half().data(), TypeError, "memoryview has no float16"),
]
INDICES: list[Case] = [
    (lambda: x()[5], IndexError, r"index 5 for axis 0 of size 2 .* is out of bounds"),
    (lambda: x()[0, 0, 0], IndexError, "too many indices: 3 indices for a tensor of shape"),
    (lambda: x()[:, [0, 3]], IndexError, "index 3 for axis 1 of size 3"),
    (lambda: x()[..., ...], IndexError, "a single ellipsis"),
    (lambda: x()[[0, 1], [0, 1, 2]], IndexShapeError, r"indices: shapes \(2,\) and \(3,\) do not broadcast"),
    (lambda: x()[[0.5]], IndexError, r"index 0.5 \(float\) in a list: need ints"),
    (lambda: x()[Tensor([True, False, True])], IndexError, "a mask with 3 places for axis 0 of size 2"),
    (lambda: x()[1.5], IndexError, "need ints, slices"),
    (lambda: x()[Tensor([1.5])], IndexError, "a tensor of float32 cannot be an index"),
    (lambda: x().__setitem__(9, 1), IndexError, "index 9"),
    (lambda: x().__setitem__(0, Tensor.ones(7)), ShapeError, "setitem: shapes .* do not broadcast"),
    (lambda: x().__setitem__(0, "a"), OperandError, "setitem of a Tensor and str"),
    (lambda: graded().__setitem__(0, 1), NotImplementedError, "has no gradient"),
]
DEVICES: list[Case] = [
    (lambda: Tensor([1], device="NOPE"), UnknownDevice, "unknown device 'NOPE'; known: LLVM, CLANG, PYTHON"),
    (lambda: x().to("NOPE"), UnknownDevice, "unknown device 'NOPE'"),
    (lambda: x().to(3), TypeError, "device 3 .*: need a name"),  # type: ignore[arg-type]
    (lambda: x() + elsewhere(), ValueError, r"tensors on LLVM and PYTHON: move one with .to\(\)"),
    (lambda: x() @ elsewhere().T, ValueError, r"tensors on LLVM and PYTHON: move one with .to\(\)"),
    (lambda: x().cat(elsewhere()), ValueError, r"tensors on LLVM and PYTHON: move one with .to\(\)"),
    (lambda: (x() > 0).where(elsewhere(), 0), ValueError, r"the condition is on LLVM, the values on PYTHON"),
    (lambda: x().assign(elsewhere()), ValueError, r"move it with .to\(\)"),
]
GRADIENTS: list[Case] = [
    (lambda: graded().mul(2).backward(), RuntimeError, r"reduce it to a scalar \(.sum\(\), .mean\(\)\) or give"),
    (lambda: x().sum().backward(), RuntimeError, "nothing that this tensor was computed from requires a gradient"),
    (lambda: graded().backward(Tensor([1.0])), ShapeError, r"the gradient has shape \(1,\), the tensor \(2,\)"),
    (lambda: x().sum().gradient(graded()), RuntimeError, "gradient: nothing that this tensor was computed from"),
    (lambda: graded().sum().gradient(graded()), RuntimeError, r"targets \[0\] were not used"),
    (
        lambda: graded().sum().gradient(x()),
        RuntimeError,
        r"targets \[0\] do not require a gradient.*requires_grad_\(\)",
    ),
    (lambda: graded().mul(2).gradient(graded()), RuntimeError, r"or give its gradient, gradient\(..., gradient=...\)"),
    (lambda: graded().bitcast("int32"), RuntimeError, "bitcast has no gradient"),
]
OPTIONS: list[Case] = [
    (lambda: x().cross_entropy(Tensor([1, 2]), reduction="most"), ValueError, "choose 'mean', 'sum' or 'none'"),
    (lambda: x().dropout(2), ValueError, "need a probability"),
    (lambda: x().clip(), RuntimeError, r"clip\(\) needs min_ or max_"),
    (lambda: x().rearrange("a b -> a c"), ValueError, "must name the same axes"),
    (lambda: Tensor.einsum("ij,jk", x()), ValueError, "2 operands are named, 1 given"),
    (lambda: Tensor.einsum("i->i", x()), ValueError, "does not name the 2 axes"),
    (lambda: x().meshgrid(indexing="zz"), ArgumentError, "choose 'ij' or 'xy'"),
    (lambda: x().roll((1, 2), 0), ArgumentError, "need one shift per axis"),
    (lambda: Tensor.linspace(0, 1, 3, dtype="bool"), ArgumentError, "are ints or floats"),
    (lambda: x().chunk(0), ValueError, "need at least 1"),
    (lambda: Tensor.arange(0, 5, 0), ValueError, "never ends"),
    (lambda: Tensor.randint(2, low=3, high=1), ValueError, "low < high"),
    (lambda: Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(1, 2, 2, 2), padding=(1, 2, 3)), ValueError, "need one int"),
    (lambda: Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(1, 2, 2, 2), padding="equal"), ValueError, "choose 'valid'"),
    (lambda: x().div(2, rounding_mode="up"), ArgumentError, "choose 'trunc', 'floor'"),  # type: ignore[arg-type]
    (lambda: Tensor.ones(2, 2).pad((1.0, 2.0)), TypeError, r"need ints, or one \(before, after\) or None per axis"),
    (lambda: Context(NOPE=1), ValueError, "no such option; known: BEAM"),
]
CASES = {
    f"{kind}{number}": case
    for kind, cases in {
        "shapes": SHAPES,
        "axes": AXES,
        "types": TYPES,
        "indices": INDICES,
        "devices": DEVICES,
        "gradients": GRADIENTS,
        "options": OPTIONS,
    }.items()
    for number, case in enumerate(cases)
}


@pytest.mark.parametrize("name", CASES)
def test_misuse_is_an_error_at_the_call(name: str) -> None:
    call, kind, says = CASES[name]
    with pytest.raises(kind, match=says) as caught:
        call()
    assert caught.type is kind


def test_misuse_is_what_others_raise_too() -> None:
    for kind in (ValueError, RuntimeError):  # NumPy's, PyTorch's
        with pytest.raises(kind):
            x().permute(0)
        with pytest.raises(kind):
            x().roll((1, 2), 0)
    for kind in (TypeError, RuntimeError):
        with pytest.raises(kind):
            x() & 1
