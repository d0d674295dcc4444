"""Each function lowered to arithmetic stays within its rule's error bound, fired at least 100 times."""

from __future__ import annotations

from random import Random

import pytest

from tests.laws.function_rules import RULES, function_law
from tinyexplore.uop import Rule

FIRINGS = 100


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_function_written_out_is_near_its_value(rule: Rule) -> None:
    random = Random(rule.name)
    assert sum(function_law(rule, random) for _ in range(FIRINGS)) == FIRINGS
