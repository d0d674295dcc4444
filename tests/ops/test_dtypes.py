"""Element types: how they promote, convert and round; against NumPy and ml_dtypes."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, Array, all_computed, check_gradient, computed, quick, random_array, tensor_on
from tests.reference import SMALL
from tinyexplore import Context, Tensor, dtypes
from tinyexplore.dtype import DType, least_upper_dtype, to_dtype
from tinyexplore.lazy.lazybuffer import ShapeError

ON_DEVICES = [how for how in HOW if how != "reference"]
NUMPY_KINDS = [dtype for dtype in dtypes.all if dtype is not dtypes.bfloat16]
STEPS = [  # what each type promotes to next
    ("bool", "int8"),
    ("bool", "uint8"),
    ("int8", "int16"),
    ("int16", "int32"),
    ("int32", "int64"),
    ("uint8", "int16"),
    ("uint8", "uint16"),
    ("uint16", "int32"),
    ("uint16", "uint32"),
    ("uint32", "int64"),
    ("uint32", "uint64"),
    ("int64", "float16"),
    ("int64", "bfloat16"),
    ("uint64", "float16"),
    ("uint64", "bfloat16"),
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float32", "float64"),
]


def above(name: str) -> set[str]:
    found = {name}
    for low, high in STEPS:
        if low == name:
            found |= above(high)
    return found


@pytest.mark.parametrize("a", dtypes.all, ids=lambda dtype: dtype.name)
def test_two_dtypes_promote_to_their_least_upper_bound(a: DType) -> None:
    for b in dtypes.all:
        common = above(a.name) & above(b.name)
        least = [name for name in common if common <= above(name)] or ["float16"]  # int64 and uint64 have two
        found = least_upper_dtype(a, b)
        assert found.name == least[0] and least_upper_dtype(b, a) is found
        assert (Tensor([1], dtype=a) + Tensor([1], dtype=b)).dtype is found
        assert Tensor([1], dtype=a).where(Tensor([1], dtype=a), Tensor([1], dtype=b)).dtype is found
        assert Tensor([1], dtype=a).cat(Tensor([1], dtype=b)).dtype is found


def test_fp8s_promote_among_floats() -> None:
    assert least_upper_dtype(dtypes.fp8e4m3, dtypes.fp8e5m2) is dtypes.float16
    assert least_upper_dtype(dtypes.fp8e4m3, dtypes.bfloat16) is dtypes.bfloat16
    assert least_upper_dtype(dtypes.fp8e5m2, dtypes.float32) is dtypes.float32
    assert least_upper_dtype(dtypes.fp8e5m2, dtypes.int8) is dtypes.float16
    assert least_upper_dtype(dtypes.fp8e5m2, dtypes.bool) is dtypes.fp8e5m2


@pytest.mark.parametrize("dtype", dtypes.fields().values(), ids=lambda dtype: dtype.name)
def test_numbers_are_weak(dtype: DType) -> None:
    """A Python number takes the tensor's type, unless that cannot hold its kind."""
    t = Tensor([1], dtype=dtype)
    with_int = dtypes.int32 if dtype is dtypes.bool else dtype
    with_float = dtype if dtypes.is_float(dtype) else dtypes.float32
    for op in (operator.add, operator.mul):
        assert (op(t, 2).dtype, op(2, t).dtype) == (with_int, with_int)
        assert (op(t, 2.5).dtype, op(2.5, t).dtype) == (with_float, with_float)
        assert (op(t, True).dtype, op(True, t).dtype) == (dtype, dtype)
    assert (t / 2).dtype is with_float and (t < 2).dtype is dtypes.bool
    assert (t == 1).where(t, 2).dtype is with_int and (t == 1).where(1.5, t).dtype is with_float
    assert t.maximum(0.5).dtype is with_float and t.full_like(2).dtype is dtype


@pytest.mark.parametrize("dtype", dtypes.fields().values(), ids=lambda dtype: dtype.name)
def test_functions_and_reductions_have_their_type(dtype: DType) -> None:
    t = Tensor([[1, 1]], dtype=dtype)
    real = dtype if dtypes.is_float(dtype) else dtypes.float32
    for function in ("exp", "sin", "sqrt", "log2", "sigmoid", "gelu", "tanh", "reciprocal", "mean", "softmax", "std"):
        assert getattr(t, function)().dtype is real, function
    wide = dtype
    if not dtypes.is_float(dtype):
        small = dtypes.uint32 if dtypes.is_unsigned(dtype) else dtypes.int32
        wide = dtype if dtype.itemsize == 8 else small
    for function in ("sum", "prod", "cumsum", "cumprod"):
        assert getattr(t, function)().dtype is wide, function
    for function in ("max", "min", "relu", "flip"):
        assert (getattr(t, function)(0) if function == "flip" else getattr(t, function)()).dtype is dtype
    assert t.argmax().dtype is dtypes.int32 and t.any().dtype is dtypes.bool


