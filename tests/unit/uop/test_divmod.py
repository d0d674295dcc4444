"""Quotients and remainders of index sums: exact, with the fewest possible terms."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import divide, from_terms, linear_terms
from tinyexplore.uop.symbolic import simplified


def loops(*sizes: int) -> list[UOp]:
    return [UOp.range(size, Axis(number, AxisKind.GLOBAL)) for number, size in enumerate(sizes)]


def value(expr: UOp, places: dict[UOp, int]) -> int:
    found = simplified(expr.substitute({loop: index_const(place) for loop, place in places.items()}))
    assert isinstance(found, int)
    return found


def test_terms_below_the_divisors_unit_are_not_divided() -> None:
    channel, row, column = loops(64, 48, 48)
    place = channel * 2304 + row * 48 + column
    quotient, remainder = divide(place, 18432)
    assert quotient is channel.alu(Ops.IDIV, index_const(8))
    assert linear_terms(remainder) == ({channel % 8: 2304, row: 48, column: 1}, 0)
    assert divide(place, 48) == (channel * 48 + row, column)


def test_a_quotient_is_no_sum_where_the_rest_reaches_the_unit() -> None:
    row, column = loops(4, 49)
    quotient, _ = divide(row * 48 + column, 96)
    assert quotient.op is Ops.IDIV and quotient.src[1].arg == 96


@st.composite
def sums(draw: st.DrawFn) -> tuple[list[int], list[int], int, int]:
    count = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(2, 6), min_size=count, max_size=count))
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24]), min_size=count, max_size=count))
    return sizes, factors, draw(st.integers(0, 30)), draw(st.sampled_from([2, 3, 4, 6, 8, 12, 24, 48]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(sums())
def test_quotient_and_remainder_are_exact(given: tuple[list[int], list[int], int, int]) -> None:
    sizes, factors, constant, divisor = given
    axes = loops(*sizes)
    assert prod(sizes) <= 216
    expr = from_terms(dict(zip(axes, factors)), constant)
    quotient, remainder = divide(expr, divisor)
    for places in product(*map(range, sizes)):
        at = dict(zip(axes, places))
        number = sum(place * factor for place, factor in zip(places, factors)) + constant
        assert (value(quotient, at), value(remainder, at)) == divmod(number, divisor)
