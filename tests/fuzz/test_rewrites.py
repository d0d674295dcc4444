"""A part of the fuzz of the tensor graph's rewrites: `python -m tests.fuzz.rewrites --count 2000` runs more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.rewrites import STEPS, Mismatch, run_cases
from tests.ops.support import HAS_COMPILER
from tinyexplore.execute.plan import plans
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import common_subexpressions, hoisting
from tinyexplore.uop import Ops

CASES = {"LLVM": 100, "CLANG": 12, "PYTHON": 60}


@pytest.fixture(autouse=True)
def without_plans_of_other_tests() -> Iterator[None]:
    """A plan stores the result of the rewrites. So each test starts and ends without plans."""
    plans.cache_clear()
    yield
    plans.cache_clear()


@pytest.mark.parametrize("device", CASES)
def test_rewritten_graphs_agree_with_numpy(device: str) -> None:
    if device == "CLANG" and not HAS_COMPILER:
        pytest.skip("CLANG: there is no C compiler on this machine")
    tried = run_cases(range(100_000, 100_000 + CASES[device]), device)
    assert tried.cases == CASES[device]
    if device == "LLVM":
        assert len(tried.steps) >= len(STEPS) - 2


def test_a_wrong_count_in_hoisting_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = hoisting._multiply_by_count
    monkeypatch.setattr(hoisting, "_multiply_by_count", lambda value, count: honest(value, count + 1))
    with pytest.raises(Mismatch, match="case 100... on PYTHON: "):
        run_cases(range(100_000, 100_060), "PYTHON")


def test_wrongly_merged_values_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = common_subexpressions.ValueNumbers.key

    def without_arguments(self: common_subexpressions.ValueNumbers, node: LazyBuffer) -> tuple[object, ...]:
        key = honest(self, node)
        if node.op is not Ops.REDUCE_AXIS or node.buffer is not None:
            return key
        return (*key[:2], node.shape, *key[3:])

    monkeypatch.setattr(common_subexpressions.ValueNumbers, "key", without_arguments)
    with pytest.raises(Mismatch, match="case 100... on PYTHON: "):
        run_cases(range(100_190, 100_200), "PYTHON")
