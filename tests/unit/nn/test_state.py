"""Files in the safetensors format, and loading states into models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tinyexplore import GlobalCounters, Tensor, dtypes, nn
from tinyexplore.nn.state import get_state_dict, load_state_dict, safe_load, safe_load_metadata, safe_save


def test_a_file_has_the_published_layout(tmp_path: Path) -> None:
    path = tmp_path / "two.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[True, False]])}, path, {"note": "x"})
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    assert json.loads(raw[8 : 8 + length]) == {
        "__metadata__": {"note": "x"},
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "BOOL", "shape": [1, 2], "data_offsets": [8, 10]},
    }
    assert raw[8 + length :] == np.float32([1, 2]).tobytes() + b"\x01\x00"


def test_every_dtype_and_shape_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    saved = {dtype.name: Tensor([[0, 1, 1]], dtype=dtype) for dtype in dtypes.all}
    saved |= {"scalar": Tensor(2.5), "empty": Tensor.zeros(0, 3), "lazy": Tensor.arange(4).reshape(2, 2).T + 1}
    safe_save(saved, path)
    loaded = safe_load(str(path))
    assert list(loaded) == list(saved)
    for name, tensor in saved.items():
        assert (loaded[name].shape, loaded[name].dtype) == (tensor.shape, tensor.dtype)
        assert loaded[name].tolist() == tensor.tolist()
    assert (loaded["float32"].to(None) + 1).tolist() == [[1, 2, 2]]
    raw, start, header = safe_load_metadata(path)
    assert raw.dtype is dtypes.uint8 and raw.shape == (path.stat().st_size,)
    assert header["scalar"]["shape"] == [] and start % 8 == 0
    assert safe_load(Tensor(path.read_bytes()))["int16"].tolist() == [[0, 1, 1]]


def test_an_invalid_file_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "no.safetensors"
    path.write_bytes(b"hello, world: this is text")
    with pytest.raises(ValueError, match="not a safetensors file"):
        safe_load(path)


def test_a_state_is_loaded_by_name_and_checked(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    safe_save(get_state_dict(first), tmp_path / "linear.safetensors")
    load_state_dict(second, safe_load(tmp_path / "linear.safetensors"), verbose=False)
    np.testing.assert_array_equal(first.weight.numpy(), second.weight.numpy())
    state = get_state_dict(first)
    with pytest.raises(KeyError, match="the model has"):
        load_state_dict(nn.Linear(3, 2), {"weight": state["weight"]}, verbose=False)
    with pytest.warns(UserWarning, match="bias are not in"):
        load_state_dict(nn.Linear(3, 2, bias=False), state)
    with pytest.warns(UserWarning, match="bias keep their values"):
        load_state_dict(nn.Linear(3, 2), {"weight": state["weight"]}, strict=False)
    with pytest.raises(ValueError, match=r"weight .*\(2, 4\) in the model, \(2, 3\)"):
        load_state_dict(nn.Linear(4, 2), state, verbose=False)
    load_state_dict(nn.Linear(3, 2, bias=False), state, strict=False, verbose=False)
    load_state_dict(second, state, verbose=False, consume=True)
    assert state == {}


def test_a_state_can_be_loaded_lazily() -> None:
    layer = nn.Linear(1, 1)
    GlobalCounters.reset()
    load_state_dict(layer, {"weight": Tensor([[2.0]]) * 3, "bias": Tensor([1.0])}, verbose=False, realize=False)
    assert GlobalCounters.kernel_count == 0
    assert layer(Tensor([[1.0]])).tolist() == [[7.0]]


def test_a_loaded_state_has_the_dtype_of_the_model() -> None:
    layer = nn.Linear(1, 1)
    state = {"weight": Tensor([[2]], dtype="float16"), "bias": Tensor([1], dtype="int8")}
    assert load_state_dict(layer, state, verbose=False) == [layer.weight, layer.bias]
    assert layer.weight.dtype is dtypes.float32 and layer(Tensor([[3.0]])).tolist() == [[7]]


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    layer = nn.Linear(2, 3)
    before = layer.weight.tolist()
    for bias, error in ((Tensor.ones(4), ValueError), (3, TypeError), (np.ones(3), TypeError)):
        with pytest.raises(error, match="load_state_dict: bias "):
            load_state_dict(layer, {"weight": Tensor.ones(3, 2), "bias": bias}, verbose=False)
        assert layer.weight.tolist() == before
