"""Part of `python -m tests.examples.on_devices`: models on devices other than LLVM and the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.programs import GPUS, WORK_ITEMS
from tests.examples.on_devices import apart, first_layer, trained
from tests.examples.test_models import example
from tests.support.models import need_models


@pytest.mark.parametrize("device", ["WASM", *GPUS])
def test_a_network_trains_as_on_llvm(repository: Path, device: str) -> None:
    digits = example(repository, "digits")
    steps = 1 if device == WORK_ITEMS else 3  # PoCL takes its time to compile a kernel
    losses, weights = trained(digits, device, steps, 16)
    expected, right = trained(digits, "LLVM", steps, 16)
    assert apart(losses, expected) < 1e-4
    assert max(apart(one, other) for one, other in zip(weights, right, strict=True)) < 1e-3


@pytest.mark.parametrize("device", ["WASM", *GPUS])
def test_the_first_layer_of_minilm_is_that_of_llvm(repository: Path, device: str) -> None:
    need_models()
    minilm = example(repository, "minilm")
    sentences = list(minilm.SENTENCES)[:1]
    assert apart(first_layer(minilm, device, sentences), first_layer(minilm, "LLVM", sentences)) < 1e-4
