"""The example trains to the documented accuracy and gives the same scores on every device."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_digits_example_works_as_documented(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(repository / "examples" / "digits.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "test accuracy 9" in told
    assert "WASM: 360 pictures" in told and "PYTHON: 32 pictures" in told and "LLVM: 360 pictures" in told
