"""DEBUG writes to the console. Without DEBUG nothing is written."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs import from_numpy, to_numpy
from tinyexplore import Tensor, TinyJit
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
    assert line.startswith("LLVM r_") and "µs" in line and "GB/s" in line
    assert len(line) <= 110  # a notebook's width


def test_decisions_opts_and_sources_follow(capsys: pytest.CaptureFixture[str]) -> None:
    x = from_numpy(np.ones((11, 13), np.float32))
    with Context(DEBUG=4):
        to_numpy(x.alu(Ops.MUL, x).reduce(Ops.MAX, (0,)))
    out = capsys.readouterr().out
    assert "REDUCE_AXIS: realize, it is an output" in out
    assert "VECTOR(" in out and "define void @r_" in out


def test_each_level_prints_more(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for level in range(1, 8):
        x = from_numpy(np.ones((11, 12 + level), np.float32))
        with Context(DEBUG=level):
            to_numpy(x.alu(Ops.MUL, x).reduce(Ops.MAX, (0,)))
        told.append(capsys.readouterr().out)
    marks = {"GFLOP/s": 2, "data0: Buffer(": 3, "define void @r_": 4, " = REDUCE ": 5, "DEFINE_ACC": 6, "\n    ret": 7}
    found = {mark: min(level for level, out in enumerate(told, 1) if mark in out) for mark in marks}
    assert found == marks


def test_replays_are_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    double = TinyJit(lambda x: (x * 2).realize())
    x = Tensor.ones(77).contiguous().realize()
    with Context(DEBUG=2):
        for _ in range(4):
            double(x)
    assert capsys.readouterr().out.count("GFLOP/s") == 4
