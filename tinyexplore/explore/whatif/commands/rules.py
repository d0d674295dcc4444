"""What the commands share that are about rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.codegen import PASSES, Pass
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif.outcome import Cancelled, Outcome, Refused
from tinyexplore.explore.whatif.place import CommandContext
from tinyexplore.explore.whatif.playground.pipeline import Change, Disabled, Inserted, NoSuchPass, passes_with
from tinyexplore.explore.whatif.playground.trying import Checks, UOpRewrite, told, try_kernel
from tinyexplore.explore.whatif.playground.written import written
from tinyexplore.uop import Rule


def rule_named(name: str) -> Rule:
    """The rule of that name that was written here."""
    try:
        return written(name).rule
    except KeyError as error:
        raise WhatIfError(str(error.args[0])) from None


def changes_of(place: CommandContext, branch: Branch | None) -> list[Change]:
    """The rules that are inserted and disabled in a branch, all the way from the capture on."""
    found: list[Change] = []
    while branch is not None:
        given = dict(branch.command.arguments)
        if branch.command.kind == "InsertRule":
            found.insert(0, Inserted(rule_named(str(given["rule"])), str(given["stage"]), int(given["position"])))
        elif branch.command.kind == "DisableRule":
            found.insert(0, Disabled(str(given["rule"])))
        branch = None if branch.parent is None else place.branches[branch.parent]
    return found


def pipeline_with(place: CommandContext, change: Change) -> tuple[Pass, ...]:
    """The pipeline of the branch to go on from, and one more change."""
    try:
        return passes_with([*changes_of(place, place.parent), change])
    except NoSuchPass as error:
        raise WhatIfError(str(error)) from None


def try_out_rule(
    place: CommandContext,
    rule: Rule | None,
    name: str,
    kernels: Sequence[int],
    passes_for: Callable[[int], Sequence[Pass]],
    is_asked: Callable[[UOpRewrite], bool],
) -> Outcome:
    """The kernels through `passes_for` each; Refused where nothing came of it but what cannot be compiled."""
    checks = Checks()
    tried = []
    for done, number in enumerate(kernels):
        if place.is_cancelled():
            raise Cancelled
        place.progress(f"kernel {number} through the passes", done, len(kernels))
        tried.append(try_kernel(place.bench, number, passes_for(number), is_asked, checks))
    variants = tuple([one.variant for one in tried if one.variant is not None])
    firings = tuple([firing for one in tried for firing in one.firings])
    outcome = Outcome(variants, note=told(tried, name, len(kernels)), rule=rule, firings=firings)
    if not variants and any(one.failure for one in tried):
        raise Refused(outcome.note, variants, outcome)
    return outcome


def passes_of(command: object, place: CommandContext, number: int) -> Sequence[Pass]:
    """The pipeline that a command sends a kernel through: the engine's, unless it is about rules."""
    pipeline = getattr(command, "pipeline", None)
    return PASSES if pipeline is None else pipeline(place, number)


__all__ = ["changes_of", "passes_of", "pipeline_with", "rule_named", "try_out_rule"]
