"""No kernel becomes slow: each is compared with NumPy on one core, in one process. `bench/guard.py` has the limits."""

from __future__ import annotations

import pytest

from bench import guard
from bench.guard import too_slow, verdict

OPTIMIZED = ("sum", "colsum", "layernorm", "matmul", "conv3x3", "sdpa")


def test_no_kernel_takes_twice_as_long_as_it_should() -> None:
    slow = too_slow()
    assert not slow, "\n".join(f"{name}: {words}" for name, words in slow.items())


def test_the_guard_detects_kernels_without_opts() -> None:
    assert set(too_slow(OPTIMIZED, {"NOOPT": "1"})) == set(OPTIMIZED)


def test_slow_cases_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "is_measured_here", lambda: True)
    assert verdict("matmul", 1.2, None) == ""
    assert "2.20 times NumPy's time, and 1.73" in verdict("matmul", 2.2, None)
    monkeypatch.setattr(guard, "is_measured_here", lambda: False)
    assert verdict("matmul", 1.8, 20.0) == ""
    assert "2.20 times NumPy's time, and 1.90" in verdict("matmul", 2.2, 20.0)
    assert "1.0 times as fast, and 1.2" in verdict("softmax", 0.3, 0.31)
