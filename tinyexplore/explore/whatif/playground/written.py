"""Rules that the user writes in a cell: `@playground.rule(pattern)`, `playground.law(name, left, right)`.

What they give is a Rule as any other. It is known by its name from then on: a command is data, and names it.
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
class Written:
    """A rule that the user wrote.

    rule: the rule.
    tolerance: the relative error that it allows of a float, None for rounding.
    """

    rule: Rule
    tolerance: float | None = None


_written: dict[str, Written] = {}  # the last of each name: a cell that runs again writes its rule again


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
    """Makes a function a rule, as a decorator or at once. Its parameters name parts of `pattern`.

    law: what it states, where the pattern does not say it. tolerance: the part of the greatest number that came up by
    which its results may differ, for a rule that adds in another order or approximates; None: not by a bit.
    """

    def make(written: Function) -> Rule:
        rule_made = plain_rule(pattern)(written)
        rule_name = name or ("rule" if rule_made.name == "<lambda>" else rule_made.name)
        return write(replace(rule_made, name=rule_name, law=law or rule_made.law, matchers={}), tolerance)

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
    """A rule whose two sides are patterns: `playground.law("mul_one", x * 1, x)`."""
    caller = sys._getframe(1)
    law_made = plain_law(name, left, right, doc, when)
    return write(replace(law_made, file=caller.f_code.co_filename, line=caller.f_lineno, matchers={}), tolerance)


def write(rule: Rule, tolerance: float | None = None) -> Rule:
    """Register `rule` under its name."""
    _written[rule.name] = Written(rule, tolerance)
    return rule


def written(name: str) -> Written:
    """The rule of that name; KeyError, with those that there are."""
    if name not in _written:
        names = ", ".join(_written) or "none; define one with @playground.rule(pattern)"
        raise KeyError(f"no rule {name!r} was defined in this session; the rules are: {names}")
    return _written[name]


def written_rules() -> tuple[Rule, ...]:
    """The rules that were written here, in their order."""
    return tuple(written.rule for written in _written.values())


def tolerance_of_rule(rule: Rule) -> float | None:
    """The tolerance that the rule declares."""
    written_rule = _written.get(rule.name)
    return written_rule.tolerance if written_rule is not None and written_rule.rule is rule else None


__all__ = ["Written", "law", "rule", "tolerance_of_rule", "write", "written", "written_rules"]
