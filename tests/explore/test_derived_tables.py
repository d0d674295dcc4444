"""Derived tables are computed from a trace's other tables when the trace is written."""

from __future__ import annotations

from dataclasses import replace

from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore.tracefile.codec import trace_to_bytes, trace_to_json
from tinyexplore.explore.tracefile.figures import all_figures, figures
from tinyexplore.explore.tracefile.pictures.trace_roofline import roofline
from tinyexplore.explore.tracefile.trace import trace_from_bytes, trace_from_json


def test_derived_tables_are_saved_in_both_formats() -> None:
    trace = sample_trace()
    assert trace.figures == () and trace.roofline is None
    read = trace_from_json(trace_to_json(trace))
    assert read == replace(read, figures=(), roofline=None)  # they do not count
    assert read.roofline == roofline(trace)
    assert read.figures == (figures(trace), *(figures(trace, kernel.id) for kernel in trace.kernels))
    packed = trace_from_bytes(trace_to_bytes(trace))  # its times are rounded
    assert [one.parts for one in packed.figures] == [one.parts for one in read.figures]
    assert packed.roofline == read.roofline


def test_derived_tables_are_recomputed_after_a_table_is_replaced() -> None:
    read = trace_from_bytes(trace_to_bytes(sample_trace()))
    untimed = replace(read, runs=())
    again = trace_from_bytes(trace_to_bytes(untimed))
    assert read.figures[0].run_us > 0 == again.figures[0].run_us
    assert again.figures == all_figures(untimed) != read.figures
    assert again.roofline is not None and again.roofline.points == ()
