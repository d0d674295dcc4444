"""A page contains the responses to all earlier requests, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.pages import responses_in, stored_in
from tinyexplore import Tensor, explore
from tinyexplore.explore.analysis.models import caches
from tinyexplore.explore.analysis.requests import to_data
from tinyexplore.explore.notebook.explorer import Explorer
from tinyexplore.explore.notebook.requests import RequestHandler


@pytest.fixture
def view() -> Explorer:
    x, w = (Tensor.rand(*shape).realize() for shape in ((8, 12), (12, 16)))
    return explore(lambda: x @ w)


def test_a_page_stores_only_the_responses_that_every_page_has(view: Explorer) -> None:
    stored = stored_in(view.to_html())
    assert {json.loads(request)["ask"] for request in stored["responses"]} == {
        "lines",
        "opt steps",
        "passes",
        "shape",
        "verdicts",
    }
    assert stored["runnable"] == []
    assert 'data-chunk="kernel_analysis"' not in view.to_html()


def test_a_page_stores_the_cache_comparison_with_the_kernel_without_opts(view: Explorer) -> None:
    model = view.kernels[0].caches()
    (found,) = responses_in(view.to_html(), "caches").values()
    assert found["after"]["total"] == to_data(model.total)
    assert found["before"]["opts"] == [] and sum(found["before"]["total"]["served"]) == 2 * 8 * 12 * 16 + 8 * 16
    assert 'data-chunk="kernel_analysis"' in view.to_html()


def test_requested_opts_are_compared_with_the_captured_ones(view: Explorer) -> None:
    view.kernels[0].caches(["UPCAST(0, 4)"])
    (found,) = responses_in(view.to_html(), "caches").values()
    assert found["after"]["opts"] == ["UPCAST(0, 4)"]
    assert found["before"]["opts"] == list(view.trace.kernels[0].opts)


def test_a_page_stores_the_last_comparison_of_the_panel(view: Explorer) -> None:
    RequestHandler(lambda: view.trace, view.capture)(
        {"ask": "caches", "kernel": 0, "before": ["UPCAST(1, 2)"], "after": []}
    )
    (found,) = responses_in(view.to_html(), "caches").values()
    assert (found["before"]["opts"], found["after"]["opts"]) == (["UPCAST(1, 2)"], [])


def test_a_kernel_that_is_too_slow_without_opts_is_not_compared(view: Explorer, monkeypatch: Any) -> None:
    view.kernels[0].set_opts(["UPCAST(0, 8)", "VECTOR(1, 4)"])
    few = view.kernels[0].caches(view.kernels[0].branch.kernels[0].opts)
    plain = view.capture.analyses.cache_model(0, ())
    monkeypatch.setattr(caches, "MAX_ACCESSES", plain.stream.count_most_accesses() - 1)
    view.capture.analyses.responses.compare(0, (), few.opts)
    (found,) = responses_in(view.to_html(), "caches").values()
    assert found["before"] is None and found["after"]["total"] == to_data(few.total)


def test_opts_are_passed_as_text_or_list(view: Explorer) -> None:
    one, other = (
        view.kernels[0].set_opts("UPCAST(0, 8), VECTOR(1, 4)"),
        view.kernels[0].set_opts(["UPCAST(0, 8)", "VECTOR(1, 4)"]),
    )
    assert one == other and other.kernels[0].opts == ("UPCAST(0, 8)", "VECTOR(1, 4)")