def values_between(source: DType) -> Array:
    """Values that every number type can hold a part of, and the edges of `source`."""
    if source is dtypes.bool:
        return np.array([False, True])
    if dtypes.is_int(source):
        low, high = dtypes.min(source), dtypes.max(source)
        return np.array([n for n in (low, low + 1, -1, 0, 1, 77, 255, high - 1, high) if low <= n <= high], source.name)
    return np.array([-2.5, -0.0, 0.0, 0.4, 1.0, 1.5, 77.9, 100.25])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("source", NUMPY_KINDS, ids=lambda dtype: dtype.name)
def test_conversions_agree_with_numpy(source: DType, how: str) -> None:
    """Ints wrap, floats to ints truncate, to floats rounds to nearest even, to bool asks for not 0."""
    x = values_between(source).astype(source.name)
    whole, positive = (tensor_on(how, part) for part in (x, x[x >= 0]))
    parts = [dtypes.is_float(source) and dtypes.is_unsigned(target) for target in NUMPY_KINDS]
    results = [(positive if part else whole).cast(target) for part, target in zip(parts, NUMPY_KINDS)]
    for part, target, found in zip(parts, NUMPY_KINDS, all_computed(results, how)):
        with np.errstate(all="ignore"):
            expected = (x[x >= 0] if part else x).astype(target.name)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"{source.name} to {target.name}")


@pytest.mark.parametrize("how", ON_DEVICES)
@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.name)
def test_small_floats_are_those_of_ml_dtypes(dtype: DType, how: str) -> None:
    """Every value goes out and in; any float32 is rounded to nearest even; of the two fp8s, the one without
    infinity saturates."""
    kind = SMALL[dtype]
    bits = np.arange(1 << dtype.bits, dtype=f"uint{dtype.bits}")[:: 1 if dtype.bits == 8 or how != "PYTHON" else 64]
    every = bits.view(kind)
    stored = tensor_on(how, bits).bitcast(dtype)
    np.testing.assert_array_equal(stored.float().numpy(), every.astype(np.float32))
    np.testing.assert_array_equal(stored.numpy(), every.astype(np.float32))
    turned = stored.reshape(2, -1).T.contiguous().bitcast(f"uint{dtype.bits}").numpy().T.ravel()
    is_number = ~np.isnan(every.astype(np.float32))
    np.testing.assert_array_equal(turned[is_number], bits[is_number])
    np.testing.assert_array_equal(Tensor(every, device=how).numpy(), every.astype(np.float32))
    around = every[is_number].astype(np.float64)
    around = np.concatenate(
        [around, around * 1.01, around * 1.03125, (around[1:] + around[:-1]) / 2, [1e9, -1e9, 1e-9]]
    )
    with np.errstate(over="ignore"):
        x = np.append(around, np.nan).astype(np.float32)
    limit = np.float32(ml_dtypes.finfo(kind).max)
    cut = np.where(np.isfinite(x) & (dtype is dtypes.fp8e4m3), np.clip(x, -limit, limit), x)
    np.testing.assert_array_equal(tensor_on(how, x).cast(dtype).float().numpy(), cut.astype(kind).astype(np.float32))


