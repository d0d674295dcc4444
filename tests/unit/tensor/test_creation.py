"""Creating tensors and reading their data."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tinyexplore import Device, Tensor, dtypes

NUMPY_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)


@given(
    st.sampled_from(NUMPY_DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    )
)
def test_arrays_round_trip_unchanged(x: np.ndarray) -> None:
    t = Tensor(x)
    assert (t.shape, t.dtype.name) == (x.shape, x.dtype.name)
    back = t.numpy()
    assert back.dtype == x.dtype and back.shape == x.shape
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(np.array(t.tolist(), x.dtype).reshape(x.shape), x)


def test_a_row_major_array_is_not_copied_and_numpy_gives_a_copy() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = Tensor(x)
    x[0, 0] = 7
    assert t.tolist() == [[7, 1, 2], [3, 4, 5]]
    back = t.numpy()
    back[0, 0] = 9
    assert x[0, 0] == 7
    other = Tensor(x.T)
    x[0, 0] = 8
    assert other.tolist() == [[7, 3], [1, 4], [2, 5]]


def test_arrays_of_other_byte_order_and_kind() -> None:
    assert Tensor(np.array([1, 2], ">i4")).tolist() == [1, 2]
    with pytest.raises(TypeError, match="complex64 cannot become a Tensor"):
        Tensor(np.zeros(2, np.complex64))


@pytest.mark.parametrize(
    ("data", "shape", "dtype"),
    [
        (3, (), dtypes.int32),
        (2.5, (), dtypes.float32),
        (True, (), dtypes.bool),
        ([1, 2], (2,), dtypes.int32),
        ([1, 2.5], (2,), dtypes.float32),
        ([True, False], (2,), dtypes.bool),
        ([[1], [2], [3]], (3, 1), dtypes.int32),
        ([], (0,), dtypes.float32),
        ([[], []], (2, 0), dtypes.float32),
        (((1, 2), (3, 4)), (2, 2), dtypes.int32),
        ([np.float32(1.5), np.float32(2)], (2,), dtypes.float32),
    ],
)
def test_python_data(data: Any, shape: tuple[int, ...], dtype: Any) -> None:
    t = Tensor(data)
    assert (t.shape, t.dtype) == (shape, dtype)
    assert t.tolist() == np.array(data).tolist()


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        ([[1, 2], [3]], ValueError, "data[1] has 1 elements, data[0] has 2"),
        ([1, [2]], ValueError, "data[1] is a list;"),
        ([[1], 2], ValueError, "data[1] is 2;"),
        ("text", TypeError, "cannot be made of str"),
        (["a"], TypeError, "holds str 'a'"),
        ([2**40], OverflowError, "does not fit in int32"),
        (None, TypeError, "cannot be made of NoneType"),
    ],
)
def test_data_that_makes_no_tensor(data: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as caught:
        Tensor(data)
    assert says in str(caught.value)


def test_numbers_beyond_all_floats_of_a_type_become_infinite_one_by_one() -> None:
    numbers = [65519, 65519.0, 65520, 65520.0, -(2**200), 2**2000, math.nan]
    held = [65504, 65504, math.inf, math.inf, -math.inf, math.inf, math.nan]
    np.testing.assert_array_equal(Tensor(numbers, dtype=dtypes.float16).numpy(), held)
    assert Tensor(numbers[:-1], dtype=dtypes.float32).tolist() == [65519, 65519, 65520, 65520, -math.inf, math.inf]
    assert Tensor([-(2**200), 2**2000], dtype=dtypes.bfloat16).tolist() == [-math.inf, math.inf]


def test_a_list_of_tensors_raises_an_error_that_names_stack() -> None:
    with pytest.raises(TypeError, match=r"Tensor.stack\(\)"):
        Tensor([Tensor(1.0), Tensor(2.0)])


def test_bytes_are_read_as_the_dtype() -> None:
    raw = struct.pack("=4f", 1, 2, 3, 4)
    assert Tensor(raw, dtype=dtypes.float32).tolist() == [1, 2, 3, 4]
    assert Tensor(b"\x01\x02").tolist() == [1, 2]
    with pytest.raises(ValueError, match="not a whole number"):
        Tensor(b"abc", dtype="int32")


def test_bfloat16_rounds_to_nearest_even_and_comes_back_as_float32() -> None:
    values = [1.0, 1.00390625, 1.01171875, -3.140625, 1e38, float("inf"), 0.0]
    t = Tensor(values, dtype=dtypes.bfloat16)
    assert t.tolist() == [1.0, 1.0, 1.015625, -3.140625, pytest.approx(1e38, rel=0.01), float("inf"), 0.0]
    assert t.numpy().dtype == np.float32
    assert np.isnan(Tensor([float("nan")], dtype="bfloat16").numpy()).all()
    np.testing.assert_array_equal(Tensor(np.float32(values), dtype="bfloat16").numpy(), t.numpy())


def test_data_is_a_view_of_the_memory() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    view = Tensor(x).data()
    assert view.shape == (2, 3) and view.format == "i" and view.tolist() == x.tolist()
    x[1, 2] = 9
    assert view[1, 2] == 9
    assert Tensor(2.5).data().tolist() == 2.5
    with pytest.raises(TypeError, match="memoryview has no float16"):
        Tensor([1.0], dtype="half").data()


def test_items_and_truth() -> None:
    assert Tensor([[2.5]]).item() == 2.5
    assert bool(Tensor([1])) and not bool(Tensor(0.0))
    assert [1, 2, 3][Tensor(1)] == 2
    assert float(Tensor(2)) == 2.0 and int(Tensor(2.7)) == 2
    assert 3 in Tensor([1, 3]) and 4 not in Tensor([1, 3])
    with pytest.raises(ValueError, match="it has 2 elements"):
        Tensor([1, 2]).item()
    with pytest.raises(TypeError, match=r"use .any\(\) or .all\(\)"):
        bool(Tensor([1, 2]))


def test_tensors_iterate_over_their_first_axis() -> None:
    assert [row.tolist() for row in Tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert len(Tensor([[1, 2]])) == 1
    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(Tensor(1))


def test_constants_and_sequences() -> None:
    assert Tensor.zeros(2, 2).tolist() == [[0, 0], [0, 0]]
    assert Tensor.ones((2,), dtype="int8").dtype is dtypes.int8
    assert Tensor.full((2,), 7).dtype is dtypes.int32
    assert Tensor.full((), 7.0).item() == 7.0
    assert Tensor.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert Tensor.empty(3, 2).shape == (3, 2)
    x = Tensor([[1, 2]], dtype="int16")
    assert x.zeros_like().dtype is dtypes.int16 and x.ones_like().tolist() == [[1, 1]]
    assert x.full_like(3, dtype="float32").tolist() == [[3, 3]]
    with pytest.raises(ValueError, match="cannot be negative"):
        Tensor.zeros(-1)
    with pytest.raises(TypeError, match="made of ints"):
        Tensor.zeros(2.5)


@pytest.mark.parametrize(
    "arguments", [(5,), (0,), (2, 7), (7, 2), (7, 2, -2), (0, 10, 3), (0.5, 3), (0, 1, 0.1), (5, 0, -1.5)]
)
def test_arange_agrees_with_numpy(arguments: tuple[float, ...]) -> None:
    expected = np.arange(*arguments)
    found = Tensor.arange(*arguments)
    assert found.dtype is (dtypes.int32 if expected.dtype.kind == "i" else dtypes.float32)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_linspace_and_meshgrid_agree_with_numpy() -> None:
    for arguments in ((0, 1, 5), (3, -3, 4), (2, 9, 1), (0, 1, 0)):
        np.testing.assert_allclose(Tensor.linspace(*arguments).numpy(), np.linspace(*arguments), rtol=1e-6, atol=1e-7)
    a, b = np.arange(3), np.arange(2)
    for indexing in ("ij", "xy"):
        for found, expected in zip(
            Tensor(a).meshgrid(Tensor(b), indexing=indexing), np.meshgrid(a, b, indexing=indexing)
        ):
            np.testing.assert_array_equal(found.numpy(), expected)


def test_tensors_move_between_devices() -> None:
    t = Tensor([1.0, 2.0], device="PYTHON")
    assert t.device == "PYTHON" and (t + 1).device == "PYTHON"
    moved = (t * 3).llvm()
    assert moved.device == "LLVM" and (moved + 1).tolist() == [4, 7]
    assert t.to("python:0") is t and t.to(None).device == Device.DEFAULT
    with pytest.raises(ValueError, match="unknown device 'QUANTUM'"):
        t.to("QUANTUM")
    with pytest.raises(ValueError, match=r"on LLVM and PYTHON: move one with .to\(\)"):
        moved + t


def test_assign_replaces_the_value_and_checks_its_type() -> None:
    t = Tensor([1.0, 2.0])
    view = t + 0
    assert t.assign(t * 2) is t
    assert t.tolist() == [2, 4] and view.tolist() == [1, 2]
    t += 1
    assert t.tolist() == [3, 5]
    whole = Tensor([1, 2])
    whole += 1
    assert whole.tolist() == [2, 3]
    with pytest.raises(TypeError, match="int32 cannot become float32"):
        whole /= 2
    with pytest.raises(ValueError, match=r"assign: shapes \(2,\) and \(3,\)"):
        t.assign(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match="cast it first"):
        t.assign(Tensor([1, 2]))


def test_assigned_values_broadcast() -> None:
    t = Tensor.zeros(2, 3).contiguous()
    assert t.assign(Tensor([1.0, 2.0, 3.0])).tolist() == [[1, 2, 3], [1, 2, 3]]
    assert t.assign(7).tolist() == [[7, 7, 7], [7, 7, 7]]
    t[:, 1].assign(Tensor([5.0]))
    assert t.tolist() == [[7, 5, 7], [7, 5, 7]]


def test_realize_computes_and_schedule_only_plans() -> None:
    a = Tensor([1.0, 2.0])
    b, c = a + 1, a * 2
    assert len(b.schedule(c)) >= 1 and not b.lazydata.is_realized
    assert b.realize(c) is b
    assert b.lazydata.is_realized and c.lazydata.is_realized


def test_numpy_arrays_and_tensors_mix() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert isinstance(x + Tensor(x), Tensor)
    assert (Tensor(x) * x).tolist() == [1, 4]
    np.testing.assert_array_equal(np.asarray(Tensor(x)), x)
    assert (Tensor(x) + np.float32(1)).tolist() == [2, 3]
    with pytest.raises(TypeError):
        Tensor(x) + "a"


def test_wrong_kinds_of_numbers_raise_an_error() -> None:
    with pytest.raises(TypeError, match="bits are for ints"):
        Tensor([1.0]) & 1
    with pytest.raises(ValueError, match="negative count"):
        Tensor([1]) << -1
    with pytest.raises(ValueError, match="unknown dtype 'float33'"):
        Tensor([1]).cast("float33")


def test_the_processor_has_a_name_of_its_own() -> None:
    best = Device.DEFAULT if Device.DEFAULT != "CLANG" else "LLVM"
    assert Tensor([1.0], device="CPU").device == Device.canonicalize("cpu:0") == best
    assert Device.canonicalize("CPU:1") == f"{best}:1" and "CPU" in Device
    assert Tensor([1.0, 2.0]).shard(("CPU", "CPU:1"), 0).sum().item() == 3
