"""Published models with their weights agree with onnxruntime."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the package onnx is missing: pip install 'tinyexplore[onnx]'")

from bench.onnx_models import PUBLISHED, Published
from tinyexplore.frontends.onnx import load

REQUIRED = os.environ.get("TINYEXPLORE_REQUIRE_MODELS", "") not in ("", "0")


@pytest.mark.slow
@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name.partition(":")[0])
def test_a_published_model_agrees_with_onnxruntime(published: Published) -> None:
    if published.file is None and REQUIRED:
        pytest.fail(f"TINYEXPLORE_REQUIRE_MODELS is set, but {published.package} is missing: make models")
    if published.file is None:
        pytest.skip(f"{published.package} is missing: `make models` installs it")
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    given = published.inputs(np.random.default_rng(0))
    expected = onnxruntime.InferenceSession(str(published.file)).run(None, given)
    model = load(published.file)
    for _ in range(3):  # evaluated, captured, replayed
        outputs = model(**given)
        found = outputs if isinstance(outputs, tuple) else (outputs,)
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert np.abs(one.numpy() - other).max() <= 1e-4 * np.abs(other).max()