@pytest.mark.parametrize("how", HOW)
def test_values_too_large_for_fp8e5m2_become_infinite(how: str) -> None:
    x = np.array([57344, 61439, 61440, -61440, 65536, 1e9, -1e30, math.inf], np.float32)
    expected = [57344, 57344, math.inf, -math.inf, math.inf, math.inf, -math.inf, math.inf]
    for source in ("float32", "float64"):
        assert computed(tensor_on(how, x.astype(source)).cast("fp8e5m2").float(), how).tolist() == expected
    product = tensor_on(how, np.array([40000.0, -3.0], np.float32)).cast("fp8e5m2") * 2
    assert computed(product.float(), how).tolist() == [math.inf, -6.0]
    folded = Tensor(1e6, device=None if how == "reference" else how).cast("fp8e5m2").float()
    assert computed(folded, how) == math.inf


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", [*SMALL, dtypes.float16], ids=lambda dtype: dtype.name)
def test_arithmetic_of_small_floats_rounds_once(dtype: DType, how: str) -> None:
    kind = SMALL.get(dtype, np.float16)

    def rounded(x: Array) -> Array:
        limit = np.float32(ml_dtypes.finfo(kind).max)
        cut = np.clip(x, -limit, limit) if dtype is dtypes.fp8e4m3 else x
        return cut.astype(kind).astype(np.float32)

    a, b = (rounded(random_array((50,), 0.25, 9, seed=seed)) for seed in (1, 2))
    x, y = (tensor_on(how, part).cast(dtype) for part in (a, b))
    signs = (operator.add, operator.sub, operator.mul, operator.truediv)
    exact = [op(x, y) for op in signs] + [x.maximum(y), x.sqrt()]
    expected = [rounded(op(a, b)) for op in signs] + [np.maximum(a, b), rounded(np.sqrt(a))]
    assert {found.dtype for found in exact} == {dtype}
    for found, value in zip(all_computed([found.float() for found in exact], how), expected):
        np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(computed(x < y, how), a < b)
    loose = 2.0**-2 if dtype in dtypes.fp8s else 2.0**-6
    total = rounded(a.astype(np.float64).sum().astype(np.float32))
    np.testing.assert_allclose(computed(x.sum().float(), how), total, rtol=loose)
    left, right = x[:49].reshape(7, 7), y[:49].reshape(7, 7)
    product = rounded(a[:49].reshape(7, 7) @ b[:49].reshape(7, 7))
    np.testing.assert_allclose(computed(left.dot(right).float(), how), product, rtol=loose)


