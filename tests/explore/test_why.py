"""Why a rule fires or not: the explanation agrees with the compiled matcher, and names the mismatch."""

from __future__ import annotations

import sys

import pytest

from tests.golden.machines import MACHINES, opened
from tests.golden.programs import PROGRAMS, TRACED
from tinyexplore import Tensor
from tinyexplore.device import Device
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.explore import Explorer, Trace, capture, could_fire, explore, why_not
from tinyexplore.explore.analysis.explanations.match_attempts import match_rule
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuildError, RebuiltUOps
from tinyexplore.explore.analysis.explanations.rules import Explainer, context_of, explainer, settings_of, tables
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.uop import Axis, AxisKind, Ops, PatternMatcher, UOp, UPat, cvar, law, rule, var
from tinyexplore.util import Context

x, c, d = var("x"), cvar("c"), cvar("d")
DATA = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 64), (), 1)
LOOP = UOp.range(64, Axis(0, AxisKind.GLOBAL))
LOAD = UOp(Ops.LOAD, dtypes.float32, (DATA.index(LOOP),))


def with_even(x: UOp, number: int) -> UOp | None:
    if number % 2:
        return None
    return x


@rule(x * c)
def halved(x, c):
    """An even number times x."""
    return with_even(x, c.arg)


@rule(UPat.of(Ops.ADD, x, x))
def itself(root, x):
    """Nothing to do."""
    return root


@rule(UPat.of(Ops.ADD, x, c))
def told(x, c, ctx):
    """Asks the pass."""
    return x if ctx == "told" else None


MUL_ONE = law("mul_one", x * 1, x)
SQUARED = law("squared", x * x, x)
SMALL = law("small", UPat.of(Ops.ADD, x, cvar("c", [dtypes.int32])), x)
PICKY = law("picky", x * c, x, when=lambda c: c.arg > 7)
DEEP = law("deep", (x + c) + d, x)


# *** one rule, one node ***


def test_a_mismatched_operation_is_named_with_the_actual_one():
    tried = why_not(MUL_ONE, LOAD * LOAD)
    assert (tried.verdict, tried.passed, tried.parts) == ("stopped", 2, 3)
    assert tried.mismatch.kind == "operation" and tried.mismatch.path == (1,)
    assert (tried.mismatch.expected, tried.mismatch.actual) == ("CONST 1", "LOAD data1[g0]")
    assert "CONST 1; found LOAD data1[g0]" in str(tried)


def test_another_constant_is_nearer_than_another_operation():
    tried = why_not(MUL_ONE, UOp.const(dtypes.float32, 3.0) * LOAD)
    assert tried.mismatch.kind == "argument" and tried.mismatch.path == (0,)
    assert (tried.mismatch.expected, tried.mismatch.actual) == ("1", "3.0")


def test_the_order_of_a_commutative_operation_that_gets_furthest_counts():
    one = UOp.const(dtypes.float32, 2.0)
    tried = why_not(DEEP, UOp(Ops.ADD, dtypes.float32, (one, UOp(Ops.ADD, dtypes.float32, (LOAD, LOAD)))))
    assert (tried.passed, tried.parts) == (3, 5)
    assert tried.mismatch.path == (1, 1) and tried.mismatch.expected == "CONST"


def test_a_node_that_should_be_the_same_again():
    other = UOp(Ops.LOAD, dtypes.float32, (DATA.index(LOOP + 1),))
    tried = why_not(SQUARED, LOAD * other)
    assert tried.mismatch.kind == "another node"
    assert (tried.mismatch.expected, tried.mismatch.actual) == ("x again: LOAD data1[g0]", "LOAD data1[g0 + 1]")
    assert why_not(SQUARED, LOAD * LOAD).verdict == "fires"


def test_a_type_and_a_number_of_sources():
    tried = why_not(SMALL, LOAD + 1.0)
    assert tried.mismatch.kind == "type"
    assert (tried.mismatch.expected, tried.mismatch.actual) == ("int32", "float32 (CONST 1.0)")
    two = law("two", UPat.of(Ops.STORE, var("a"), var("b")), var("a"))
    guarded = UOp(Ops.STORE, dtypes.void, (DATA.index(LOOP), LOAD, LOOP))
    assert (why_not(two, guarded).mismatch.expected, why_not(two, guarded).mismatch.actual) == ("2 sources", "3")


def test_a_function_that_declines_shows_its_line_and_values_innermost_first():
    tried = why_not(halved, LOAD * 3.0)
    assert tried.mismatch.kind == "function" and tried.passed == tried.parts
    inner, outer = tried.mismatch.places
    assert (inner.function, inner.because, inner.text) == ("with_even", "if number % 2:", "return None")
    assert inner.values == (("number", "3.0"),)
    assert (outer.function, outer.text) == ("halved", "return with_even(x, c.arg)")
    assert outer.values == (("x", "LOAD data1[g0]"), ("c", "CONST 3.0"))
    assert tried.bound == (("x", "LOAD data1[g0]"), ("c", "CONST 3.0"))
    assert "test_why.py" in str(tried) and "number = 3.0" in str(tried)
    (place,) = why_not(PICKY, LOAD * 2.0).mismatch.places
    assert place.values == (("c", "CONST 2.0"),)


