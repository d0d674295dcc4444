"""The measurements of the explorer: programs have the stated sizes, and figures have their aims beside them."""

from __future__ import annotations

import pytest

from bench import explorer
from bench.explorer import Figure, chain, firing_bytes, table
from tinyexplore import Tensor, explore
from tinyexplore.explore.exports.html_export import export_html
from tinyexplore.util import Context


@pytest.mark.parametrize("nodes", [50, 450])
def test_a_chain_has_the_stated_number_of_nodes(nodes):
    trace = chain(nodes)
    assert abs(sum(node.kind == "lazybuffer" for node in trace.nodes) - nodes) <= 5
    assert not trace.kernels
    assert 'id="explorer"' in export_html(trace)  # the graph is shown, though nothing was computed


def test_the_table_shows_a_figure_with_its_aim():
    rows = table([Figure("a", 2.0, "s", 1.0), Figure("b", 0.5, "s", 1.0, "why"), Figure("c", 3.0, "MB")]).splitlines()
    assert rows[2:] == ["| a | 2 s | ≤ 1 s | NO |  |", "| b | 0.5 s | ≤ 1 s | yes | why |", "| c | 3 MB |  |  |  |"]


def test_the_bytes_of_firings_exclude_those_of_other_tables():
    with Context(DEVICE="PYTHON"):
        trace = explore(lambda: (Tensor.ones(4, 4).contiguous() + 1).sum(), repeat=1).trace
    assert 0 < firing_bytes(trace) < len(explorer.trace_to_bytes(trace))


@pytest.mark.browser
def test_a_page_measures_a_step_and_a_pan(browser, tmp_path):
    with Context(DEVICE="PYTHON"):
        trace = explore(lambda: (Tensor.ones(4, 4).contiguous() + 1).sum(), repeat=1).trace
    busy = max(trace.stages, key=lambda stage: sum(step.rule is not None for step in stage.steps))
    page = explorer.Page(browser, trace, tmp_path)
    try:
        assert page.opened_s > 0
        assert page.metric("JSHeapUsedSize") > 100_000
        steps = page.steps_ms(busy.id, 2)
        assert page.tab.evaluate("tinyexplore.handle.state.cursor.step") >= 2
        assert len(steps) == 2 and min(steps) > 0
        assert len(page.pan()) == len(page.zoom()) == 40
    finally:
        page.close()
