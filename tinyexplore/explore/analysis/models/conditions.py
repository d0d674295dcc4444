"""Parses conditions at which a debugger stops: "nan", "data1[37]", "store data0[3]", "%12 > 100 and g0 == 3"."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.analysis.models.stepping_program import Event
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.uop import Ops, UOp

Registers = Sequence[Any]
Test = Callable[[Event, Registers], bool]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARED = re.compile(r"(\S+?)\s*(==|!=|<=|>=|<|>)\s*(-?[\w.+-]+)")
_ACCESS = re.compile(r"(?:(load|store)\s+)?([^\s\[]+)\[(\d+)\]")
_HELP = (
    'a condition is "nan", "inf", "data1[37]", "load data1[37]", "store data0[3]", or a comparison of "value" or a '
    'name with a number ("%12 > 100"), several joined by "and"'
)


class ConditionError(ValueError):
    """A condition cannot be parsed. The message lists the valid forms."""


@dataclass(frozen=True, repr=False)
class Condition(DisplayableRow):
    """A condition at which the debugger stops.

    text: the condition as the user wrote it.
    stops: the positions in the program after which it is tested.
    test: whether the state of the debugger satisfies it.
    """

    text: str
    stops: frozenset[int]
    test: Test


@dataclass(frozen=True)
class _Term:
    """One comparison of a condition.

    stops: the positions in the program after which it is tested.
    test: whether the state satisfies it.
    is_of_event: whether it is about the value that a step read, wrote or computed; else it is about a register.
    """

    stops: frozenset[int]
    test: Test
    is_of_event: bool


def read_condition(text: str, uops: Sequence[UOp], names: Mapping[str, int]) -> Condition:
    """Parses a condition for a program of `uops`. `names` has the position of each register name."""
    terms = [_parse_term(part.strip(), uops, names) for part in re.split(r"\s+and\s+", text.strip())]
    of_event = [term for term in terms if term.is_of_event]
    stops = frozenset.intersection(*(term.stops for term in of_event)) if of_event else frozenset[int]()
    stops = stops if of_event else frozenset[int]().union(*(term.stops for term in terms))
    tests = [term.test for term in terms]
    if len(tests) == 1:
        return Condition(text, stops, tests[0])
    return Condition(text, stops, lambda event, registers: all(test(event, registers) for test in tests))


def _parse_term(text: str, uops: Sequence[UOp], names: Mapping[str, int]) -> _Term:
    if text in ("nan", "inf"):
        return _Term(_find_float_uops(uops), _test_any_lane(math.isnan if text == "nan" else math.isinf), True)
    if match := _ACCESS.fullmatch(text):
        return _make_access_term(text, *match.groups(), uops=uops, names=names)
    if match := _COMPARED.fullmatch(text):
        name, symbol, number = match.groups()
        return _make_comparison(name, _COMPARISONS[symbol], _number(number), uops, names)
    raise ConditionError(f"{text!r}: {_HELP}")


def _number(text: str) -> float:
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        raise ConditionError(f"{text!r} is not a number: {_HELP}") from None


def _find_float_uops(uops: Sequence[UOp]) -> frozenset[int]:
    def is_float(node: UOp) -> bool:
        dtype = node.src[1].dtype if node.op is Ops.STORE else node.dtype
        return isinstance(dtype, DType) and dtypes.is_float(dtype)

    return frozenset(number for number, node in enumerate(uops) if is_float(node))


def _test_any_lane(holds: Callable[[Any], bool]) -> Test:
    def test(event: Event, _: Registers) -> bool:
        value = event[1]
        return any(map(holds, value)) if type(value) is list else holds(value)

    return test


def _make_comparison(
    name: str, compare: Callable[[Any, Any], bool], number: float, uops: Sequence[UOp], names: Mapping[str, int]
) -> _Term:
    """Returns the test of a comparison of a name, or of any value, with a number."""
    if name == "value":
        valued = frozenset(
            position for position, node in enumerate(uops) if node.op not in (Ops.DEFINE_LOCAL, Ops.BARRIER)
        )
        return _Term(valued, _test_any_lane(lambda value: compare(value, number)), True)
    position = names.get(name)
    if position is None:
        raise ConditionError(f"no {name!r} in this program; available: value, {', '.join(names)}")
    node = uops[position]

    def test(_: Event, registers: Registers) -> bool:
        value = registers[position]
        if type(value) is list:
            return any(compare(lane, number) for lane in value)
        return value is not None and compare(value, number)

    written = {position} | {line for line, user in enumerate(uops) if user.op is Ops.ASSIGN and user.src[0] is node}
    return _Term(frozenset(written), test, False)


def _make_access_term(text: str, kind: str | None, name: str, index: str, *, uops: Sequence[UOp], names: Any) -> _Term:
    """Returns the test of an access to one element of a buffer. `kind`: "load", "store" or None for both."""
    operations = {"load": {Ops.LOAD}, "store": {Ops.STORE}, None: {Ops.LOAD, Ops.STORE}}[kind]
    buffers = [node for node in uops if node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL)]
    called = {f"data{node.arg}" if node.op is Ops.DEFINE_GLOBAL else str(node.arg): node for node in buffers}
    if name not in called:
        raise ConditionError(f"{text!r}: no buffer {name!r} in this program; available: {', '.join(called)}")
    element = int(index)
    counts = {number: lanes_of(node) for number, node in enumerate(uops) if node.op in operations}
    line_numbers = frozenset(number for number in counts if uops[number].src[0].src[0] is called[name])

    def test(event: Event, _: Registers) -> bool:
        lane = element - event[2]
        if not 0 <= lane < counts[event[0]]:
            return False
        mask = event[3]
        return mask is None or bool(mask[lane] if type(mask) is list else mask)

    return _Term(line_numbers, test, True)


def lanes_of(access: UOp) -> int:
    """Returns the number of elements that a LOAD or STORE accesses."""
    dtype = access.src[1].dtype if access.op is Ops.STORE else access.dtype
    assert isinstance(dtype, DType)
    return dtype.count


__all__ = ["Condition", "ConditionError", "lanes_of", "read_condition"]
