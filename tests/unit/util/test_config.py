"""The configuration rejects invalid options at the assignment, before their first use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tinyexplore import Tensor, dtypes, explore
from tinyexplore.util import Context, ContextVar, config
from tinyexplore.util.config import config_from_environment


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"BEAM": -1}, ValueError, "BEAM=-1: cannot be negative"),
        ({"BEAM": "lots"}, TypeError, r"BEAM='lots' \(str\): need a whole number"),
        ({"THREADS": -2}, ValueError, "THREADS=-2: cannot be negative"),
        ({"NOOPT": 0.5}, TypeError, r"NOOPT=0.5 \(float\): need a whole number"),
        ({"DEVICE": 3}, TypeError, r"DEVICE=3 \(int\): need text"),
        ({"BREAM": 2}, ValueError, "no such option; supported: ALLOW_TF32, BEAM"),
    ],
)
def test_a_context_refuses_invalid_options(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    before = config()
    with pytest.raises(error, match=text), Context(**changes):
        pass
    assert config() is before


def test_a_context_takes_the_options_of_other_engines() -> None:
    before = config()
    with Context(FUSE_ARANGE=1, SPLIT_REDUCEOP=0, NOOPT=0):
        assert config() == replace(before, SPLIT_REDUCEOP=0, NOOPT=0) and ContextVar("FUSE_ARANGE", 0) == 1
    assert config() is before and ContextVar("FUSE_ARANGE", 0) == 0


def test_a_capture_refuses_invalid_options_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="BEAM=-1: cannot be negative"):
        explore(Tensor.ones(3) + 1, beam=-1)


def test_the_environment_refuses_invalid_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAM", "-3")
    with pytest.raises(ValueError, match="BEAM=-3: cannot be negative"):
        config_from_environment()


def test_true_and_false_are_numbers() -> None:
    with Context(NOOPT=True):
        assert config().NOOPT


def test_an_invalid_dtype_or_axis_is_named() -> None:
    with pytest.raises(ValueError, match="unknown dtype <class 'int'>; supported: bool"):
        Tensor([1], dtype=int)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"axis 1.0 \(float\): need an int"):
        Tensor.ones(2, 3).sum(1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="-2 classes"):
        Tensor([1], dtype=dtypes.int32).one_hot(-2)
