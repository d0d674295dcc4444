"""The check of equivalence: it finds counterexamples of wrong rules, and none of correct rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.rules import TRUE, WRONG, A, B, Case, F, G, f32, loop, read, total
from tinyexplore import Tensor, dtypes, explore, nn
from tinyexplore.explore.whatif.playground.equivalence import equivalent
from tinyexplore.explore.whatif.playground.firing_checks import check_firings
from tinyexplore.explore.whatif.playground.proof import can_prove
from tinyexplore.uop import Ops, UOp


def named(cases: tuple[Case, ...]) -> list:
    return [pytest.param(case, id=f"{number}-{case.rule.name}") for number, case in enumerate(cases)]


@pytest.mark.parametrize("case", named(WRONG))
def test_a_wrong_rule_gets_a_counterexample(case: Case) -> None:
    verdict = equivalent(case.before, case.after, tolerance=case.tolerance)
    assert verdict.status == "differs", verdict
    assert verdict.counterexample is not None
    assert verdict.counterexample.before != verdict.counterexample.after


@pytest.mark.parametrize("case", named(TRUE))
def test_a_correct_rule_has_no_counterexample(case: Case) -> None:
    verdict = equivalent(case.before, case.after, tolerance=case.tolerance)
    assert verdict.holds, verdict
    assert verdict.samples >= 6


def test_the_verdict_is_a_proof_with_z3_and_samples_without() -> None:
    integers = [case for case in TRUE if case.rule.name in ("minus_itself_int", "de_morgan", "quotient_of_digits")]
    for case in integers:
        verdict = equivalent(case.before, case.after)
        assert verdict.status == ("proved" if can_prove() else "agrees")
    floats = next(case for case in TRUE if case.rule.name == "twice")
    assert equivalent(floats.before, floats.after).status == "agrees"


def test_a_counterexample_names_its_inputs_and_is_minimal() -> None:
    case = WRONG[0]  # x % 8 as x & 7
    assert str(equivalent(case.before, case.after)) == "differs: g0 = 0, data1[0] = -1: -1 has become 7"


def test_types_and_lanes_must_be_the_same() -> None:
    assert str(equivalent(F, F.cast(dtypes.float16))) == "differs: float32 has become float16"
    assert equivalent(F.broadcast(4), G.broadcast(8)).status == "differs"
    assert equivalent(F, F).status == "proved"


def test_an_expression_that_cannot_be_evaluated_is_not_called_equal() -> None:
    lanes = UOp(Ops.VECTORIZE, dtypes.index.vec(4), tuple(UOp.const(dtypes.index, step) for step in range(4)))
    scan = UOp(Ops.SCAN, f32.vec(4), (F.broadcast(4), G.broadcast(4), lanes), Ops.ADD)
    assert "not checked: " in str(equivalent(scan, G.broadcast(4)))
    many = total(total(read(f32, 1, loop(600, 1) + loop(600, 2), size=1200), loop(600, 1)), loop(600, 2))
    assert str(equivalent(many, many * 1.0 + 0.0)).startswith("not checked: more than")


def test_existing_undefined_behavior_is_no_counterexample() -> None:
    by_zero = A // (B * 0)
    verdict = equivalent(by_zero, A)
    assert verdict.status == "not checked"
    assert "divided by 0" in verdict.reason


def _attention() -> Tensor:
    q, k, v = (Tensor.rand(2, 2, 16, 8).realize() for _ in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=True)


def _integers() -> list[Tensor]:
    x = Tensor.randint(5, 37, high=100).realize()
    return [(x % 7).cumsum(1), (x // 3).argmax(1), (x.float().half() * 2).sum(0)]


def _convnet() -> Tensor:
    conv, line = nn.Conv2d(2, 4, 3), nn.Linear(4 * 3 * 3, 5)
    optimizer = nn.optim.SGD([conv.weight, conv.bias, line.weight, line.bias], lr=0.1)
    with Tensor.train():
        hidden = conv(Tensor.rand(2, 2, 8, 8).realize()).relu().max_pool2d(2).flatten(1)
        loss = line(hidden).sparse_categorical_crossentropy(Tensor([1, 2]))
        loss.backward()
        optimizer.step()
    return loss


def _transformer() -> Tensor:
    w = [Tensor.rand(8, 8, requires_grad=True).realize() for _ in range(4)]
    optimizer = nn.optim.Adam(w, lr=1e-3)
    with Tensor.train():
        x = Tensor.rand(1, 4, 8).realize()
        q, k, v = (x @ one for one in w[:3])
        hidden = (x + q.scaled_dot_product_attention(k, v) @ w[3]).layernorm().gelu()
        loss = (hidden * hidden).mean()
        loss.backward()
        optimizer.step()
    return loss


def _sort() -> Tensor:
    return Tensor.rand(4, 32).realize().sort()[0]


@pytest.mark.parametrize("program", [_attention, _sort, _integers, _convnet, _transformer])
def test_no_firing_of_the_engines_rules_has_a_counterexample(program: Callable[[], Any]) -> None:
    view = explore(program, repeat=1)
    found = check_firings(view.trace, samples=12)
    assert len(found) > 10
    assert [str(one) for one in found if one.verdict.status == "differs"] == []
    unchecked = [str(one) for one in found if one.verdict.status == "not checked"]
    assert len(unchecked) <= len(found) // 20, unchecked
