"""Some small models of other packages, if these are installed; `models.py` compares more."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("torch", reason="the package torch is missing: pip install torch")

from tests.frontends.torch import models


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name"), [("transformers", "albert"), ("timm", "lcnet_050"), ("torchvision", "squeezenet1_1")]
)
def test_results_and_gradients_are_those_of_eager_pytorch(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the package {package} is missing: pip install {package}")
    row = models.compared(models.MAKERS[package], name)
    assert models.is_right(row), row


def test_the_page_has_one_row_for_each_model() -> None:
    rows = models.known()
    assert rows and {package for package, _ in rows} <= set(models.MAKERS)
    for (package, name), text in rows.items():
        assert name in models.CONFIGURATIONS or package != "transformers", text
