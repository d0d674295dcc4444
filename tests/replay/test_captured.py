"""Replay of the compiler's own passes: each stage of a capture ends, node by node, in the stage's result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.typescript import missing, run_typescript
from tinyexplore import Tensor, Variable
from tinyexplore.explore import Trace, capture
from tinyexplore.explore.tracefile.replay import StageReplay
from tinyexplore.util import toposort

COUNT_GRAPHS = """
import { Replay } from "src/replay.ts";
function run(test) {
  const replay = new Replay(test.trace, test.stage);
  return test.at.map((k) => {
    const { root, nodes, changed } = replay.graphAt(k);
    const shown = [...nodes].map(([id, { node, src }]) => [id, node, src]);
    return [root, shown, [...changed].sort((a, b) => a - b)];
  });
}
"""


@pytest.fixture(scope="module", params=["ints", "symbolic"])
def trace(request: pytest.FixtureRequest) -> Trace:
    with capture() as session:
        x = Tensor([[0.5, 1.5, -2.0, 3.0]] * 3)
        if request.param == "symbolic":
            x = x[: Variable("v", 1, 3).bind(2)]
        ((x @ x.permute(1, 0) + 1.0) * 0.5).softmax(-1).realize()
    return session.trace


def passes(trace: Trace) -> list[int]:
    return [stage.id for stage in trace.stages if stage.steps]


def test_every_pass_ends_in_its_returned_graph(trace: Trace) -> None:
    assert len(passes(trace)) > 3
    for stage_id in passes(trace):
        stage = trace.stages[stage_id]
        replay = StageReplay(trace, stage_id)
        graph = replay.graph_at(replay.count)
        assert tuple(graph.nodes[shown].node for shown in graph.root) == stage.after
        expected = toposort(stage.after, lambda i: trace.nodes[i].src)
        assert sorted(shown.node for shown in graph.nodes.values()) == sorted(expected)
        for shown in graph.nodes.values():
            assert tuple(graph.nodes[src].node for src in shown.src) == trace.nodes[shown.node].src


def content(start: list[int], follow: Callable[[int], tuple[Any, tuple[int, ...]]], table: dict[Any, int]) -> list[int]:
    """A number for what stands under each of `start`: equal content has equal numbers in one `table`."""
    found: dict[int, int] = {}
    for place in toposort(start, lambda place: follow(place)[1]):
        node, src = follow(place)
        found[place] = table.setdefault((node, tuple(found[one] for one in src)), len(table))
    return [found[place] for place in start]


def test_every_prefix_is_the_graph_with_the_first_steps_applied(trace: Trace) -> None:
    """The other way to the same graph: from the roots down, each node as the latest step that far has left it."""
    table: dict[Any, int] = {}
    for stage_id in passes(trace):
        stage = trace.stages[stage_id]
        replay = StageReplay(trace, stage_id)
        for k in range(replay.count + 1):
            became = {step.before: step.after for step in stage.steps[:k]}

            def latest(place: int, became: dict[int, int] = became) -> tuple[Any, tuple[int, ...]]:
                while place in became:
                    place = became[place]
                node = trace.nodes[place]
                return (node.op, node.dtype, node.arg), node.src

            shown = replay.graph_at(k)

            def drawn(place: int, shown: Any = shown) -> tuple[Any, tuple[int, ...]]:
                node = trace.nodes[shown.nodes[place].node]
                return (node.op, node.dtype, node.arg), tuple(shown.nodes[place].src)

            assert content(list(shown.root), drawn, table) == content(list(stage.before), latest, table)


def test_every_step_changes_a_node_of_the_graph(trace: Trace) -> None:
    for stage_id in passes(trace):
        replay = StageReplay(trace, stage_id)
        for k in range(1, replay.count + 1):
            graph = replay.graph_at(k)
            assert graph.changed
            assert graph.changed <= set(graph.nodes)


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_typescript_replay_equals_the_python_replay(trace: Trace, tmp_path: Path) -> None:
    cases = []
    expected = []
    slim = {
        "nodes": [{"src": list(node.src)} for node in trace.nodes],
        "stages": [
            {
                "before": list(stage.before),
                "steps": [{"rule": step.rule, "before": step.before, "after": step.after} for step in stage.steps],
            }
            for stage in trace.stages
        ],
    }
    for stage_id in passes(trace):
        replay = StageReplay(trace, stage_id)
        at = sorted({0, 1, replay.count // 2, replay.count})
        cases.append({"trace": slim, "stage": stage_id, "at": at})
        graphs = [replay.graph_at(k) for k in at]
        expected.append(
            [
                [
                    list(graph.root),
                    [[shown_id, shown.node, list(shown.src)] for shown_id, shown in graph.nodes.items()],
                    sorted(graph.changed),
                ]
                for graph in graphs
            ]
        )
    assert run_typescript(tmp_path, COUNT_GRAPHS, cases) == expected