@pytest.mark.parametrize("dtype", [*SMALL, dtypes.float16], ids=lambda dtype: dtype.name)
def test_small_floats_have_gradients_of_their_type(dtype: DType) -> None:
    x = Tensor([1.0, 2.0, -3.0], dtype=dtype, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None and x.grad.dtype is dtype and x.grad.tolist() == [2.0, 4.0, -6.0]
    assert Tensor([3.0, -1.0], dtype=dtype).sort()[0].tolist() == [-1.0, 3.0]
    assert 0 <= Tensor.rand(100, dtype=dtype).max().item() < 1
    assert Tensor([math.nan], dtype=dtype).isnan().item() and Tensor([1.0], dtype=dtype).copysign(-1).item() == -1


@pytest.mark.parametrize("how", HOW)
def test_bits_are_read_as_any_type(how: str) -> None:
    @quick
    @given(st.sampled_from(NUMPY_KINDS[1:]), st.sampled_from(NUMPY_KINDS[1:]), st.integers(1, 2))
    def check(source: DType, target: DType, rows: int) -> None:
        raw = np.random.default_rng(rows).integers(0, 256, (rows, 16), np.uint8)
        if dtypes.is_float(source) or dtypes.is_float(target):
            raw = raw % 60 + 1  # a NaN's bits may change on the way
        x = raw.view(source.name)
        found = computed(tensor_on(how, x).bitcast(target), how)
        np.testing.assert_array_equal(found, x.view(target.name))

    check()


def test_bitcasts_need_whole_elements() -> None:
    with pytest.raises(ShapeError, match=r"uint8 of shape \(3,\) to int32: .*\(3\)"):
        Tensor([1, 2, 3], dtype="uint8").bitcast("int32")
    with pytest.raises(ShapeError, match="there is none"):
        Tensor(1.0).bitcast("uint8")
    with pytest.raises(RuntimeError, match="bitcast has no gradient"):
        Tensor([1.0], requires_grad=True).bitcast("uint8")


def test_the_default_float_can_be_chosen() -> None:
    with Context(DEFAULT_FLOAT="HALF"):
        kinds = {Tensor([1.5]).dtype, Tensor.ones(2).dtype, Tensor.rand(2).dtype, (Tensor([1]) / 2).dtype}
        assert kinds == {dtypes.float16} and (Tensor([1]) + 1.5).dtype is dtypes.float16
    assert Tensor([1.5]).dtype is dtypes.float32
    dtypes.default_float = dtypes.float64
    try:
        assert Tensor([1.5]).dtype is Tensor([2]).exp().dtype is dtypes.float64
    finally:
        dtypes.default_float = None  # type: ignore[assignment]
    with pytest.raises(ValueError, match="cannot be int32: need a float"):
        dtypes.default_float = dtypes.int32
    with Context(DEFAULT_FLOAT="int32"), pytest.raises(ValueError, match="DEFAULT_FLOAT=int32: .* need a float dtype"):
        Tensor([1.5])
    assert dtypes.default_float is dtypes.float32


def test_predicates_of_dtypes() -> None:
    names = {dtype.name for dtype in (*dtypes.all, *dtypes.fp8s)}
    assert set(dtypes.fields()) == names and all(to_dtype(name).name == name for name in names)
    assert [name for name, dtype in dtypes.fields().items() if dtypes.is_float(dtype)][-2:] == ["fp8e4m3", "fp8e5m2"]
    assert dtypes.is_int(dtypes.uint8) and dtypes.is_unsigned(dtypes.uint8) and not dtypes.is_unsigned(dtypes.int8)
    assert not dtypes.is_int(dtypes.bool) and not dtypes.is_int(dtypes.float16)
    assert (dtypes.min(dtypes.int8), dtypes.max(dtypes.int8), dtypes.max(dtypes.uint64)) == (-128, 127, 2**64 - 1)
    assert (dtypes.min(dtypes.bool), dtypes.max(dtypes.bool), dtypes.max(dtypes.float32)) == (False, True, math.inf)
    assert dtypes.max(dtypes.fp8e4m3) == 448 and dtypes.min(dtypes.fp8e5m2) == -math.inf
    assert dtypes.from_py(True) is dtypes.bool and dtypes.from_py([1, [2.0]]) is dtypes.float32
    assert dtypes.from_py(3) is dtypes.default_int and dtypes.from_py([]) is dtypes.default_float
    constants = [dtypes.as_const(2.9, kind) for kind in (dtypes.int32, dtypes.float16, dtypes.bool)]
    assert constants == [2, 2.9, True] and [type(one) for one in constants] == [int, float, bool]
    pairs = {"half": "float16", "float": "float32", "double": "float64", "char": "int8", "short": "int16"}
    pairs |= {"int": "int32", "long": "int64", "uchar": "uint8", "ushort": "uint16", "uint": "uint32"}
    pairs |= {"ulong": "uint64", "pyint": "int64"}
    assert {name: to_dtype(name).name for name in pairs} == pairs
    assert (dtypes.half, dtypes.char, dtypes.uchar, dtypes.short) == (
        dtypes.float16,
        dtypes.int8,
        dtypes.uint8,
        dtypes.int16,
    )
    assert (dtypes.ushort, dtypes.uint, dtypes.ulong) == (dtypes.uint16, dtypes.uint32, dtypes.uint64)
    assert (dtypes.int, dtypes.long, dtypes.pyint) == (dtypes.int32, dtypes.int64, dtypes.int64)
    assert (dtypes.float, dtypes.double) == (dtypes.float32, dtypes.float64)
    with pytest.raises(ValueError, match="unknown dtype 'complex64'; supported: bool, "):
        to_dtype("complex64")
    with pytest.raises(TypeError, match="no dtype for str"):
        dtypes.from_py("a")


def test_image_dtypes_are_plain_memory() -> None:
    image, half = dtypes.imagef((2, 3, 4)), dtypes.imageh((2, 3, 4))
    assert image is dtypes.imagef((2, 3, 4)) and image.shape == (2, 3, 4) and image.itemsize == 4
    assert half.itemsize == 2 and dtypes.is_float(image) and repr(half) == "dtypes.imageh((2, 3, 4))"
    assert pickle.loads(pickle.dumps(half)) is half is copy.copy(half)
    assert half.base is image.base is dtypes.float32 and dtypes.int8.base is dtypes.int8
    x = random_array((2, 12))
    rounded = x.astype(np.float16).astype(np.float32)
    for stored in (Tensor(x).cast(half), Tensor(x, dtype=half), Tensor(x.tolist(), dtype=half)):
        assert stored.dtype is dtypes.float32 is (stored + 1).dtype
        assert dtypes.float16 in {buffer.dtype for item in stored.schedule() for buffer in item.buffers}, "as it lies"
        np.testing.assert_array_equal(stored.numpy(), rounded)
        np.testing.assert_array_equal((stored * 2 + 1).numpy(), rounded * 2 + 1)
    for kept in (Tensor(x).cast(image), Tensor(x).cast(dtypes.imageh((1, 2, 4))), Tensor(x[:, :2]).cast(half)):
        assert kept.dtype is dtypes.float32
        np.testing.assert_array_equal(kept.numpy(), x[:, : kept.shape[1]])
    weight = Tensor(x, requires_grad=True)
    (weight.cast(half) ** 2).sum().backward()
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), 2 * rounded, rtol=1e-2)


