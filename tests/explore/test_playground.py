"""The rule playground: rules written in a cell and applied to captured kernels."""

from __future__ import annotations

import pytest

from tinyexplore import Tensor, Trace, dtypes, explore
from tinyexplore.codegen import PASSES, lower
from tinyexplore.explore import Explorer, playground
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.playground import Ops, UOp, UPat, cvar, var
from tinyexplore.explore.whatif.commands.disable_rule import DisableRule
from tinyexplore.explore.whatif.playground.modified_pipeline import RuleInsertion, RuleRemoval, passes_with
from tinyexplore.uop import Rule

x, y, a = var("x"), var("y"), cvar("a")


def shuffled() -> Explorer:
    """Two kernels whose index arithmetic divides."""
    t = Tensor.rand(33, 64).realize()
    return explore(lambda: [(t.permute(1, 0).reshape(33, 64) + 1).sum(0), t * 2], repeat=1)


@pytest.fixture(scope="module")
def view() -> Explorer:
    return shuffled()


def factor_dropped() -> Rule:
    """A wrong rule: x * a + y is x + y."""

    @playground.rule(x * a + y)
    def factor_dropped(x: UOp, y: UOp) -> UOp:
        """A constant factor is of no use."""
        return x + y

    return factor_dropped


def remainder_written_out() -> Rule:
    """A true one: x % a is x - x // a * a."""

    @playground.rule(UPat.of(Ops.MOD, x, a))
    def remainder_written_out(x: UOp, a: UOp) -> UOp:
        """What is left is what the quotient leaves."""
        return x + x.alu(Ops.IDIV, a) * (a * -1)

    return remainder_written_out


def test_the_matches_of_a_rule_are_listed_before_it_fires(view: Explorer) -> None:
    places = view.rules.matches(factor_dropped(), 0, "simplify")
    assert places
    first = places[0]
    assert (first.kernel, first.name, first.step) == (0, "simplify", 0)
    assert view.trace.nodes[first.node].op == "ADD"
    assert first.verdict.status == "differs"
    assert repr(places).startswith(f"{len(places)} places in 1 kernel\n  kernel 0, simplify, step 0, node ")
    assert view.whatif.branches == ()


def test_a_wrong_rule_in_the_pipeline_is_caught_at_its_first_firing(view: Explorer) -> None:
    branch = view.rules.insert(factor_dropped(), "simplify", 0)
    assert branch.status == "done"
    assert branch.firings[0].verdict == "differs"
    first = branch.firings[0]
    assert (first.kernel, first.stage) == (0, "simplify")
    assert first.inputs
    assert first.was != first.has_become
    changed = branch.kernels[0]
    assert changed.kernel == 0
    assert changed.note.startswith("its results are wrong")
    assert "kernel 0, simplify, step" in branch.reason
    assert "A constant factor" in branch.rule_text


def test_a_correct_rule_in_the_pipeline_has_kernels_with_times(view: Explorer) -> None:
    branch = view.rules.insert(remainder_written_out(), "simplify the rest")
    assert branch.firings
    assert {one.verdict for one in branch.firings} <= {"proved", "agrees"}
    (changed,) = branch.kernels
    assert changed.note == ""
    assert changed.median_us is not None
    assert changed.base_times_us and changed.base_median_us is not None
    captured = [program for program in view.trace.programs if program.kernel == 0]
    assert changed.listings[0].lines != tuple(line.text for line in captured[0].lines)


def test_a_changed_pipeline_leaves_no_state(view: Explorer) -> None:
    compiler = view.whatif.compiler()
    kernel = compiler.under_settings(lambda: compiler.captured(0))
    before = compiler.under_settings(lambda: lower(kernel))
    view.rules.insert(factor_dropped(), "simplify", 0)
    assert compiler.under_settings(lambda: lower(kernel)) == before
    t = Tensor.arange(33 * 64).reshape(33, 64).realize()
    again = (t.permute(1, 0).reshape(33, 64) + 1).sum(0)
    assert again.tolist() == (t.numpy().T.reshape(33, 64) + 1).sum(0).tolist()
    assert [rule for step in PASSES for rule in getattr(getattr(step, "table", None), "rules", ())].count(
        playground.written_rules()[0]
    ) == 0


