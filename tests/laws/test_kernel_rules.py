"""Each rule about memory, loops and lanes preserves the results of a kernel piece, fired alone at least 100 times."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.laws.kernel_rules import LAWS, Law, Pieces
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, Rule, UOp

FIRINGS = 100
MAX_TRIES = 1000
EACH = pytest.mark.parametrize(("rule", "law"), [pytest.param(rule, law, id=rule.name) for rule, law in LAWS.items()])


def firings(rule: Rule, law: Law) -> int:
    """How often `rule` fires where its law is tried. AssertionError where the law is false."""
    pieces = Pieces(rule.name)
    fired = 0
    for _ in range(MAX_TRIES):
        pieces.memory.clear()
        fired += law(rule, pieces)
        if fired == FIRINGS:
            break
    return fired


@EACH
def test_a_rule_preserves_the_meaning_of_a_kernel_fragment(rule: Rule, law: Law) -> None:
    assert firings(rule, law) == FIRINGS


OTHER = {Ops.ADD: Ops.MUL, Ops.MUL: Ops.ADD, Ops.MAX: Ops.MIN, Ops.MIN: Ops.MAX}


def changes(node: UOp) -> list[UOp]:
    """`node` with one small fault each."""
    if node.op is Ops.CONST:
        of_bool = node.dtype.scalar is dtypes.bool
        return [node.replace(arg=not node.arg if of_bool else node.arg + 1 if node.arg == node.arg else 0)]
    if node.op in OTHER:
        return [node.replace(op=OTHER[node.op])]
    if node.op is Ops.GEP and node.arg is not None:
        return [node.replace(arg=(node.arg + 1) % node.src[0].dtype.count)]
    if node.op in (Ops.SINK, Ops.BARRIER) and len(node.src) > 1:
        return [node.replace(src=node.src[1:])]
    if node.op is Ops.VECTORIZE and len(set(node.src)) > 1:
        return [node.replace(src=node.src[::-1])]
    return []


class Faulty:
    """A rule that makes one fault in what it gives."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.random, self.pattern = rule, Random(rule.name), rule.pattern

    def __call__(self, *given: Any) -> UOp | None:
        after = self.rule(*given)
        if after is None:
            return None
        faults = [(node, fault) for node in after.toposort() for fault in changes(node)]
        if not faults:
            return UOp.const(after.dtype, 0) if isinstance(after.dtype, DType) else after
        node, fault = self.random.choice(faults)
        return after.substitute({node: fault}) if node is not after else fault


FIRED_OTHERWISE = {"fp8_moves_as_byte"}  # by a table of rules


@EACH
def test_a_law_finds_a_faulty_rule(rule: Rule, law: Law) -> None:
    """A fault now and then does not matter: that of a value which is not chosen."""
    if rule.name in FIRED_OTHERWISE:
        return
    pieces, faulty, found = Pieces(rule.name), Faulty(rule), 0
    for _ in range(20):
        pieces.memory.clear()
        try:
            law(faulty, pieces)  # type: ignore[arg-type]
        except (AssertionError, IndexError, KeyError, AttributeError, ValueError):
            found += 1
    assert found >= 5
