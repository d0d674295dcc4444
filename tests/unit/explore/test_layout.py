"""Graph layout: its invariants, and that the TypeScript implementation gives the same numbers.

`python tests/unit/explore/test_layout.py` rewrites the shared vectors.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.typescript import missing, run_typescript
from tinyexplore.explore.tracefile.pictures.layout import Box, Layout, edge_path, layout

VECTORS = Path(__file__).resolve().parents[2] / "fixtures" / "layout"
TOLERANCE = 1e-6

RUN_LAYOUT = """
import { layout } from "src/layout.ts";
function run(test) {
  const previous = test.previous ? new Map(test.previous.map(([id, x, y]) => [id, { x, y }])) : undefined;
  const edges = test.edges.map(([src, dst]) => ({ src, dst }));
  const nodes = test.nodes.map(([id, width, height]) => ({ id, width, height }));
  const made = layout({ nodes, edges }, { previous });
  return {
    positions: [...made.positions].map(([id, { x, y }]) => [id, x, y]),
    frame: [made.left, made.top, made.width, made.height],
    edges: made.edges.map((edge) => [edge.src, edge.dst, edge.long, edge.points]),
  };
}
"""


def run_layout(case: dict[str, Any]) -> Layout:
    return layout([Box(*box) for box in case["nodes"]], [tuple(edge) for edge in case["edges"]])


def as_json(made: Layout) -> dict[str, Any]:
    return {
        "positions": [[node, x, y] for node, (x, y) in made.positions.items()],
        "frame": [made.left, made.top, made.width, made.height],
        "edges": [[edge.src, edge.dst, edge.long, [list(point) for point in edge.points]] for edge in made.edges],
    }


def numbers(value: Any) -> list[float]:
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    return [float(value)]


def assert_same(found: Any, expected: Any) -> None:
    assert numbers(found) == pytest.approx(numbers(expected), abs=TOLERANCE, rel=0)


def random_case(size: int, seed: int, window: int = 30) -> dict[str, Any]:
    """A graph like those of a kernel: local edges, a few sources that many use."""
    chance = random.Random(seed)
    edges = []
    for node in range(1, size):
        for _ in range(chance.choice([0, 1, 1, 2, 2, 3])):
            near = chance.randrange(max(0, node - window), node)
            edges.append([near if chance.random() < 0.95 else chance.randrange(node), node])
    nodes = [[7 * node, 60 + chance.randrange(80), chance.choice([22, 34])] for node in range(size)]
    return {"nodes": nodes, "edges": [[7 * src, 7 * dst] for src, dst in edges]}


def vectors() -> dict[str, dict[str, Any]]:
    """name → case; every behavior of the layout once."""
    box = [90, 34]
    cases: dict[str, dict[str, Any]] = {
        "empty": {"nodes": [], "edges": []},
        "one": {"nodes": [[5, *box]], "edges": [[5, 5]]},
        "diamond": {"nodes": [[i, *box] for i in range(4)], "edges": [[0, 1], [0, 2], [1, 3], [2, 3], [1, 3]]},
        "source_near_its_user": {
            "nodes": [[i, *box] for i in range(7)],
            "edges": [[0, 1], [1, 2], [2, 3], [3, 4], [5, 6], [6, 4], [0, 4]],
        },
        "long_edges": {
            "nodes": [[i, *box] for i in range(17)],
            "edges": [*([i, i + 1] for i in range(16)), [0, 13], [0, 14], [2, 9], [2, 12], [4, 16]],
        },
        "parts": {
            "nodes": [[i, 40 + 10 * i, 30] for i in range(12)],
            "edges": [[0, 1], [1, 2], [3, 4], [3, 5], [6, 8], [7, 8]],
        },
        "cycle": {"nodes": [[i, *box] for i in range(4)], "edges": [[0, 1], [1, 2], [2, 1], [2, 3]]},
        "random_30": random_case(30, 1, 8),
        "random_150": random_case(150, 2),
    }
    return cases


def vectors_with_previous() -> dict[str, dict[str, Any]]:
    """name → case in which boxes stood somewhere before; only the front end lays these out."""
    cases = vectors()
    before = run_layout(cases["random_30"])
    step = {"nodes": cases["random_30"]["nodes"][:25], "edges": cases["random_30"]["edges"][5:]}
    step = {**step, "nodes": [*step["nodes"], [900, 120, 34], [901, 60, 34]]}
    step["edges"] = [*step["edges"], [0, 900], [900, 70], [901, 900], [7, 901]]
    step["previous"] = [[node, x, y] for node, (x, y) in before.positions.items()]
    box, parts = [90, 34], run_layout(cases["parts"])
    grown = {
        "nodes": [*cases["parts"]["nodes"], [20, *box], [21, *box]],
        "edges": [*cases["parts"]["edges"], [0, 20], [20, 2], [9, 10]],
        "previous": [[node, x, y] for node, (x, y) in parts.positions.items() if node != 11],
    }
    return {"step_with_previous": step, "parts_with_previous": grown}


def load_vectors() -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, json.loads(path.read_text())) for path in sorted(VECTORS.glob("*.json"))]


@pytest.mark.parametrize("name", vectors())
def test_the_python_layout_equals_the_shared_vectors(name: str) -> None:
    vector = dict(load_vectors())[name]
    assert_same(as_json(run_layout(vector["case"])), vector["expected"])


def test_there_is_a_vector_for_every_behavior() -> None:
    assert {name for name, _ in load_vectors()} == {*vectors(), *vectors_with_previous()}


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_typescript_layout_equals_the_python_layout(tmp_path: Path) -> None:
    vectors = [(vector["case"], vector["expected"]) for _, vector in load_vectors()]
    others = [random_case(size, seed) for size, seed in [(12, 10), (45, 11), (300, 12), (1200, 13)]]
    vectors += [(case, as_json(run_layout(case))) for case in others]
    found = run_typescript(tmp_path, RUN_LAYOUT, [case for case, _ in vectors])
    for (_, expected), made in zip(vectors, found, strict=True):
        assert_same(made, expected)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(1, 30))
    nodes = [[node, draw(st.integers(10, 150)), draw(st.integers(10, 50))] for node in range(size)]
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    edges = [sorted(pair) for pair in draw(st.lists(pairs, max_size=60))]
    return {"nodes": nodes, "edges": edges}


def assert_sound(case: dict[str, Any], made: Layout) -> None:
    boxes = {box[0]: box for box in case["nodes"]}
    assert set(made.positions) == set(boxes)
    rows: dict[float, list[tuple[float, float]]] = {}
    for node, (x, y) in made.positions.items():
        _, width, height = boxes[node]
        rows.setdefault(y, []).append((x - width / 2, x + width / 2))
        assert made.left - TOLERANCE <= x - width / 2 and x + width / 2 <= made.left + made.width + TOLERANCE
        assert made.top - TOLERANCE <= y - height / 2 and y + height / 2 <= made.top + made.height + TOLERANCE
    for row in rows.values():
        for (_, right), (left, _) in pairwise(sorted(row)):
            assert left - right >= 22 - TOLERANCE
    for edge in made.edges:
        assert made.positions[edge.src][1] < made.positions[edge.dst][1]
        assert all(above[1] <= below[1] for above, below in pairwise(edge.points))
        assert edge.points[0][0] == made.positions[edge.src][0]
        assert abs(edge.points[-1][0] - made.positions[edge.dst][0]) < boxes[edge.dst][1] / 2
    assert {(edge.src, edge.dst) for edge in made.edges} == {(src, dst) for src, dst in case["edges"] if src != dst}


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_boxes_do_not_overlap_and_users_are_below_their_sources(case: dict[str, Any]) -> None:
    assert_sound(case, run_layout(case))


def grown_cases() -> Iterator[dict[str, Any]]:
    """Graphs of which some boxes stood somewhere before."""
    for seed in range(30):
        old, new = random_case(1 + 7 * seed % 60, seed, 8), random_case(2 + 11 * seed % 80, 100 + seed, 8)
        previous = [[node, x, y] for node, (x, y) in run_layout(old).positions.items()]
        yield {**new, "previous": previous[:: 1 + seed % 3]}


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_users_are_below_their_sources_with_previous_positions(tmp_path: Path) -> None:
    cases = list(grown_cases())
    for case, made in zip(cases, run_typescript(tmp_path, RUN_LAYOUT, cases), strict=True):
        height = {node: y for node, _, y in made["positions"]}
        assert set(height) == {box[0] for box in case["nodes"]}
        assert all(height[src] < height[dst] for src, dst, *_ in made["edges"])


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_second_layout_keeps_positions(tmp_path: Path) -> None:
    case = random_case(120, 3, 12)
    first = run_layout(case)
    again = {**case, "previous": [[node, x, y] for node, (x, y) in first.positions.items()]}
    (made,) = run_typescript(tmp_path, RUN_LAYOUT, [again])
    places = {node: (x, y) for node, x, y in made["positions"]}
    assert max(abs(places[node][0] - x) for node, (x, _) in first.positions.items()) < 3
    assert {node: y for node, (_, y) in places.items()} == {node: y for node, (_, y) in first.positions.items()}


def test_a_tree_has_no_crossings_and_centered_parents() -> None:
    case = {"nodes": [[i, 60, 30] for i in range(7)], "edges": [[3, 1], [4, 1], [5, 2], [6, 2], [1, 0], [2, 0]]}
    made = run_layout(case).positions
    assert made[3][0] < made[4][0] < made[5][0] < made[6][0]
    assert made[0][0] == pytest.approx((made[3][0] + made[6][0]) / 2, abs=0.5)


def test_a_chain_of_ten_thousand_is_straight() -> None:
    made = layout([Box(i, 80, 34) for i in range(10_000)], [(i, i + 1) for i in range(9_999)])
    assert {x for x, _ in made.positions.values()} == {40.0}
    assert made.height == 10_000 * 34 + 9_999 * 38


def test_ten_times_the_graph_takes_about_ten_times_as_long() -> None:
    """0.07 s and 0.8 s on the machine it was written on."""
    shortest = []
    for size, rounds in [(1_000, 3), (10_000, 1)]:
        case = random_case(size, 5, 60)
        seconds = []
        for _ in range(rounds):
            start = time.thread_time()
            run_layout(case)
            seconds.append(time.thread_time() - start)
        shortest.append(min(seconds))
    assert shortest[1] < 40 * shortest[0], shortest


def test_a_path_is_straight_down_or_an_s_curve() -> None:
    assert edge_path([(1.0, 2.0), (1.0, 10.0), (5.0, 20.0)]) == "M1 2v8c0 5 4 5 4 10"


if __name__ == "__main__":
    VECTORS.mkdir(parents=True, exist_ok=True)
    made = {name: as_json(run_layout(case)) for name, case in vectors().items()}
    for name, case in vectors_with_previous().items():
        with tempfile.TemporaryDirectory() as folder:
            (made[name],) = run_typescript(Path(folder), RUN_LAYOUT, [case])
    for name, case in {**vectors(), **vectors_with_previous()}.items():
        text = json.dumps({"case": case, "expected": made[name]}, separators=(",", ":"))
        (VECTORS / f"{name}.json").write_text(text + "\n")
