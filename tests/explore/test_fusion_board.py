"""The fusion board as data: edges and their legality errors, commands, branches and comparisons."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tinyexplore import Tensor, Trace, explore, nn
from tinyexplore.explore import Explorer
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.fusions import Edge
from tinyexplore.explore.tracefile.model import CommandInfo
from tinyexplore.explore.whatif import rescheduler
from tinyexplore.explore.whatif.commands import AsScheduled, Cut, Join, Leave, from_json, to_json


def softmax() -> Explorer:
    x = Tensor.rand(64, 100).realize()
    return explore(lambda: x.softmax(), repeat=1)


def attention() -> Explorer:
    q, k, v = (Tensor.rand(40, 16).realize() for _ in range(3))
    return explore(lambda: (q @ k.T).softmax() @ v, repeat=1)


@pytest.fixture(scope="module")
def view() -> Explorer:
    """An attention whose board has the captured schedule as its first branch, at which it is."""
    view = attention()
    view.fusion.join(edge_of(view, "REDUCE_AXIS", "cut"))
    view.fusion.go(view.fusion.branches()[0])
    return view


def edge_of(view: Explorer, op: str, mark: str | None = None) -> Edge:
    nodes = view.trace.nodes
    return next(e for e in view.fusion.edges() if nodes[e.src].op == op and mark in (None, e.mark))


@pytest.mark.parametrize("command", [AsScheduled(0), Cut(0, 7, 8), Join(1, 2, 3), Leave(0, 7)])
def test_a_command_is_serialized_and_parsed(command):
    assert from_json(to_json(command)) == command


def test_softmax_is_cut_and_fused_again():
    view = softmax()
    edge = edge_of(view, "EXP")
    assert edge.mark == "fused" and edge.against_cut == ""
    assert "already joined" in edge.against_join
    branch = view.fusion.cut(edge)
    root = view.fusion.branches()[0]
    assert root.command == CommandInfo("AsScheduled", (("schedule", 0),)) and root.labels == ("as captured",)
    assert branch.parent == root.id and branch.command.kind == "Cut" and branch.kernel is None
    found = branch.schedule
    assert found.cut == (edge.src,) and found.join == () and len(found.kernels) == 2
    assert [kernel.roots for kernel in found.kernels] == [(edge.src,), view.trace.kernels[0].roots]
    assert root.schedule.kernels[0].kernel == 0 and {kernel.kernel for kernel in found.kernels} == {None}
    assert found.peak_bytes == found.total_bytes == 64 * 100 * 4 and root.schedule.peak_bytes == 0
    assert found.bytes_moved > root.schedule.bytes_moved
    assert found.times_us and len(found.times_us) == len(found.base_times_us)
    assert found.low_us <= found.median_us <= found.high_us
    assert [check.same for check in found.outputs] == [True]
    told = {decision.node: decision for decision in found.decisions}
    assert (told[edge.src].decision, told[edge.src].reason) == ("realize", "you cut here")
    again = next(e for e in view.fusion.edges(branch) if (e.src, e.dst) == (edge.src, edge.dst))
    assert again.mark == "cut" and "already cut: you cut here" in again.against_cut and again.against_join == ""
    assert view.fusion.leave(edge.src) == root and view.fusion.branch() == root


def test_a_change_lists_the_kernels_that_appeared_and_vanished(view):
    scores = edge_of(view, "REDUCE_AXIS", "cut")
    branch = view.fusion.join(scores)
    change = view.fusion.compare(branch)
    assert change.before == view.fusion.branches()[0].schedule and change.after == branch.schedule
    assert len(change.before.kernels) == len(change.kept) + len(change.vanished)
    assert len(change.after.kernels) == len(change.kept) + len(change.appeared)
    assert change.vanished and change.appeared
    assert len(change.after.kernels) < len(change.before.kernels)
    rows = {what: (before, after) for what, before, after in change.rows}
    assert rows["kernels"] == (str(len(change.before.kernels)), str(len(change.after.kernels)))
    assert change.after.peak_bytes < change.before.peak_bytes
    assert all(kernel.kernel is not None for _, kernel in change.kept)


def test_undo_returns_and_reuses_known_branches(view):
    edge = edge_of(view, "EXP")
    root = view.fusion.branches()[0]
    view.fusion.go(root)
    first = view.fusion.cut(edge)
    count = len(view.whatif.branches)
    assert view.fusion.undo() == root == view.fusion.branch()
    assert view.fusion.cut(edge.src) == first and len(view.whatif.branches) == count


def test_an_illegal_command_is_a_failed_branch_with_the_rule(view):
    trace, here = view.trace, view.fusion.branch()
    joined = edge_of(view, "EXPAND", "fused")
    branch = view.fusion.join(joined)
    assert branch.status == "failed" and "already joined" in branch.reason
    assert view.fusion.branch() == here
    read = next(e for e in view.fusion.edges() if e.mark == "read" and trace.nodes[e.src].op == "BUFFER")
    assert view.fusion.cut(read).reason == "already in memory"


def test_invalid_commands_raise_an_error(view):
    with pytest.raises(WhatIfError, match=r"an edge 0 → 0"):
        view.fusion.cut(0, 0)
    with pytest.raises(WhatIfError, match="no graph that can"):
        view.whatif.do(Cut(10_000, 0, 1))
    with pytest.raises(WhatIfError, match="came from a file"):
        Explorer(view.trace).fusion.cut(0, 1)


def test_each_rule_is_named():
    x = Tensor.rand(64, 32).realize()
    view = explore(lambda: [x.cumsum(1) * 2, (table := x * 3)[:, 1:3].contiguous() + table.sum()], repeat=1)
    nodes = view.trace.nodes
    against = {nodes[e.src].op: e.against_join for e in view.fusion.edges() if e.mark == "cut"}
    assert "a scan carries state" in against["SCAN_AXIS"]
    constants = [e for e in view.fusion.edges() if nodes[e.src].op == "CONST"]
    assert constants and all(edge.against_cut.startswith("a constant, ") for edge in constants)


def test_edges_of_copies_and_outputs_have_a_legality_error():
    x = Tensor.rand(8, 8, device="PYTHON").realize()
    view = explore(lambda: [y := x.to("LLVM") + 1, y.sum(0)], repeat=1, device="LLVM")
    nodes = view.trace.nodes
    against = {nodes[e.src].op: e.against_join for e in view.fusion.edges() if e.mark == "cut"}
    assert "copied from PYTHON to LLVM" in against["COPY"]
    assert "an output of the program: " in against["ADD"]


def test_of_several_schedules_each_edge_finds_its_own():
    x = Tensor.rand(16, 16).realize()

    def program():
        first = (x * 2).exp().sum(0).realize()
        return (first + 1).exp().sum()

    view = explore(program, repeat=1)
    assert len(view.fusion.schedules) == 2
    exps = [e for e in view.fusion.edges() if view.trace.nodes[e.src].op == "EXP"]
    stages = [view.fusion.cut(e).schedule.stage for e in exps]
    assert stages == list(view.fusion.schedules)


def test_writes_in_place_are_preserved():
    x = Tensor.rand(16, 16).realize()

    def program():
        before = (x * 2).exp()
        x[2:4] = 7.0
        return [x, before.sum(0) + x.sum(0)]

    view = explore(program, repeat=1)
    for edge in view.fusion.edges():
        if not edge.against_cut:
            branch = view.fusion.cut(edge, branch=view.fusion.branches()[0] if view.fusion.branches() else None)
            assert branch.status == "done" and all(check.same for check in branch.schedule.outputs)


def test_schedules_that_run_too_long_are_compiled_only(monkeypatch):
    view = attention()
    scores = edge_of(view, "REDUCE_AXIS", "cut")
    monkeypatch.setattr(rescheduler, "MUCH_WORK", 1)
    monkeypatch.setattr(rescheduler, "MUCH_MORE", 1)
    branch = view.fusion.join(scores)
    assert branch.status == "done" and branch.reason.startswith("not run: the schedule")
    assert branch.schedule.median_us is None and branch.schedule.outputs == ()
    assert len(branch.schedule.kernels) == 2


def test_other_results_are_a_branch_that_failed(monkeypatch):
    view = softmax()
    view.fusion.branch()
    monkeypatch.setattr(rescheduler, "differ", lambda *values: True)
    branch = view.fusion.cut(edge_of(view, "EXP"))
    assert branch.status == "failed" and "its results differ" in branch.reason
    assert branch.schedule is not None and not branch.schedule.outputs[0].same


def test_a_branch_is_a_trace_of_its_own(view):
    branch = view.fusion.cut(edge_of(view, "EXP"), branch=view.fusion.branches()[0])
    trace = view.whatif.trace_of(branch)
    assert len(trace.kernels) == len(branch.schedule.kernels)
    assert [kernel.name for kernel in trace.kernels] == [kernel.name for kernel in branch.schedule.kernels]
    assert any(stage.steps for stage in trace.stages) and trace.runs


def test_branches_are_saved_in_the_file_and_loaded(tmp_path, view):
    view.fusion.cut(edge_of(view, "EXP"), branch=view.fusion.branches()[0])
    trace = Trace.load(view.save(tmp_path / "trace.json.gz"))
    assert trace.branches == view.trace.branches
    board = Explorer(trace).fusion
    last = [branch for branch in board.branches() if branch.status == "done"][-1]
    assert board.edges(last) == view.fusion.edges(last.id)
    assert str(board.compare(last)) == str(view.fusion.compare(last))
    assert board.schedules == ()


def test_the_commands_of_one_capture_are_replayed_on_another():
    first, second = softmax(), softmax()
    first.fusion.cut(edge_of(first, "EXP"))
    made = second.whatif.replay(first.whatif.branches)
    assert [branch.schedule.cut for branch in made] == [branch.schedule.cut for branch in first.whatif.branches]


@pytest.mark.parametrize("seed", range(3))
def test_a_small_network_computes_the_same_wherever_it_is_cut_or_joined(seed):
    Tensor.manual_seed(seed)
    x = Tensor.rand(4, 3, 12, 12).realize()
    layer, scale = nn.Conv2d(3, 8, 3), nn.LayerNorm(8 * 5 * 5)

    def program():
        return scale(layer(x).relu().max_pool2d().flatten(1)).softmax()

    view = explore(program, repeat=1)
    chance = random.Random(seed)
    edges = [e for e in view.fusion.edges() if not (e.against_cut and e.against_join)]
    for edge in chance.sample(edges, 6):
        now = view.fusion.edge(edge.src, edge.dst, view.fusion.branch())
        if now.against_cut and now.against_join:
            continue
        branch = view.fusion.join(now) if now.against_cut else view.fusion.cut(now)
        assert branch.status == "done", branch.reason
        assert all(check.same for check in branch.schedule.outputs) and branch.schedule.outputs
    assert np.isfinite(view.result.numpy()).all()


def test_a_join_that_repeats_a_reduction_counts_the_executed_operations() -> None:
    """The operations are those of the programs, so that repeated work is in the count."""
    x, w = Tensor.rand(64, 32).realize(), Tensor.rand(32, 32).realize()
    view = explore(lambda: (x @ w) @ w, repeat=1)
    edge = next(one for one in view.fusion.edges() if one.mark == "cut" and one.against_join == "")
    joined = view.fusion.join(edge)
    change = view.fusion.compare(joined)
    before, after = (sum(kernel.flops for kernel in side.kernels) for side in (change.before, change.after))
    assert before == 2 * (2 * 64 * 32 * 32)
    assert len(joined.schedule.kernels) == 1 and after > before
    (check,) = joined.schedule.outputs
    assert check.same and check.dtype == "float32" and check.tolerance == 1e-3
    assert 0 <= check.difference <= check.tolerance * check.magnitude
