"""Why a kernel has its opts: every decision in order, with its numbers, and the result without it."""

from __future__ import annotations

import pytest

from tinyexplore import Tensor
from tinyexplore.explore import Explorer, Trace, explore, why_opts
from tinyexplore.explore.analysis.explanations.opt_reasons import describe_scores, find_next_best, kernel_before
from tinyexplore.explore.tracefile.codec import trace_to_json
from tinyexplore.explore.tracefile.model import OptionScores
from tinyexplore.explore.tracefile.trace import trace_from_json
from tinyexplore.kernel.heuristics import HEURISTICS, apply_heuristics
from tinyexplore.kernel.heuristics.elementwise_vectors import MAX_STEP_OPERATIONS, MIN_STEPS


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = Tensor.rand(256, 256).realize(), Tensor.rand(256, 256).realize()
    return explore(lambda: (x @ w, x.exp()), repeat=1)


def stage_of(trace: Trace, kernel: int):
    return next(stage for stage in trace.stages if stage.kernel == kernel and stage.choices)


def test_every_heuristic_is_listed_in_order_with_its_opts(view: Explorer):
    for kernel in view.trace.kernels:
        found = view.kernels[kernel].why_opts()
        assert [one.choice.name for one in found.chosen] == [decision.name for decision in HEURISTICS]
        applied = [opt.opt for one in found.chosen for opt in one.opts if opt.applied]
        assert applied == list(kernel.opts) == list(found.opts)
        assert all(one.choice.law for one in found.chosen)
    assert why_opts(view.trace, 1) == view.kernels[1].why_opts()


def test_the_numbers_of_an_elementwise_loop_and_the_opts_without_a_decision(view: Explorer):
    found = view.kernels[1].why_opts()
    several = found["take_several_vectors"]
    rows = {one.what: one for one in several.choice.compared}
    assert (rows["loop iterations"].value, rows["loop iterations"].bound, rows["loop iterations"].over) == (
        65536,
        MIN_STEPS,
        True,
    )
    assert rows["operations per iteration"].bound == MAX_STEP_OPERATIONS and not rows["operations per iteration"].over
    assert several.instead == tuple(opt for opt in found.opts if opt != several.opts[0].opt)
    lanes = found["choose_lanes"]
    assert lanes.choice.weighed[0].chosen == "g0" and lanes.instead is not None
    assert not any(opt.startswith("VECTOR") for opt in lanes.instead)
    assert found["prefetch"].opts == () and found["prefetch"].instead is None


def test_the_scores_of_a_product_tile_and_the_next_best(view: Explorer):
    found = view.kernels[0].why_opts()
    tile = found["tile_product"]
    along = next(one for one in tile.choice.weighed if one.what.startswith("instructions per multiply-add"))
    scores = dict(along.options)
    assert along.least and scores[along.chosen] == min(scores.values())
    name, score = find_next_best(along)
    assert name != along.chosen and score == min(value for option, value in scores.items() if option != along.chosen)
    assert f"next best {name} ({score:.3g})" in describe_scores(along)
    settled = found["choose_lanes"]
    assert settled.choice.settled_by == "tile_product" and settled.opts == ()
    text = str(found)
    assert "choose_lanes (tile_product came first)" in " ".join(text.split())
    row = next(row for row in found.table().rows if row[0] == "tile_product")
    assert describe_scores(along) in row[2].split("\n") and row[3].startswith("VECTOR(")


def test_one_option_has_no_next_best():
    alone = OptionScores("rows at a time", (("4", 1.0),), "4", True)
    assert find_next_best(alone) is None and describe_scores(alone) == "rows at a time: 4 (1)"
    assert find_next_best(OptionScores("?", (("a", 1.0), ("b", 3.0), ("c", 2.0)), "b", False)) == ("c", 2.0)


def test_choices_are_saved_with_the_trace_and_are_optional(view: Explorer):
    again = trace_from_json(trace_to_json(view.trace))
    assert again == view.trace and stage_of(again, 0).choices == stage_of(view.trace, 0).choices
    plain = explore(lambda: Tensor.rand(8).realize().exp(), repeat=1, noopt=1)
    assert plain.kernels[0].why_opts().chosen == () and "no opts" in str(plain.kernels[0].why_opts())
    with pytest.raises(IndexError, match="kernel 9: .*2 kernels"):
        view.kernels[9].why_opts()
    with pytest.raises(KeyError, match="no decision 'nothing'"):
        view.kernels[0].why_opts()["nothing"]


def test_opts_that_a_heuristic_would_choose_equal_the_recorded_ones(view: Explorer):
    """The kernel rebuilt from the trace is the one that was optimized."""
    for kernel in view.trace.kernels:
        found = view.kernels[kernel].why_opts()
        started = kernel_before(view.trace, stage_of(view.trace, kernel.id))
        assert tuple(map(str, apply_heuristics(started).applied)) == found.opts
