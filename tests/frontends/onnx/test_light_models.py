"""The light networks of the `onnx` wheel: real architectures with constant weights, and their recorded outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is missing: pip install 'tinyexplore[onnx]'")

from tinyexplore.frontends.onnx import load

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = sorted(path.stem for path in LIGHT.glob("*.onnx"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_light_network_gives_its_recorded_output(name: str) -> None:
    model = load(LIGHT / f"{name}.onnx")
    shape = model.inputs[0].shape
    assert shape is not None
    size = int(np.prod(shape))
    image = (np.arange(size).reshape(shape) / size).astype(np.float32)
    expected = onnx.numpy_helper.to_array(onnx.load_tensor(str(LIGHT / f"{name}_output_0.pb")))
    found = model(image).numpy()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_there_are_nine() -> None:
    assert len(NETWORKS) == 9
