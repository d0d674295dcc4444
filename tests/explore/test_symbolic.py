"""A kernel with a Variable in every view: loops by name, shapes with their values, and the origin of both."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import Tensor, Variable
from tinyexplore.explore import Explorer, Trace, capture
from tinyexplore.explore.exports.html_export import export_html, summary_text
from tinyexplore.explore.recording.loop_nest import loop_nest
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.trace import trace_from_bytes


@pytest.fixture(scope="module")
def session() -> Explorer:
    x = Tensor(np.ones((40, 24), np.float32)).realize()
    with capture(NOOPT=1) as session:
        (x[: Variable("v", 1, 40).bind(7)] * 2).sum(0).realize()
    return session


@pytest.fixture(scope="module")
def trace(session: Explorer) -> Trace:
    return session.trace


def test_shapes_show_the_value_and_loops_the_variable(trace: Trace) -> None:
    shapes = [node.shape for node in trace.nodes if node.kind == "lazybuffer" and node.op == "MUL"]
    assert shapes == [("v=7", 24)]
    (kernel,) = trace.kernels
    assert ("reduce", "v") in {(kind, size) for _, kind, size in kernel.axes}
    assert kernel.flops == 2 * 7 * 24 and kernel.bytes_moved == 4 * (7 * 24 + 24)
    listing = next(program for program in trace.programs if program.language == "uops")
    texts = [line.text for line in listing.lines]
    assert any("DEFINE_VAR v from 1 to 40" in text for text in texts)
    assert any("in range(v):" in text for text in texts)


def test_the_kernels_variable_originates_in_the_bound_variable(trace: Trace) -> None:
    bound = next(node.id for node in trace.nodes if node.op == "BIND")
    variable = next(node.id for node in trace.nodes if node.op == "DEFINE_VAR")
    assert trace.nodes[bound].detail == "v = 7" and trace.nodes[variable].detail == "1 ≤ v ≤ 40"
    assert any(link.src == bound and link.dst == variable for link in trace.links)


def test_a_symbolic_trace_travels_and_is_exported(trace: Trace) -> None:
    assert trace_from_bytes(trace_to_bytes(trace)) == trace
    assert trace.kernels[0].name in summary_text(trace)
    assert trace.kernels[0].name in export_html(trace)  # in the part that needs no script


def test_the_nest_of_a_symbolic_kernel() -> None:
    x = Tensor(np.ones((40, 24), np.float32)).realize()
    (item,) = (x[: Variable("v", 1, 40).bind(7)] * 2).sum(1).schedule()
    assert loop_nest(item.ast) == (
        "for g0 in range(v):  # global\n  total0 = sum(data1[g0*24 + r1]*2.0 for r1 in range(24))\n  data0[g0] = total0"
    )
