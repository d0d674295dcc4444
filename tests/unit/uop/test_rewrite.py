"""UOps are interned; rules are values; rewriting reaches a fixed point, records every step, and terminates."""

from __future__ import annotations

import math
import pickle

import pytest

from tinyexplore.dtype import dtypes
from tinyexplore.trace import NodeRebuilt, Recorder, RuleApplied, StageBegan, StageEnded, recording
from tinyexplore.uop import (
    Axis,
    AxisKind,
    Ops,
    PatternMatcher,
    RewriteError,
    UOp,
    UPat,
    cvar,
    graph_rewrite,
    index_const,
    law,
    rule,
    var,
)
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.pattern import _compile_text

x, y, c = var("x"), var("y"), cvar("c")


def variable(name: str, low: int = 0, high: int = 100) -> UOp:
    return UOp(Ops.DEFINE_VAR, dtypes.index, (), (name, low, high))


A, B = variable("a"), variable("b")
AXIS = UOp.range(12, Axis(0, AxisKind.GLOBAL))


def simplified(expr: UOp) -> UOp:
    return graph_rewrite(expr, SIMPLIFY)


def test_equal_content_is_the_same_object() -> None:
    assert A + B is A + B
    assert UOp.const(dtypes.float32, 1) is UOp.const(dtypes.float32, 1.0)
    assert UOp.const(dtypes.float32, math.nan) is UOp.const(dtypes.float32, float("nan"))
    assert UOp.const(dtypes.float32, 0.0) is not UOp.const(dtypes.float32, -0.0)
    assert pickle.loads(pickle.dumps(A + B)) is A + B


def test_digests_name_content() -> None:
    assert (A + B).digest == (A + B).digest != (B + A).digest


def test_a_law_prints_as_it_reads_and_builds_its_right_side() -> None:
    twice = law("twice", x + x, x * 2)
    assert twice.law == "x + x  →  x * 2"
    assert twice(A + A) is A * 2
    assert twice(A + B) is None


def test_a_commutative_pattern_matches_both_orders() -> None:
    found = law("mul_one", x * 1, x)
    assert found(A * 1) is A
    assert found(index_const(1) * A) is A


def test_a_pattern_may_keep_the_order_of_commutative_sources() -> None:
    @rule(UPat.of(Ops.ADD, c, x, in_order=True))
    def first(c: UOp, x: UOp) -> UOp:
        return x

    assert first(index_const(3) + A) is A
    assert first(A + 3) is None
    table = PatternMatcher([first, *SIMPLIFY.rules])
    assert first not in [found for found, _, _ in table.candidates(A + 3)]
    assert first in [found for found, _, _ in table.candidates(index_const(3) + A)]


def test_a_rule_is_a_candidate_only_if_its_constant_may_match() -> None:
    def tried(node: UOp) -> set[str]:
        return {found.name for found, _, _ in SIMPLIFY.candidates(node)} & {"mul_one", "mul_zero"}

    assert [tried(A * number) for number in (1, 0, 3)] == [{"mul_one"}, {"mul_zero"}, set()]
    assert tried(index_const(3) * A) == {"mul_one", "mul_zero"}  # only a constant on the right is compared


def test_a_rule_with_a_name_that_its_pattern_lacks_is_refused() -> None:
    @rule(x + c)
    def wrong(z: UOp) -> UOp:
        return z

    with pytest.raises(TypeError, match="names no 'z'"):
        wrong(A + 1)


def test_every_firing_and_every_rebuilt_node_is_recorded() -> None:
    table = PatternMatcher((law("mul_one", x * 1, x),))
    recorder = Recorder()
    with recording(recorder):
        after = graph_rewrite((A * 1) + B, table, stage="tidy")
    assert after is A + B
    kinds = [type(event) for event in recorder.events]
    assert kinds == [StageBegan, RuleApplied, NodeRebuilt, StageEnded]
    assert recorder.events[1] == RuleApplied(table.rules[0], A * 1, A)
    assert recorder.events[2] == NodeRebuilt((A * 1) + B, A + B)


