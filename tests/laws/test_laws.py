"""Every rule of the arithmetic tables keeps the value: one test per rule, made from the table."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.laws.instances import Instances
from tests.laws.meaning import same_value, type_error, value_of, written
from tinyexplore.codegen.rewrites.bools import BOOLS
from tinyexplore.codegen.rewrites.fp8 import FP8_CONVERSIONS
from tinyexplore.codegen.rewrites.small_floats import SMALL_FLOATS, WIDEN_SMALL_FLOATS
from tinyexplore.uop import PatternMatcher, Rule
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.known import TENSOR_LAWS

TRIES = 1000
LEAST_FIRINGS = 8
STORES_SMALL_FLOATS = SimpleNamespace(target=SimpleNamespace(storage_only=SMALL_FLOATS))
TABLES = {
    "simplify": (SIMPLIFY, None),
    "bools": (BOOLS, None),
    "small": (WIDEN_SMALL_FLOATS, STORES_SMALL_FLOATS),
    "fp8": (FP8_CONVERSIONS, None),
    "tensor": (TENSOR_LAWS, None),
}


def every_rule() -> list:
    return [
        pytest.param(rule, context, id=f"{table}-{rule.name}")
        for table, (matcher, context) in TABLES.items()
        for rule in matcher.rules
    ]


@pytest.mark.parametrize(("rule", "context"), every_rule())
def test_a_rule_keeps_value_and_type(rule: Rule, context: object) -> None:
    instances = Instances(rule.name)
    fired = 0
    for _ in range(TRIES):
        before = instances.of(rule.pattern)
        if before is None or type_error(before) is not None:
            continue
        after = rule(before, context)
        if after is None:
            continue
        fired += 1
        shown = f"{written(before)}  →  {written(after)}"
        assert after.dtype is before.dtype, shown
        assert type_error(after) is None, f"{shown}: {type_error(after)}"
        for _ in range(4):
            values = instances.values(before)
            found, expected = value_of(after, values), value_of(before, values)
            at = {written(leaf): value for leaf, value in values.items()}
            assert same_value(found, expected), f"{shown} at {at}: {expected} has become {found}"
    assert fired >= LEAST_FIRINGS, f"{rule.name} applied to {fired} of {TRIES} expressions made for {rule.pattern}"


def test_the_names_of_rules_are_their_own() -> None:
    for table, (matcher, _) in TABLES.items():
        names = [rule.name for rule in matcher.rules]
        assert len(set(names)) == len(names), table


def test_every_rule_says_what_it_states() -> None:
    silent = [rule.name for matcher, _ in TABLES.values() for rule in matcher.rules if not (rule.doc or rule.result)]
    assert silent == []


def test_a_rule_that_is_wrong_is_found() -> None:
    """The generator reaches what a careless law forgets: x - x is not 0 for infinity."""
    from tinyexplore.uop import law, var

    x = var("x")
    careless = PatternMatcher([law("minus_itself", x + -x, 0)])
    with pytest.raises(AssertionError, match="has become"):
        test_a_rule_keeps_value_and_type(careless.rules[0], None)