def test_one_firing_and_all_of_them(view: Explorer) -> None:
    rule = factor_dropped()
    place = view.rules.matches(rule, stage="simplify")[0]
    once = view.rules.fire(rule, place)
    assert [one.stage for one in once.firings] == ["fire factor_dropped"]
    assert once.firings[0].node == place.digest
    everywhere = view.rules.fire_all(rule, 0, "simplify")
    assert len(everywhere.firings) > 1
    stages = [stage.name for stage in view.whatif.trace_of(once).stages]
    assert stages[2:5] == ["as it was", "fire factor_dropped", "simplify"]
    assert once.kernel is None
    assert once.kernels[0].kernel == 0


def test_a_firing_can_be_skipped(view: Explorer) -> None:
    stage = next(one for one in view.trace.stages if one.name == "accumulators" and one.steps)
    step = next(number for number, one in enumerate(stage.steps, 1) if one.rule is not None)
    branch = view.rules.fork(stage.kernel, "accumulators", step)
    assert branch.status == "failed"  # a REDUCE is left, which no renderer knows
    assert "cannot be compiled" in branch.reason
    simplify = next(one for one in view.trace.stages if one.name == "simplify" and one.steps)
    skipped = next(
        (number, view.trace.rules[one.rule].name)
        for number, one in enumerate(simplify.steps, 1)
        if one.rule is not None
    )
    branch = view.rules.fork(simplify.kernel, "simplify", skipped[0])
    assert branch.status == "done"
    assert branch.reason.startswith(f"without {skipped[1]} at step {skipped[0]} of simplify")


def test_a_disabled_rule_and_an_unknown_rule(view: Explorer) -> None:
    branch = view.rules.disable("accumulate")
    assert branch.status == "failed"
    assert "kernel 0 cannot be compiled" in branch.reason
    with pytest.raises(WhatIfError, match="no rule 'acumulate'"):
        view.rules.disable("acumulate")
    with pytest.raises(WhatIfError, match="no pass 'linearize' .*: simplify"):
        view.rules.insert(factor_dropped(), "linearize")


def test_changes_of_the_pipeline_accumulate(view: Explorer) -> None:
    first = view.rules.insert(factor_dropped(), "simplify", 0)
    both = view.rules.disable("factor_dropped", branch=first)
    assert both.parent == first.id
    assert both.kernels == ()
    assert both.status == "done"


def test_rules_that_undo_each_other_or_raise_are_reported(view: Explorer) -> None:
    endless = playground.rule(x + y, lambda x, y: (y + x) + 0 * x, name="endless")
    branch = view.rules.insert(endless, "simplify", 0)
    assert branch.status == "failed"
    assert "without an end" in branch.reason

    @playground.rule(x + y)
    def careless(x: UOp, y: UOp) -> UOp:
        raise ZeroDivisionError("of no use")

    branch = view.rules.insert(careless, "simplify", 0)
    assert branch.status == "failed"
    assert "ZeroDivisionError: " in branch.reason


def test_a_law_and_a_tolerance_are_the_rules_own(view: Explorer) -> None:
    z = var("z")
    loose = playground.law("any_order", (x + y) + z, x + (y + z), tolerance=1e-5)
    assert loose.file == __file__
    t = Tensor.rand(8).realize()
    sums = explore(lambda: (t + t * 2) + t * 3, repeat=1)
    assert {place.verdict.holds for place in sums.rules.matches(loose)} == {True}
    strict = playground.law("any_order", (x + y) + z, x + (y + z))
    assert {place.verdict.status for place in sums.rules.matches(strict)} == {"differs"}


def test_the_rules_of_the_pipeline_are_listed_with_their_firings(view: Explorer) -> None:
    own = factor_dropped()
    rows = {row.name: row for row in view.rules.of()}
    assert rows[own.name].own
    assert rows[own.name].passes == ()
    assert rows["accumulate"].passes == ("accumulators",)
    assert rows["accumulate"].firings == 3
    assert rows["mul_one"].passes == ("simplify", "simplify the copies", "simplify the rest")
    assert [row.name for row in view.rules.of("divisions")][-2:] == ["divide_by_power_of_two", "divide_byte"]


