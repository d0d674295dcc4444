"""The normal form of sizes: it preserves the value for all bindings, is idempotent, and is equal for equal sums."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from tinyexplore.uop.symbolic import Variable, bounds, limits, simplified, text, value_of

VARIABLES = [Variable("v", 0, 4), Variable("w", 1, 3), Variable("u", 2, 5)]
BINDINGS = [dict(zip(VARIABLES, numbers)) for numbers in product(*[range(v.arg[1], v.arg[2] + 1) for v in VARIABLES])]
EXPRESSIONS = 1200


def size(random: Random, depth: int) -> Any:
    """Arithmetic of Variables, as a program writes it."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*VARIABLES, random.randint(-4, 9)])
    a, b = size(random, depth - 1), size(random, depth - 1)
    positive = random.choice([1, 2, 3, 4, 6, 12, VARIABLES[1], VARIABLES[2], VARIABLES[1] * 2])
    divisor = -positive if random.random() < 0.2 else positive
    match random.choice("+++---***///%%%<>=n"):
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return (a * positive if random.random() < 0.3 else a) // divisor
        case "%":
            return a % divisor
        case "<":
            return a.minimum(b) if not isinstance(a, int) else min(a, 3)
        case ">":
            return a.maximum(b) if not isinstance(a, int) else max(a, 3)
        case "=":
            return (a < b) * 2 if not isinstance(a, int) else a
    return -a


@pytest.mark.parametrize("part", range(4))
def test_the_normal_form_preserves_the_value_and_is_idempotent(part: int) -> None:
    random = Random(part)
    for _ in range(EXPRESSIONS // 4):
        before = size(random, 4)
        after = simplified(before)
        assert simplified(after) is after or simplified(after) == after, text(before)
        low, high = limits(before)
        for values in BINDINGS:
            expected = value_of(before, values)
            assert value_of(after, values) == expected, f"{text(before)} → {text(after)} at {values}"
            assert low <= expected <= high
        assert isinstance(after, int) or bounds(after) == (low, high)


def test_equal_sums_of_products_are_one_object() -> None:
    """The same terms in another order, with other parentheses."""
    random = Random(0)
    for _ in range(100):
        terms = [
            (random.choice(VARIABLES), random.choice([1, *VARIABLES]), random.randint(-5, 5))
            for _ in range(random.randint(1, 5))
        ]
        written = [a * b * c for a, b, c in terms]
        turned = [c * (b * a) for a, b, c in random.sample(terms, len(terms))]
        first = simplified(sum(written[1:], written[0]))
        second = simplified(turned[0] - sum([-one for one in turned[1:]], 0))
        assert first is second or (isinstance(first, int) and first == second), f"{text(first)}, {text(second)}"