def test_bfloat16_is_cast_by_llvm() -> None:
    x = Tensor([1.5, -2.0], dtype="bfloat16", device="PYTHON").llvm_bf16_cast("float32")
    assert (x.device, x.dtype, x.tolist()) == ("LLVM", dtypes.float32, [1.5, -2.0])
    with pytest.raises(TypeError, match="it is for bfloat16"):
        Tensor([1.0]).llvm_bf16_cast("float32")


@pytest.mark.parametrize("how", HOW)
def test_named_casts(how: str) -> None:
    t = tensor_on(how, np.array([0.0, 1.5, 300.0], np.float32))
    names: dict[str, Any] = {"float": np.float32, "half": np.float16, "double": np.float64, "int": np.int32}
    names |= {"long": np.int64, "short": np.int16, "bool": np.bool_}
    for name, kind in names.items():
        found = computed(getattr(t, name)(), how)
        assert found.dtype == kind
        np.testing.assert_array_equal(found, np.array([0.0, 1.5, 300.0]).astype(kind))
    assert t.bfloat16().dtype is dtypes.bfloat16
    assert t.element_size() == 4 and t.nbytes() == 12 and t.is_floating_point() and not t.int().is_floating_point()
    check_gradient(lambda x: x.double(), np.array([1.0, 2.0]))


def test_activations_of_small_ints_do_not_wrap() -> None:
    x = np.array([0, 1, 4, 127], dtype=np.uint8)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(Tensor(x).logsigmoid().numpy(), -np.log1p(np.exp(-wide)), rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(Tensor(x).hardswish().numpy(), wide * np.clip(wide + 3, 0, 6) / 6, rtol=1e-6)
    assert Tensor(x).clip(-1, 300).tolist() == x.tolist()
    assert Tensor(x).maximum(-1).tolist() == Tensor(x).minimum(256).tolist() == x.tolist()
    assert Tensor(x).hardtanh().tolist() == [0, 1, 1, 1]
    assert Tensor(x.astype(np.int8)).clamp(-1000, 2).dtype is dtypes.int8


def test_the_negative_of_a_truth_is_its_opposite() -> None:
    assert (-Tensor([True, False])).tolist() == [False, True]


def test_elements_are_scalars() -> None:
    with pytest.raises(ValueError, match="elements must be scalars"):
        Tensor([1.0, 2.0], dtype=dtypes.float32.vec(2))


@pytest.mark.parametrize("how", ON_DEVICES)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32], ids=lambda dtype: dtype.name)
def test_a_number_too_large_for_its_type_is_infinite(how: str, dtype: DType) -> None:
    """Also where the type is computed with in a wider one: 0 · ∞ is NaN, the last that rounds down is finite."""
    kind = SMALL.get(dtype, np.float16 if dtype is dtypes.float16 else np.float32)
    greatest = float(ml_dtypes.finfo(kind).max)
    step = greatest - float(np.nextafter(kind(greatest), kind(0)))
    x = tensor_on(how, np.array([0.0, 1.0], np.float32)).cast(dtype).realize()
    for number, finite in [(greatest, True), (greatest + 0.49 * step, True), (greatest + step / 2, False)]:
        expected = [0.0, greatest] if finite else [math.nan, math.inf]
        up, down = all_computed([(x * number).float(), (x * -number).float()], how)
        np.testing.assert_array_equal(up, expected)
        np.testing.assert_array_equal(down, np.negative(expected))


def test_dtypes_are_ordered_as_they_promote() -> None:
    assert sorted([dtypes.float32, dtypes.bool, dtypes.int8]) == [dtypes.bool, dtypes.int8, dtypes.float32]
    assert dtypes.int8 < dtypes.float16 <= dtypes.float16 and max(dtypes.uint8, dtypes.float64) is dtypes.float64
    assert dtypes.float32 < dtypes.float32.vec(4) and not dtypes.float32 > dtypes.float32
    with pytest.raises(TypeError):
        sorted([dtypes.float32, 4])


def test_the_scalar_of_a_vector_type_may_be_called() -> None:
    assert dtypes.float32.vec(4).scalar() is dtypes.float32.vec(4).scalar is dtypes.float32


def test_random_bools_are_those_random_floats() -> None:
    assert Tensor.rand(50, dtype="bool").all().item() and Tensor.rand(3, dtype=dtypes.bool).dtype is dtypes.bool
