"""Every rule of the arithmetic tables preserves the value: one generated test per rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests.laws.instances import Instances
from tests.laws.meaning import same_value, type_error, value_of, written
from tinyexplore.codegen.rewrites.bools import BOOLS
from tinyexplore.codegen.rewrites.division import DIVISIONS
from tinyexplore.codegen.rewrites.fp8 import FP8_CONVERSIONS
from tinyexplore.codegen.rewrites.narrow_comparisons import NARROW_COMPARISONS
from tinyexplore.codegen.rewrites.small_floats import SMALL_FLOATS, WIDEN_SMALL_FLOATS
from tinyexplore.dtype import dtypes
from tinyexplore.uop import OpGroups, PatternMatcher, Rule, UOp
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.folding import TENSOR_LAWS
from tinyexplore.uop.semantics import cast, evaluate

MAX_TRIES = 20_000
FIRINGS = 100
STORES_SMALL_FLOATS = SimpleNamespace(target=SimpleNamespace(storage_only=SMALL_FLOATS, unsupported_dtypes=()))
TABLES = {
    "simplify": (SIMPLIFY, None),
    "bools": (BOOLS, None),
    "small": (WIDEN_SMALL_FLOATS, STORES_SMALL_FLOATS),
    "fp8": (FP8_CONVERSIONS, None),
    "tensor": (TENSOR_LAWS, None),
    "division": (DIVISIONS, None),
    "comparison": (NARROW_COMPARISONS, None),
}


def every_rule() -> list:
    return [
        pytest.param(rule, context, id=f"{table}-{rule.name}")
        for table, (matcher, context) in TABLES.items()
        for rule in matcher.rules
    ]


@pytest.mark.parametrize(("rule", "context"), every_rule())
def test_a_rule_preserves_value_and_type(rule: Rule, context: object) -> None:
    instances = Instances(rule.name)
    fired = 0
    for _ in range(MAX_TRIES):
        if fired == FIRINGS:
            break
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
            if before.op in OpGroups.TRANSCENDENTAL and before.dtype.scalar is dtypes.float16:
                expected = rounded_twice(before, values)
            assert same_value(found, expected), f"{shown} at {at}: {expected} has become {found}"
    assert fired == FIRINGS, f"{rule.name} applied to {fired} of {MAX_TRIES} expressions made for {rule.pattern}"


def rounded_twice(function: UOp, values: Mapping[UOp, Any]) -> tuple[Any, ...]:
    """A function of float16, rounded to float32 and then to float16."""
    sources = zip(*[value_of(src, values) for src in function.src], strict=True)
    kinds = (dtypes.float32,) * len(function.src)
    wide = [evaluate(function.op, dtypes.float32, *lanes, src_dtypes=kinds) for lanes in sources]
    return tuple([cast(value, dtypes.float16, dtypes.float32) for value in wide])


def test_names_of_rules_are_unique() -> None:
    for table, (matcher, _) in TABLES.items():
        names = [rule.name for rule in matcher.rules]
        assert len(set(names)) == len(names), table


def test_every_rule_has_a_statement() -> None:
    silent = [rule.name for matcher, _ in TABLES.values() for rule in matcher.rules if not (rule.doc or rule.result)]
    assert silent == []


def test_a_wrong_rule_is_detected() -> None:
    """The generator reaches what a careless law forgets: x - x is not 0 for infinity."""
    from tinyexplore.uop import law, var

    x = var("x")
    careless = PatternMatcher([law("minus_itself", x + -x, 0)])
    with pytest.raises(AssertionError, match="has become"):
        test_a_rule_preserves_value_and_type(careless.rules[0], None)
