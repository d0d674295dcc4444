"""Replay of the compiler's own passes: each stage of a capture ends, node by node, in what the stage returned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.typescript import missing, run_typescript
from tinyexplore import Tensor
from tinyexplore.explore import Trace, capture
from tinyexplore.explore.replay import Replay
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


@pytest.fixture(scope="module")
def trace() -> Trace:
    with capture() as session:
        x = Tensor([[0.5, 1.5, -2.0, 3.0]] * 3)
        ((x @ x.permute(1, 0) + 1.0) * 0.5).softmax(-1).realize()
    return session.trace


def passes(trace: Trace) -> list[int]:
    return [stage.id for stage in trace.stages if stage.steps]


def test_every_pass_ends_in_what_it_returned(trace: Trace) -> None:
    assert len(passes(trace)) > 3
    for stage_id in passes(trace):
        stage = trace.stages[stage_id]
        replay = Replay(trace, stage_id)
        graph = replay.graph_at(replay.count)
        assert tuple(graph.nodes[shown].node for shown in graph.root) == stage.after
        expected = toposort(stage.after, lambda i: trace.nodes[i].src)
        assert sorted(shown.node for shown in graph.nodes.values()) == sorted(expected)
        for shown in graph.nodes.values():
            assert tuple(graph.nodes[src].node for src in shown.src) == trace.nodes[shown.node].src


def test_every_step_changes_something_that_stands_in_the_graph(trace: Trace) -> None:
    for stage_id in passes(trace):
        replay = Replay(trace, stage_id)
        for k in range(1, replay.count + 1):
            graph = replay.graph_at(k)
            assert graph.changed
            assert graph.changed <= set(graph.nodes)


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_typescript_replays_them_alike(trace: Trace, tmp_path: Path) -> None:
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
        replay = Replay(trace, stage_id)
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
