"""Queries on a hand-made trace."""

from __future__ import annotations

import pytest

from tests.explore import toy
from tinyexplore.explore import diff, related, rewrite_history, user_lines, where
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.trace import Recorder, recording
from tinyexplore.uop import graph_rewrite


@pytest.fixture(scope="module")
def trace():
    return toy.trace()


def final(trace):
    return trace.nodes[trace.stages[0].after[0]]


def test_every_node_of_the_result_leads_back_to_the_lazybuffer(trace):
    reached = {final(trace).id}
    stack = [final(trace)]
    while stack:
        for source in stack.pop().src:
            if source not in reached:
                reached.add(source)
                stack.append(trace.nodes[source])
    for node in reached:
        assert [origin.op for origin in related(trace, node, "back", kind="lazybuffer")] == ["REDUCE_AXIS"]


def test_forward_is_the_inverse_of_back(trace):
    for node in trace.nodes:
        for origin in related(trace, node, "back"):
            assert node in related(trace, origin, "forward")


def test_the_users_line_is_where_the_lazybuffer_was_built(trace):
    (frame,) = user_lines(trace, final(trace))
    assert frame.function == "record"
    assert "values.reduce" in trace.sources[frame.source].text.splitlines()[frame.line - 1]


def test_a_rewrite_history_is_the_ordered_firings_that_led_to_a_node(trace):
    (load,) = [node for node in where(trace, op="LOAD") if node.detail == "data1[g0*4 + r1]"]
    told = [firing.rule.name if firing.rule else "rebuilt" for firing in rewrite_history(trace, load)]
    assert told == ["rebuilt", "rebuilt", "mul_one", "rebuilt", "add_zero"]
    numbers = [(firing.stage.id, firing.number) for firing in rewrite_history(trace, load)]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("conditions", "details"),
    [
        ({"op": "RANGE"}, ["g0 < 8 · global", "r1 < 4 · reduce"]),
        ({"kind": "lazybuffer", "dtype": "float32"}, ["4", "ADD over 0 → 1"]),
        ({"shape": (1,)}, ["ADD over 0 → 1"]),
        ({"text": r"^LOAD .*\+ 0\]$"}, ["data1[g0*4 + r1*1 + 0]"]),
        ({"op": "LOAD", "rule": "mul_one"}, ["data1[g0*4 + r1]"]),
        ({"op": "NONE"}, []),
    ],
)
def test_where_finds_nodes_that_meet_every_condition(trace, conditions, details):
    assert [node.detail for node in where(trace, **conditions)] == details


def test_where_by_a_users_line_returns_all_descendants(trace):
    line = next(
        number
        for number, text in enumerate(trace.sources[0].text.splitlines(), 1)
        if text.strip().startswith("total = values.reduce")
    )
    found = where(trace, user_line=line, op="STORE")
    assert [node.detail for node in found] == ["data0[g0]", "data0[g0]"]


def test_where_with_an_unknown_rule_names_those_that_fired(trace):
    with pytest.raises(ValueError, match=r"no rule 'mul_two' .*: add_zero, mul_one"):
        where(trace, rule="mul_two")


def test_a_trace_does_not_differ_from_itself(trace):
    found = diff(trace, toy.trace())
    assert found.same
    assert (found.options, found.first) == ((), None)


def test_the_first_difference_of_two_traces_is_the_first_different_stage(trace):
    recorder = Recorder()
    with recording(recorder):
        graph_rewrite(toy.row_sum(), toy.PatternMatcher([toy.mul_one]), stage="simplify", kernel=0)
    other = build_trace(recorder, options=(("DEVICE", "OTHER"),))
    found = diff(trace, other)
    assert not found.same
    assert (found.first.name, found.first.kernel) == ("simplify", 0)
    assert found.options == (("DEVICE", "PYTHON", "OTHER"),)
    assert {node.op for node in found.only_a} >= {"IOTA", "REDUCE_AXIS"}


def test_traces_and_their_differences_print_in_one_line(trace):
    tables = ("nodes", "rules", "stages", "links", "kernels", "programs", "runs", "buffers", "messages")
    counts = ", ".join(f"{len(getattr(trace, table))} {table}" for table in tables)
    assert repr(trace) == f"Trace('toy': {counts})" and len(trace.nodes) == 33
    assert repr(diff(trace, toy.trace())).startswith("TraceDiff(the same nodes")
