"""The table of the public API: every name has a row, and every row names an existing test."""

from __future__ import annotations

import pytest

from tests.support.api_coverage import ROOT, TABLE, api_names, home_of, references, rows, sources

RENEW = "run `python -m tests.support.api_coverage`"


def test_every_name_and_only_names_have_a_row() -> None:
    names = {(section, name) for section, names in api_names().items() for name in names}
    assert set(rows(TABLE.read_text())) == names, RENEW


def test_every_name_exists_and_is_tested() -> None:
    table = rows(TABLE.read_text())
    assert {key for key in table if not hasattr(home_of(key[0]), key[1])} == set()
    assert {key for key, (count, _) in table.items() if count == 0} == set(), f"{RENEW}; then write their tests"


def test_the_named_tests_exist() -> None:
    named = {test for _, tests in rows(TABLE.read_text()).values() for test in tests}
    known: dict[str, dict[str, str]] = {}
    gone = []
    for test in sorted(named):
        path, function = f"tests/{test}".split("::")
        if not (ROOT / path).exists() or function not in known.setdefault(path, sources(ROOT / path)):
            gone.append(test)
    assert gone == [], RENEW


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("tests/ops/test_elementwise.py::test_functions_of_one_tensor_agree_with_numpy", "NumPy"),
        ("tests/ops/test_elementwise.py::test_gradients_of_functions_of_two_tensors", "finite differences"),
        ("tests/ops/test_errors.py::test_misuse_is_an_error_at_the_call", "stated values"),
        ("tests/ops/test_dtypes.py::test_small_floats_are_those_of_ml_dtypes", "ml_dtypes"),
    ],
)
def test_the_reference_of_a_test_is_read_from_its_text(test: str, expected: str) -> None:
    assert expected in references(test)
