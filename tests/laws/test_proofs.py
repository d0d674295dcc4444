"""z3 proves the rules of index arithmetic: each instance holds for every value of its leaves, not for samples.

An instance is made from the rule's own pattern, with sampled constants and bounds. It is translated to z3's integers,
where IDIV and MOD round towards 0. Equations of sums and products that hold for integers also hold modulo 2^64.
Instances with other operations count only if no operation in them can overflow 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import z3

from tests.laws.instances import Instances
from tests.laws.meaning import type_error, written
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, PatternMatcher, Rule, UOp
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.bounds import is_exact

PROOFS = 12  # of each rule
MAX_TRIES = 4000
KINDS = (dtypes.index, dtypes.bool)
MODULAR = {Ops.ADD, Ops.MUL, Ops.NEG, Ops.CONST, Ops.DEFINE_VAR, Ops.RANGE}
BINARY: dict[Ops, Callable[[Any, Any], Any]] = {
    Ops.ADD: lambda x, y: x + y,
    Ops.MUL: lambda x, y: x * y,
    Ops.IDIV: lambda x, y: truncated(x, y),
    Ops.MOD: lambda x, y: x - y * truncated(x, y),
    Ops.MAX: lambda x, y: z3.If(x > y, x, y),
    Ops.MIN: lambda x, y: z3.If(x < y, x, y),
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPLE: lambda x, y: x <= y,
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.CMPNE: lambda x, y: x != y,
}
OF_BOOLS: dict[Ops, Callable[[Any, Any], Any]] = {
    Ops.AND: lambda x, y: z3.And(x, y),
    Ops.OR: lambda x, y: z3.Or(x, y),
    Ops.XOR: lambda x, y: z3.Xor(x, y),
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.CMPNE: lambda x, y: x != y,
}


def truncated(x: Any, y: Any) -> Any:
    """x / y rounded towards 0; z3's quotient leaves a remainder that is not negative."""
    return z3.If(x >= 0, x / y, -(-x / y))


class Untranslatable(Exception):
    """An operation or a dtype that has no counterpart here."""


class Translation:
    """UOps as z3 terms; `conditions` are the bounds of their leaves, and that no divisor is 0."""

    def __init__(self) -> None:
        self.terms: dict[UOp, Any] = {}
        self.conditions: list[Any] = []

    def term(self, node: UOp) -> Any:
        for inner in node.toposort():
            if inner not in self.terms:
                self.terms[inner] = self._term(inner)
        return self.terms[node]

    def _term(self, node: UOp) -> Any:
        if node.dtype not in KINDS:
            raise Untranslatable(written(node))
        of_bool = node.dtype is dtypes.bool
        source = [self.terms[src] for src in node.src]
        match node.op:
            case Ops.CONST:
                return z3.BoolVal(bool(node.arg)) if of_bool else z3.IntVal(node.arg)
            case Ops.DEFINE_VAR | Ops.RANGE:
                name = node.arg[0] if node.op is Ops.DEFINE_VAR else f"r{node.arg.id}"
                if of_bool:
                    return z3.Bool(name)
                low, high = node.arg[1:] if node.op is Ops.DEFINE_VAR else (0, node.size - 1)
                term = z3.Int(name)
                self.conditions += [low <= term, term <= high]
                return term
            case Ops.NEG if not of_bool:
                return -source[0]
            case Ops.WHERE:
                return z3.If(*source)
        operations = OF_BOOLS if node.src and node.src[0].dtype is dtypes.bool else BINARY
        if node.op not in operations or (node.op in OF_BOOLS and node.op not in OpGroups.COMPARE and not of_bool):
            raise Untranslatable(written(node))
        if node.op in (Ops.IDIV, Ops.MOD):
            self.conditions.append(source[1] != 0)
        return operations[node.op](*source)


def cannot_wrap(node: UOp) -> bool:
    """Whether z3's integers have the same value as 64 bits in every part of `node`."""
    return all(is_exact(part) for part in node.toposort() if part.dtype is dtypes.index)


def proved(before: UOp, after: UOp) -> bool | None:
    """Whether z3 proves the two equal; None where they do not translate or z3 does not decide in time."""
    is_modular = all(part.op in MODULAR for part in (*before.toposort(), *after.toposort()))
    if not is_modular and not (cannot_wrap(before) and cannot_wrap(after)):
        return None
    translation = Translation()
    try:
        first, second = translation.term(before), translation.term(after)
    except Untranslatable:
        return None
    solver = z3.Solver()
    solver.set("timeout", 500)
    solver.add(*translation.conditions)
    solver.add((first - second) % (1 << 64) != 0 if is_modular else first != second)
    found = solver.check()
    assert found != z3.sat, f"{written(before)}  →  {written(after)} differ at {solver.model()}"
    return bool(found == z3.unsat)


class OfIndices(Instances):
    """Instances of indices and bools."""

    def of(self, pattern: Any) -> UOp | None:
        return self._match(pattern, self.random.choice(KINDS), {})

    def value(self, dtype: Any) -> Any:
        return self.random.random() < 0.5 if dtype is dtypes.bool else self.random.randint(-12, 60)


# rules of floats, of vectors and of casts
NOT_OF_INDICES = {"mul_one_float", "fdiv_one", "broadcast_constant", "cast_to_itself"}
RULES = [pytest.param(rule, id=rule.name) for rule in SIMPLIFY.rules if rule.name not in NOT_OF_INDICES]


def prove(rule: Rule) -> int:
    """How many instances of a rule z3 proves. AssertionError where one is false."""
    instances, proofs = OfIndices(rule.name), 0
    for _ in range(MAX_TRIES):
        before = instances.of(rule.pattern)
        if before is None or type_error(before) is not None:
            continue
        after = rule(before, None)
        proofs += after is not None and proved(before, after) is True
        if proofs == PROOFS:
            break
    return proofs


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_of_index_arithmetic_is_proved(rule: Rule) -> None:
    assert prove(rule) == PROOFS


def test_a_false_rule_is_refuted() -> None:
    from tinyexplore.uop import law, var

    x = var("x", (dtypes.index,))
    careless = PatternMatcher([law("halves", (x * 2) // 3 * 3, x * 2)])
    with pytest.raises(AssertionError, match="differ at"):
        prove(careless.rules[0])


def test_division_of_each_sign_is_translated() -> None:
    random, loop = Random(1), UOp.range(9, Axis(0, AxisKind.GLOBAL))
    for _ in range(20):
        shift, by = random.randint(-9, 9), random.choice((-3, -2, 2, 5))
        size = loop + shift
        rebuilt = size.alu(Ops.IDIV, UOp.const(dtypes.index, by)) * by + size.alu(Ops.MOD, UOp.const(dtypes.index, by))
        assert proved(rebuilt, size) is True
