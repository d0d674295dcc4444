"""The report of front ends, and the table of ONNX operators."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.support.operator_tables import PAGE, table
from tinyexplore.cli import main
from tinyexplore.frontends.report import front_ends


def test_each_front_end_has_a_version_or_an_installation_command(capsys: pytest.CaptureFixture[str]) -> None:
    found = front_ends()
    assert main(["frontends", "--operators"]) == 0
    text = capsys.readouterr().out
    for one in found:
        is_here = importlib.util.find_spec(one.package) is not None
        assert (one.version is not None) is is_here
        assert one.name in text and (one.version or f"tinyexplore[{one.extra}]") in text
        assert bool(one.operators) is is_here
    assert main(["frontends", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == [one.name for one in found]


def test_a_missing_package_is_reported_with_its_installation_command(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("onnx", "torch") else find(name))
    for one in front_ends():
        assert one.version is None and one.operators == () and f"pip install 'tinyexplore[{one.extra}]'" in str(one)


def test_the_oldest_versions_are_those_of_the_extras() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert all(f'"{one.package}>={one.oldest}"' in project for one in front_ends())


def test_the_table_of_operators_is_current() -> None:
    onnx = pytest.importorskip("onnx", reason="the package onnx is missing: pip install 'tinyexplore[onnx]'")
    if f"for onnx {onnx.__version__};" not in PAGE.read_text("utf-8"):
        pytest.skip(f"the table is for another version than onnx {onnx.__version__}")
    assert PAGE.read_text("utf-8") == table(), "python -m tests.support.operator_tables"
