"""Installs the driver stand-in as the process's CUDA device: `pytest -p tests.support.stand_in`, or `install()`."""

from __future__ import annotations

import sys
from typing import Any

from tests.support.fake_cuda import FakeCUDA
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime.cuda import CUDA


def install() -> FakeCUDA:
    """Install a fake machine with one GPU. Programs are not read from disk, so that the fake knows each source."""
    fake = FakeCUDA()
    sys.modules.update(fake.modules)
    real = CUDA.compile

    def compiled(self: CUDA, spec: ProgramSpec) -> Any:
        fake.programs[spec.source.encode()] = spec
        return real(self, spec)

    CUDA.compile = compiled  # type: ignore[method-assign]
    return fake


def pytest_configure() -> None:
    """Install the stand-in before pytest collects."""
    install()
