"""DLPack and NumPy's array protocol: shared memory and its lifetime, and copies."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tinyexplore import Device, Tensor, TinyJit, dtypes

ALL = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


class Exporter:
    """An array that exports itself by DLPack alone, as another package's does."""

    def __init__(self, array: np.ndarray, old: bool = False) -> None:
        self.array, self.old = array, old

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        if self.old and options:
            raise TypeError("no such argument")
        return self.array.__dlpack__(**options)


def some(dtype: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 5).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", ALL)
def test_memory_is_shared_in_both_directions(dtype: str) -> None:
    x = some(dtype)
    t = Tensor.from_dlpack(x)
    assert t.dtype.name == dtype
    back, also = np.from_dlpack(t), np.asarray(t)
    assert np.shares_memory(x, back) and np.shares_memory(x, also)
    assert back.dtype == also.dtype == x.dtype
    np.testing.assert_array_equal(back, x)
    x[1, 2] = 1 - x[1, 2] if dtype == "bool" else 7
    np.testing.assert_array_equal(t.numpy(), x)
    also[0, 0] = 1
    assert x[0, 0] == 1 and t[0, 0].item() == 1


@pytest.mark.parametrize("dtype", ALL)
def test_a_computed_tensor_is_shared(dtype: str) -> None:
    t = Tensor(some(dtype)).contiguous() + Tensor(some(dtype))
    first, second = np.asarray(t), np.from_dlpack(t)
    assert np.shares_memory(first, second)
    np.testing.assert_array_equal(first, some(dtype) + some(dtype))


def test_a_tensor_of_an_array_is_in_its_memory() -> None:
    x = some("float32")
    assert np.shares_memory(np.asarray(Tensor(x)), x)
    assert not np.shares_memory(Tensor(x).numpy(), x)
    assert not np.shares_memory(np.array(Tensor(x)), x)
    assert np.asarray(Tensor(x), dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy=False"):
        Tensor(x).__array__(np.float64, copy=False)


@pytest.mark.parametrize("move", ["transpose", "row", "column", "step", "flip", "expand", "middle"])
def test_an_exported_view_has_its_strides(move: str) -> None:
    moves: dict[str, Any] = {
        "transpose": lambda x: x.T,
        "row": lambda x: x[1],
        "column": lambda x: x[:, 2],
        "step": lambda x: x[:, ::2],
        "flip": lambda x: x[::-1],
        "middle": lambda x: x[1:3, 1:3],
        "expand": lambda x: np.broadcast_to(x[:1], (3, 4)) if isinstance(x, np.ndarray) else x[:1].expand(3, 4),
    }
    x = some("float32", (3, 4))
    moved = np.asarray(moves[move](Tensor(x)))
    assert np.shares_memory(moved, x)
    assert moved.strides == moves[move](x).strides
    np.testing.assert_array_equal(moved, moves[move](x))
    np.testing.assert_array_equal(np.from_dlpack(moves[move](Tensor(x))), moves[move](x))


def test_padded_tensors_are_exported_as_copies() -> None:
    x = some("float32")
    padded = Tensor(x).pad(((0, 1), (0, 0)))
    np.testing.assert_array_equal(np.from_dlpack(padded.realize()), np.pad(x, ((0, 1), (0, 0))))
    view = Tensor(x).reshape(2, 6).permute(1, 0).reshape(3, 4)  # two strides cannot say it
    with pytest.raises(BufferError, match="contiguous"):
        view.__dlpack__(copy=False)
    np.testing.assert_array_equal(np.from_dlpack(view), x.reshape(2, 6).T.reshape(3, 4))


@pytest.mark.parametrize(
    ("array", "is_shared"),
    [
        (some("float32", (2, 3, 4)).transpose(2, 0, 1), True),
        (some("float32", (6, 4))[2:5], True),
        (np.broadcast_to(some("float32", (1, 4)), (3, 4)), True),
        (some("float32", (3, 1, 4)).transpose(1, 2, 0), True),
        (some("float32", (6, 4))[::2], False),
        (some("float32", (6, 4))[:, 1:3], False),
        (some("float32", (6, 4))[::-1], False),
        (some("float32", (6, 4))[::-2, ::-1], False),
    ],
)
def test_imported_arrays_may_have_strides(array: np.ndarray, is_shared: bool) -> None:
    t = Tensor.from_dlpack(Exporter(array))
    np.testing.assert_array_equal(t.numpy(), array)
    assert np.shares_memory(np.asarray(t), array) == is_shared
    if not is_shared:
        with pytest.raises(BufferError, match="copy=False"):
            Tensor.from_dlpack(array, copy=False)
    copied = Tensor.from_dlpack(array, copy=True)
    assert not np.shares_memory(np.asarray(copied), array)
    np.testing.assert_array_equal(copied.numpy(), array)
    np.testing.assert_array_equal((t + 1).numpy(), array + 1)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (1, 1)])
def test_no_axes_and_no_elements(shape: tuple[int, ...]) -> None:
    x = some("int32", shape)
    t = Tensor.from_dlpack(x)
    assert t.shape == shape
    np.testing.assert_array_equal(np.from_dlpack(t), x)
    np.testing.assert_array_equal(np.asarray(t), x)
    np.testing.assert_array_equal(np.from_dlpack(Tensor.zeros(*shape)), np.zeros(shape, np.float32))
    if x.size:
        assert np.shares_memory(np.from_dlpack(t), x)


