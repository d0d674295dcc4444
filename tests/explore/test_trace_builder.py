"""Events become a Trace."""

from __future__ import annotations

import math
import time

import pytest

from tests.explore import toy
from tinyexplore.dtype import dtypes
from tinyexplore.explore.recording.descriptions import expr_text
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import (
    BufferAllocated,
    BufferFreed,
    CandidateMeasured,
    NodeRebuilt,
    Recorder,
    RuleApplied,
    ScheduleDecided,
    StageBegan,
    StageEnded,
    UserFrame,
    recording,
)
from tinyexplore.uop import Ops, UOp, graph_rewrite


def test_ids_are_dense_and_sources_come_first():
    trace = toy.trace()
    for table in (trace.nodes, trace.rules, trace.stages, trace.frames, trace.sources, trace.kernels):
        assert [entry.id for entry in table] == list(range(len(table)))
    for node in trace.nodes:
        assert all(source < node.id for source in node.src)


def test_every_firing_is_a_step_that_names_its_rule():
    trace = toy.trace()
    (stage,) = trace.stages
    fired = [trace.rules[step.rule].name for step in stage.steps if step.rule is not None]
    assert fired == ["mul_one", "add_zero", "mul_one", "add_zero"]


def test_a_stage_leads_from_its_first_root_to_its_last():
    trace = toy.trace()
    (stage,) = trace.stages
    before, after = (trace.nodes[root] for (root,) in (stage.before, stage.after))
    assert (stage.name, stage.kernel, before.op, after.op) == ("simplify", 0, "SINK", "SINK")
    assert UopDigests().of(toy.row_sum()) == before.digest
    assert UopDigests().of(graph_rewrite(toy.row_sum(), toy.TABLE)) == after.digest


def test_a_law_and_a_decorated_rule_bring_their_source_code():
    recorder = Recorder()
    with recording(recorder):
        graph_rewrite(UOp.const(dtypes.int32, 1) + UOp.const(dtypes.int32, 2), toy.TABLE)
        graph_rewrite(toy.row_sum(), toy.TABLE)
    texts = {rule.name: (rule.text, rule.file) for rule in build_trace(recorder).rules}
    assert texts == {
        "mul_one": ('mul_one = law("mul_one", x * 1, x)', "tests/explore/toy.py"),
        "add_zero": ('add_zero = law(\n    "add_zero",\n    x + 0,\n    x,\n)', "tests/explore/toy.py"),
        "fold_add": (
            "@rule(c1 + c2)\ndef fold_add(c1, c2):\n"
            '    """Two constants add at compile time."""\n'
            "    return UOp.const(c1.dtype, c1.arg + c2.arg)",
            "tests/explore/toy.py",
        ),
    }


def test_the_users_lines_are_copied_in():
    trace = toy.trace()
    (line,) = {trace.frames[node.user].line for node in trace.nodes if node.op == "REDUCE_AXIS"}
    text = trace.sources[0].text.splitlines()[line - 1]
    assert text.strip().startswith("total = values.reduce")
    assert trace.sources[0].name == "tests/explore/toy.py"


def test_digests_are_equal_for_equal_content():
    first, second = toy.trace(), toy.trace()
    assert [node.digest for node in first.nodes] == [node.digest for node in second.nodes]
    assert len({node.digest for node in first.nodes}) == len(first.nodes)


def test_nodes_built_below_a_rules_result_have_links_too():
    value = UOp(Ops.DEFINE_VAR, dtypes.index, (), ("n", 0, 9))
    before = value * 4
    inner = value + value
    recorder = Recorder()
    recorder.record(StageBegan("double", before, 0))
    recorder.record(RuleApplied(toy.mul_one, before, inner + inner))
    recorder.record(StageEnded("double", inner + inner, 0.0))
    trace = build_trace(recorder)
    by_text = {node.detail: node.id for node in trace.nodes}
    before_id = by_text["n*4"]
    made = {by_text[expr_text(inner)], by_text[expr_text(inner + inner)]}
    assert {(link.src, link.dst) for link in trace.links} == {(before_id, node) for node in made}


def test_a_stage_without_steps_is_aligned_by_position():
    before = toy.row_sum()
    after = graph_rewrite(before, toy.TABLE)
    recorder = Recorder()
    recorder.record(StageBegan("by hand", before, 0))
    recorder.record(StageEnded("by hand", after, 0.0))
    trace = build_trace(recorder)
    made = {node.id for node in trace.nodes} - set(range(trace.stages[0].before[0] + 1))
    assert made == {link.dst for link in trace.links}
    assert {link.how for link in trace.links} == {"by hand"}


