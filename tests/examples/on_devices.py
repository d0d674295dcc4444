"""Models of the examples on every device, beside LLVM's results.

    python -m tests.examples.on_devices [--steps 29] [GPU "GPU for opencl" WASM WEBGPU]

trains the digits' network for N steps (29 are an epoch) and encodes sentences by MiniLM's first layer, and prints
how far the losses, the weights and the vectors are from those of LLVM.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.backends.programs import WORK_ITEMS, under
from tests.examples.test_models import example
from tinyexplore import Context, Tensor, nn
from tinyexplore.nn.state import get_parameters

REPOSITORY = Path(__file__).parents[2]
Array = np.ndarray


def trained(digits: ModuleType, device: str, steps: int, batch: int) -> tuple[list[float], list[Array]]:
    """The loss of each step, and the weights after the last."""
    pictures, _, labels, _ = digits.load_data()
    device, within = under(device)
    with within, Context(DEVICE=device), Tensor.train():
        model = digits.DigitNet()
        weights = np.random.default_rng(0)
        for one in get_parameters(model):
            one.assign(Tensor((weights.standard_normal(one.shape) * 0.1).astype("f"), device=device)).realize()
        optimizer = nn.optim.Adam(get_parameters(model), lr=5e-3)
        losses = []
        for step in range(steps):
            chosen = np.arange(step * batch, (step + 1) * batch) % len(pictures)
            optimizer.zero_grad()
            scores = model(Tensor(pictures[chosen]))
            loss = scores.sparse_categorical_crossentropy(Tensor(labels[chosen]))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [one.numpy() for one in get_parameters(model)]


def first_layer(minilm: ModuleType, device: str, sentences: list[str]) -> Array:
    """What MiniLM's embeddings and first layer make of sentences, with the published weights."""
    folder = minilm.model_folder()
    device, within = under(device)
    with within, Context(DEVICE=device):
        model = minilm.load_model(folder)
        for one in get_parameters((model.embeddings, model.encoder["layer"][0])):
            one.assign(one.to(device)).realize()
        tokens, is_token = minilm.encode(folder, sentences)
        x = model.embeddings(tokens.to(device))
        mask = is_token.to(device).reshape(is_token.shape[0], 1, 1, -1)
        found: Array = model.encoder["layer"][0](x, mask).numpy()
        return found


def apart(found: Any, expected: Any) -> float:
    """How far the two are at most, for their size."""
    found, expected = np.asarray(found), np.asarray(expected)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("devices", nargs="*", default=["GPU", WORK_ITEMS, "WASM", "WEBGPU"])
    parser.add_argument("--steps", type=int, default=29)
    asked = parser.parse_args()
    digits, minilm = example(REPOSITORY, "digits"), example(REPOSITORY, "minilm")
    losses, weights = trained(digits, "LLVM", asked.steps, digits.BATCH)
    vectors = first_layer(minilm, "LLVM", list(minilm.SENTENCES))
    print(f"LLVM: loss {losses[0]:.4f} to {losses[-1]:.4f} in {asked.steps} steps; vectors {vectors.shape}", flush=True)
    for device in asked.devices:
        began = time.perf_counter()
        here, there = trained(digits, device, asked.steps, digits.BATCH)
        far = max(apart(one, other) for one, other in zip(there, weights, strict=True))
        print(
            f"{device}: loss {here[0]:.4f} to {here[-1]:.4f}, {apart(here, losses):.1e} from LLVM's at most,", end=" "
        )
        print(f"weights {far:.1e}, {time.perf_counter() - began:.0f} s;", end=" ", flush=True)
        began = time.perf_counter()
        far = apart(first_layer(minilm, device, list(minilm.SENTENCES)), vectors)
        print(f"MiniLM's first layer {far:.1e}, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