def test_read_only_memory_stays_so() -> None:
    x = some("float32")
    x.flags.writeable = False
    t = Tensor.from_dlpack(x)
    assert t.lazydata.buffer is not None and t.lazydata.buffer.is_readonly
    assert np.shares_memory(np.from_dlpack(t), x)
    assert not np.from_dlpack(t).flags.writeable and not np.asarray(t).flags.writeable
    with pytest.raises(BufferError, match="DLPack 1.0"):
        t.__dlpack__()
    t[0] = 9.0  # the tensor gets memory of its own
    assert t[0, 0].item() == 9 and x[0, 0] == 0


def test_an_old_exporter_is_understood() -> None:
    x = some("float32")
    t = Tensor.from_dlpack(Exporter(x, old=True))
    assert np.shares_memory(np.asarray(t), x)
    with pytest.raises(BufferError, match="before 1.0"):
        Tensor.from_dlpack(Exporter(x, old=True), copy=True)


def test_the_memory_lives_until_the_last_reference_is_gone() -> None:
    x = some("float32", (1000, 7))
    alive = weakref.ref(x)
    t = Tensor.from_dlpack(x)
    view = t[3:5].transpose(0, 1)
    expected = x[3:5].T.copy()
    del x, t
    gc.collect()
    assert alive() is not None
    out = np.from_dlpack(view)
    del view
    gc.collect()
    np.testing.assert_array_equal(out, expected)
    del out
    gc.collect()
    assert alive() is None


def test_an_array_outlives_its_tensor() -> None:
    t = (Tensor.arange(100_000).float() + 1).realize()
    found = np.from_dlpack(t)
    del t
    gc.collect()
    others = [(Tensor.arange(100_000).float() * 0).realize() for _ in range(4)]
    np.testing.assert_array_equal(found, np.arange(100_000) + 1)
    assert len(others) == 4


def test_an_unconsumed_capsule_frees_its_memory() -> None:
    t = Tensor.ones(10).contiguous().realize()
    assert t.lazydata.buffer is not None
    memory = weakref.ref(t.lazydata.buffer.memory)
    capsule = t.__dlpack__(max_version=(1, 0))
    del t
    gc.collect()
    assert memory() is not None
    del capsule
    gc.collect()
    assert memory() is None


def test_dtypes_that_numpy_lacks_are_exchanged() -> None:
    x = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    t = Tensor(x)
    assert np.asarray(t).dtype == np.float32
    again = Tensor.from_dlpack(t)
    assert again.dtype is dtypes.bfloat16
    np.testing.assert_array_equal(again.numpy(), x.astype(np.float32))
    for dtype in (dtypes.fp8e4m3, dtypes.fp8e5m2):
        small = Tensor([1.0, 0.5, -2.0]).cast(dtype)
        assert Tensor.from_dlpack(small).dtype is dtype
        assert Tensor.from_dlpack(small).float().tolist() == [1.0, 0.5, -2.0]
    with pytest.raises(ValueError, match="NumPy has no bfloat16"):
        t.__array__(copy=False)


def test_invalid_exchanges_raise_an_error() -> None:
    t = Tensor.ones(3)
    assert t.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="stream"):
        t.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="dl_device"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="no dtype in tinyexplore"):
        Tensor.from_dlpack(np.ones(3, np.complex64))

    class OnAGpu(Exporter):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(BufferError, match="CPU"):
        Tensor.from_dlpack(OnAGpu(np.ones(3)))


@pytest.mark.parametrize("device", ["CLANG", "PYTHON"])
def test_other_devices(device: str) -> None:
    if device == "CLANG":
        try:
            Device[device]
        except Exception as error:
            pytest.skip(f"no {device}: {error}")
    x = some("float32")
    t = Tensor.from_dlpack(x, device=device)
    assert t.device.startswith(device)
    assert np.shares_memory(np.asarray(t), x)
    np.testing.assert_array_equal(np.asarray(t + 1), x + 1)


def test_a_captured_function_cannot_read_values() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return Tensor(np.asarray(x) + 1)

    step(Tensor([1.0]).realize())
    with pytest.raises(RuntimeError, match="reads a tensor's values"):
        step(Tensor([1.0]).realize())


def test_an_argument_of_a_captured_function_may_be_an_array() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (x * 2).realize()

    for number in range(4):
        x = np.full(5, number, np.float32)
        np.testing.assert_array_equal(step(Tensor.from_dlpack(x)).numpy(), x * 2)


# *** PyTorch ***


def test_memory_of_pytorch_is_shared_in_both_directions() -> None:
    torch = pytest.importorskip("torch", reason="the package torch is missing: pip install torch")
    for kind in (torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.float16, torch.float8_e4m3fn):
        x = torch.arange(6).reshape(2, 3).to(kind)
        for t in (Tensor(x), Tensor.from_dlpack(x)):
            back = torch.from_dlpack(t)
            assert back.dtype is kind
            assert back.data_ptr() == x.data_ptr()
            assert torch.equal(back.float(), x.float())
        x[0, 0] = 1
        assert bool(t.float()[0, 0].item()) and bool(back.float()[0, 0])
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    back = torch.from_dlpack(Tensor(x))
    assert (back.data_ptr(), back.stride()) == (x.data_ptr(), x.stride())
    with pytest.raises(BufferError, match="detach"):
        Tensor(torch.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="no dtype in tinyexplore"):
        Tensor(torch.ones(2, dtype=torch.complex64))


def test_memory_of_pytorch_outlives_its_owner() -> None:
    torch = pytest.importorskip("torch", reason="the package torch is missing: pip install torch")
    x = torch.arange(1000).float()
    t = Tensor(x)
    del x
    gc.collect()
    assert t.sum().item() == 499500
    back = torch.from_dlpack((t + 1).realize())
    del t
    gc.collect()
    assert float(back.sum()) == 500500
