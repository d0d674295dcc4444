"""Functions for the commands that override the scheduler."""

from __future__ import annotations

from dataclasses import replace

from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.fusions import Edge, Fusions
from tinyexplore.explore.whatif.outcome import Outcome, Refused
from tinyexplore.explore.whatif.place import CommandContext


def overrides_at(place: CommandContext) -> tuple[frozenset[int], frozenset[int]]:
    """The cuts and joins of the parent branch."""
    variant = None if place.parent is None else place.parent.schedule
    return (frozenset(), frozenset()) if variant is None else (frozenset(variant.cut), frozenset(variant.join))


def edge_at(place: CommandContext, schedule: int, src: int, dst: int) -> Edge:
    """The edge in the parent branch. WhatIfError if there is none."""
    rescheduling = place.rescheduling
    if schedule not in rescheduling.graphs:
        stages = ", ".join(map(str, rescheduling.graphs))
        raise WhatIfError(f"stage {schedule} scheduled nothing; these did: {stages}")
    fusions = Fusions(place.trace, None if place.parent is None else place.parent.schedule)
    nodes = place.trace.nodes
    if not 0 <= dst < len(nodes) or src not in nodes[dst].src:
        raise WhatIfError(f"node {dst} does not read node {src}: view.fusion.edges() has all edges")
    return fusions.edge(src, dst)


def reschedule(place: CommandContext, schedule: int, cut: frozenset[int], join: frozenset[int]) -> Outcome:
    """The schedule with these overrides, compiled, compared and timed; or the branch that has it already."""
    if schedule not in place.rescheduling.graphs:
        raise WhatIfError(f"stage {schedule} scheduled nothing that could be scheduled again")
    for branch in place.branches:
        known = branch.schedule
        if branch.status == "done" and known is not None and known.stage == schedule:
            if (frozenset(known.cut), frozenset(known.join)) == (cut, join):
                return Outcome(same=branch)
    variant, note, lost = place.rescheduling.variant(schedule, cut, join, place.step)
    variant = replace(variant, edges=Fusions(place.trace, variant).fusion_edges())
    if lost:
        raise Refused(lost, rest=Outcome(schedule=variant))
    return Outcome(schedule=variant, note=note)


__all__ = ["edge_at", "overrides_at", "reschedule"]
