"""Rules that somebody writes in a cell: `@playground.rule(pattern)`, `playground.law(name, left, right)`.

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
    """A rule that was written here. `tolerance`: by how much it may change a float, where it says so."""

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
        made = plain_rule(pattern)(written)
        known = name or ("rule" if made.name == "<lambda>" else made.name)
        return write(replace(made, name=known, law=law or made.law, matchers={}), tolerance)

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
    made = plain_law(name, left, right, doc, when)
    return write(replace(made, file=caller.f_code.co_filename, line=caller.f_lineno, matchers={}), tolerance)


def write(made: Rule, tolerance: float | None = None) -> Rule:
    """Knows `made` by its name from now on."""
    _written[made.name] = Written(made, tolerance)
    return made


def written(name: str) -> Written:
    """The rule of that name; KeyError, with those that there are."""
    if name not in _written:
        there = ", ".join(_written) or "none; write one with @playground.rule(pattern)"
        raise KeyError(f"no rule {name!r} was written here; there are: {there}")
    return _written[name]


def written_rules() -> tuple[Rule, ...]:
    """The rules that were written here, in their order."""
    return tuple(one.rule for one in _written.values())


def tolerance_of_rule(made: Rule) -> float | None:
    """What the rule itself says."""
    found = _written.get(made.name)
    return found.tolerance if found is not None and found.rule is made else None


__all__ = ["Written", "law", "rule", "tolerance_of_rule", "write", "written", "written_rules"]