def test_a_pipeline_without_changes_is_the_engines_own() -> None:
    assert passes_with([]) == PASSES
    (rule,) = [rule for step in PASSES if step.name == "accumulators" for rule in step.table.rules[:1]]  # type: ignore[union-attr]
    without = passes_with([RuleRemoval("accumulate")])
    assert [one is other for one, other in zip(without, PASSES)].count(False) == 1
    back = passes_with([RuleRemoval("accumulate"), RuleInsertion(rule, "accumulators", 0)])
    changed = next(step for step in back if step.name == "accumulators")
    assert [one.name for one in changed.table.rules] == ["accumulate", "carry"]  # type: ignore[union-attr]


def test_branches_of_rules_are_saved_and_replayed(view: Explorer, tmp_path) -> None:
    branch = view.rules.insert(factor_dropped(), "simplify", 0)
    loaded = Trace.load(view.trace.save(tmp_path / "trace.json"))
    assert loaded.branches[branch.id] == branch
    other = shuffled()
    (again,) = other.whatif.replay([branch])
    assert [(one.step, one.before) for one in again.firings] == [(one.step, one.before) for one in branch.firings]


def test_the_trace_of_a_branch_has_the_verdict_at_the_exact_step() -> None:
    view = shuffled()
    branch = view.rules.insert(factor_dropped(), "simplify")
    trace = view.whatif.trace_of(branch)
    number = branch.kernels[0].kernel
    mine = [one for one in branch.firings if one.kernel == number]
    assert mine and len(trace.checks) == len(mine)
    for check, firing in zip(trace.checks, mine):
        step = trace.stages[check.stage].steps[check.step - 1]
        assert trace.rules[step.rule].name == "factor_dropped"
        assert firing.node.startswith(trace.nodes[step.before].digest)
        assert (check.verdict, check.inputs, check.was) == (firing.verdict, firing.inputs, firing.was)
    assert view.trace.checks == () and any(check.verdict == "differs" for check in trace.checks)
    with pytest.raises(WhatIfError, match="has the kernels"):
        view.whatif.trace_of(branch, kernel=99)


def test_the_trace_of_a_branch_with_a_disabled_rule_omits_it(view: Explorer) -> None:
    names = {
        view.trace.rules[step.rule].name for stage in view.trace.stages for step in stage.steps if step.rule is not None
    }
    name, branch = next((name, one) for name in sorted(names) if (one := view.rules.disable(name)).kernels)
    trace = view.whatif.trace_of(branch)
    assert trace.kernels and name not in {rule.name for rule in trace.rules}


PROGRAMS = {
    "product": lambda x: (x @ x).softmax(),
    "half": lambda x: (x.half() @ x.half()).sum(1),
    "convolution": lambda x: x.reshape(1, 4, 16, 64).conv2d(Tensor.ones(4, 4, 3, 3)).relu(),
    "gather": lambda x: x[Tensor([1, 2, 3])].sin().cumsum(0),
    "ints": lambda x: (x.cast(dtypes.int32) // 3 % 5).argmax(1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_rule_can_be_disabled_with_one_plain_sentence(name: str) -> None:
    """Where a kernel cannot be compiled without a rule, one sentence says which kernels and which step refuses them,
    without an error message of LLVM or of Python."""
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: PROGRAMS[name](x), repeat=1)
    fired = {step.rule for stage in view.trace.stages for step in stage.steps if step.rule is not None}
    failed = 0
    for rule in sorted(view.trace.rules[number].name for number in fired):
        branch = view.whatif.do(DisableRule(rule))
        assert "\n" not in branch.reason and "Error" not in branch.reason and "%" not in branch.reason, branch.reason
        if branch.status != "failed":
            continue
        failed += 1
        assert branch.reason.startswith(f"Without {rule}, kernel"), branch.reason
        assert branch.reason.endswith(".") and branch.reason.count("cannot be compiled: ") == 1, branch.reason
        assert len(branch.reason) < 160, branch.reason
    assert failed
