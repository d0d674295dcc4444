"""The decoder learns its verse, generates it with kernels compiled once, and agrees with NumPy at every length."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tinyexplore import Context, Tensor, capture
from tinyexplore.compile.runner_cache import runners


@pytest.mark.slow
def test_the_decoder_example_works_as_documented(repository: Path) -> None:
    spec = importlib.util.spec_from_file_location("decoder", repository / "examples" / "decoder.py")
    assert spec is not None and spec.loader is not None
    decoder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(decoder)
    Tensor.manual_seed(1)
    model = decoder.Decoder()
    assert decoder.train(model) < 0.01
    decoder.recite(model)
    compiled = len(runners)
    said, scores = decoder.recite(model)
    assert said == decoder.VERSE and len(runners) == compiled
    expected = decoder.with_numpy(model, said[:-1])
    np.testing.assert_allclose(np.array(scores), expected[decoder.PROMPT - 1 :], rtol=1e-3, atol=1e-3)
    said, _ = decoder.recite(model, prompt=decoder.VERSE[:40])
    assert said == decoder.VERSE and len(runners) == compiled, "a longer prompt needs no other kernels"
    assert model.step.captured is not None and {state.is_in_place for state in model.step.captured.states} == {True}
    drawn = []
    for seed in (1, 2, 1):
        Tensor.manual_seed(seed)
        drawn.append(decoder.recite(model, temperature=3.0)[0])
    assert drawn[0] == drawn[2] != drawn[1] and len(runners) == compiled
    with Context(JIT=0):
        assert decoder.recite(model, prompt=decoder.VERSE[:-4])[0] == decoder.VERSE
    with capture() as session:
        decoder.recite(model, prompt=decoder.VERSE[:-1])
    stored = [kernel for kernel in session.trace.kernels if "position" in kernel.name or "count" in kernel.name]
    assert len(session.trace.kernels) == len(model.step.jit_cache) and stored
