"""The rule playground: rules written in a cell are tried on captured kernels, and each firing is checked.

`@playground.rule(pattern)` creates a rule. `view.rules` shows where it matches, and the results of firing it, of
inserting it into the pipeline, or of disabling another rule. `equivalent(before, after)` is the check alone.

The implementation is in `whatif/playground/`.
"""

from __future__ import annotations

from tinyexplore.explore.whatif.playground.equivalence import Counterexample, Verdict, equivalent
from tinyexplore.explore.whatif.playground.firing_checks import CheckedFiring, check_firings
from tinyexplore.explore.whatif.playground.user_rules import law, rule, written_rules
from tinyexplore.uop import Ops, UOp, UPat, cvar, var

__all__ = [
    "CheckedFiring",
    "Counterexample",
    "Ops",
    "UOp",
    "UPat",
    "Verdict",
    "check_firings",
    "cvar",
    "equivalent",
    "law",
    "rule",
    "var",
    "written_rules",
]
