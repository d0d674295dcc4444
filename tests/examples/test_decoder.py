"""The decoder learns its verse, recites it with kernels compiled once, and agrees with NumPy at every length."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.engine.runner import _runners


@pytest.mark.slow
def test_the_decoder_example_keeps_its_promises(repository: Path) -> None:
    spec = importlib.util.spec_from_file_location("decoder", repository / "examples" / "decoder.py")
    assert spec is not None and spec.loader is not None
    decoder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(decoder)
    Tensor.manual_seed(1)
    model = decoder.Decoder()
    assert decoder.train(model) < 0.01
    decoder.recite(model)
    compiled = len(_runners)
    said, scores = decoder.recite(model)
    assert said == decoder.VERSE and len(_runners) == compiled
    np.testing.assert_allclose(np.array(scores), decoder.with_numpy(model, said[:-1]), rtol=1e-3, atol=1e-3)
