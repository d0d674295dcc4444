"""The wide table: every row agrees with its NumPy reference, and every engine has a program."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import main
from bench.cases import Case
from bench.peers.tinyexplore import Engine
from bench.wide import DIFFERENTIATED, tensors
from bench.wide.cases import ROWS, TINY_WIDE, WIDE
from bench.worker import WrongResult, compare

FAMILIES = [row.family for row in ROWS]


@pytest.mark.parametrize("case", TINY_WIDE, ids=lambda case: case.family)
def test_the_engine_agrees_with_the_reference(case: Case) -> None:
    engine = Engine("", 1)
    arrays = case.make_inputs()
    found = engine.to_numpy(engine.prepare(case.family, arrays)())
    assert compare(found, tuple(map(np.asarray, case.reference(arrays))), case.rtol, case.atol) <= 1


def test_a_result_of_another_case_is_refused() -> None:
    sizes = {case.family: case for case in TINY_WIDE}
    norm = sizes["wide_group_norm"]
    arrays = norm.make_inputs()
    engine = Engine("", 1)
    found = engine.to_numpy(engine.prepare(norm.family, {**arrays, "b": arrays["b"] + 1})())
    with pytest.raises(WrongResult):
        compare(found, norm.reference(arrays), norm.rtol, norm.atol)


def programs_of(module: str, repository: Path) -> list[str]:
    """The families in a module's table, which needs not be imported for that: its engine need not be here."""
    tree = ast.parse((repository / "bench" / "wide" / f"{module}.py").read_text())
    (table,) = [
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PROGRAMS"
    ]
    assert isinstance(table, ast.Dict)
    return [key.value for key in table.keys if isinstance(key, ast.Constant)]


@pytest.mark.parametrize("module", ["tensors", "torch", "jax"])
def test_every_engine_has_every_family(module: str, repository: Path) -> None:
    assert programs_of(module, repository) == FAMILIES


@pytest.mark.parametrize("module", ["numpy", "numba"])
def test_partial_engines_have_only_known_families(module: str, repository: Path) -> None:
    assert set(programs_of(module, repository)) < set(FAMILIES)


def test_the_table_is_wide_enough() -> None:
    assert len(set(FAMILIES)) == len(WIDE) == len(tensors.PROGRAMS) >= 40
    assert len(DIFFERENTIATED) >= 8 and set(DIFFERENTIATED) < set(FAMILIES)


def test_the_command_measures_the_wide_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--wide", "tiny_wide_add_i8", "tiny_wide_matmul_f64", "--against", "numpy", "--rounds", "2"]
    assert main([*words, "--slice-ms", "2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "tiny_wide_add_i8" in printed and "within 1.1×" in printed
    assert "tiny_wide_matmul_f64" in (tmp_path / "results.md").read_text()
