"""Counters of executed kernels, Context variables, timing of blocks, and the timeline of PROFILE."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import seconds
from tinyexplore import Context, ContextVar, GlobalCounters, Profiling, Tensor, Timing, TinyJit, getenv
from tinyexplore.util import config


def counts() -> tuple[int, int, int]:
    return GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem


def test_kernels_operations_and_bytes_are_counted() -> None:
    x, y = Tensor.ones(64, 8).contiguous().realize(), Tensor.ones(64, 8).contiguous().realize()
    GlobalCounters.reset()
    assert counts() == (0, 0, 0) and GlobalCounters.time_sum_s == 0
    (x * y + 1).realize()
    assert counts() == (1, 2 * 512, 3 * 512 * 4)
    assert GlobalCounters.time_sum_s > 0
    (x + y).realize(do_update_stats=False)
    x.to("PYTHON").realize()
    assert counts() == (2, 2 * 512, 5 * 512 * 4), "a copy counts as one, reading and writing"


def test_a_replay_counts_the_work_of_its_kernels() -> None:
    x = Tensor.ones(32, 8).contiguous().realize()
    double = TinyJit(lambda x: ((x + 1).realize() * 2).realize())
    found = []
    for _ in range(4):
        GlobalCounters.reset()
        double(x)
        found.append(counts())
    assert found[0][0] == 2 and len(set(found)) == 1


def test_memory_in_use_follows_the_tensors() -> None:
    before = GlobalCounters.mem_used
    x = Tensor.ones(1000).contiguous().realize()
    assert GlobalCounters.mem_used == before + 4000
    GlobalCounters.reset()
    assert GlobalCounters.mem_used == before + 4000, "reset() frees nothing"
    del x
    assert GlobalCounters.mem_used == before


def test_a_context_changes_options_and_a_programs_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_LEVEL", "3")
    level, debug = ContextVar("TEST_LEVEL", 1), ContextVar("DEBUG", 0)
    assert level == 3 and level > 2 and not level < 3 and bool(level) and list(range(9))[level] == 3
    with Context(TEST_LEVEL=5, DEBUG=config().DEBUG):
        assert ContextVar("TEST_LEVEL", 1) == 5 and level.value == 5
        level.value = 7
        assert level >= 7
    assert level == 3 and debug == config().DEBUG

    @Context(BEAM=2, TEST_LEVEL=1)
    def inside() -> tuple[int, int]:
        return config().BEAM, level.value

    assert inside() == inside() == (2, 1)
    assert config().BEAM == 0 and getenv("TEST_LEVEL", 0) == 3 and getenv("NOT_THERE", "x") == "x"


def test_options_change_the_kernels() -> None:
    x = Tensor.ones(1 << 19).contiguous().realize()
    assert len(x.sum().schedule()) == 2
    with Context(SPLIT_REDUCEOP=0):
        assert len(x.sum().schedule()) == 1
    y = Tensor.ones(8, 8).contiguous().realize()
    inner = y.exp()
    assert len(inner.schedule(inner + 1)) == 1
    with Context(MULTIOUTPUT=0):
        inner = y.exp()
        assert len(inner.schedule(inner + 1)) == 2


def test_timing_and_profiling_print_the_time_of_a_block(capsys: pytest.CaptureFixture[str]) -> None:
    with Timing("block: ", on_exit=lambda ns: f", {ns > 0}") as timing:
        sum(range(1000))
    told = capsys.readouterr().out
    assert told == f"block: {timing.et * 1e-6:6.2f} ms, True\n"
    with Timing(enabled=False), Profiling(enabled=False):
        pass
    assert capsys.readouterr().out == ""
    with Profiling(sort="time", frac=1.0):
        sorted(range(10))
    assert "built-in method builtins.sorted" in capsys.readouterr().out


def test_profile_writes_a_timeline_when_the_process_ends(tmp_path: Path, repository: Path) -> None:
    program = "from tinyexplore import Tensor, Context\n(Tensor([1, 2], device='PYTHON') + 1).realize()"
    environment = {"PROFILE": "1", "PYTHONPATH": str(repository), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, timeout=seconds(120))
    (span,) = json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    assert span["ph"] == "X" and span["tid"] == "PYTHON" and span["dur"] > 0 and span["args"]["flops"] == 2
