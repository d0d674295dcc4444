"""Shared functions of the commands about rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.codegen import PASSES, Pass
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.outcome import Cancelled, CommandOutcome, CommandRejected
from tinyexplore.explore.whatif.playground.modified_pipeline import (
    Change,
    RuleInsertion,
    RuleRemoval,
    UnknownPassError,
    passes_with,
)
from tinyexplore.explore.whatif.playground.trials import FiringChecker, UOpRewrite, result_text, try_kernel
from tinyexplore.explore.whatif.playground.user_rules import find_written_rule
from tinyexplore.uop import Rule


def rule_named(name: str) -> Rule:
    """Returns the user's rule with this name."""
    try:
        return find_written_rule(name).rule
    except KeyError as error:
        raise WhatIfError(str(error.args[0])) from None


def changes_of(context: CommandContext, branch: Branch | None) -> list[Change]:
    """Returns the rules that are inserted and disabled in a branch and all its parents, oldest first."""
    changes: list[Change] = []
    while branch is not None:
        arguments = dict(branch.command.arguments)
        if branch.command.kind == "InsertRule":
            changes.insert(
                0,
                RuleInsertion(rule_named(str(arguments["rule"])), str(arguments["stage"]), int(arguments["position"])),
            )
        elif branch.command.kind == "DisableRule":
            changes.insert(0, RuleRemoval(str(arguments["rule"])))
        branch = None if branch.parent is None else context.branches[branch.parent]
    return changes


def pipeline_with(context: CommandContext, change: Change) -> tuple[Pass, ...]:
    """Returns the pipeline of the parent branch with one more change."""
    try:
        return passes_with([*changes_of(context, context.parent), change])
    except UnknownPassError as error:
        raise WhatIfError(str(error)) from None


def try_out_rule(
    context: CommandContext,
    rule: Rule | None,
    name: str,
    kernels: Sequence[int],
    passes_for: Callable[[int], Sequence[Pass]],
    is_requested: Callable[[UOpRewrite], bool],
) -> CommandOutcome:
    """Compiles the kernels, each with the passes from `passes_for`.

    Raises:
        CommandRejected: no kernel changed, and one failed.
    """
    checks = FiringChecker()
    trials = []
    for done_count, number in enumerate(kernels):
        if context.is_cancelled():
            raise Cancelled
        context.progress(f"kernel {number} through the passes", done_count, len(kernels))
        trials.append(try_kernel(context.compiler, number, passes_for(number), is_requested, checks))
    variants = tuple([trial.variant for trial in trials if trial.variant is not None])
    firings = tuple([firing for trial in trials for firing in trial.firings])
    outcome = CommandOutcome(variants, note=result_text(trials, name, len(kernels)), rule=rule, firings=firings)
    if not variants and any(trial.failure for trial in trials):
        raise CommandRejected(outcome.note, variants, outcome)
    return outcome


def passes_of(command: object, context: CommandContext, number: int) -> Sequence[Pass]:
    """Returns the pipeline for a kernel under a command: the engine's, unless the command is about rules."""
    pipeline = getattr(command, "pipeline", None)
    return PASSES if pipeline is None else pipeline(context, number)


__all__ = ["changes_of", "passes_of", "pipeline_with", "rule_named", "try_out_rule"]
