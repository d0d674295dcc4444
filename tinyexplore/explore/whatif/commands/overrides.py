"""Shared functions of the commands that override the scheduler."""

from __future__ import annotations

from dataclasses import replace

from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.fusions import Edge, Fusions
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected


def overrides_at(context: CommandContext) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the cuts and joins of the parent branch."""
    variant = None if context.parent is None else context.parent.schedule
    return (frozenset(), frozenset()) if variant is None else (frozenset(variant.cut), frozenset(variant.join))


def edge_at(context: CommandContext, schedule: int, src: int, dst: int) -> Edge:
    """Returns the edge from `src` to `dst` in the parent branch.

    Raises:
        WhatIfError: there is no such edge.
    """
    rescheduling = context.rescheduling
    if schedule not in rescheduling.graphs:
        stages = ", ".join(map(str, rescheduling.graphs))
        raise WhatIfError(f"stage {schedule} has no schedule; stages with a schedule: {stages}")
    fusions = Fusions(context.trace, None if context.parent is None else context.parent.schedule)
    nodes = context.trace.nodes
    if not 0 <= dst < len(nodes) or src not in nodes[dst].src:
        raise WhatIfError(f"node {dst} does not read node {src}: view.fusion.edges() has all edges")
    return fusions.edge(src, dst)


def reschedule(context: CommandContext, schedule: int, cut: frozenset[int], join: frozenset[int]) -> CommandOutcome:
    """Compiles, compares and times the schedule with these overrides, or returns the branch that already has them."""
    if schedule not in context.rescheduling.graphs:
        raise WhatIfError(f"stage {schedule} has no graph that can be scheduled again")
    for branch in context.branches:
        variant_of_branch = branch.schedule
        if branch.status == "done" and variant_of_branch is not None and variant_of_branch.stage == schedule:
            if (frozenset(variant_of_branch.cut), frozenset(variant_of_branch.join)) == (cut, join):
                return CommandOutcome(same=branch)
    variant, note, lost = context.rescheduling.variant(schedule, cut, join, context.step)
    variant = replace(variant, edges=Fusions(context.trace, variant).fusion_edges())
    if lost:
        raise CommandRejected(lost, rest=CommandOutcome(schedule=variant))
    return CommandOutcome(schedule=variant, note=note)


__all__ = ["edge_at", "overrides_at", "reschedule"]