def test_open_stages_are_closed_with_a_message():
    recorder = Recorder()
    recorder.record(StageBegan("schedule", (), None))
    recorder.record(StageBegan("kernel", toy.row_sum(), 0))
    error = ("error", "ValueError: no", UserFrame(__file__, 3, "f"))
    trace = build_trace(recorder, messages=[error])
    assert [(stage.name, stage.parent) for stage in trace.stages] == [("schedule", None), ("kernel", 0)]
    assert [(message.level, message.text) for message in trace.messages] == [
        ("warning", 'the recording ended inside stage "kernel"'),
        ("warning", 'the recording ended inside stage "schedule"'),
        ("error", "ValueError: no"),
    ]
    frame = trace.frames[trace.messages[-1].frame]
    assert (trace.sources[frame.source].name, frame.line) == ("tests/explore/test_trace_builder.py", 3)


def test_a_stage_that_ends_closes_the_stages_left_open_inside_it():
    recorder = Recorder()
    recorder.record(StageBegan("outer", None, None))
    recorder.record(StageBegan("inner", None, None))
    recorder.record(StageEnded("outer", None, 0.0))
    recorder.record(StageBegan("next", None, None))
    recorder.record(StageEnded("next", None, 0.0))
    trace = build_trace(recorder)
    assert [(stage.name, stage.parent) for stage in trace.stages] == [("outer", None), ("inner", 0), ("next", None)]
    assert trace.messages == ()


def test_a_realized_lazybuffer_has_its_recorded_sources():
    recorder = Recorder()
    total = toy.record(recorder)
    total.src = ()
    trace = build_trace(recorder)
    (node,) = [node for node in trace.nodes if node.op == "REDUCE_AXIS"]
    assert [trace.nodes[source].op for source in node.src] == ["IOTA"]


def test_decisions_and_candidates_belong_to_their_stage():
    class Candidate:
        applied = ("UPCAST(0, 4)",)

    recorder = Recorder()
    with recording(recorder):
        values = LazyBuffer.iota(4, dtypes.int32, "PYTHON")
        recorder.record(StageBegan("schedule", (values,), None))
        recorder.record(ScheduleDecided(values, "realize", "an output"))
        recorder.record(CandidateMeasured(Candidate(), 2e-6))
        recorder.record(CandidateMeasured(Candidate(), math.inf))
        recorder.record(StageEnded("schedule", (), 0.0))
    (stage,) = build_trace(recorder).stages
    assert [(decision.decision, decision.reason) for decision in stage.decisions] == [("realize", "an output")]
    assert [(candidate.opts, candidate.best_us) for candidate in stage.candidates] == [
        (("UPCAST(0, 4)",), 2.0),
        (("UPCAST(0, 4)",), None),
    ]


def test_buffers_live_from_allocated_to_freed():
    from tinyexplore.device.buffer import BufferKey

    first, second = BufferKey(1, "PYTHON", dtypes.float32, 4), BufferKey(2, "PYTHON", dtypes.int8, 3)
    recorder = Recorder()
    for event in (BufferAllocated(first), BufferAllocated(second), BufferFreed(first)):
        recorder.record(event)
    lives = build_trace(recorder).buffers
    assert [(buffer.id, buffer.dtype, buffer.bytes) for buffer in lives] == [(0, "float32", 16), (1, "int8", 3)]
    assert lives[0].freed_us >= lives[0].allocated_us == 0.0
    assert lives[1].freed_us is None


@pytest.mark.parametrize("firings", [10_000])
def test_building_is_linear_in_firings(firings):
    def seconds(count: int) -> float:
        recorder = Recorder()
        old = UOp(Ops.DEFINE_VAR, dtypes.index, (), ("n", 0, 9))
        recorder.record(StageBegan("chain", old, 0))
        for number in range(count):
            middle = old + number
            recorder.record(NodeRebuilt(old, middle))
            recorder.record(RuleApplied(toy.add_zero, middle, middle * 3))
            old = middle * 3
        started = time.thread_time()  # whatever else the machine does
        trace = build_trace(recorder)
        assert sum(step.rule is not None for step in trace.stages[0].steps) == count
        return time.thread_time() - started

    small, large = (min(seconds(count) for _ in range(3)) for count in (firings // 10, firings))
    assert large < 30 * max(small, 0.005), f"{firings // 10} firings {small:.3f} s, {firings} firings {large:.3f} s"
