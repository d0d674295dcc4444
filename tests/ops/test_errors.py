"""Misuse raises one kind of exception, at the call, that names the argument and a valid alternative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyexplore import Context, Tensor, nn
from tinyexplore.device.registry import UnknownDevice
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.nn.optim import SGD, Adam, OptimizerGroup
from tinyexplore.nn.state import load_state_dict, safe_save
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
    (lambda: x().unfold(1, 5, 1), ShapeError, "need 0 ≤ size ≤"),
    (lambda: x().diagonal(0, 1, 1), ShapeError, "need two different axes"),
    (lambda: Tensor.ones(3).tril(), ShapeError, "need two axes at least"),
    (lambda: Tensor.ones(2, 2, 2).diag(), ShapeError, "need a vector or a matrix"),
    (lambda: x().cat(Tensor.ones(2, 4)), ShapeError, "all other axes must agree"),
    (lambda: x().stack(Tensor.ones(3)), ShapeError, "they must be equal"),
    (lambda: Tensor.einsum("ij,jk->ik", x(), x()), ShapeError, "'j' differ: 3 and 2"),
    (lambda: x().gather(0, Tensor([[0, 0, 0, 0]])), ShapeError, "too large"),
    (lambda: x().conv2d(Tensor.ones(1, 1, 2, 2)), ShapeError, "the same number of axes"),
    (lambda: x().max_pool2d((9, 9)), ShapeError, "add padding or take a smaller kernel"),
    (lambda: Tensor(1.0).max_pool2d(), ShapeError, "it has too few axes"),
    (lambda: x().cross_entropy(Tensor([1, 2, 3])), ShapeError, r"need \(2,\)"),
    (lambda: x().sparse_categorical_crossentropy(Tensor([1])), ShapeError, r"need \(2,\)"),
    (lambda: x().scaled_dot_product_attention(Tensor.ones(2, 4), x()), ShapeError, "matmul of shapes"),
    (lambda: x().assign(Tensor.ones(2)), ShapeError, "assign: shapes .* do not broadcast"),
    (lambda: x().assign(Tensor.ones(4, 2, 3)), ShapeError, "assign a tensor of shape .* must expand to it"),
    (lambda: x().unfold(0, 1, 0), ShapeError, "windows of 1, step 0: need"),
    (lambda: x().gelu(approximate="erf"), ValueError, "choose 'tanh' or 'none'"),
    (lambda: Tensor.full((2, -1), 0), ValueError, "sizes cannot be negative"),
    (lambda: Tensor.ones((2, 2), 2), ValueError, r"made of ints; found \(2, 2\) \(tuple\)"),
    (lambda: x().reshape(3, 2, None), TypeError, "made of ints; found None"),
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
    (lambda: x().sum((0, 0)), ShapeError, "an axis is repeated"),
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
    (lambda: x() & x(), OperandError, "and of float32 tensors: bits are for ints and bools"),
    (lambda: x() << 1, OperandError, "left shift of float32"),
    (lambda: Tensor([True]) - True, OperandError, r"use \^"),
    (lambda: Tensor([2]) << -1, ValueError, "negative count"),
    (lambda: x().cast("float33"), ValueError, "unknown dtype 'float33'; supported: bool"),
    (lambda: x().gather(0, x()), OperandError, "gather by a tensor of float32: need ints"),
    (lambda: x().assign(Tensor([[1, 2, 3], [1, 2, 3]])), OperandError, "cast it first"),
    (lambda: Tensor("a"), OperandError, "cannot be made of str"),
    (lambda: Tensor([1, None]), TypeError, "NoneType"),
    (lambda: Tensor(np.array(["a"])), TypeError, "cannot become a Tensor"),
    (lambda: Tensor([2**40], dtype="int32"), OverflowError, "does not fit in int32"),
    (lambda: Tensor.arange(2**33, 2**33 + 2), OverflowError, "does not fit in int32"),
    (lambda: Tensor.arange(3, -2, -1, dtype="uint8"), OverflowError, "-1 does not fit in uint8"),
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
    (lambda: x()[Tensor([True, False, True])], IndexError, "a mask with 3 elements for axis 0 of size 2"),
    (lambda: x()[1.5], IndexError, "need ints, slices"),
    (lambda: x()[Tensor([1.5])], IndexError, "a tensor of float32 cannot be an index"),
    (lambda: x().__setitem__(9, 1), IndexError, "index 9"),
    (lambda: x().__setitem__(0, Tensor.ones(7)), ShapeError, "setitem: shapes .* do not broadcast"),
    (lambda: x().__setitem__(0, "a"), OperandError, "setitem of a Tensor and str"),
    (lambda: graded().__setitem__(0, 1), NotImplementedError, "has no gradient"),
]
DEVICES: list[Case] = [
    (lambda: Tensor([1], device="NOPE"), UnknownDevice, "unknown device 'NOPE'; supported: LLVM, CLANG, PYTHON"),
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
    (lambda: Tensor.linspace(0, 1, 3, dtype="bool"), ArgumentError, "need an int or float"),
    (lambda: x().chunk(0), ValueError, "need at least 1"),
    (lambda: Tensor.arange(0, 5, 0), ValueError, "the step must not be 0"),
    (lambda: Tensor.randint(2, low=3, high=1), ValueError, "low < high"),
    (lambda: Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(1, 2, 2, 2), padding=(1, 2, 3)), ValueError, "need one int"),
    (lambda: Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(1, 2, 2, 2), padding="equal"), ValueError, "choose 'valid'"),
    (lambda: x().div(2, rounding_mode="up"), ArgumentError, "choose 'trunc', 'floor'"),  # type: ignore[arg-type]
    (lambda: Tensor.ones(2, 2).pad((1.0, 2.0)), TypeError, r"need ints, or one \(before, after\) or None per axis"),
    (lambda: Context(NOPE=1), ValueError, "no such option; supported: ALLOW_TF32, BEAM"),
]
# what was given is of the wrong kind altogether: reported at the call, not at the first use
KINDS: list[Case] = [
    (lambda: Tensor.cat([]), ArgumentError, "cat of an empty list: need one tensor"),
    (lambda: Tensor.stack([]), ArgumentError, "stack of an empty list: need one tensor"),
    (lambda: Tensor.cat([1, x()]), OperandError, "cat: the first is int 1: give a Tensor"),
    (lambda: Tensor.stack(), TypeError, "stack of no tensors"),
    (lambda: Tensor.cat(), TypeError, "cat of no tensors"),
    (
        lambda: x() @ [1, 2],
        OperandError,
        r"matmul of .* the other factor is list \[1, 2\]: give a Tensor: Ten",
    ),
    (lambda: [1, 2] @ x(), OperandError, r"the other factor is list \[1, 2\]"),
    (lambda: x() @ 3, OperandError, "the other factor is int 3"),
    (lambda: x().dot("a"), OperandError, "the other factor is str 'a': give a Tensor$"),
    (lambda: x().linear([1.0]), OperandError, "linear: the weight is list"),
    (lambda: Tensor(2) * [1, 2], OperandError, r"mul of a Tensor and list \[1, 2\]: need a Tensor"),
    (lambda: "ab" * Tensor(2), OperandError, "mul of a Tensor and str 'ab'"),
    (lambda: x().leaky_relu("a"), OperandError, "mul of a Tensor and str 'a'"),
    (lambda: x().sequential([3]), TypeError, "step 0 is int 3: need functions"),
    (lambda: x().sequential(3), TypeError, "sequential of int 3"),
    (lambda: x().transpose("a", 0), TypeError, "axis is str 'a': need an int"),
    (lambda: x().squeeze("a"), TypeError, "axis is str 'a': need an int"),
    (lambda: x().split("a"), TypeError, "split: a size is str 'a'"),
    (lambda: x().chunk("a"), TypeError, "chunk: the number of parts is str 'a'"),
    (lambda: x().unflatten(0, 3), TypeError, "the sizes are int 3: need several"),
    (lambda: x().shrink(3), TypeError, "to int 3: need one"),
    (lambda: x().pad(3), TypeError, "by int 3: need ints, or one"),
    (lambda: x().roll("a"), TypeError, "roll: a shift is str 'a'"),
    (lambda: x().repeat_interleave("a"), TypeError, "repeats is str 'a'"),
    (lambda: x().tril("a"), TypeError, "the diagonal is str 'a'"),
    (lambda: x().rearrange(3), TypeError, "the formula is int 3"),
    (lambda: x().topk("a"), TypeError, "topk: k is str 'a'"),
    (lambda: x().var(correction="a"), TypeError, "var: the correction is str 'a'"),
    (lambda: x().gather(0, [1]), OperandError, r"gather: the index is list \[1\]"),
    (lambda: x().scatter(0, [1], 3), OperandError, "scatter: the index is list"),
    (lambda: x().scatter(0, Tensor([[0]]), "a"), TypeError, "what is written is str 'a': need a number"),
    (lambda: x().masked_fill([True], 1), OperandError, "the mask is list"),
    (lambda: x().masked_select([True]), OperandError, "the mask is list"),
    (lambda: x().one_hot("a"), TypeError, "num_classes is str 'a'"),
    (lambda: x().dropout("a"), TypeError, "dropout: p is str 'a'"),
    (lambda: x().conv2d([1]), OperandError, "convolution: the weight is list"),
    (lambda: x().conv_transpose2d(3), OperandError, "transposed convolution: the weight is int 3"),
    (lambda: x().scaled_dot_product_attention(3, 4), OperandError, "attention: key is int 3"),
    (lambda: x().scaled_dot_product_attention(x(), x(), "a"), OperandError, "attention: attn_mask is str 'a'"),
    (lambda: x().cross_entropy([1, 2]), OperandError, r"class labels: Y is list \[1, 2\]"),
    (lambda: x().sparse_categorical_crossentropy([1]), OperandError, "class labels: Y is list"),
    (lambda: x().binary_crossentropy(3), OperandError, "binary cross entropy: y is int 3"),
    (lambda: x().avg_pool2d("a"), TypeError, "windows: a size, stride or dilation is str 'a'"),
    (lambda: x().interpolate(3), TypeError, "to int 3: need one size"),
    (lambda: x().einsum(3, x()), TypeError, "einsum|formula"),
    (lambda: Tensor.einsum("ij,jk", x(), 3), OperandError, "operand 1 is int 3"),
    (lambda: x().replace(3), OperandError, "what it becomes is int 3"),
    (lambda: x().realize([x()]), OperandError, "one of the others is list"),
    (lambda: graded().sum().backward(3), OperandError, "backward: gradient is int 3"),
    (lambda: graded().sum().gradient(3), OperandError, "gradient: a target is int 3"),
    (lambda: x().shard(3), ValueError, "shard on 3: need several devices"),
    (lambda: x().shard_like(3), OperandError, "what to lie like is int 3"),
    (lambda: Tensor.full((2,), [1]), TypeError, "full: the value is list"),
    (lambda: Tensor.arange("a"), TypeError, "arange: stop is str 'a': need a number"),
    (lambda: Tensor.linspace(0, 1, 2.5), TypeError, "linspace: steps is float 2.5: need an int"),
    (lambda: Tensor.eye("a"), TypeError, "eye: rows is str 'a'"),
    (lambda: Tensor.uniform(3, low="a"), TypeError, "uniform: low is str 'a'"),
    (lambda: Tensor.normal(3, mean="a"), TypeError, "normal: mean is str 'a'"),
    (lambda: Tensor.glorot_uniform(), ValueError, "need at least one axis"),
    (lambda: Tensor.meshgrid(x(), 3), OperandError, "one of the vectors is int 3"),
    (lambda: x().multinomial("a"), TypeError, "num_samples is str 'a'"),
    (lambda: Tensor.from_blob("a", (2,)), TypeError, "memory at 'a'"),
    (lambda: Tensor.from_url(3), TypeError, "fetch 3"),
]
LAYERS: list[Case] = [
    (lambda: nn.Linear("a", 2), TypeError, "Linear: in_features is str 'a': need an int"),
    (lambda: nn.Linear(2, -1), ValueError, "Linear: out_features is -1: need 0 or more"),
    (lambda: nn.Conv2d("a", 2, 3), TypeError, "Conv2d: in_channels is str 'a'"),
    (lambda: nn.Conv2d(2, 2, 3.5), TypeError, "Conv2d: kernel_size is float 3.5"),
    (lambda: nn.Conv1d(2, 2, 0), ValueError, "Conv1d: kernel_size is 0: need 1 or more"),
    (lambda: nn.Conv2d(2, 2, 3, groups=0), ValueError, "Conv2d: groups is 0"),
    (lambda: nn.Conv2d(2, 2, 3, padding=None)(Tensor.ones(1, 2, 4, 4)), TypeError, "padding is NoneType None"),
    (lambda: nn.ConvTranspose2d(2, 2, 3)([1]), OperandError, "ConvTranspose2d: x is list"),
    (lambda: nn.BatchNorm(3)(Tensor.ones(1, 2, 4, 4)), ShapeError, r"for 3 channels .* make it for 2 channels"),
    (lambda: nn.BatchNorm(2)(Tensor.ones(4)), ShapeError, r"of shape \(4,\): need \(batch, 2, …\)"),
    (lambda: nn.BatchNorm("a"), TypeError, "number of channels, is str 'a'"),
    (lambda: x().batchnorm(None, None, Tensor.ones(7), Tensor.ones(7)), ShapeError, "which has 3 channels: mean has"),
    (lambda: nn.GroupNorm(0, 4), ValueError, "number of groups is 0: need 1"),
    (lambda: nn.GroupNorm(2, 4)(Tensor.ones(2, 6, 3)), ShapeError, "GroupNorm for 4 channels"),
    (lambda: nn.InstanceNorm(4)(Tensor.ones(2, 6, 3)), ShapeError, "InstanceNorm for 4 channels"),
    (lambda: nn.LayerNorm(3)(3), OperandError, "LayerNorm: x is int 3"),
    (lambda: nn.LayerNorm2d(2)(x()), ShapeError, "need .batch, channels, height, width"),
    (lambda: nn.RMSNorm(4)(Tensor.ones(2, 5)), ShapeError, "the last axis has size 5, expected 4"),
    (lambda: nn.Embedding(10, "a"), TypeError, "Embedding: embed_size is str 'a'"),
    (lambda: nn.LSTMCell(3, "a"), TypeError, "LSTMCell: hidden_size is str 'a'"),
    (lambda: nn.LSTMCell(3, 4)(x(), x()), TypeError, r"need \(hidden, cell\)"),
    (lambda: Adam([1, 2]), OperandError, r"Adam: params\[0\] is int 1: give a Tensor"),
    (lambda: SGD(nn.Linear(2, 3)), TypeError, r"SGD: params is Linear .*nn\.state\.get_parameters\(model\)"),
    (lambda: SGD(x()), TypeError, "SGD: params is Tensor .* need a list of Tensors"),
    (lambda: SGD([x()], lr="a"), TypeError, "SGD: lr is str 'a': need a number"),
    (lambda: SGD([x()], lr=-1), ValueError, "SGD: lr is -1: need 0.0 or more"),
    (lambda: SGD([x()], momentum=-1), ValueError, "SGD: momentum is -1"),
    (lambda: Adam([x()], b1=1), ValueError, r"Adam: b1 is 1: need 0.0 ≤ b1 < 1.0"),
    (lambda: Adam([x()], eps="a"), TypeError, "Adam: eps is str 'a'"),
    (lambda: OptimizerGroup([x()]), TypeError, "argument 0 is list .* need optimizers"),
    (lambda: load_state_dict(nn.Linear(2, 3), 3), TypeError, "the state is int 3: need a dict"),
    (lambda: safe_save({"a": 3}, "never.safetensors"), OperandError, "safe_save: 'a' is int 3"),
    (lambda: safe_save(x(), "never.safetensors"), TypeError, r"get_state_dict\(model\) gives it"),
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
        "kinds": KINDS,
        "layers": LAYERS,
    }.items()
    for number, case in enumerate(cases)
}


@pytest.mark.parametrize("name", CASES)
def test_misuse_is_an_error_at_the_call(name: str) -> None:
    call, kind, says = CASES[name]
    with pytest.raises(kind, match=says) as caught:
        call()
    assert caught.type is kind


def test_lists_of_tensors_are_joined_like_sequences() -> None:
    assert Tensor.cat([x(), x()], dim=1).shape == (2, 6)  # type: ignore[attr-defined]
    assert Tensor.cat((x(), x())).shape == (4, 3)  # type: ignore[attr-defined]
    assert Tensor.stack([x(), x()], dim=1).shape == (2, 2, 3)  # type: ignore[attr-defined]


def test_functions_of_numpy_take_tensors() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = Tensor(values)
    assert np.sum(t) == 15 and np.max(t) == 5
    np.testing.assert_array_equal(np.mean(t, axis=0), values.mean(0))
    np.testing.assert_array_equal(np.concatenate([t, t]), np.concatenate([values, values]))
    with pytest.raises(OperandError, match=r"Linear: x is ndarray .*Tensor\(\.\.\.\)"):
        nn.Linear(3, 2)(values)
    assert np.size(t) == 6 and np.shape(t) == (2, 3)
    for product in (t @ values.T, values @ t.T):
        assert isinstance(product, Tensor)
        np.testing.assert_array_equal(product.numpy(), values @ values.T)


def test_misuse_raises_the_exceptions_of_numpy_and_pytorch() -> None:
    for kind in (ValueError, RuntimeError):  # NumPy's, PyTorch's
        with pytest.raises(kind):
            x().permute(0)
        with pytest.raises(kind):
            x().roll((1, 2), 0)
    for kind in (TypeError, RuntimeError):
        with pytest.raises(kind):
            x() & 1