def test_rules_that_undo_each_other_are_named() -> None:
    @rule(UPat.of(Ops.ADD, x, y))
    def swap(x: UOp, y: UOp) -> UOp:
        """The other way round, for ever."""
        return y + x

    with pytest.raises(RewriteError, match="the last rule was swap"):
        graph_rewrite(A + B, PatternMatcher((swap,)))


def test_rules_that_make_ever_more_of_a_node_are_stopped() -> None:
    @rule(UPat.of(Ops.ADD, x, c))
    def more(x: UOp, c: UOp) -> UOp:
        """One more each time."""
        return x + (c.arg + 1)

    with pytest.raises(RewriteError, match="without an end; .*more"):
        graph_rewrite(A + 1, PatternMatcher((more,)))


def test_a_law_cannot_use_an_unmatched_variable() -> None:
    with pytest.raises(TypeError, match=r"names z, which x \+ x"):
        law("from_nowhere", x + x, var("z") * 2)


def test_a_law_may_hold_only_where_its_condition_says() -> None:
    def is_even(c: UOp) -> bool:
        """For even numbers."""
        return c.arg % 2 == 0

    halves = law("halves", x * c, x + x, when=is_even)
    assert halves(A * 4) is A + A and halves(A * 3) is None
    assert halves.doc == "For even numbers."


def test_a_rule_that_raises_is_named_in_the_traceback() -> None:
    @rule(UPat.of(Ops.ADD, x, y))
    def breaks(x: UOp, y: UOp) -> UOp:
        """Fails."""
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        graph_rewrite(A + B, PatternMatcher((breaks,)))
    assert "in rule breaks" in caught.value.__dict__["__notes__"][0]


def test_rules_of_one_form_share_their_text_and_nothing_else() -> None:
    """Patterns are compiled when they are first tried; those that differ in what they ask for only, once."""
    at_least = law("at_least", x.maximum(3), x)
    at_most = law("at_most", x.minimum(7), x)
    three, seven = A.alu(Ops.MAX, index_const(3)), A.alu(Ops.MIN, index_const(7))
    _compile_text.cache_clear()
    assert (at_least(three), at_most(seven)) == (A, A)
    assert at_least(A.alu(Ops.MAX, index_const(7))) is None and at_least(seven) is None
    assert _compile_text.cache_info().misses == 1
    names = [rule.matchers[None].__code__.co_filename for rule in (at_least, at_most)]
    assert names == ["<matcher of at_least>", "<matcher of at_most>"]


def test_a_chain_of_100_000_nodes_is_rewritten_without_recursion() -> None:
    expr = A
    for _ in range(100_000):
        expr = (expr * 1).alu(Ops.MAX, B)
    assert len(graph_rewrite(expr, PatternMatcher((law("mul_one", x * 1, x),))).toposort()) == 100_002


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (A + 3 + 4, A + 7),
        (A * 2 + B + A * 3, A * 5 + B),
        (A * 4 // 4, A),
        ((A * 8 + AXIS) // 4, A * 2 + AXIS // 4),
        ((A * 12 + AXIS) // 12, A),
        ((A * 12 + AXIS) % 12, AXIS),
        ((AXIS // 2) // 3, AXIS // 6),
        (AXIS < 12, UOp.const(dtypes.bool, True)),
        (AXIS + 5 < 5, UOp.const(dtypes.bool, False)),
        (AXIS + 3 < 9, AXIS < 6),
        (AXIS * 4 < 10, AXIS < 3),
        (index_const(2) < AXIS + 1, index_const(1) < AXIS),
        (A - A, index_const(0)),
        (AXIS % 16, AXIS),
        ((A * 6 + AXIS * 3) // 9, (A * 2 + AXIS) // 3),
    ],
)
def test_index_arithmetic_is_simplified(expr: UOp, expected: UOp) -> None:
    assert simplified(expr) is expected


def test_floats_keep_their_signed_zeros_and_nans() -> None:
    f = UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.DEFINE_GLOBAL, dtypes.float32, (), 0),))
    for kept in (f * 0.0, f + 0.0, f.alu(Ops.FDIV, f)):
        assert simplified(kept) is kept
    assert simplified(f * 1.0) is f
