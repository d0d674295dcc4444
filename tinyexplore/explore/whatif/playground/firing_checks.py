"""Checks every firing in a recorded program: whether the new node computes the same value as the old one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tinyexplore.codegen import PASSES, Rewrite
from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuildError, RebuiltUOps
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.playground.equivalence import Verdict, equivalent
from tinyexplore.uop import UOp

FIRING_SAMPLES = 48
# rules of the engine that change the order of a sum, or round once instead of twice
REORDERING = frozenset(
    (
        "reduce_each",
        "vector_reduce",
        "combine_vectors_first",
        "lanes_combined",
        "accumulate",
        "carry",
        "dot_written_out",
    )
)
APPROXIMATING = "transcendental functions"  # the pass whose rules replace functions by polynomials
TOLERANCES = {dtypes.float64: 1e-13, dtypes.float32: 2e-6, dtypes.float16: 4e-3, dtypes.bfloat16: 4e-2}


@dataclass(frozen=True, slots=True, repr=False)
class CheckedFiring:
    """A checked firing of a trace.

    stage: the name of the pass.
    step: the number of the firing, from 1.
    rule: the name of the rule.
    verdict: the result of the check.
    """

    stage: int
    step: int
    rule: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"stage {self.stage}, step {self.step}, {self.rule}: {self.verdict}"

    __repr__ = __str__


def check_firings(
    trace: Trace,
    *,
    stages: Iterable[int] | None = None,
    step: int | None = None,
    rule: str | None = None,
    samples: int = FIRING_SAMPLES,
) -> tuple[CheckedFiring, ...]:
    """Checks the firings of a trace: all of them, or those of some stages, of one `step` (from 1), or of one rule.

    Equal firings are checked once.
    """
    return tuple(_check_steps(trace, stages, step, rule, samples))


def _check_steps(
    trace: Trace, stages: Iterable[int] | None, only: int | None, rule: str | None, samples: int
) -> Iterator[CheckedFiring]:
    """Checks the firings of these stages. Equal firings are checked once."""
    rebuilt = RebuiltUOps(trace)
    verdicts: dict[tuple[str, UOp, UOp], Verdict] = {}
    stage_ids = None if stages is None else set(stages)
    for stage in trace.stages:
        if stage_ids is not None and stage.id not in stage_ids:
            continue
        for number, step in enumerate(stage.steps, 1):
            if step.rule is None or only not in (None, number):
                continue
            name = trace.rules[step.rule].name
            if rule not in (None, name):
                continue
            try:
                before, after = rebuilt.uop(step.before), rebuilt.uop(step.after)
            except RebuildError as error:
                yield CheckedFiring(stage.id, number, name, Verdict("not checked", reason=str(error)))
                continue
            key = name, before, after
            if key not in verdicts:
                within = tolerance_of(name, stage.name, before)
                verdicts[key] = equivalent(before, after, samples=samples, tolerance=within, prove=False)
            yield CheckedFiring(stage.id, number, name, verdicts[key])


def tolerance_of(rule: str, stage: str, before: UOp) -> float | None:
    """Returns the relative error that a rule may introduce in a float; None if results must be equal bit for bit."""
    kind = before.dtype
    if not isinstance(kind, DType) or not dtypes.is_float(kind):
        return None
    is_loose = rule in REORDERING or (stage == APPROXIMATING and rule in APPROXIMATIONS)
    return TOLERANCES.get(kind.scalar) if is_loose else None


APPROXIMATIONS = frozenset(
    listed_rule.name
    for step in PASSES
    if isinstance(step, Rewrite) and step.name == APPROXIMATING
    for listed_rule in step.table.rules
)

__all__ = ["APPROXIMATIONS", "REORDERING", "CheckedFiring", "check_firings", "tolerance_of"]
