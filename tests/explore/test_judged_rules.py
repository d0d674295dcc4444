"""The equivalence check on rules that were written independently of it: it finds each wrong rule where it fires, in the
rule playground as a reader uses it, and it reports no correct rule."""

from __future__ import annotations

import pytest

from tests.explore.judged_rules import TRUE, WRONG, Judged
from tinyexplore import explore
from tinyexplore.explore.whatif.playground.equivalence import Verdict

MACHINE = "x86-64-v3,threads=2"  # what fires where depends on it; nothing of it has to run here


def verdicts(case: Judged) -> list[Verdict]:
    """The playground's verdicts at the matches of the rule."""
    places = explore(case.program, repeat=1, target=MACHINE).rules.matches(case.rule, stage=case.at)
    assert len(places) > 0, f"{case.rule.name} does not fire"
    return [place.verdict for place in places]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.rule.name)
def test_a_wrong_rule_is_found_where_it_fires(case: Judged) -> None:
    found = verdicts(case)
    assert {verdict.status for verdict in found} == {"differs"}, [str(verdict) for verdict in found]
    counterexample = found[0].counterexample
    if counterexample is not None:
        assert counterexample.before != counterexample.after
        assert len(counterexample.inputs) <= 6, f"not as simple as it could be: {counterexample}"


@pytest.mark.parametrize("case", TRUE, ids=lambda case: case.rule.name)
def test_a_correct_rule_has_no_counterexample(case: Judged) -> None:
    found = verdicts(case)
    assert all(verdict.holds for verdict in found), [str(verdict) for verdict in found]


def test_there_are_many_wrong_and_many_correct_rules() -> None:
    assert len({case.rule.name for case in WRONG}) >= 90
    assert len({case.rule.name for case in TRUE}) >= 35
