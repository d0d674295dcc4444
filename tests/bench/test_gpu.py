"""The run on a GPU, on the driver stand-in: all parts in tiny sizes, into one file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.gpu import __main__ as gpu
from bench.gpu.parts import Rows, largest_difference
from bench.gpu.report import markdown
from tests.support.patience import seconds


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The rows of a run of all parts."""
    file = tmp_path_factory.mktemp("gpu") / "gpu.json"
    minutes = seconds(60) / 60
    status = gpu.main(["--stand-in", "--small", "--out", str(file), "--minutes", str(minutes)])
    result: dict[str, Any] = json.loads(file.read_text())
    assert status == 0, {name: (part["ended"], part["rows"], part["log"]) for name, part in result["parts"].items()}
    return result


def rows_of(found: dict[str, Any], part: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found["parts"][part]["rows"]}


def test_every_part_ends_without_a_wrong_result(found: dict[str, Any]) -> None:
    assert list(found["parts"]) == list(gpu.PARTS)
    assert all(part["ended"] == "whole" and part["rows"] for part in found["parts"].values())
    assert rows_of(found, "machine")["gpu"]["is"] == "NVIDIA of paper"
    assert rows_of(found, "backends")["tests"]["counts"]["passed"] > 0
    assert rows_of(found, "fuzz")["sequences of opts"]["counts"]["tried"] >= 3


def test_every_program_is_timed_and_compared(found: dict[str, Any]) -> None:
    from bench.gpu.programs import PROGRAMS

    rows = rows_of(found, "speed")
    assert len(rows) >= 3 and rows.keys() <= {program.name for program in PROGRAMS}
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
    assert all(row["us"] > 0 and row["kernels"] > 0 for row in rows.values())
    pytest.importorskip("torch")
    assert all(row["theirs_us"] > 0 and row["apart"] < 0.4 for row in rows.values())


def test_the_report_has_a_table_of_each_part(found: dict[str, Any]) -> None:
    text = markdown(found)
    assert (
        "by the stand-in" in text and "| matmul float32 1024, small: 8×8, 8×8 |" in text and "kernels, a graph" in text
    )
    broken = {**found, "parts": {"fuzz": {"ended": "exit 1", "log": "lost", "rows": [{"name": "7", "wrong": "sum"}]}}}
    assert "- 7: sum" in markdown(broken) and "lost" in markdown(broken)


def test_a_part_that_does_not_end_is_stopped_and_its_rows_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that never ends must not take the others' time."""
    launcher = tmp_path / "python"
    launcher.write_text('#!/bin/sh\necho \'{"name": "first"}\' >> $6\nsleep 600\n')  # the argument of --out
    launcher.chmod(0o755)
    monkeypatch.setattr(gpu.sys, "executable", str(launcher))
    options = gpu._parser().parse_args([])
    part = gpu.run_part("speed", 3.0, options, dict(os.environ))
    assert part["ended"].startswith("stopped after") and part["rows"] == [{"name": "first"}]


def test_missing_packages_are_installed_from_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hypothesis-6.0-py3-none-any.whl").touch()
    monkeypatch.setattr(gpu, "is_missing", lambda module: module in ("hypothesis", "numpy"))
    monkeypatch.setattr(gpu.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "site"))
    commands: list[list[str]] = []
    monkeypatch.setattr(gpu.subprocess, "run", lambda words, check: commands.append(words))
    environment = gpu.prepare_environment(str(tmp_path))
    assert commands[0][-1] == "hypothesis" and "--no-index" in commands[0]
    assert environment["PYTHONPATH"].endswith(str(tmp_path / "site"))


def test_nan_results_count_as_different(tmp_path: Path) -> None:
    one = np.ones(3, np.float32)
    assert largest_difference(one, one) == 0 and largest_difference(one * np.nan, one) == float("inf")
    rows = Rows(tmp_path / "rows", 5, small=True, stand_in=True)
    rows.add("a", us=1.0)
    assert json.loads(rows.file.read_text()) == {"name": "a", "us": 1.0} and rows.left > 0
