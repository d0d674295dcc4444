"""The CUDA device on the driver stand-in, in a whole process: `pytest -p tests.support.stand_in`, or `install()`."""

from __future__ import annotations

import sys
from typing import Any

from tests.support.fake_cuda import FakeCUDA
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime.cuda import CUDA


def install() -> FakeCUDA:
    """Makes a machine with one GPU of paper; programs are not looked up on disk, so that it knows what each does."""
    fake = FakeCUDA()
    sys.modules.update(fake.modules)
    real = CUDA.compile

    def compiled(self: CUDA, spec: ProgramSpec) -> Any:
        fake.programs[spec.source.encode()] = spec
        return real(self, spec)

    CUDA.compile = compiled  # type: ignore[method-assign]
    return fake


def pytest_configure() -> None:
    """What pytest calls of a plugin, before it collects."""
    install()
