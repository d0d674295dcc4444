"""Sizes with Variables: one normal form, bounds that hold for every value, and the values of a call."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import (
    SymbolicError,
    Variable,
    bindings,
    call_guarded,
    concrete,
    holds,
    limits,
    rebound,
    simplified,
    text,
    unbound,
    value_of,
)

V, W = Variable("v", 1, 6), Variable("w", 0, 4)


@st.composite
def sizes(draw: st.DrawFn, depth: int = 4) -> Any:
    """Arithmetic with v and w as a user writes it."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([V, W, V.bind(3), 1, 2, 5]))
    a, b = draw(sizes(depth - 1)), draw(sizes(depth - 1))
    match draw(st.sampled_from("++-**/%")):
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a // draw(st.integers(1, 4))
    return a % draw(st.integers(1, 4))


def at(size: Any, v: int, w: int) -> int:
    """The value in Python."""
    return value_of(size, {V: v, W: w})


@settings(max_examples=40, deadline=None)
@given(sizes())
def test_the_normal_form_has_the_same_value_and_is_idempotent(size: Any) -> None:
    normal = simplified(size)
    assert simplified(normal) is normal or isinstance(normal, int)
    low, high = limits(size)
    for v in range(1, 7):
        for w in range(5):
            expected = at(size, v, w)
            assert at(normal, v, w) == expected
            assert low <= expected <= high


@settings(max_examples=40, deadline=None)
@given(sizes(), sizes())
def test_a_comparison_of_sizes_holds_for_every_value_that_meets_the_guards(a: Any, b: Any) -> None:
    told: list[UOp] = []
    try:
        answer = call_guarded(told, lambda: bool(a < b))
    except SymbolicError:
        return  # depends on a Variable without a value: right by definition
    alike = [(v, w) for v in range(1, 7) for w in range(5) if all(at(condition, v, w) for condition in told)]
    assert {at(a, v, w) < at(b, v, w) for v, w in alike} == {answer}
    assert all(value_of(condition, {V: 3}) for condition in told), "of what is bound now it holds"


