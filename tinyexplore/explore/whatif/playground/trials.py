"""Compiles kernels with another pipeline, checks its firings, and measures the changed kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tinyexplore.codegen import PASSES, Pass, lower
from tinyexplore.explore.analysis.explanations.match_attempts import node_text
from tinyexplore.explore.recording.expression import Printer
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import KernelVariant, RuleFiring
from tinyexplore.explore.whatif.kernel_compiler import KernelCompiler
from tinyexplore.explore.whatif.kernel_variant import variant_of
from tinyexplore.explore.whatif.measurement import KernelFailed, KernelNotTimed, Measurement, measure_in_worker
from tinyexplore.explore.whatif.playground.equivalence import Verdict, equivalent
from tinyexplore.explore.whatif.playground.firing_checks import tolerance_of
from tinyexplore.explore.whatif.playground.user_rules import tolerance_of_rule
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import RenderError
from tinyexplore.trace import NodeRebuilt, Recorder, RuleApplied, StageBegan, StageEnded, recording
from tinyexplore.uop import RewriteError, Rule, UOp

MAX_FIRINGS = 400  # most firings of one rule that a branch stores; the others are counted
MAX_CHECKED_FIRINGS = 60  # most different firings that are checked


@dataclass(frozen=True, slots=True)
class UOpRewrite:
    """One firing on live UOps.

    stage: the name of the pass.
    step: the number of the firing, from 1.
    rule: the rule.
    before: the UOp that was replaced.
    after: the replacement.
    """

    stage: str
    step: int
    rule: Rule
    before: UOp
    after: UOp


@dataclass(frozen=True)
class PlaygroundLowering:
    """A kernel after a modified pipeline.

    program: its linear program, None if a pass failed.
    fired: the firings.
    error: why a pass failed, "" if none did.
    """

    program: tuple[UOp, ...] | None
    fired: tuple[UOpRewrite, ...]
    error: str = ""


def lowered_by(compiler: KernelCompiler, number: int, passes: Sequence[Pass]) -> PlaygroundLowering:
    """Lowers the captured kernel with `passes`."""
    recorder = Recorder()
    program, error = None, ""
    with recording(None):
        kernel = compiler.under_settings(lambda: compiler.captured(number))
    try:
        with recording(recorder):
            program = compiler.under_settings(lambda: lower(kernel, passes))
    except Exception as failed:
        error = _pass_failure(failed, recorder)
    return PlaygroundLowering(program, tuple(_yield_rewrites(recorder)), error)


def _pass_failure(failed: Exception, recorder: Recorder) -> str:
    """Returns the pass that failed, with the error if a rule's function raised it or if rules fired without end."""
    stages: list[str] = []
    failing = ""
    for event in recorder.events:
        match event:
            case StageBegan(name, _, _):
                stages.append(name)
            case StageEnded(_, result, _):
                name = stages.pop()
                failing = name if result is None else ""
    failing = stages[-1] if stages else failing
    says = f'pass "{failing}" fails on it' if failing else "a pass raises an error"
    notes = "; ".join(getattr(failed, "__notes__", ()))
    if notes:
        return f"{says}: {first_line(failed)} ({notes})"
    return f"{says}: {first_line(failed)}" if isinstance(failed, RewriteError) else says


def _yield_rewrites(recorder: Recorder) -> Iterable[UOpRewrite]:
    """Yields the recorded rewrites, each with its pass and its step."""
    open_stages: list[list[int | str]] = []
    for event in recorder.events:
        match event:
            case StageBegan(name, _, _):
                open_stages.append([name, 0])
            case StageEnded():
                open_stages.pop()
            case RuleApplied() | NodeRebuilt() if open_stages:
                stage = open_stages[-1]
                stage[1] = int(stage[1]) + 1
                if isinstance(event, RuleApplied):
                    yield UOpRewrite(str(stage[0]), int(stage[1]), event.rule, event.before, event.after)


MAX_ERROR_CHARACTERS = 160  # most characters of an error message


