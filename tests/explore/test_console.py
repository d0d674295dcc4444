"""DEBUG writes to the console, and nothing is written without it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs import from_numpy, to_numpy
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def run(capsys: pytest.CaptureFixture[str], level: int) -> str:
    x = from_numpy(np.ones((9, 7), np.float32))
    with Context(DEBUG=level):
        to_numpy(x.alu(Ops.ADD, x).reduce(Ops.ADD, (1,)))
    return capsys.readouterr().out


def test_nothing_is_written_without_debug(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, 0) == ""


def test_kernels_are_written_with_their_times(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [line for line in run(capsys, 2).splitlines() if "GFLOP/s" in line]
    assert line.startswith("LLVM    r_") and "µs" in line and "GB/s" in line


def test_decisions_opts_and_sources_follow(capsys: pytest.CaptureFixture[str]) -> None:
    x = from_numpy(np.ones((11, 13), np.float32))
    with Context(DEBUG=4):
        to_numpy(x.alu(Ops.MUL, x).reduce(Ops.MAX, (0,)))
    out = capsys.readouterr().out
    assert "REDUCE_AXIS: realize, an output of the program" in out
    assert "VECTOR(" in out and "define void @r_" in out
