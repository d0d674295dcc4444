"""The standard's backend suite. Every test that does not pass is listed with its reason in `not_passed.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the package onnx is missing: pip install 'tinyexplore[onnx]'")

from tests.frontends.onnx.suite import cases, run

LISTED = Path(__file__).with_name("not_passed.txt")


def listed() -> dict[str, str]:
    """Test → why it does not pass."""
    lines = [line for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.slow
def test_the_suite_passes_except_listed_cases() -> None:
    reasons = listed()
    outcomes = {outcome.name: outcome for outcome in map(run, cases())}
    failed = {name: outcome for name, outcome in outcomes.items() if outcome.kind != "passed"}
    surprises = {name: outcome for name, outcome in failed.items() if name not in reasons}
    assert not surprises, surprises
    unsupported = {name for name, outcome in failed.items() if outcome.kind == "unsupported"}
    # what is said to be unsupported is; the others differ by rounding or by random numbers, which may happen to agree
    assert unsupported == {name for name, reason in reasons.items() if "not supported" in reason}
    assert len(outcomes) - len(failed) >= 1_820
    assert set(reasons) <= set(outcomes)