def test_a_bare_return_shows_the_condition_above_it():
    @rule(x * c)
    def guarded(x, c):
        if c.arg < 10:
            return None
        return x

    (place,) = why_not(guarded, LOAD * 2.0).mismatch.places
    assert (place.because, place.text) == ("if c.arg < 10:", "return None")
    assert place.line == guarded.line + 3


def test_an_earlier_trace_function_is_restored():
    def tracer(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        why_not(halved, LOAD * 3.0)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_a_rule_that_changes_nothing_needs_a_context_or_raises_is_reported():
    assert why_not(itself, LOAD + LOAD).mismatch.kind == "nothing new"
    tried = why_not(told, LOAD + 1.0)
    assert tried.verdict == "unknown" and "told needs" in tried.mismatch.actual
    assert why_not(told, LOAD + 1.0, ctx="told").verdict == "fires"
    assert why_not(told, LOAD + 1.0, ctx="else").mismatch.kind == "function"

    @rule(x * c)
    def breaks(x, c):
        raise ZeroDivisionError(c.arg)

    assert why_not(breaks, LOAD * 2.0).mismatch.actual == "ZeroDivisionError: 2.0"


def test_rules_are_found_by_name_and_by_root_operation():
    number = UOp(Ops.CAST, dtypes.int32, (LOAD,))
    product = UOp(Ops.MUL, dtypes.int32, (number, UOp.const(dtypes.int32, 1)))
    assert why_not("mul_one", product).verdict == "fires"
    first, *rest = could_fire(product, "simplify")
    assert (first.rule, first.first, first.after) == ("mul_one", True, "CAST int32(data1[g0])")
    assert not any(one.first for one in rest)
    assert "mul_one" in [one.rule for one in could_fire(product)]
    assert could_fire(LOAD, "simplify") == ()
    with pytest.raises(ValueError, match="no rule 'mul_two'"):
        why_not("mul_two", product)
    with pytest.raises(ValueError, match="no pass 'nothing' .*: split axes, simplify"):
        could_fire(product, "nothing")


# *** the compiled matcher, on everything recorded ***


def nodes_of_stage(trace: Trace, stage, rebuilt: RebuiltUOps) -> set[UOp]:
    found = {rebuilt.uop(node) for step in stage.steps for node in (step.before, step.after)}
    for root in (*stage.before, *stage.after):
        found.update(rebuilt.uop(root).toposort())
    return found


@pytest.mark.parametrize("name", TRACED)
def test_explained_as_firing_is_firing_on_every_node_of_the_golden_traces(name: str):
    with opened(MACHINES[1]):
        with capture(title=name) as session:
            PROGRAMS[name]()
        trace = session.trace
        rebuilt = RebuiltUOps(trace)
        known = {node.id: rebuilt.uop(node.id) for node in trace.nodes if node.kind == "uop"}
        digests = UopDigests()
        assert all(digests.of(uop) == trace.nodes[node].digest for node, uop in known.items())
        asked: set[tuple[str, UOp]] = set()
        fired = 0
        for stage in trace.stages:
            table = tables().get(stage.name, PatternMatcher(()))
            fresh = (
                {(stage.name, node) for node in nodes_of_stage(trace, stage, rebuilt)} - asked if table.rules else ()
            )
            ctx = context_of(trace, stage, rebuilt)
            for _, node in fresh:
                for one in table.rules:
                    if one.pattern.ops is None or node.op in one.pattern.ops:
                        found = match_rule(one, node, ctx, places=False)
                        assert (one(node, ctx) is None) == (found.after is None), (stage.name, one.name, node)
                        assert (found.after is None) == (found.mismatch is not None)
                        fired += found.after is not None
            asked.update(fresh)
    assert asked and (fired or not any(step.rule is not None for stage in trace.stages for step in stage.steps))


# *** a trace ***


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w = Tensor.rand(16, 32).realize(), Tensor.rand(32, 24).realize()
    return explore(lambda: (x @ w).softmax(), repeat=1)


def test_the_recorded_rule_is_the_first_that_fires(view: Explorer):
    asked = Explainer(view.trace)
    seen = 0
    for stage in view.trace.stages:
        if stage.name not in tables():
            continue
        for number, step in enumerate(stage.steps):
            if step.rule is not None and seen < 60:
                found = asked.why_not(step.before, stage, number)
                if found.note:
                    continue  # the engine made it and replaced it before it was in any graph
                assert found.could[0].rule == view.trace.rules[step.rule].name and found.could[0].first
                assert (number + 1, found.could[0].rule) in [(one.step, one.rule) for one in found.fired]
                seen += 1
    assert seen > 20


def test_a_legality_error_names_a_node_of_the_graph(view: Explorer):
    trace = view.trace
    stage = next(one for one in trace.stages if one.name == "simplify")
    add = next(node for node in view.trace.where(op="ADD") if node.id in _graph(trace, stage))
    found = view.why_not(add, stage=stage.id, step=0)
    assert found.stopped and all(one.verdict == "stopped" for one in found.stopped)
    for one in found.stopped:
        at = add.id
        for source in one.mismatch.path:
            at = trace.nodes[at].src[source]
        assert one.at == at
    misses = [one.parts - one.passed for one in found.stopped]
    assert misses == sorted(misses)
    assert found[found.stopped[0].rule] is found.stopped[0]
    with pytest.raises(KeyError, match=f"no rule 'nothing' .*{found.what[:5]}"):
        found["nothing"]


def _graph(trace: Trace, stage) -> set[int]:
    found, waiting = set(), list(stage.before)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += trace.nodes[node].src
    return found


def test_without_a_stage_the_first_pass_that_has_the_node_is_used(view: Explorer):
    node = view.trace.where(op="REDUCE")[0]
    found = view.why_not(node)
    assert found.name in tables() and found.node == node.id
    product = view.trace.where(op="MUL", kind="uop")[-1]
    assert not view.why_not(product).note
    view.selected = node
    assert view.why_not() == found
    only = view.why_not(node, found.stopped[0].rule)
    assert [one.rule for one in (*only.could, *only.stopped)] == [found.stopped[0].rule]


def test_a_transform_and_a_stage_without_rules_are_reported(view: Explorer):
    trace = view.trace
    stage = next(one for one in trace.stages if one.name == "linearize")
    found = view.why_not(stage.before[0], stage=stage.id)
    assert found.could == found.stopped == ()
    assert "linearize has no rules: " in found.note


def test_invalid_requests_raise_an_error(view: Explorer):
    stage = next(one for one in view.trace.stages if one.name == "simplify")
    lazy = view.trace.where(kind="lazybuffer")[0]
    with pytest.raises(RebuildError, match="is a LazyBuffer: rules are about UOps"):
        view.why_not(lazy, stage=stage.id)
    with pytest.raises(ValueError, match="this trace has nodes 0 … "):
        view.why_not(10**6, stage=stage.id)
    with pytest.raises(ValueError, match="no rule 'nothing' .*simplify"):
        view.why_not(stage.before[0], "nothing", stage=stage.id)


def test_settings_and_the_target_are_those_of_the_capture():
    with Context(TRANSCENDENTAL=2):
        trace = explore(lambda: Tensor.rand(64).realize().exp(), repeat=1).trace
    assert settings_of(trace)["TRANSCENDENTAL"] == 2
    stage = next(one for one in trace.stages if one.name == "transcendental functions")
    with Context(**settings_of(trace)):
        target = context_of(trace, stage, RebuiltUOps(trace))
    assert dtypes.float32 not in target.native_dtypes
    assert target.name == Device[Device.DEFAULT].target.name


def test_the_parts_of_a_pattern_have_the_nodes_of_their_comparison(view: Explorer):
    shown = 0
    for stage in [one for one in view.trace.stages if any(step.rule is not None for step in one.steps)][:6]:
        number, step = next((k, one) for k, one in enumerate(stage.steps) if one.rule is not None)
        found = explainer(view.trace).why_not(step.before, stage, number)
        for one in (*found.could, *found.stopped):
            states = [part.state for part in one.pattern]
            assert one.pattern[0].place == () and len(states) == one.parts
            assert all((part.actual == "") == (part.state == "not reached") for part in one.pattern)
            if one.verdict == "fires":
                assert set(states) == {"matched"}
                assert one.pattern[0].at == step.before
            elif one.mismatch.kind in ("operation", "type", "argument", "sources", "another node"):
                assert states.count("matched") == one.passed and states.count("differs") == 1
                (differs,) = [part for part in one.pattern if part.state == "differs"]
                assert one.at == differs.at or one.mismatch.path != differs.path
            shown += 1
    assert shown > 10


def test_an_opt_names_the_axis_that_it_splits_and_the_axes_that_it_makes(view: Explorer):
    opts = [opt for stage in view.trace.stages for opt in stage.opts if opt.applied]
    assert opts
    made = [name for opt in opts for name in opt.made]
    kernels = [{name for name, _, _ in kernel.axes} for kernel in view.trace.kernels]
    assert all(any(name in axes for axes in kernels) for name in made)
    assert all(opt.axis for opt in opts)
