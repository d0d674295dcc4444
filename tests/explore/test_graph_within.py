"""Pictures of graphs with a maximum width."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore.tracefile.model import Node
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_within

NODES = tuple(node for node in sample_trace().nodes if node.kind == "uop")


def width(picture: str) -> float:
    return float(re.search(r'viewBox="0 0 ([\d.]+) ', picture).group(1))


def boxes(picture: str) -> int:
    """How many are drawn, as it says."""
    return int(re.search(r">(\d+) boxes for 41 nodes", picture).group(1))


def fan(count: int) -> list[Node]:
    """One node that reads `count` others, which stand side by side."""
    leaf = replace(NODES[0], op="LOAD", label="LOAD", group="memory", src=(), shape=None)
    leaves = [replace(leaf, id=i, digest=f"d{i}", detail=str(i)) for i in range(count)]
    return [*leaves, replace(leaf, id=count, digest="all", op="VECTORIZE", label="VECTORIZE", src=tuple(range(count)))]


def test_a_graph_that_fits_is_drawn_whole() -> None:
    picture = graph_within(fan(3), 2000, 1, 100)
    assert picture is not None and width(picture) <= 2000
    assert all(picture.count(word) >= times for word, times in {"LOAD": 3, "VECTORIZE": 1}.items())


@pytest.mark.parametrize("most", [400, 700, 1200])
def test_a_wide_graph_is_reduced_to_the_boxes_that_fit_its_width(most: int) -> None:
    nodes = fan(40)
    picture = graph_within(nodes, most, 1, 100)
    wider = graph_within(nodes, 2 * most, 1, 100)
    assert picture is not None and wider is not None
    assert width(picture) <= most and width(wider) <= 2 * most
    assert boxes(picture) < boxes(wider) < 41
    assert f"furthest from the result: {41 - boxes(picture)}<" in picture  # what is left out is counted


def test_a_graph_with_too_few_visible_boxes_has_no_picture() -> None:
    assert graph_within(fan(40), 400, 1, 100) is not None
    assert graph_within(fan(40), 400, 30, 100) is None
    assert graph_within(fan(40), 10, 1, 100) is None


def test_a_graph_without_nodes_has_an_empty_picture() -> None:
    assert graph_within([], 100, 1, 10) == ""
