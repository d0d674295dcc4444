"""Every rule of the package has a tested law or a proof."""

from __future__ import annotations

from tests.laws import test_function_rules, test_kernel_rules, test_laws
from tests.laws.table import rows, written_rules


def test_every_rule_has_a_law_or_a_proof() -> None:
    assert [row.rule.name for row in rows() if not row.law and not row.is_proved] == []


def test_a_law_is_tried_at_least_100_times() -> None:
    assert min(test_laws.FIRINGS, test_kernel_rules.FIRINGS, test_function_rules.FIRINGS) >= 100


def test_the_table_has_every_rule_in_the_source() -> None:
    assert {row.rule.name for row in rows()} == set(written_rules())
