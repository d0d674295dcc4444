"""The derived tables of a trace: computed from its other tables, once, in Python, when the trace is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tinyexplore.explore.tracefile.figures import all_figures
from tinyexplore.explore.tracefile.fusions import Fusions
from tinyexplore.explore.tracefile.model import TraceTables
from tinyexplore.explore.tracefile.modules import module_costs
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline
from tinyexplore.explore.tracefile.scripts import kernel_scripts
from tinyexplore.explore.tracefile.timeline import kernel_timeline, timeline

T = TypeVar("T", bound=TraceTables)


def with_derived_tables(trace: T) -> T:
    """Returns `trace` with all derived tables recomputed from its other tables."""
    return replace(
        trace,
        figures=all_figures(trace),
        module_costs=module_costs(trace),
        roofline=roofline(trace),
        kernel_time=kernel_timeline(trace),
        elapsed_time=timeline(trace),
        fusion_edges=Fusions(trace).fusion_edges(),
        scripts=kernel_scripts(trace),
    )
