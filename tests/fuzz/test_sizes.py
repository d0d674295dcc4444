"""A part of the fuzz of symbolic sizes: `python -m tests.fuzz.sizes --count 2000` runs more."""

from __future__ import annotations

import pytest

from tests.fuzz.sizes import USES, devices, run_cases

CASES = {"LLVM": 120, "CLANG": 12}


@pytest.mark.parametrize("device", devices())
def test_arithmetic_with_variables_equals_pythons_in_kernels_and_as_sizes(device: str) -> None:
    tried = run_cases(range(CASES.get(device, 25)), device)
    assert sum(tried.refused.values()) * 4 <= tried.cases
    if tried.cases >= 120:
        assert set(tried.uses) == set(USES)