class FiringChecker:
    """Checks firings, and caches the verdict of equal ones."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, UOp, UOp], Verdict] = {}
        self.digests = UopDigests()

    def verdict(self, rule: Rule, stage: str, before: UOp, after: UOp) -> Verdict:
        """Returns whether a firing preserves the computed value."""
        key = rule.name, before, after
        if key not in self.known:
            if len(self.known) >= MAX_CHECKED_FIRINGS:
                return Verdict("not checked", reason=f"{MAX_CHECKED_FIRINGS} different firings were checked before it")
            rule_tolerance = tolerance_of_rule(rule)
            within = tolerance_of(rule.name, stage, before) if rule_tolerance is None else rule_tolerance
            self.known[key] = equivalent(before, after, tolerance=within)
        return self.known[key]

    def row(self, kernel: int, fired: UOpRewrite) -> RuleFiring:
        """Returns a firing as a row of data."""
        verdict = self.verdict(fired.rule, fired.stage, fired.before, fired.after)
        counterexample, printer = verdict.counterexample, Printer()
        return RuleFiring(
            kernel=kernel,
            stage=fired.stage,
            step=fired.step,
            rule=fired.rule.name,
            before=node_text(fired.before, printer),
            after=node_text(fired.after, printer),
            node=self.digests.of(fired.before),
            verdict=verdict.status,
            says=str(verdict),
            inputs=() if counterexample is None else counterexample.inputs,
            was="" if counterexample is None else counterexample.before,
            has_become="" if counterexample is None else counterexample.after,
        )


@dataclass(frozen=True)
class PipelineTrial:
    """One kernel compiled with a modified pipeline.

    number: the number of the kernel.
    variant: the new kernel, None if it did not change.
    firings: the firings of the rule that is tried.
    failure: why it did not compile, "" if it did.
    """

    number: int
    variant: KernelVariant | None
    firings: tuple[RuleFiring, ...]
    failure: str = ""


def try_kernel(
    compiler: KernelCompiler,
    number: int,
    passes: Sequence[Pass],
    is_requested: Callable[[UOpRewrite], bool],
    checks: FiringChecker,
) -> PipelineTrial:
    """Lowers the captured kernel with `passes`. `is_requested` selects the firings to record."""
    lowered = lowered_by(compiler, number, passes)
    firings = tuple([checks.row(number, firing) for firing in lowered.fired if is_requested(firing)][:MAX_FIRINGS])
    if lowered.program is None:
        return PipelineTrial(number, None, firings, lowered.error)
    if lowered.program == lowered_by(compiler, number, PASSES).program:
        return PipelineTrial(number, None, firings)
    try:
        return PipelineTrial(number, _make_variant(compiler, number, passes), firings)
    except RenderError:
        return PipelineTrial(number, None, firings, "the target has no instruction for an operation that remains")
    except Exception:
        return PipelineTrial(number, None, firings, "the compiler rejects its code")


def _make_variant(compiler: KernelCompiler, number: int, passes: Sequence[Pass]) -> KernelVariant:
    """Compiles and times a kernel with other passes, and returns the result."""

    def captured() -> Kernel:
        return compiler.captured(number)

    device = compiler.subjects[number].device
    recorded = compiler.recorded(number, captured, passes)
    kernel, program = recorded.kernel, recorded.runner.spec.uops
    times, note = Measurement(()), ""
    with recording(None):
        try:
            if compiler.measure is not measure_in_worker:
                raise KernelNotTimed("not timed: a page cannot time machine code")
            times = compiler.under_settings(lambda: measure_in_worker(device, kernel, kernel, kernel, program))
        except (KernelNotTimed, KernelFailed) as error:
            note = str(error)
    names = compiler.names.get(number, ())
    variant = compiler.under_settings(
        lambda: variant_of(number, device, recorded.trace, kernel, recorded.runner, times, names)
    )
    return replace(variant, offers=(), nest=(), note=note)


def first_line(error: Exception) -> str:
    """Returns the kind and the first line of an error, at most MAX_ERROR_CHARACTERS characters."""
    text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0].strip()}"
    return text if len(text) <= MAX_ERROR_CHARACTERS else text[: MAX_ERROR_CHARACTERS - 1].rstrip() + "…"


def result_text(outcomes: Sequence[PipelineTrial], change: str, kernels: int) -> str:
    """Returns the result of `change` ("without widen", or the name of a rule) in one line."""
    firings = [firing for outcome in outcomes for firing in outcome.firings]
    wrong = [firing for firing in firings if firing.verdict == "differs"]
    unchecked = [firing for firing in firings if firing.verdict == "not checked"]
    changed = [outcome.variant for outcome in outcomes if outcome.variant is not None]
    failures = _describe_failures(outcomes)
    if failures and not firings and not changed:
        return f"{change[:1].upper()}{change[1:]}, {'; '.join(failures)}."
    parts = [f"{change}: {count_text(len(firings), 'firing')}"]
    if wrong:
        first = wrong[0]
        parts.append(
            f"{len(wrong)} wrong, the first in kernel {first.kernel}, {first.stage}, step {first.step}: {first.says}"
        )
    if unchecked:
        parts.append(f"{len(unchecked)} not checked")
    parts.append(f"{len(changed)} of {count_text(kernels, 'kernel')} changed")
    parts += [f"kernel {outcome.kernel}: {outcome.note}" for outcome in changed if outcome.note]
    return "; ".join([*parts, *failures])


def _describe_failures(outcomes: Sequence[PipelineTrial]) -> list[str]:
    """Returns a sentence for each kind of failure, with the kernels that did not compile."""
    alike: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.failure:
            alike.setdefault(outcome.failure, []).append(str(outcome.number))
    return [
        f"{'kernel' if len(numbers) == 1 else 'kernels'} {', '.join(numbers)} cannot be compiled: {failure}"
        for failure, numbers in alike.items()
    ]


__all__ = [
    "FiringChecker",
    "UOpRewrite",
    "PlaygroundLowering",
    "PipelineTrial",
    "lowered_by",
    "result_text",
    "try_kernel",
]
