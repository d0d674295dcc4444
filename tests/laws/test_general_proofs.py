"""z3 proves the rules of integers for all constants, bounds and values at once (`general.py`)."""

from __future__ import annotations

import pytest

from tests.laws.general import Refuted, prove
from tests.laws.meaning import value_of, written
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, PatternMatcher, Rule, UOp, UPat, cvar, index_const, law, rule, var
from tinyexplore.uop import algebra as a
from tinyexplore.uop import folding as k

# products of two symbolic numbers, and paths that many comparisons make, take z3 too long at 64 bits
REDUCED_BITS = {
    a.mul_constants: 6,
    a.distribute_constant: 6,
    a.divide_twice: 6,
    a.compare_scaled: 6,
    a.compare_by_bounds: 8,
    a.extremum_by_bounds: 8,
    a.compare_shifted: 8,
    a.compare_shifted_right: 8,
    a.divide_terms: 4,
    a.remainder_of_terms: 4,
    a.collect_terms: 5,
}
OF_INDICES = (
    a.constant_outwards,
    a.distribute_constant,
    a.divide_twice,
    a.compare_shifted,
    a.compare_shifted_right,
    a.compare_scaled,
    a.divide_terms,
    a.remainder_of_terms,
)
OF_INTEGERS = (
    *(a.add_zero, a.mul_one, a.mul_zero, a.idiv_one, a.mod_one, a.neg_neg, a.xor_self, a.and_self, a.or_self),
    *(a.where_same, a.where_true, a.where_false, a.where_where, a.max_self, a.min_self, a.less_self),
    *(a.compare_by_bounds, a.extremum_by_bounds, a.constant_last, a.add_constants, a.mul_constants),
    *(k.and_zero, k.and_ones, k.or_zero, k.or_ones, k.xor_zero, k.xor_constants, k.shl_zero, k.shr_zero),
    k.add_opposites,
)
OF_BOOLS = (
    *(a.and_true, a.and_false, a.or_true, a.or_false),
    *(k.add_false, k.add_true, k.mul_true, k.mul_false, k.is_true, k.is_not_false, k.not_not),
)
x, y, f, g, e = var("x"), var("y"), cvar("f"), cvar("g"), cvar("e")
SUMS = {
    "multiples of one": {"i": x * f, "j": x * g},
    "a multiple and another": {"i": x * f, "j": y},
    "constants inside": {"i": x + f, "j": x * g + e},
    "three terms": {"i": x * f + y * g, "j": x * e},
}
PROVED = frozenset((*OF_INDICES, *OF_INTEGERS, *OF_BOOLS, a.collect_terms))


@pytest.mark.parametrize("rule", (*OF_INDICES, *OF_INTEGERS, *OF_BOOLS), ids=lambda rule: rule.name)
def test_a_rule_is_proved_for_all_constants(rule: Rule) -> None:
    assert prove(rule, bits=REDUCED_BITS.get(rule, 64), signed=True) > 0


@pytest.mark.parametrize("rule", OF_INTEGERS, ids=lambda rule: rule.name)
def test_a_rule_is_proved_for_unsigned_integers(rule: Rule) -> None:
    assert prove(rule, bits=REDUCED_BITS.get(rule, 64), signed=False) > 0


@pytest.mark.parametrize("form", SUMS)
def test_terms_are_collected_for_all_factors(form: str) -> None:
    assert prove(a.collect_terms, bits=REDUCED_BITS[a.collect_terms], signed=True, forms=SUMS[form]) > 0


def test_a_shifted_dividend_is_split_if_nothing_wraps() -> None:
    assert prove(a.divide_terms, bits=3, signed=True, forms={"k": x + e}) > 0


@pytest.mark.parametrize("divisor", (3, 5, 7))
@pytest.mark.parametrize("op", (Ops.IDIV, Ops.MOD), ids=lambda op: op.name)
def test_a_dividend_near_the_greatest_index_is_divided_exactly(op: Ops, divisor: int) -> None:
    """Its rest, with a constant from 0 to the divisor, would be more than the index type holds."""
    most = dtypes.max(dtypes.index)
    for low in range(most - 12, most - 1):
        size = UOp(Ops.DEFINE_VAR, dtypes.index, (), ("size", low, most))
        for offset in (-1, -2, -4):
            before = (size + offset).alu(op, index_const(divisor))
            after = a.SIMPLIFY.rewrite(before)
            for value in range(low, most + 1):
                expected = value_of(before, {size: value})
                assert after is None or value_of(after[1], {size: value}) == expected, written(after[1])


def test_a_false_rule_is_refuted_by_its_constants() -> None:
    index = (dtypes.index,)

    @rule(UPat.of(Ops.IDIV, var("n", index) + cvar("c", index), cvar("d", index)))
    def careless(n: UOp, c: UOp, d: UOp) -> UOp | None:
        """(n + c) // d is n // d + c // d: false where both leave a remainder."""
        if d.arg <= 0 or c.arg < 0:
            return None
        return n.alu(Ops.IDIV, d) + UOp.const(n.dtype, c.arg // d.arg)

    with pytest.raises(Refuted, match="differs"):
        prove(careless, bits=6, signed=True)


def test_a_constant_out_of_range_of_its_type_is_refuted() -> None:
    @rule((var("n", (dtypes.index,)) + cvar("c", (dtypes.index,))) + cvar("d", (dtypes.index,)))
    def too_large(n: UOp, c: UOp, d: UOp) -> UOp | None:
        return n + UOp.const(n.dtype, c.arg + d.arg)

    with pytest.raises(Refuted, match="does not have"):
        prove(too_large, bits=64, signed=True)


def test_a_false_law_is_refuted() -> None:
    n = var("n", dtypes.ints)
    careless = PatternMatcher([law("halves", (n * 2) // 2, n)])
    with pytest.raises(Refuted, match="differs"):
        prove(careless.rules[0], bits=8, signed=True)
