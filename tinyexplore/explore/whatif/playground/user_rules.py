"""Rules that the user writes in a cell: `@playground.rule(pattern)`, `playground.law(name, left, right)`.

Both return a Rule and register it under its name, because commands are data and refer to a rule by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, overload

from tinyexplore.uop import Rule, UOp, UPat
from tinyexplore.uop import law as plain_law
from tinyexplore.uop import rule as plain_rule
from tinyexplore.uop.pattern import PatternLike

Function = Callable[..., UOp | None]


@dataclass(frozen=True, slots=True)
class UserRule:
    """A rule that the user wrote.

    rule: the rule.
    tolerance: the relative error that it may introduce in a float, None for rounding only.
    """

    rule: Rule
    tolerance: float | None = None


_written: dict[str, UserRule] = {}  # by name; a cell that runs again replaces its rule


@overload
def rule(
    pattern: UPat, function: None = None, *, name: str = "", law: str = "", tolerance: float | None = None
) -> Callable[[Function], Rule]: ...


@overload
def rule(
    pattern: UPat, function: Function, *, name: str = "", law: str = "", tolerance: float | None = None
) -> Rule: ...


def rule(
    pattern: UPat,
    function: Function | None = None,
    *,
    name: str = "",
    law: str = "",
    tolerance: float | None = None,
) -> Any:
    """Creates a rule from a function, directly or as a decorator. Its parameters name parts of `pattern`.

    law: the law that the rule states, as text.
    tolerance: the error that a rule may introduce if it reorders a sum or approximates, relative to the largest number
        in the computation. None: results must be equal bit by bit.
    """

    def make(function: Function) -> Rule:
        new_rule = plain_rule(pattern)(function)
        rule_name = name or ("rule" if new_rule.name == "<lambda>" else new_rule.name)
        return register_rule(replace(new_rule, name=rule_name, law=law or new_rule.law, matchers={}), tolerance)

    return make if function is None else make(function)


def law(
    name: str,
    left: UPat,
    right: PatternLike,
    doc: str = "",
    when: Callable[..., bool] | None = None,
    *,
    tolerance: float | None = None,
) -> Rule:
    """Creates a rule from two patterns: `playground.law("mul_one", x * 1, x)`."""
    caller = sys._getframe(1)
    new_law = plain_law(name, left, right, doc, when)
    return register_rule(replace(new_law, file=caller.f_code.co_filename, line=caller.f_lineno, matchers={}), tolerance)


def register_rule(rule: Rule, tolerance: float | None = None) -> Rule:
    """Registers `rule` under its name."""
    _written[rule.name] = UserRule(rule, tolerance)
    return rule


def find_written_rule(name: str) -> UserRule:
    """Returns the rule with this name.

    Raises:
        KeyError: there is none; the message lists the rules of this session.
    """
    if name not in _written:
        names = ", ".join(_written) or "none; define one with @playground.rule(pattern)"
        raise KeyError(f"no rule {name!r} was defined in this session; the rules are: {names}")
    return _written[name]


def written_rules() -> tuple[Rule, ...]:
    """Returns the rules of this session, in the order of definition."""
    return tuple(written.rule for written in _written.values())


def tolerance_of_rule(rule: Rule) -> float | None:
    """Returns the tolerance that the rule declares, or None."""
    written_rule = _written.get(rule.name)
    return written_rule.tolerance if written_rule is not None and written_rule.rule is rule else None


__all__ = ["UserRule", "find_written_rule", "law", "register_rule", "rule", "tolerance_of_rule", "written_rules"]
