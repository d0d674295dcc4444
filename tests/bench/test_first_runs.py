"""First runs of networks: the smallest command, and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.first_runs import ENGINES, PROGRAMS, First, main, table


def test_a_table_has_a_line_for_each_program_and_two_columns_for_each_engine() -> None:
    rows = [
        First("MLP, forward", "tinyexplore", 0.5, 0.25, 0.625, 0.375),
        First("MLP, forward", "jax", failure="no JAX here"),
        First("ResNet-18, forward", "tinyexplore", 4, 2, 5, 3),
    ]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table(rows).splitlines()]
    assert lines[0] == ["program", "tinyexplore, cold", "tinyexplore, warm", "jax, cold", "jax, warm"]
    assert lines[2] == ["MLP, forward", "0.50 (0.62)", "0.25 (0.38)", "no JAX here", "–"]
    assert lines[3] == ["ResNet-18, forward", "4.00 (5.00)", "2.00 (3.00)", "–", "–"]


def test_every_program_has_a_network_in_jax() -> None:
    source = Path(main.__code__.co_filename).with_name("first_runs_jax.py").read_text(encoding="utf-8")
    assert all(program.partition(",")[0].split()[0] in source for program in PROGRAMS)
    assert ENGINES[0] == "tinyexplore"


@pytest.mark.slow
def test_the_smallest_program_runs_cold_and_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.delenv("TINYEXPLORE_BENCH_PYTHON", raising=False)
    assert main(["MLP", "--engines", "tinyexplore", "--out", str(tmp_path)]) == 0
    (row,) = json.loads((tmp_path / "first_runs.json").read_text(encoding="utf-8"))["rows"]
    assert row["program"] == "MLP, forward" and row["failure"] == ""
    assert 0 < row["warm_cpu_s"] < row["cold_cpu_s"]
    assert "MLP, forward" in (tmp_path / "first_runs.md").read_text(encoding="utf-8")