WRITTEN: list[Callable[[Any], Any]] = [
    lambda v: 2 * v,
    lambda v: 2 - v,
    lambda v: v - 9,
    lambda v: -v,
    lambda v: v // 2,
    lambda v: (v - 5) // 2,
    lambda v: (v - 5) % 3,
    lambda v: v // -2,
    lambda v: v % -4,
    lambda v: -(v // -4),
    lambda v: (v - 5) // -2,
    lambda v: (v - 5) % -2,
    lambda v: -7 // v,
    lambda v: -7 % v,
    lambda v: 7 % -v,
    lambda v: (v - 4) // (v + 1),
    lambda v: (v - 4) % -(v + 1),
    lambda v: sum(divmod(v - 4, -3)),
    lambda v: 3 * (v > 2) - (v < 5),
    lambda v: 12 // v,
    lambda v: 12 % v,
    lambda v: (v * v + 3 * v) % 7,
    lambda v: sum([v, v, 1]),
    lambda v: max(v, 3),
    lambda v: min(4, v),
    lambda v: (v - 9) << 2,
    lambda v: (v - 9) >> 1,
    lambda v: (v & 5) + (v | 8) - (v ^ 3),
    lambda v: (v > 2) & (v < 5),
    lambda v: (v < 2) | (v > 4),
]


@pytest.mark.parametrize("write", WRITTEN)
def test_arithmetic_equals_that_of_python(write: Callable[[Any], Any]) -> None:
    for number in range(1, 7):
        assert value_of(write(V.bind(number))) == write(number)
    assert "UOp" not in repr(write(V.bind(3)))


def test_a_conjunction_is_one_guard_of_a_bound_variable() -> None:
    told: list[UOp] = []
    assert call_guarded(told, lambda: bool((V.bind(3) > 2) & (V.bind(3) < 5)))
    assert [value_of(condition, {V: number}) for condition in told for number in (2, 3, 4, 5)] == [0, 1, 1, 0]


@pytest.mark.parametrize("number", range(1, 7))
def test_a_bound_variable_is_compared_by_its_value(number: int) -> None:
    v = V.bind(number)
    asked = (v < 3, v <= 3, v > 3, v >= 3, 3 < v, 3 >= v, 2 * v - 4 > v, v % 2)
    assert [bool(question) for question in asked] == [
        number < 3,
        number <= 3,
        number > 3,
        number >= 3,
        3 < number,
        3 >= number,
        2 * number - 4 > number,
        bool(number % 2),
    ]
    with pytest.raises(SymbolicError, match="v < 3 .*bind it"):
        bool(V < 3)


def test_comparisons_of_a_value_are_recorded_as_guards() -> None:
    v = V.bind(3)
    told: list[UOp] = []
    call_guarded(told, lambda: (bool(v > 2), bool(v > 4), bool(v % 2), bool(v < 7), v.val, v.unbind(), v + 1))
    assert [text(condition) for condition in told] == ["v > 2", "v <= 4", "(v % 2) != 0", "v == 3", "v == 3"]
    assert bool(v > 2) and len(told) == 5


def test_a_comparison_of_a_value_records_only_its_result() -> None:
    v = V.bind(3)

    def told(work: Callable[[], object]) -> list[str]:
        conditions: list[UOp] = []
        call_guarded(conditions, work)
        return [text(condition) for condition in conditions]

    assert told(lambda: v.val == 2) == told(lambda: v.val != 2) == ["v != 2"]
    assert told(lambda: (v.val < 3, v.val <= 3, v.val > 2, v.val >= 5)) == ["v >= 3", "v <= 3", "v > 2", "v < 5"]
    assert told(lambda: "no" if v.val == 3 else "yes") == ["v == 3"]
    assert told(lambda: v.val == 0 or v.val > 6 or (v + 1).val == 9) == []  # so for all values
    assert told(lambda: v.val + 1 == 2) == told(lambda: [v.val] == 2) == told(lambda: 2 < v.val < 5) == ["v == 3"]
    assert told(lambda: 2 == v.val) == told(lambda: v.val == 2.0) == ["v == 3"]  # noqa: SIM300 (not understood)
    assert told(lambda: max([v], key=attrgetter("val")).val == 2) == ["v == 3", "v != 2"]
    with pytest.raises(SymbolicError, match="no value"):
        call_guarded([], lambda: V.val == 2)


def test_a_size_has_a_name_bounds_and_text() -> None:
    v = V.bind(3)
    assert (V.expr, V.min, V.max, V.render()) == (v.expr, v.min, v.max, v.render()) == ("v", 1, 6, "v")
    assert ((2 * v + 1).min, (2 * v + 1).max, (1 + 2 * V + V).render()) == (3, 13, "3*v + 1")
    assert [size.render() for size in (2 - V, -V, V < 3, V > 3, V // 2)] == ["-v + 2", "-v", "v < 3", "v > 3", "v // 2"]
    with pytest.raises(AttributeError, match="has no name"):
        (V + 1).expr  # noqa: B018


def test_sizes_are_whole_numbers() -> None:
    for write in (lambda: V * 1.5, lambda: 0.5 + V, lambda: V < 2.5):
        with pytest.raises(TypeError, match="v and .*: .*whole numbers"):
            write()
    with pytest.raises(TypeError, match="v / 2: .*//"):
        V / 2
    with pytest.raises(ZeroDivisionError, match="v // 0"):
        V // 0
    assert V * 2.0 is V * 2


def test_equal_polynomials_are_the_same_object() -> None:
    v, w = V.bind(3), W.bind(2)
    assert simplified((v + 1) * 4 - 4) is simplified(v * 4)
    assert simplified(v * w + w * v) is simplified(2 * w * v)
    assert simplified(v - v + 7) == 7
    assert simplified((8 * v + 4) // 4) is simplified(2 * v + 1)
    assert simplified((4 * v + 3) % 4) == 3
    assert simplified(v * w * 6 // v) is simplified(6 * w) and simplified(v * 6 // v) == 6
    assert (v, 4) == (V.bind(3), 4) and (v, 4) != (V.bind(4), 4)


def test_sizes_are_written_as_one_would() -> None:
    v = V.bind(3)
    shown = [V, v, simplified(v * 4 + 1), simplified(4 * v - 2), simplified((v + 3) // 4), simplified(v * W)]
    assert [text(size) for size in shown] == ["v", "v", "4*v + 1", "4*v - 2", "(v + 3) // 4", "v*w"]
    assert repr((v, 4)) == "(v=3, 4)" and repr(simplified(4 * v)) == "4*v=12" and repr(simplified(4 * V)) == "4*v"


def test_a_comparison_that_depends_on_the_value_raises_an_error() -> None:
    v = V.bind(3)
    assert v > 0 and v < 7 and not v > 6 and v + 1 > v and holds(v == v) and holds(v < 4) and not holds(v < 3)
    with pytest.raises(SymbolicError, match=r"v < 4 .*\(v in 1..6\)"):
        assert V < 4
    with pytest.raises(SymbolicError, match="whether w holds"):
        assert W


def test_binding() -> None:
    assert isinstance(V, Variable) and isinstance(V.bind(2), Variable) and not isinstance(V + 1, Variable)
    assert V.bind(3).unbind() == (V, 3) and V.bind(3).val == 3 and (V.bind(3) * 2).val == 6
    assert unbound((V.bind(3), 4, (W.bind(0) + 1,))) == (V, 4, (W + 1,))
    assert rebound((V.bind(3) * 2,), {V: 5}) == (simplified(V.bind(5) * 2),)
    assert bindings(V.bind(3) + W.bind(1)) == {V: 3, W: 1}
    assert concrete((V.bind(3), V.bind(3) * W, 2)) == (3, 12, 2)
    assert Variable("v", 1, 6) is V and pickle.loads(pickle.dumps(V.bind(3))) is V.bind(3)
    with pytest.raises(ValueError, match="'v' to 7: .*1 to 6"):
        V.bind(7)
    with pytest.raises(TypeError, match="need an int"):
        V.bind(2.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no value yet"):
        V.bind(3).bind(4)
    with pytest.raises(ValueError, match="not a bound Variable"):
        V.unbind()
    with pytest.raises(SymbolicError, match="Variable 'v' has no value"):
        _ = (V + 1).val
    with pytest.raises(SymbolicError, match="bound to 3 and to 4"):
        bindings(V.bind(3), V.bind(4))
    with pytest.raises(ValueError, match="need 0 ≤ min_val ≤ max_val"):
        Variable("n", 3, 2)


def test_bounds_are_those_of_all_values() -> None:
    assert limits(V.bind(3)) == (1, 6) and limits(V.bind(3) * 2 - 1) == (1, 11)
    assert isinstance(V.bind(3) + 1, UOp)


def test_a_variable_has_its_bounds() -> None:
    a, b = Variable("a", 1, 5), Variable("b", 2, 3)
    assert (a.vmin, a.vmax) == (a.bind(3).vmin, a.bind(3).vmax) == (1, 5)
    assert ((a * 2 + b).vmin, (a * 2 + b).vmax) == (4, 13)
