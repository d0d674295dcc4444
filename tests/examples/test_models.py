"""Whole models: published weights against their reference, training, and the explorer."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

from tests.ops.support import random_array
from tests.support.models import need_models
from tinyexplore import Tensor, capture


def example(repository: Path, name: str) -> ModuleType:
    """examples/NAME.py as a module."""
    spec = importlib.util.spec_from_file_location(name, repository / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_minilm_agrees_with_sentence_transformers(repository: Path) -> None:
    need_models()
    minilm = example(repository, "minilm")
    folder = minilm.model_folder()
    model = minilm.load_model(folder)
    vectors = model(*minilm.encode(folder, list(minilm.SENTENCES))).numpy()
    expected = np.load(Path(__file__).with_name("minilm.npy"))
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    alike = vectors @ vectors.T
    assert alike[2].argsort()[-2] == 3 and abs(alike[2, 3] - 0.6685) < 1e-4, "the cat is closest to the kitten"
    lone = model(*minilm.encode(folder, [minilm.SENTENCES[0]])).numpy()
    np.testing.assert_allclose(lone[0], expected[0], atol=1e-5, err_msg="padding changes nothing")
    layer = model.encoder["layer"][0]
    with capture() as session:
        layer(Tensor(random_array((1, 4, 384))), Tensor.ones(1, 1, 1, 4, dtype="bool")).realize()
    names = {node.op for node in session.trace.nodes}
    assert len(session.trace.kernels) >= 6 and "REDUCE" in names


def test_gpt_learns_with_causal_attention(repository: Path) -> None:
    gpt = example(repository, "gpt")
    Tensor.manual_seed(0)
    model = gpt.GPT(5, width=16, heads=2, layers=1)
    text = np.tile(np.array([0, 1, 2, 3, 4], dtype=np.int32), 30)
    tokens = Tensor(text[None, :9])
    changed = Tensor(np.concatenate([text[None, :6], 4 - text[None, 6:9]], axis=1))
    np.testing.assert_allclose(model(tokens).numpy()[:, :6], model(changed).numpy()[:, :6], atol=1e-5)
    losses = gpt.train(model, text, 40)
    assert losses[-1] < 0.2 < 1.2 < losses[0]
    assert gpt.write(model, text[:16], 6).tolist() == text[:22].tolist()
    with capture() as session:
        gpt.loss_of(model, tokens).backward()
        model.h[0].attn.c_attn.weight.grad.realize()
    assert len(session.trace.kernels) > 3


def test_a_resnet_step_learns_and_opens_in_the_explorer(repository: Path) -> None:
    resnet = example(repository, "resnet")
    Tensor.manual_seed(0)
    model = resnet.ResNet(classes=2, widths=(4, 8))
    step = resnet.training_step(model)
    pictures = random_array((8, 1, 8, 8))
    labels = (pictures.mean((1, 2, 3)) > 0).astype(np.int32)
    with Tensor.train():
        losses = [step(Tensor(pictures), Tensor(labels)).item() for _ in range(25)]
        with capture() as session:
            step(Tensor(pictures), Tensor(labels))
    assert losses[-1] < 0.1 < 0.4 < losses[0]
    assert model.layers[1].bn2.num_batches_tracked.item() == 26
    assert len(session.trace.kernels) > 10 and all(run.times_us for run in session.trace.runs)
